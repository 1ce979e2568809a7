//! Tests of the slice stream: previews of distributed slices, their acknowledgements, and the writes of the objects
//! that follow.

use crate::histories::{self, MEMBERS, an_event, happen, prelude};
use crate::oracle::{CLASSES, assert_grace_is_over, assert_settled, classes, state};
use crate::support::agent::{View, applied, removed};
use crate::support::build::{
    Build, BuildHubSlice, BuildImport, BuildRequest, BuildSlice, IntoObject, content, derived_service,
    distributed_slice, imported_slice, in_hub_of, in_system, member_agent, named, request, resolved, seconds,
    service_import, slice, slice_export, system_namespace,
};
use crate::support::property::for_any;
use crate::support::view::{claimed_hub_view, member_view, observe_and_plan, observe_change, planned};
use crate::support::world::{Entry, Who, World, fleet};
use ::histories::users::Action;
use fleetnet_core::features::Features;
use fleetnet_core::limits::{
    HUB_OUTAGE_MICROS, PREVIEW_ACKNOWLEDGEMENT_MICROS, PREVIEW_PAUSE_MICROS, RESTORE_GRACE_MICROS,
};
use fleetnet_core::member::{SliceStreamUse, StreamEnd};
use fleetnet_core::model::{
    AddressType, Announcement, ConsumerType, EndpointSlice, HubSlice, Kind, MemberAgent, Object, SliceStreamOffer,
};
use fleetnet_core::plan::{ImportedSlice, Patch, Plan, Preview, Write};
use fleetnet_core::{hub, member};
use fleetnet_types::{Timestamp, WatchState};
use proptest::prelude::{Strategy, any, prop, prop_oneof};
use std::sync::Arc;

const LAG_MICROS: i64 = 5_000_000;

// === Hub agent ===

/// Returns a hub whose importer member-2 holds a stream, the export of member-1 and its distributed slice, and their
/// key.
fn streaming_hub() -> (hub::Planner, HubSlice, HubSlice, hub::Key) {
    let export = slice_export("member-1", &slice("work/app-1")).with_addresses(&["10.0.0.1"], 4).marked();
    let distributed = distributed_slice("member-2", &export).marked();
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let agent = member_agent("member-2", Features::ALL, Features::ALL).object();
    let objects =
        [Object::EndpointSliceExport(export.clone()), Object::EndpointSliceImport(distributed.clone()), agent];
    let mut view = claimed_hub_view(objects.into_iter().chain([import.object()]));
    view.object_lag_micros = LAG_MICROS;
    view.stream_began(&distributed.meta.name.member_namespace(), seconds(1), &mut Vec::new());
    let key = hub::Key::DistributedSlice {
        slice: export.meta.name.name.clone(),
        importer: distributed.meta.name.member_namespace(),
    };
    (view, export, distributed, key)
}

/// Changes the export, and plans the distributed slice at this second.
fn exported(view: &mut hub::Planner, key: &hub::Key, export: HubSlice, second: i64) -> Plan {
    view.apply(Kind::EndpointSliceExport, applied(Object::EndpointSliceExport(export)).1, seconds(second), &mut vec![]);
    view.decide_and_record(key, seconds(second))
}

fn write(distributed: &HubSlice, export: &HubSlice) -> Write {
    Write::patch(&distributed.meta, Patch::EndpointSliceImport(export.spec.clone()))
}

fn wait(until: Timestamp, preview: Option<Preview>) -> Plan {
    Plan { again: Some(until), preview, ..Plan::default() }
}

/// Rule J4: An imported slice changes, and its importer has a stream
/// Then: The hub agent sends one preview. The member agent imports the preview like an object, and then acknowledges
/// the generation of the source slice
///
/// Rule J5: An object is older than the last preview
/// Then: The hub agent writes the object `--object-lag` after the first preview that the object does not have. It
/// writes the object earlier if a preview is not acknowledged within 1 s. An acknowledgement of an earlier preview
/// gives the last one another second
#[test]
fn a_change_is_previewed_at_once_and_written_after_the_lag() {
    let (mut view, export, distributed, key) = streaming_hub();
    assert_eq!(view.decide_and_record(&key, seconds(10)), Plan::default());
    let changed = export.clone().with_addresses(&["10.0.0.9"], 5);
    let first = exported(&mut view, &key, changed.clone(), 20);
    let until = seconds(20).plus_micros(PREVIEW_ACKNOWLEDGEMENT_MICROS);
    assert_eq!(first, wait(until, Some(Preview::Show(changed.spec))));
    assert_eq!(view.decide_and_record(&key, seconds(20)), wait(until, None), "a preview is sent once");

    let mut requeue = Vec::new();
    view.acknowledged(&distributed.meta.name, 5, seconds(20), &mut requeue);
    assert_eq!(requeue, std::slice::from_ref(&key));
    let until = seconds(20).plus_micros(LAG_MICROS);
    assert_eq!(view.decide_and_record(&key, seconds(20)), wait(until, None));

    // A later change does not delay the object any further.
    let later = export.with_addresses(&["10.0.0.10"], 6);
    assert_eq!(exported(&mut view, &key, later.clone(), 24).preview, Some(Preview::Show(later.spec.clone())));
    view.acknowledged(&distributed.meta.name, 6, seconds(24), &mut requeue);
    assert_eq!(view.decide_and_record(&key, seconds(24)), wait(until, None));
    assert_eq!(view.decide_and_record(&key, until), Plan::one(write(&distributed, &later)));
    let written = HubSlice { spec: later.spec, ..distributed.clone() }.version(2);
    view.applied(Object::EndpointSliceImport(written), until, &mut Vec::new());
    assert_eq!(view.decide_and_record(&key, until), Plan::default());
}

