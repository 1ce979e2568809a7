//! Tests of excess: content in the agents' fields that the agents did not write. The agents remove excess that somebody
//! added with an edit, but keep excess that a webhook adds to the agents' own writes.

use crate::support::build::{
    Build, BuildHubSlice, BuildImport, BuildRequest, BuildSlice, IntoObject, accepted_export, content, derived_service,
    distributed_slice, found, imported_slice, in_system, named, request, resolved, seconds, service, service_import,
    slice, slice_export,
};
use crate::support::view::{claimed_hub_view, member_view, observe_change, observe_removal, writes};
use fleetnet_core::hub;
use fleetnet_core::member::{Key, Planner};
use fleetnet_core::model::{EndpointSlice, HubSlice, Object};
use fleetnet_core::plan::{Action, ImportedSlice, Patch, Write};
use fleetnet_types::Timestamp;

/// Returns the key of a distributed slice, its imported slice, and the view of a just started member agent with both
/// slices.
fn imported() -> (Key, EndpointSlice, Planner) {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1"))).marked();
    let stored = imported_slice(&distributed.meta.name.name, "work-app").version(5);
    let key = Key::SliceImport(in_system(&distributed.meta.name.name));
    let derived = derived_service("work-app", "work/app");
    let objects = [
        request.object(),
        import.object(),
        derived.object(),
        Object::EndpointSliceImport(distributed),
        stored.clone().object(),
    ];
    (key, stored, member_view(objects))
}

fn repair(stored: &EndpointSlice) -> Write {
    let wanted = ImportedSlice {
        service: Some("work-app".into()),
        mcs: None,
        content: content(&["10.0.0.1"]),
        observed_generation: 1,
    };
    Write::patch(&stored.meta, Patch::ImportedSlice(wanted))
}

fn with_excess(stored: &EndpointSlice, version: u64, excess: u64) -> EndpointSlice {
    EndpointSlice { excess, ..stored.clone() }.version(version)
}

/// Rule P11: Another writer adds content to an agent-owned field of an imported slice: hints, a node, a target,
/// conditions, an endpoint that is not ready, another order of endpoints, or a label that makes kube-proxy ignore the
/// slice
/// Then: The member agent removes the added content in one write. Other labels, annotations and finalizers stay. The
/// annotation `last-observed-generation` records the last measurement. The agent repairs an edit of this annotation
/// with the next change of the slice; a value that is too high delays this change by up to 60 s, or 1 h if the member
/// uses a slice stream that cannot be opened (rule P13)
#[test]
fn what_somebody_adds_to_an_imported_slice_is_taken_out_in_one_write_that_is_not_measured() {
    let (key, stored, mut view) = imported();
    assert_eq!(writes(&view, &key), []);
    let edited = with_excess(&stored, 6, 77);
    assert!(observe_change(&mut view, edited.clone().object()).contains(&key));
    assert_eq!(writes(&view, &key), [repair(&edited)]);
    assert!(observe_change(&mut view, stored.version(7).object()).contains(&key));
    assert_eq!(writes(&view, &key), []);
}

/// Rule P12: A webhook adds content to an agent-owned field during a write of the member agent
/// Then: The server's response contains the added content, so the member agent does not write again. If a user edits
/// the added content, or the slice is created again, the agent repairs the slice. The agent records the added content
/// only in memory. So after a restart, the agent makes one write for each such slice
#[test]
fn what_a_webhook_makes_of_our_write_is_not_repaired_and_what_somebody_makes_of_that_is() {
    let (key, stored, mut view) = imported();
    let name = stored.meta.name.clone();
    observe_change(&mut view, with_excess(&stored, 6, 77).object());
    view.imported_slice_written(&name, 5);
    assert_eq!(writes(&view, &key).len(), 1, "the answer to our write is not what is held any more");
    view.imported_slice_written(&name, 6);
    assert_eq!(writes(&view, &key), [], "the next write would be answered with the same");
    assert_eq!(observe_change(&mut view, with_excess(&stored, 7, 77).object()), [], "nor if somebody annotates it");
    assert_eq!(writes(&view, &key), []);
    let edited = with_excess(&stored, 8, 78);
    assert!(observe_change(&mut view, edited.clone().object()).contains(&key));
    assert_eq!(writes(&view, &key), [repair(&edited)]);
    observe_change(&mut view, with_excess(&stored, 9, 77).object());
    view.imported_slice_written(&name, 9);
    assert_eq!(writes(&view, &key), []);
    let changed = with_excess(&stored, 10, 79).endpoints(&["10.6.6.6"]);
    observe_change(&mut view, changed.clone().object());
    assert_eq!(writes(&view, &key), [repair(&changed)]);
}