/// Also rule J5.
#[test]
fn a_preview_that_is_not_acknowledged_is_followed_by_its_object_after_a_second() {
    let (mut view, export, distributed, key) = streaming_hub();
    let (fifth, sixth) = (export.clone().with_addresses(&["10.0.0.9"], 5), export.with_addresses(&["10.0.0.10"], 6));
    exported(&mut view, &key, fifth, 20);
    let until = seconds(20).plus_micros(PREVIEW_ACKNOWLEDGEMENT_MICROS);
    let half = seconds(20).plus_micros(500_000);
    view.applied(Object::EndpointSliceExport(sixth.clone()), half, &mut Vec::new());
    assert_eq!(view.decide_and_record(&key, half), wait(until, Some(Preview::Show(sixth.spec.clone()))));
    assert_eq!(
        view.decide_and_record(&key, until),
        Plan::one(write(&distributed, &sixth)),
        "not a second after the last one"
    );

    // An acknowledgement of an earlier preview gives the last one its full time.
    let (mut view, export, distributed, key) = streaming_hub();
    exported(&mut view, &key, export.with_addresses(&["10.0.0.9"], 5), 20);
    view.applied(Object::EndpointSliceExport(sixth), half, &mut Vec::new());
    view.decide_and_record(&key, half);
    view.acknowledged(&distributed.meta.name, 5, half, &mut Vec::new());
    let until = half.plus_micros(PREVIEW_ACKNOWLEDGEMENT_MICROS);
    assert_eq!(view.decide_and_record(&key, seconds(21)), wait(until, None));
}

/// Also rule J5.
#[test]
fn many_changes_of_one_slice_cost_one_write_in_each_lag() {
    let (mut view, export, mut distributed, key) = streaming_hub();
    let (mut writes, mut generation) = (Vec::new(), 4);
    for step in 0..1_200 {
        let now = seconds(100).plus_micros(step * 50_000);
        generation += 1;
        let address = format!("10.0.{}.{}", generation / 200, generation % 200 + 1);
        let changed = export.clone().with_addresses(&[&address], generation);
        view.applied(Object::EndpointSliceExport(changed.clone()), now, &mut Vec::new());
        let plan = view.decide_and_record(&key, now);
        if !plan.writes.is_empty() {
            assert_eq!(plan.writes, [write(&distributed, &changed)]);
            distributed = HubSlice { spec: changed.spec, ..distributed }.version(generation.unsigned_abs());
            view.applied(Object::EndpointSliceImport(distributed.clone()), now, &mut Vec::new());
            writes.push(now);
        }
        view.acknowledged(&distributed.meta.name, generation, now, &mut Vec::new());
    }
    let gaps: Vec<i64> = writes.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(gaps.iter().all(|gap| *gap >= LAG_MICROS && *gap <= LAG_MICROS + 50_000), "{gaps:?}");
    assert!((10..=12).contains(&writes.len()), "{} writes for 1,200 changes in a minute", writes.len());
}

/// Rule J7: The hub agent has written an object, and a newer preview was sent meanwhile
/// Then: The lag of the object begins again with this write
#[test]
fn the_lag_begins_again_with_a_write_that_a_newer_preview_has_overtaken() {
    let (mut view, export, distributed, key) = streaming_hub();
    let (fifth, sixth) = (export.clone().with_addresses(&["10.0.0.9"], 5), export.with_addresses(&["10.0.0.10"], 6));
    exported(&mut view, &key, fifth.clone(), 20);
    view.acknowledged(&distributed.meta.name, 5, seconds(20), &mut Vec::new());
    assert_eq!(exported(&mut view, &key, fifth.clone(), 25), Plan::one(write(&distributed, &fifth)));
    exported(&mut view, &key, sixth, 25);
    view.acknowledged(&distributed.meta.name, 6, seconds(25), &mut Vec::new());
    let written = HubSlice { spec: fifth.spec, ..distributed }.version(2);
    view.applied(Object::EndpointSliceImport(written.clone()), seconds(26), &mut Vec::new());
    let until = seconds(26).plus_micros(LAG_MICROS);
    assert_eq!(view.decide_and_record(&key, seconds(26)), wait(until, None));
    // A change of its metadata is no write of the content.
    let touched = HubSlice { observed_generation: Some(5), ..written }.version(3);
    view.applied(Object::EndpointSliceImport(touched), seconds(28), &mut Vec::new());
    assert_eq!(view.decide_and_record(&key, seconds(28)), wait(until, None));
}

/// Rule J3: A distributed slice is new or not imported yet, becomes empty, gets another source slice, or changes
/// without a newer generation of the source slice
/// Then: The hub agent sends no preview, and writes the object at once
#[test]
fn first_imports_emptied_slices_and_other_sources_use_objects_only() {
    let change = |export: &HubSlice| export.clone().with_addresses(&["10.0.0.9"], 5);
    type Prepare = fn(&mut hub::Planner, &mut HubSlice, &mut HubSlice);
    let table: [(&str, Prepare); 8] = [
        ("no stream", |view, _, distributed| {
            view.stream_ended(&distributed.meta.name.member_namespace(), seconds(20), &mut Vec::new());
        }),
        ("not imported yet", |_, _, distributed| distributed.meta.finalizers.ours = false),
        ("emptied", |_, changed, _| changed.spec.content = content(&[]).into()),
        ("the same generation", |_, changed, _| changed.spec.reference.generation = 4),
        ("an older generation", |_, changed, _| changed.spec.reference.generation = 3),
        ("another source slice", |_, changed, _| changed.spec.reference.uid = "uid-of-another".into()),
        ("under another name", |_, _, distributed| distributed.misnamed = true),
        ("a lag of zero", |view, _, _| view.object_lag_micros = 0),
    ];
    for (why, prepare) in table {
        let (mut view, export, mut distributed, key) = streaming_hub();
        let mut changed = change(&export);
        prepare(&mut view, &mut changed, &mut distributed);
        view.applied(Object::EndpointSliceImport(distributed.clone().version(2)), seconds(15), &mut Vec::new());
        let plan = exported(&mut view, &key, changed.clone(), 20);
        assert_eq!(plan.writes, [write(&distributed.version(2), &changed)], "{why}");
        assert_eq!(plan.preview.is_some(), why == "a lag of zero", "{why}");
    }
}

/// Rule J6: An export changes to a generation of the source slice that is not newer than that of the last preview, for
/// example because another writer edits the export
/// Then: The hub agent writes the object at once. If the export is older than the preview, the hub agent ends the
/// stream, which drops the preview (ABORTED). A member agent that lists its distributed slices again drops all
/// previews, because the list may not show that a source went back
#[test]
fn a_source_that_goes_back_is_written_at_once_and_ends_the_stream_that_had_its_preview() {
    let (mut view, export, distributed, key) = streaming_hub();
    let sixth = export.clone().with_addresses(&["10.0.0.9"], 6);
    exported(&mut view, &key, sixth.clone(), 20);
    // Another writer changed the export without a new generation of the source slice.
    let edited = export.clone().with_addresses(&["10.6.6.6"], 6);
    assert_eq!(exported(&mut view, &key, edited.clone(), 20), Plan::one(write(&distributed, &edited)));
    assert_eq!(exported(&mut view, &key, sixth, 20).preview, None, "it was sent before");

    // The exporting cluster was restored from a backup.
    let fifth = export.with_addresses(&["10.0.0.8"], 5);
    let ended = Plan { preview: Some(Preview::EndStream), ..Plan::one(write(&distributed, &fifth)) };
    assert_eq!(exported(&mut view, &key, fifth.clone(), 20), ended);
    assert_ne!(exported(&mut view, &key, fifth, 20).preview, Some(Preview::EndStream), "once");

    let (mut view, export, _, key) = streaming_hub();
    exported(&mut view, &key, export.clone().with_addresses(&["10.0.0.9"], 6), 20);
    let ended = Plan { preview: Some(Preview::EndStream), ..Plan::default() };
    assert_eq!(exported(&mut view, &key, export.clone(), 20), ended, "back to what the object has");
    assert_eq!(exported(&mut view, &key, export, 20), Plan::default());
}

/// Rule J21: An export went back to an older generation of the source slice than its preview, which ends streams of
/// importers (rule J6)
/// Then: For 10 minutes, the hub agent sends no new previews from the exporting member, so it cannot end the streams of
/// others again. A warning in the log names the export
#[test]
fn after_a_source_went_back_its_member_has_no_previews_for_ten_minutes() {
    let (mut view, export, _, key) = streaming_hub();
    let change = |generation: i64| export.clone().with_addresses(&[&format!("10.0.1.{generation}")], generation);
    exported(&mut view, &key, change(6), 20);
    assert_eq!(exported(&mut view, &key, change(5), 20).preview, Some(Preview::EndStream));
    let pause_ends = 20 + PREVIEW_PAUSE_MICROS / 1_000_000;
    for (second, is_previewed) in [(20, false), (pause_ends - 1, false), (pause_ends, true)] {
        let plan = exported(&mut view.clone(), &key, change(7), second);
        assert_eq!((plan.preview.is_some(), plan.writes.is_empty()), (is_previewed, is_previewed), "{second}");
    }
    view.clock_set(3_600_000_000);
    assert_eq!(exported(&mut view.clone(), &key, change(7), pause_ends + 3_599).preview, None);
    assert!(exported(&mut view.clone(), &key, change(7), pause_ends + 3_600).preview.is_some());

    // The pause concerns neither a preview that was sent before, nor the slices of other members.
    for (exporter, is_paused) in [("member-1", true), ("member-3", false)] {
        let (mut view, export, distributed, key) = streaming_hub();
        exported(&mut view, &key, export.clone().with_addresses(&["10.0.0.9"], 5), 20);
        let other = slice_export(exporter, &slice("work/other-1")).with_addresses(&["10.3.0.1"], 6).marked();
        let at = hub::Key::DistributedSlice {
            slice: other.meta.name.name,
            importer: distributed.meta.name.member_namespace(),
        };
        view.sent(&at, Preview::Show(other.spec), seconds(20));
        view.sent(&at, Preview::EndStream, seconds(20));
        let until = seconds(20).plus_micros(PREVIEW_ACKNOWLEDGEMENT_MICROS);
        assert_eq!(view.decide_and_record(&key, seconds(20)), wait(until, None), "{exporter}");
        let later = exported(&mut view, &key, export.with_addresses(&["10.0.0.10"], 6), 20);
        assert_eq!(later.preview.is_none(), is_paused, "{exporter}");
    }
}

/// Rule J8: A stream ends, or the hub agent stops
/// Then: The hub agent writes the objects of its previews at once, also before it stops. A stream that begins again and
/// again does not delay them. The member agent drops the previews. The imported slices stay as they are until the hub
/// agent has written the objects, or for the time in rule P13: 60 s with one new stream, or 1 h without one
#[test]
fn the_end_of_a_stream_makes_its_objects_due() {
    let (mut view, export, distributed, key) = streaming_hub();
    let changed = export.with_addresses(&["10.0.0.9"], 5);
    exported(&mut view, &key, changed.clone(), 20);
    let (importer, mut requeue) = (&distributed.meta.name.member_namespace(), Vec::new());
    view.stream_ended(&"fleet-member-member-3".into(), seconds(20), &mut requeue);
    assert_eq!(requeue, []);
    view.stream_ended(importer, seconds(20), &mut requeue);
    assert!(requeue.contains(&key));
    assert_eq!(view.clone().decide_and_record(&key, seconds(20)), Plan::one(write(&distributed, &changed)));

    // A stream that begins again and again does not delay the object.
    for second in 21..25 {
        view.stream_began(importer, seconds(1), &mut requeue);
        assert_eq!(view.decide_and_record(&key, seconds(second)).preview, Some(Preview::Show(changed.spec.clone())));
        view.stream_ended(importer, seconds(20), &mut requeue);
    }
    view.stream_began(importer, seconds(1), &mut requeue);
    view.decide_and_record(&key, seconds(24));
    view.acknowledged(&distributed.meta.name, 5, seconds(24), &mut requeue);
    assert_eq!(view.decide_and_record(&key, seconds(24)).again, Some(seconds(20).plus_micros(LAG_MICROS)));
}