/// Also rule P12.
#[test]
fn a_webhooks_change_of_a_deleted_slice_does_not_apply_to_the_next_one() {
    let (key, stored, mut view) = imported();
    let edited = with_excess(&stored, 6, 77);
    observe_change(&mut view, edited.clone().object());
    view.imported_slice_written(&stored.meta.name, 6);
    observe_removal(&mut view, &edited.clone().object());
    let made = edited.uid("another").version(8);
    observe_change(&mut view, made.clone().object());
    assert_eq!(writes(&view, &key), [repair(&made)]);
}

/// Also rule P12.
#[test]
fn a_webhook_that_is_gone_is_forgotten_with_the_next_write() {
    let (key, stored, mut view) = imported();
    let name = stored.meta.name.clone();
    observe_change(&mut view, with_excess(&stored, 6, 77).object());
    view.imported_slice_written(&name, 6);
    observe_change(&mut view, stored.clone().version(7).object());
    view.imported_slice_written(&name, 7);
    let edited = with_excess(&stored, 8, 77);
    observe_change(&mut view, edited.clone().object());
    assert_eq!(writes(&view, &key), [repair(&edited)]);
}

/// Returns the key of an exported slice, its distributed slice after `change`, and the hub agent's view of both. The
/// exported slice has an `exportedSince` of 5.4 s, which a Go hub agent would cut to 5 s.
fn distributed(change: impl FnOnce(&mut HubSlice)) -> (hub::Key, HubSlice, hub::Planner) {
    let mut export = slice_export("member-1", &slice("work/app-1")).marked();
    export.spec.reference.exported_since = Some(Timestamp(5_400_000));
    let mut distributed = distributed_slice("member-2", &export);
    change(&mut distributed);
    let import = service_import("work/app").showing(resolved(&["member-1"])).claimed_by(&["member-2"]);
    let key = hub::Key::Slice(export.meta.name.name.clone());
    let objects =
        [Object::EndpointSliceExport(export), Object::EndpointSliceImport(distributed.clone()), import.object()];
    (key, distributed, claimed_hub_view(objects))
}

/// Rule D12: A user edits one of two fields of a distributed slice (EndpointSliceImport): `namespacedName`, which Go
/// agents read, or `exportedSince`, by less than one second
/// Then: The hub agent restores the edited field. Exception: if `exportedSince` is the correct time, cut to the whole
/// second, the hub agent does not change it. Go hub agents cut `exportedSince` in this way
#[test]
fn a_distributed_slice_whose_names_or_stamp_somebody_edits_is_written_again() {
    let expected = distributed_slice("member-2", &slice_export("member-1", &slice("work/app-1"))).spec;
    type Case = (&'static str, fn(&mut HubSlice), usize);
    let table: [Case; 4] = [
        ("as we wrote it", |_| {}, 0),
        ("as a Go hub cuts its stamp", |distributed| distributed.spec.reference.exported_since = Some(seconds(5)), 0),
        (
            "another stamp within the second",
            |distributed| distributed.spec.reference.exported_since = Some(Timestamp(5_100_000)),
            1,
        ),
        ("a namespacedName that names something else", |distributed| distributed.misnamed = true, 1),
    ];
    for (case, change, expected_writes) in table {
        let (key, distributed, view) = distributed(change);
        let planned = writes(&view, &key);
        assert_eq!(planned.len(), expected_writes, "{case}: {planned:?}");
        for write in planned {
            assert_eq!(write.at, distributed.meta.name, "{case}");
            let Action::Patch { patch: Patch::EndpointSliceImport(spec), .. } = write.action else { panic!("{case}") };
            assert_eq!((spec.owner, spec.content), (expected.owner.clone(), expected.content.clone()), "{case}");
            assert_eq!(spec.reference.exported_since, Some(Timestamp(5_400_000)), "{case}");
        }
    }
}

/// Rule E15: A user edits the field `namespacedName` of an EndpointSliceExport
/// Then: The member agent restores the correct value of `namespacedName`
#[test]
fn an_export_of_a_slice_whose_names_somebody_edits_is_written_again() {
    let source = slice("work/app-1");
    let mut export = slice_export("member-1", &source).with_addresses(&["10.0.0.1"], 1);
    export.misnamed = true;
    let objects = |export: &HubSlice| {
        let of_service = accepted_export("work/app");
        let export = Object::EndpointSliceExport(export.clone());
        [service("work/app").object(), of_service.object(), source.clone().object(), export]
    };
    let key = Key::SliceExport(named("work/app-1"));
    let planned = writes(&member_view(objects(&export)), &key);
    let [Write { at, action: Action::Patch { patch: Patch::EndpointSliceExport(_), .. }, .. }] = &planned[..] else {
        panic!("{planned:?}")
    };
    assert_eq!(*at, export.meta.name);
    export.misnamed = false;
    assert_eq!(writes(&member_view(objects(&export)), &key), []);
}