/// Also rule J4.
#[test]
fn a_clock_that_is_set_moves_the_times_of_previews() {
    for by in [-3_600_000_000, 3_600_000_000] {
        let (mut view, export, distributed, key) = streaming_hub();
        let changed = export.with_addresses(&["10.0.0.9"], 5);
        exported(&mut view, &key, changed, 20);
        view.clock_set(by);
        let now = seconds(20).plus_micros(by);
        assert_eq!(view.decide_and_record(&key, now).again, Some(now.plus_micros(PREVIEW_ACKNOWLEDGEMENT_MICROS)));
        view.acknowledged(&distributed.meta.name, 5, now, &mut Vec::new());
        assert_eq!(view.decide_and_record(&key, now).again, Some(now.plus_micros(LAG_MICROS)));
    }
}

/// Rule J9: A slice is withdrawn, and its endpoints moved to another slice with a preview
/// Then: The hub agent withdraws the slice as soon as the importer has acknowledged the preview of the other slice
#[test]
fn a_removed_slice_waits_until_the_importer_has_its_endpoints_of_the_replacement() {
    let (mut view, export, distributed, _) = streaming_hub();
    let other = slice_export("member-1", &slice("work/app-2").endpoints(&["10.0.0.2"])).marked();
    let other_distributed = distributed_slice("member-2", &other).marked();
    for object in [Object::EndpointSliceExport(other.clone()), Object::EndpointSliceImport(other_distributed.clone())] {
        observe_and_plan(&mut view, applied(object), seconds(15));
    }
    // The endpoint of the first slice moves to the other slice. Then the first slice is withdrawn.
    let gained = other.with_addresses(&["10.0.0.1", "10.0.0.2"], 5);
    observe_and_plan(&mut view, applied(Object::EndpointSliceExport(gained)), seconds(20));
    observe_and_plan(&mut view, applied(Object::EndpointSliceExport(export.clone().deleting())), seconds(20));
    let importer = distributed.meta.name.member_namespace();
    let removal = hub::Key::DistributedSlice { slice: export.meta.name.name, importer };
    assert_eq!(view.decide_and_record(&removal, seconds(20)).writes, []);
    let mut requeue = Vec::new();
    view.acknowledged(&other_distributed.meta.name, 5, seconds(20), &mut requeue);
    assert!(requeue.contains(&removal), "{requeue:?}");
    let delete = Write::delete(Kind::EndpointSliceImport, &distributed.meta);
    assert_eq!(view.decide_and_record(&removal, seconds(20)).writes, [delete], "the object is written later");
}

/// Also rules D10, J9.
#[test]
fn a_slice_that_has_endpoints_only_in_its_preview_is_not_emptied_before_its_replacement_is_there() {
    let (mut view, export, distributed, key) = streaming_hub();
    let empty = Object::EndpointSliceImport(distributed.with_addresses(&[], 4).version(2));
    observe_and_plan(&mut view, applied(empty), seconds(15));
    let shown = exported(&mut view, &key, export.clone().with_addresses(&["10.0.0.9"], 5), 20);
    assert!(matches!(shown.preview, Some(Preview::Show(_))), "{shown:?}");
    let other = slice_export("member-1", &slice("work/app-2").endpoints(&["10.0.0.9"])).marked();
    view.applied(Object::EndpointSliceExport(other), seconds(20), &mut Vec::new());
    assert_eq!(exported(&mut view, &key, export.with_addresses(&[], 6), 20).writes, []);
}

/// Also rule J4.
#[test]
fn the_begin_of_a_stream_requeues_the_slices_that_are_written_without_it() {
    let (mut view, export, distributed, key) = streaming_hub();
    view.stream_ended(&distributed.meta.name.member_namespace(), seconds(20), &mut Vec::new());
    exported(&mut view, &key, export.with_addresses(&["10.0.0.9"], 5), 20);
    let mut requeue = Vec::new();
    view.stream_began(&distributed.meta.name.member_namespace(), seconds(1), &mut requeue);
    assert!(requeue.contains(&key), "{requeue:?}");
}

// === Member agent ===

/// Returns a member that has imported a distributed slice of member-2, both slices, and their key.
fn importing_member() -> (member::Planner, HubSlice, EndpointSlice, member::Key) {
    let request = request("work/app").taken_on().deriving("work-app");
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1")));
    let distributed = distributed.with_addresses(&["10.0.0.1"], 4).marked();
    let name = distributed.meta.name.name.clone();
    let imported = EndpointSlice { observed_generation: Some(4), ..imported_slice(&name, "work-app") };
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let view = member_view([
        request.object(),
        import.object(),
        derived_service("work-app", "work/app").object(),
        Object::EndpointSliceImport(distributed.clone()),
        imported.clone().object(),
    ]);
    (view, distributed, imported, member::Key::SliceImport(in_system(&name)))
}

fn show(view: &mut member::Planner, preview: &HubSlice, second: i64) -> Vec<member::Key> {
    let mut requeue = Vec::new();
    view.show_preview(&preview.meta.name.name, preview.spec.clone(), seconds(second), &mut requeue);
    requeue
}

fn import_of(addresses: &[&str], generation: i64) -> Patch {
    Patch::ImportedSlice(ImportedSlice {
        service: Some("work-app".into()),
        mcs: None,
        content: content(addresses),
        observed_generation: generation,
    })
}

/// Returns the writes of a plan without their latency samples.
fn unmeasured(plan: &Plan) -> Vec<Write> {
    plan.writes.iter().map(|write| write.clone().measured(None)).collect()
}

/// Rule J10: An object changes or is deleted while a preview is valid
/// Then: The preview stays valid while it is newer. A deletion, and an object that is created again, end the preview
///
/// Also rule J4.
#[test]
fn a_preview_is_imported_like_its_object_and_acknowledged_once_imported() {
    let (mut view, distributed, imported, key) = importing_member();
    assert_eq!(planned(&view, &key), Plan::default());
    let preview = distributed.clone().with_addresses(&["10.0.0.9"], 5);
    assert_eq!(show(&mut view, &preview, 20), std::slice::from_ref(&key));
    let patch = Write::patch(&imported.meta, import_of(&["10.0.0.9"], 5));
    let plan = planned(&view, &key);
    assert_eq!(unmeasured(&plan), std::slice::from_ref(&patch));
    assert!(plan.writes[0].sample.is_some() && plan.acknowledged.is_none());

    let shown = EndpointSlice { observed_generation: Some(5), ..imported.endpoints(&["10.0.0.9"]) }.version(2);
    observe_change(&mut view, shown.object());
    assert_eq!(planned(&view, &key), Plan { acknowledged: Some(5), ..Plan::default() });

    // An object that is still older changes nothing. The object with the same content ends the preview.
    let older = distributed.clone().with_addresses(&["10.0.0.1"], 4).version(2);
    observe_change(&mut view, Object::EndpointSliceImport(older));
    assert_eq!(planned(&view, &key), Plan { acknowledged: Some(5), ..Plan::default() });
    observe_change(&mut view, Object::EndpointSliceImport(preview.version(3)));
    assert_eq!(planned(&view, &key), Plan::default());

    // A preview with the content that is imported already is acknowledged without a write.
    show(&mut view, &distributed.with_addresses(&["10.0.0.9"], 6), 20);
    assert_eq!(planned(&view, &key), Plan { acknowledged: Some(6), ..Plan::default() });
}

/// Rule J1: A preview has no newer generation of the source slice than the object (EndpointSliceImport), or than an
/// earlier preview
/// Then: The member agent ignores the preview
///
/// Rule J2: A preview is for a slice that is not distributed, or has another Service, exporting member, source slice or
/// address type than the object
/// Then: The member agent ignores the preview
#[test]
fn a_preview_that_does_not_follow_the_object_is_ignored() {
    type Change = fn(&mut HubSlice);
    let table: [(&str, Change); 8] = [
        ("another slice", |slice| slice.meta.name.name = "unknown".into()),
        ("another Service", |slice| slice.spec.owner = named("work/other")),
        ("another exporter", |slice| slice.spec.reference.cluster = "member-3".into()),
        ("another source slice", |slice| slice.spec.reference.source = named("work/other-1")),
        ("another UID", |slice| slice.spec.reference.uid = "uid-of-another".into()),
        ("another family", |slice| Arc::make_mut(&mut slice.spec.content).address_type = AddressType::IPv6),
        ("the same generation", |slice| slice.spec.reference.generation = 4),
        ("an older generation", |slice| slice.spec.reference.generation = 3),
    ];
    for (why, change) in table {
        let (mut view, distributed, ..) = importing_member();
        let before = view.clone();
        let mut preview = distributed.with_addresses(&["10.6.6.6"], 5);
        change(&mut preview);
        assert_eq!(show(&mut view, &preview, 20), [], "{why}");
        assert_eq!(view, before, "{why}");
    }
    let (mut view, distributed, ..) = importing_member();
    show(&mut view, &distributed.clone().with_addresses(&["10.0.0.9"], 7), 20);
    let before = view.clone();
    assert_eq!(show(&mut view, &distributed.with_addresses(&["10.0.0.8"], 6), 20), [], "older than the last preview");
    assert_eq!(view, before);
}

/// Also rules J8, P13.
#[test]
fn after_the_end_of_a_stream_what_it_delivered_stays_for_a_minute_of_contact_with_the_hub() {
    let (mut view, distributed, imported, key) = importing_member();
    show(&mut view, &distributed.with_addresses(&["10.0.0.9"], 5), 20);
    let shown = EndpointSlice { observed_generation: Some(5), ..imported.endpoints(&["10.0.0.9"]) };
    observe_change(&mut view, shown.clone().object());
    let mut requeue = Vec::new();
    view.stream_ended(StreamEnd::Other, seconds(20), &mut requeue);
    assert_eq!(requeue, std::slice::from_ref(&key));
    let minute = |since: i64| Plan { again: Some(seconds(since).plus_micros(RESTORE_GRACE_MICROS)), ..Plan::default() };
    assert_eq!(view.decide_and_record(&key, seconds(20)), minute(20));

    // Without contact, the agent cannot see what the hub agent writes.
    view.hub_followed(None, seconds(30), &mut requeue);
    assert_eq!(view.decide_and_record(&key, seconds(200)), Plan::default());
    requeue.clear();
    view.hub_followed(Some(seconds(300)), seconds(300), &mut requeue);
    assert_eq!(requeue, std::slice::from_ref(&key));
    assert_eq!(view.decide_and_record(&key, seconds(300)), minute(300));

    // A member that uses a stream waits for the next one: without a leading hub agent, there is none.
    let mut streaming = view.clone();
    streaming.slice_stream.chosen = SliceStreamUse::Fixed;
    let hour = Plan { again: Some(seconds(300).plus_micros(HUB_OUTAGE_MICROS)), ..Plan::default() };
    assert_eq!(streaming.decide_and_record(&key, seconds(1_000)), hour);
    requeue.clear();
    streaming.stream_began(seconds(2_000), &mut requeue);
    assert_eq!(requeue, std::slice::from_ref(&key));
    assert_eq!(streaming.decide_and_record(&key, seconds(2_000)), minute(2_000));

    let back = Write::patch(&shown.meta, import_of(&["10.0.0.1"], 4));
    assert_eq!(unmeasured(&view.decide_and_record(&key, seconds(360))), [back]);
}

/// Returns a member that uses streams, and whose imported slice has generation 5. The distributed slice has
/// generation 4. A stream ended that had delivered generation 5, or this process started later.
fn outdated_member(is_restarted: bool) -> (member::Planner, HubSlice, EndpointSlice, member::Key) {
    let (mut view, distributed, imported, key) = importing_member();
    view.slice_stream.chosen = SliceStreamUse::Fixed;
    if !is_restarted {
        show(&mut view, &distributed.clone().with_addresses(&["10.0.0.9"], 5), 20);
    }
    let shown = EndpointSlice { observed_generation: Some(5), ..imported.endpoints(&["10.0.0.9"]) }.version(2);
    observe_change(&mut view, shown.clone().object());
    (view, distributed, shown, key)
}

/// Also rules J8, P13.
#[test]
fn an_import_goes_back_soon_only_if_a_hub_agent_certainly_leads() {
    type Prepare = fn(&mut member::Planner, &HubSlice);
    let table: [(&str, bool, i64, Prepare); 12] = [
        ("nothing else happens", false, HUB_OUTAGE_MICROS, |_, _| {}),
        ("the process is another one", true, HUB_OUTAGE_MICROS, |_, _| {}),
        ("only the metadata of the object changes", false, HUB_OUTAGE_MICROS, |view, object| {
            observe_change(
                view,
                Object::EndpointSliceImport(HubSlice { observed_generation: Some(4), ..object.clone() }.version(9)),
            );
        }),
        ("the hub is restored", true, HUB_OUTAGE_MICROS, |view, object| {
            let older = object.clone().with_addresses(&["10.0.0.3"], 3);
            observe_change(view, Object::EndpointSliceImport(older.version(0)));
        }),
        ("the source went back", false, RESTORE_GRACE_MICROS, |view, object| {
            let older = object.clone().with_addresses(&["10.0.0.3"], 3);
            observe_change(view, Object::EndpointSliceImport(older.version(9)));
        }),
        ("the source went back, seen by another process", true, RESTORE_GRACE_MICROS, |view, object| {
            let older = object.clone().with_addresses(&["10.0.0.3"], 3);
            observe_change(view, Object::EndpointSliceImport(older.version(9)));
        }),
        ("the source went back, and the object is listed again", true, RESTORE_GRACE_MICROS, |view, object| {
            let older = object.clone().with_addresses(&["10.0.0.3"], 3).version(9);
            observe_change(view, Object::EndpointSliceImport(older.clone()));
            observe_change(view, Object::EndpointSliceImport(older));
        }),
        ("the source went back, and another object is restored", true, RESTORE_GRACE_MICROS, |view, object| {
            let older = object.clone().with_addresses(&["10.0.0.3"], 3).version(9);
            observe_change(view, Object::EndpointSliceImport(older));
            let other = object.clone().called("another").uid("uid-of-another");
            observe_change(view, Object::EndpointSliceImport(other.clone().version(8)));
            observe_change(view, Object::EndpointSliceImport(other.with_addresses(&["10.0.0.2"], 2).version(1)));
        }),
        ("the object gets other endpoints of the same generation", true, RESTORE_GRACE_MICROS, |view, object| {
            let other = object.clone().with_addresses(&["10.0.0.3"], 4);
            observe_change(view, Object::EndpointSliceImport(other.version(9)));
        }),
        ("the source went back, and the imported slice changes", true, RESTORE_GRACE_MICROS, |view, object| {
            let older = object.clone().with_addresses(&["10.0.0.3"], 3);
            observe_change(view, Object::EndpointSliceImport(older.version(9)));
            let at = in_system(&object.meta.name.name);
            let present = view.slices.get(&at).expect("it is imported").clone();
            observe_change(view, EndpointSlice { further_addresses: 1, ..present }.object());
        }),
        ("a stream begins", true, RESTORE_GRACE_MICROS, |view, _| view.stream_began(seconds(20), &mut Vec::new())),
        ("streams are turned off", true, RESTORE_GRACE_MICROS, |view, _| {
            view.slice_stream.chosen = SliceStreamUse::Off;
        }),
    ];
    for (why, is_restarted, grace, prepare) in table {
        let (mut view, distributed, shown, key) = outdated_member(is_restarted);
        view.stream_ended(StreamEnd::Other, seconds(20), &mut Vec::new());
        let hour = Plan { again: Some(seconds(20).plus_micros(HUB_OUTAGE_MICROS)), ..Plan::default() };
        assert_eq!(view.decide_and_record(&key, seconds(20)), hour, "{why}");
        prepare(&mut view, &distributed);
        let wait = view.decide_and_record(&key, seconds(20)).again.expect("a time");
        assert_eq!(wait, seconds(20).plus_micros(grace), "{why}");
        let object = view.distributed_slices.get(&distributed.meta.name).expect("it is distributed");
        let generation = object.spec.reference.generation;
        let address = object.spec.content.endpoints[0].addresses[0].to_string();
        let back = Write::patch(&shown.meta, import_of(&[address.as_str()], generation));
        assert_eq!(unmeasured(&view.decide_and_record(&key, wait)), [back], "{why}");
    }
}

/// Also rules J8, P13.
#[test]
fn a_write_that_a_preview_overtook_does_not_show_that_a_hub_agent_leads() {
    for object_first in [true, false] {
        let (mut view, distributed, imported, key) = importing_member();
        view.slice_stream.chosen = SliceStreamUse::Fixed;
        show(&mut view, &distributed.clone().with_addresses(&["10.0.0.9"], 6), 20);
        let object = Object::EndpointSliceImport(distributed.with_addresses(&["10.0.0.2"], 5).version(9));
        let shown = EndpointSlice { observed_generation: Some(6), ..imported.endpoints(&["10.0.0.9"]) }.version(2);
        if object_first {
            observe_change(&mut view, object.clone());
        }
        observe_change(&mut view, shown.object());
        if !object_first {
            observe_change(&mut view, object);
        }
        view.stream_ended(StreamEnd::Other, seconds(30), &mut Vec::new());
        let hour = seconds(30).plus_micros(HUB_OUTAGE_MICROS);
        assert_eq!(view.decide_and_record(&key, seconds(30)).again, Some(hour), "{object_first}");
    }
    // The source went back, and forward again later. The write of the older object says nothing about a later preview.
    let (mut view, distributed, shown, key) = outdated_member(true);
    let older = distributed.with_addresses(&["10.0.0.3"], 3).version(9);
    observe_change(&mut view, Object::EndpointSliceImport(older));
    let later = EndpointSlice { observed_generation: Some(7), ..shown.endpoints(&["10.0.0.8"]) }.version(3);
    observe_change(&mut view, later.object());
    let hour = seconds(20).plus_micros(HUB_OUTAGE_MICROS);
    assert_eq!(view.decide_and_record(&key, seconds(20)).again, Some(hour));
}

/// Also rules J8, P13.
#[test]
fn a_restored_hub_shows_no_hub_agent_that_leads() {
    let (mut view, distributed, _, key) = outdated_member(true);
    let older = distributed.clone().with_addresses(&["10.0.0.3"], 3).version(9);
    observe_change(&mut view, Object::EndpointSliceImport(older));
    let restored = distributed.with_addresses(&["10.0.0.2"], 2).version(1);
    observe_change(&mut view, Object::EndpointSliceImport(restored));
    let hour = seconds(20).plus_micros(HUB_OUTAGE_MICROS);
    assert_eq!(view.decide_and_record(&key, seconds(20)).again, Some(hour));
}

/// Also rule P13.
#[test]
fn after_the_end_of_an_offer_the_hub_agent_has_a_minute_to_write_the_objects() {
    let (mut view, _, _, key) = outdated_member(true);
    view.slice_stream.chosen = SliceStreamUse::Offered;
    // Nobody knows yet if the hub agent offers a stream.
    view.watch_state(Kind::MemberAgent, WatchState::Incomplete, seconds(20), &mut Vec::new());
    assert_eq!(view.decide_and_record(&key, seconds(500)), Plan::default());
    let mut requeue = Vec::new();
    view.watch_state(Kind::MemberAgent, WatchState::Complete, seconds(20), &mut requeue);
    assert!(requeue.contains(&key));
    let offer = SliceStreamOffer { address: "hub:1".into(), ca_bundle: "PEM".into() };
    let mut offered = member_agent("member-1", Features::ALL, Features::ALL);
    offered.status.slice_stream = Some(offer);
    let at = |second| seconds(second).plus_micros(RESTORE_GRACE_MICROS);
    let mut fixed = view.clone();
    view.applied(offered.clone().object(), seconds(500), &mut Vec::new());
    let hour = seconds(500).plus_micros(HUB_OUTAGE_MICROS);
    assert_eq!(view.decide_and_record(&key, seconds(500)).again, Some(hour));
    let renewed = MemberAgent { renewed: Some(seconds(600)), ..offered.clone() };
    view.applied(renewed.object(), seconds(600), &mut Vec::new());
    assert_eq!(view.decide_and_record(&key, seconds(600)).again, Some(hour), "the offer is the same");
    fixed.slice_stream.chosen = SliceStreamUse::Fixed;
    fixed.applied(offered.clone().object(), seconds(500), &mut Vec::new());
    let hour = seconds(20).plus_micros(HUB_OUTAGE_MICROS);
    assert_eq!(fixed.decide_and_record(&key, seconds(500)).again, Some(hour), "it does not use the offer");
    requeue.clear();
    let mut gone = view.clone();
    let (kind, change) = removed(Kind::MemberAgent, offered.meta.name.clone(), offered.meta.uid.clone());
    gone.apply(kind, change, seconds(900), &mut requeue);
    assert!(requeue.contains(&key));
    assert_eq!(gone.decide_and_record(&key, seconds(900)).again, Some(at(900)), "the offer is gone");
    requeue.clear();
    let mut without = offered;
    without.status.slice_stream = None;
    view.applied(without.version(2).object(), seconds(900), &mut requeue);
    assert!(requeue.contains(&key));
    assert_eq!(view.decide_and_record(&key, seconds(900)).again, Some(at(900)));
    view.clock_set(60_000_000);
    assert_eq!(view.decide_and_record(&key, seconds(960)).again, Some(at(960)));
}

/// Also rule P13.
#[test]
fn an_import_goes_back_soon_once_another_cluster_is_known_to_have_the_stream_of_the_id() {
    let (mut view, _, _, key) = outdated_member(true);
    view.settings.announces = Some(Announcement::new("1.2.3", Features::ALL));
    let mut foreign = member_agent("member-1", Features::ALL, Features::ALL);
    foreign.cluster_uid = Some("uid-of-another".into());
    observe_change(&mut view, foreign.object());
    observe_change(&mut view, system_namespace("uid-kube-system"));
    let until = |grace| Some(seconds(20).plus_micros(grace));
    assert_eq!(view.decide_and_record(&key, seconds(20)).again, until(HUB_OUTAGE_MICROS), "its own UID is not read");
    let mut requeue = Vec::new();
    view.watch_state(Kind::SystemNamespace, WatchState::Complete, seconds(20), &mut requeue);
    assert!(requeue.contains(&key), "{requeue:?}");
    assert_eq!(view.decide_and_record(&key, seconds(20)).again, until(RESTORE_GRACE_MICROS));
}

/// Also rules J6, J8, P13.
#[test]
fn an_import_goes_back_without_a_stream_after_the_hub_agent_took_its_preview_back() {
    // The object has what the hub agent wants, so it is not written. The end of the stream shows that a hub agent
    // leads.
    let (mut view, _, shown, key) = outdated_member(false);
    view.stream_ended(StreamEnd::ByHub, seconds(20), &mut Vec::new());
    let wait = seconds(20).plus_micros(RESTORE_GRACE_MICROS);
    assert_eq!(view.decide_and_record(&key, seconds(20)).again, Some(wait));
    let back = Write::patch(&shown.meta, import_of(&["10.0.0.1"], 4));
    assert_eq!(unmeasured(&view.decide_and_record(&key, wait)), [back]);

    // The stream is stuck, so the older object arrives first.
    let (mut view, distributed, shown, key) = outdated_member(false);
    let older = distributed.with_addresses(&["10.0.0.3"], 3).version(9);
    observe_change(&mut view, Object::EndpointSliceImport(older));
    view.stream_ended(StreamEnd::Other, seconds(50), &mut Vec::new());
    let wait = seconds(50).plus_micros(RESTORE_GRACE_MICROS);
    assert_eq!(view.decide_and_record(&key, seconds(50)).again, Some(wait));
    let back = Write::patch(&shown.meta, import_of(&["10.0.0.3"], 3));
    assert_eq!(unmeasured(&view.decide_and_record(&key, wait)), [back]);
}

/// Also rule J6.
#[test]
fn a_new_list_of_distributed_slices_drops_previews() {
    let (mut view, distributed, _, key) = importing_member();
    let before = view.clone();
    show(&mut view, &distributed.with_addresses(&["10.0.0.9"], 5), 20);
    let mut requeue = Vec::new();
    view.distributed_slices_listed_again(seconds(20), &mut requeue);
    assert_eq!((requeue, &view.distributed_slices), (vec![key], &before.distributed_slices));
}

/// Also rule J10.
#[test]
fn a_dropped_preview_and_a_deletion_end_like_with_objects_alone() {
    let (mut view, distributed, imported, key) = importing_member();
    let before = view.clone();
    show(&mut view, &distributed.clone().with_addresses(&["10.0.0.9"], 5), 20);
    show(&mut view, &distributed.clone().with_addresses(&["10.0.0.8"], 6), 20);
    for _ in 0..2 {
        view.stream_ended(StreamEnd::Other, seconds(20), &mut Vec::new());
        assert_eq!(view.distributed_slices, before.distributed_slices, "neither was imported yet");
        assert_eq!(planned(&view, &key), Plan::default());
    }

    show(&mut view, &distributed.clone().with_addresses(&["10.0.0.9"], 5), 20);
    observe_change(&mut view, Object::EndpointSliceImport(distributed.clone().version(2).deleting()));
    assert_eq!(planned(&view, &key).writes, [Write::delete(Kind::EndpointSlice, &imported.meta)]);
    // The distributed slice is created again, and has no preview.
    let again = distributed.uid("uid-of-another").version(3);
    observe_change(&mut view, Object::EndpointSliceImport(again));
    assert_eq!(planned(&view, &key), Plan::default());
}

// === Fleets ===

/// Event of a history with streams.
#[derive(Clone, Debug)]
enum Event {
    Other(histories::Event),
    Connect(usize),
    LoseAtMember(usize),
    LoseAtHub(usize),
}

fn a_streaming_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => an_event().prop_map(Event::Other),
        8 => (0..MEMBERS, prop::collection::vec(1..9u8, 1..4)).prop_map(|(member, endpoints)| {
            Event::Other(histories::Event::User(Action::SetSlice { member, app: 0, slice: 0, endpoints }))
        }),
        4 => (0..MEMBERS).prop_map(Event::Connect),
        1 => (0..MEMBERS).prop_map(Event::LoseAtMember),
        1 => (0..MEMBERS).prop_map(Event::LoseAtHub),
    ]
}

/// A day in microseconds.
const LONG_MICROS: i64 = 86_400_000_000;

/// Also rule J8.
#[test]
fn any_history_with_streams_ends_like_with_objects_alone() {
    const WITH_PREVIEW: &str = "a preview is delivered";
    let classes_of = |world: &World| {
        let mut shown: Vec<&'static str> = classes(world).to_vec();
        shown.extend((world.delivered_previews > 0).then_some(WITH_PREVIEW));
        shown
    };
    let all: Vec<&'static str> = CLASSES.iter().copied().chain([WITH_PREVIEW]).collect();
    let events = prop::collection::vec(a_streaming_event(), 1..60);
    for_any(150, &(events, any::<u64>(), any::<bool>()), (&all, 15), |(events, seed, ends_with_streams)| {
        let mut world = World::new(MEMBERS).in_any_order(seed);
        world.hub_agent.view.object_lag_micros = LAG_MICROS;
        (0..MEMBERS).for_each(|index| world.connect(index));
        for event in prelude(seed) {
            happen(&mut world, &event);
        }
        world.run();
        for event in &events {
            match event {
                Event::Other(event) => happen(&mut world, event),
                Event::Connect(index) => world.connect(*index),
                Event::LoseAtMember(index) => world.lose_stream(*index, true),
                Event::LoseAtHub(index) => world.lose_stream(*index, false),
            }
        }
        let shown = classes_of(&world);
        if !ends_with_streams {
            world.lose_all_streams();
        }
        world.run_for(LONG_MICROS);
        assert_settled(&world);
        assert_grace_is_over(&world);
        let end = state(&world);
        world.lose_all_streams();
        world.restart_all();
        assert_eq!(world.run_for(LONG_MICROS), 0, "no write without streams and after a restart");
        assert_eq!(state(&world), end);
        shown
    });
}

/// Also rule J4.
#[test]
fn a_change_reaches_all_importers_before_the_hub_writes_and_costs_one_write_in_each_object() {
    let mut world = fleet(2, ConsumerType::ClusterIp);
    world.hub_agent.view.object_lag_micros = LAG_MICROS;
    (1..=2).for_each(|index| world.connect(index));
    let mark = world.ledger.len();
    let name = named("work/app-1");
    for last in 3..=7 {
        world.edit(Who::Member(0), Kind::EndpointSlice, &name, |object| {
            let Object::EndpointSlice(slice) = object else { panic!("a slice") };
            slice.content = content(&[&format!("10.0.0.{last}")]);
        });
        world.run();
    }
    let count =
        |world: &World, kind| world.ledger[mark..].iter().filter(|entry: &&Entry| entry.write.kind() == kind).count();
    let counts = |world: &World| {
        [Kind::EndpointSliceExport, Kind::EndpointSlice, Kind::EndpointSliceImport].map(|kind| count(world, kind))
    };
    assert_eq!(counts(&world), [5, 10, 0]);
    world.run_for(LAG_MICROS);
    assert_eq!(counts(&world), [5, 10, 2], "{:#?}", world.lines_since(mark));
    for namespace in ["member-2", "member-3"].map(|member| in_hub_of(member, "x").namespace) {
        let distributed = world
            .hub
            .all()
            .find(|object| object.kind() == Kind::EndpointSliceImport && object.meta().name.namespace == namespace);
        let Some(Object::EndpointSliceImport(distributed)) = distributed else { panic!("a distributed slice") };
        assert_eq!(*distributed.spec.content, content(&["10.0.0.7"]));
    }
}
