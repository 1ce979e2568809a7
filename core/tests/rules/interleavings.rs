//! Tests of decisions of the hub agent that depend on several objects. When the hub agent decides, its view may lack
//! the last write to any of these objects.

use crate::support::build::{
    Build, BuildClaim, BuildHubSlice, BuildImport, BuildInternalExport, IntoObject, claim, in_hub_of, internal_export,
    named, no_conflict, resolved, seconds, service, service_import, slice, slice_export,
};
use crate::support::cluster::Cluster;
use crate::support::interleavings::{Change, Exploration};
use fleetnet_core::hub::Key;
use fleetnet_core::model::{HubSlice, ImportStatus, InternalServiceImport, Kind, Object, ServiceImport};
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text};
use std::collections::BTreeMap;

/// Stores an object with its status in the hub. The creation time of the object is `second`.
fn put(hub: &mut Cluster, object: Object, second: i64) {
    let (kind, name) = (object.kind(), object.meta().name.clone());
    assert!(hub.create(object.clone(), seconds(second)), "{kind:?} {name} is there already");
    hub.edit(kind, &name, |stored| {
        let mut object = object;
        let (kept, meta) = (stored.meta().clone(), object.meta_mut());
        (meta.uid, meta.resource_version, meta.created) = (kept.uid, kept.resource_version, kept.created);
        *stored = object;
    });
}

fn app() -> Key {
    Key::Service(named("work/app"))
}

/// Returns a hub in which member-1 exports `work/app`, conflicts are resolved, and these members share the import.
fn exported(sharers: &[&str]) -> Cluster {
    let mut hub = Cluster::default();
    let internal = internal_export("member-1", &service("work/app")).port_set_since(seconds(2));
    put(&mut hub, internal.judged(no_conflict("work/app")).object(), 1);
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let import = if sharers.is_empty() { import } else { import.claimed_by(sharers) };
    put(&mut hub, import.object(), 1);
    for sharer in sharers {
        let shared =
            claim(sharer, &service_import("work/app")).east_west().marked().with_status(resolved(&["member-1"]));
        put(&mut hub, shared.object(), 1);
    }
    hub
}

fn claim_name(cluster: &str) -> ObjectName {
    in_hub_of(cluster, "work-app")
}

fn claim_at(hub: &mut Cluster, cluster: &str, second: i64) {
    put(hub, claim(cluster, &service_import("work/app")).object(), second);
}

fn forge_mark(hub: &mut Cluster, cluster: &str) {
    // The member adds the hub agent's finalizer to its own claim. If the claim already has the finalizer, nothing
    // changes.
    hub.edit(Kind::InternalServiceImport, &claim_name(cluster), |claim| claim.meta_mut().finalizers.ours = true);
}

fn unmark(hub: &mut Cluster, cluster: &str) {
    hub.edit(Kind::InternalServiceImport, &claim_name(cluster), |claim| claim.meta_mut().finalizers.ours = false);
}

fn import_of(hub: &Cluster) -> &ServiceImport {
    match hub.get(Kind::ServiceImport, &named("work/app")) {
        Some(Object::ServiceImport(import)) => import,
        other => panic!("no ServiceImport: {other:?}"),
    }
}

fn claims(hub: &Cluster) -> impl Iterator<Item = &InternalServiceImport> {
    hub.list(Kind::InternalServiceImport).filter_map(|object| match object {
        Object::InternalServiceImport(claim) => Some(claim),
        _ => None,
    })
}

/// Returns a description of a loss of a granted claim; `None` if nothing is lost. A granted claim that still exists is
/// lost if its status is cleared, or if the ServiceImport no longer records it.
fn loses_what_is_granted(before: &Cluster, after: &Cluster) -> Option<String> {
    let recorded = |hub: &Cluster, namespace: &MemberNamespace| import_of(hub).claims.importers.contains_key(namespace);
    claims(after).filter(|claim| !claim.meta.deleting).find_map(|claim| {
        let namespace = &claim.meta.name.member_namespace();
        let earlier = claims(before).find(|earlier| earlier.meta.name == claim.meta.name)?;
        if recorded(before, namespace) && !recorded(after, namespace) {
            return Some(format!("the recorded claim of {namespace} is struck out"));
        }
        let is_emptied = earlier.status != ImportStatus::default() && claim.status == ImportStatus::default();
        is_emptied.then(|| format!("the answer to the claim of {namespace} is taken back"))
    })
}

/// Result of a run: the recorded importers, and for each claim (by its member namespace) two answers: does it have our
/// finalizer, and does it have a status?
type Outcome = (Vec<ClusterId>, BTreeMap<Text, (bool, bool)>);

fn outcome(hub: &Cluster) -> Outcome {
    let shown = |claim: &InternalServiceImport| (claim.meta.finalizers.ours, !claim.status.clusters.is_empty());
    (
        import_of(hub).claims.importers.values().cloned().collect(),
        claims(hub).map(|claim| (claim.meta.name.namespace.clone(), shown(claim))).collect(),
    )
}

/// Makes the members' `changes` in the given order, with the hub agent's steps between them in every possible order.
/// Returns each distinct outcome once. If `in_order` is true, the view receives new objects of one kind in the order of
/// their creation.
fn outcomes(start: Cluster, changes: Vec<Change>, in_order: bool) -> Vec<Outcome> {
    let exploration = Exploration { start, keys: vec![app()], changes, in_order, wrong: loses_what_is_granted };
    let (ends, states) = exploration.run();
    assert!(states > 40, "only {states} states were reached");
    let mut outcomes: Vec<_> = ends.iter().map(outcome).collect();
    outcomes.sort();
    outcomes.dedup();
    outcomes
}

/// Returns the outcome in which the ServiceImport records only `holder` as importer. The claim of `holder` has
/// finalizer and status, the claim of `other` has neither.
fn granted_to(holder: &str, other: &str) -> Outcome {
    let namespace = |cluster: &str| Text::from(format!("fleet-member-{cluster}"));
    (vec![holder.into()], [(namespace(holder), (true, true)), (namespace(other), (false, false))].into())
}

/// Rule C12: Two members create claims of type LoadBalancer within one second
/// Then: The hub agent grants the first of the two claims (InternalServiceImports). Exclusive claims with the same
/// creationTimestamp have an order: claims with the hub agent's finalizer first, then lowest resourceVersion, then
/// name. A claim that `service-in-use-by` records stays recorded and granted, also while its finalizer is missing. The
/// result does not depend on the order of the hub agent's writes, or on writes that the hub agent's view does not
/// contain yet. If a member sets the hub agent's finalizer on its own claim, claims with an earlier creationTimestamp
/// still come first
#[test]
fn of_two_exclusive_claims_of_one_second_the_first_is_granted_in_every_interleaving() {
    let second_by_name: Vec<Change> = vec![
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
    ];
    assert_eq!(outcomes(exported(&[]), second_by_name, true), [granted_to("member-2", "member-3")]);
    let first_by_name: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
    ];
    assert_eq!(outcomes(exported(&[]), first_by_name, true), [granted_to("member-3", "member-2")]);
}

/// A watch delivers new objects in the order of their creation. Even if a view receives the claims in another order, no
/// granted claim may be lost.
///
/// Also rule C12.
#[test]
fn in_any_order_of_claims_one_is_granted_and_no_granted_claim_is_revoked() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
    ];
    let either = [granted_to("member-2", "member-3"), granted_to("member-3", "member-2")];
    assert_eq!(outcomes(exported(&[]), changes, false), either);
}

/// Also rule C12.
#[test]
fn a_mark_that_a_member_sets_itself_passes_no_older_claim() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims a second later", |hub| claim_at(hub, "member-2", 6)),
        ("member-2 marks its claim", |hub| forge_mark(hub, "member-2")),
    ];
    assert_eq!(outcomes(exported(&[]), changes, true), [granted_to("member-3", "member-2")]);
}

/// Two claims are created within one second, and one member forges the finalizer. Then its claim may be granted first.
/// But the hub agent takes no granted claim back.
///
/// Also rule C12.
#[test]
fn a_mark_that_a_member_sets_itself_takes_no_granted_claim_away() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
        ("member-2 marks its claim", |hub| forge_mark(hub, "member-2")),
    ];
    let either = [granted_to("member-2", "member-3"), granted_to("member-3", "member-2")];
    assert_eq!(outcomes(exported(&[]), changes, true), either);
}

/// Also rule C12.
#[test]
fn a_mark_that_somebody_takes_off_a_recorded_claim_is_set_again_and_the_record_stays() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("its mark is taken off", |hub| unmark(hub, "member-3")),
        ("member-2 claims a second later", |hub| claim_at(hub, "member-2", 6)),
    ];
    assert_eq!(outcomes(exported(&[]), changes, true), [granted_to("member-3", "member-2")]);
}

/// Also rule C12.
#[test]
fn shared_claims_stay_recorded_beside_exclusive_ones_that_race() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
    ];
    let (_, mut claims) = granted_to("member-3", "member-2");
    claims.insert("fleet-member-member-4".into(), (true, true));
    assert_eq!(
        outcomes(exported(&["member-4"]), changes, true),
        [(vec!["member-3".into(), "member-4".into()], claims)]
    );
}

/// Also rule C12.
#[test]
fn a_claim_that_is_deleted_in_a_race_leaves_the_import_to_the_other() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
        ("member-3 deletes its claim", |hub| hub.delete(Kind::InternalServiceImport, &claim_name("member-3"))),
    ];
    let (holder, mut claims) = granted_to("member-2", "member-3");
    claims.remove("fleet-member-member-3");
    assert_eq!(outcomes(exported(&[]), changes, true), [(holder, claims)]);
}

/// Member-3 shares the import and requests LoadBalancer, and member-2 requests LoadBalancer within the same second.
/// Member-3 deletes its shared claim after its second claim is granted, as the member agent does.
///
/// Also rule C13.
#[test]
fn an_exclusive_claim_beside_a_shared_one_of_its_member_costs_nobody_what_is_granted() {
    let changes: Vec<Change> = vec![
        ("member-3 claims a second time", |hub| {
            let mut second = claim("member-3", &service_import("work/app")).uid("second");
            second.meta.name.name = "second".into();
            put(hub, second.object(), 5);
        }),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
        ("member-3 lets its first claim go if the second is answered", |hub| {
            let second = claims(hub).find(|claim| &*claim.meta.name.name == "second").expect("it was made");
            if !second.status.clusters.is_empty() {
                hub.delete(Kind::InternalServiceImport, &claim_name("member-3"));
            }
        }),
    ];
    let exploration = Exploration {
        start: exported(&["member-3"]),
        keys: vec![app()],
        changes,
        in_order: true,
        wrong: loses_what_is_granted,
    };
    let (ends, states) = exploration.run();
    assert!(states > 100, "only {states} states were reached");
    for end in &ends {
        let claims: Vec<(&str, bool)> =
            claims(end).map(|claim| (&*claim.meta.name.namespace, !claim.status.clusters.is_empty())).collect();
        let remove_finalizer = vec![("fleet-member-member-2", false), ("fleet-member-member-3", true)];
        let both =
            vec![("fleet-member-member-2", false), ("fleet-member-member-3", true), ("fleet-member-member-3", true)];
        assert!(claims == remove_finalizer || claims == both, "{claims:?}");
        let importers: Vec<&str> = import_of(end).claims.importers.values().map(|cluster| &**cluster).collect();
        assert_eq!(importers, ["member-3"]);
    }
    assert!(ends.iter().any(|end| claims(end).count() == 2), "the first one is let go in some of them");
}

/// Returns a hub in which member-1 and member-2 are accepted exporters of `work/app` and member-3 imports it. No slice
/// is exported yet.
fn exported_twice() -> Cluster {
    let mut hub = Cluster::default();
    let import = service_import("work/app").showing(resolved(&["member-1", "member-2"])).claimed_by(&["member-3"]);
    let shared = claim("member-3", &service_import("work/app")).east_west().marked();
    put(&mut hub, shared.with_status(resolved(&["member-1", "member-2"])).object(), 1);
    put(&mut hub, import.object(), 1);
    hub
}

/// Returns a member's export of the source slice `work/app-1`. The source slice has the same UID for each member.
fn app_1_of(cluster: &str) -> HubSlice {
    slice_export(cluster, &slice("work/app-1"))
}

fn export_app_1(hub: &mut Cluster, export: HubSlice, second: i64) {
    put(hub, Object::EndpointSliceExport(export), second);
}

/// Returns the name and the exporting member of each distributed slice that is not being deleted.
fn distributed(hub: &Cluster) -> Vec<(Text, ClusterId)> {
    let distributed_slices = hub.list(Kind::EndpointSliceImport).filter_map(|object| match object {
        Object::EndpointSliceImport(distributed) if !distributed.meta.deleting => Some(distributed),
        _ => None,
    });
    distributed_slices
        .map(|distributed| (distributed.meta.name.name.clone(), distributed.spec.reference.cluster.clone()))
        .collect()
}

/// Makes the members' `changes` in the given order, with the hub agent's steps between them in every possible order. In
/// each test, two members export one source slice. Asserts that no distributed slice of member-2 is lost, and returns
/// the distributed slices of each outcome. If `in_order` is true, the view receives new objects of one kind in the
/// order of their creation.
fn distributed_in_the_end(changes: Vec<Change>, in_order: bool) -> Vec<Vec<(Text, ClusterId)>> {
    let names = ["member-1", "member-2"].map(|cluster| app_1_of(cluster).meta.name.name);
    let loses = |before: &Cluster, after: &Cluster| {
        let after = distributed(after);
        let lost = distributed(before)
            .into_iter()
            .find(|distributed| &*distributed.1 == "member-2" && !after.contains(distributed));
        lost.map(|(name, _)| format!("the distributed slice {name} of the holder is lost"))
    };
    let importers = ["member-2", "member-3"].map(fleetnet_core::names::member_namespace);
    let distributed_slices =
        |slice: &Text| importers.clone().map(|importer| Key::DistributedSlice { slice: slice.clone(), importer });
    let keys = names.iter().flat_map(distributed_slices).chain(names.iter().cloned().map(Key::Slice)).collect();
    let (ends, states) = Exploration { start: exported_twice(), keys, changes, in_order, wrong: loses }.run();
    assert!(states > 20, "only {states} states were reached");
    let mut ends: Vec<_> = ends.iter().map(distributed).collect();
    ends.sort();
    ends.dedup();
    ends
}

fn of_member_2() -> Vec<Vec<(Text, ClusterId)>> {
    vec![vec![(app_1_of("member-2").meta.name.name, "member-2".into())]]
}

/// Also rule T3.
#[test]
fn of_two_exports_under_one_name_that_of_the_member_it_is_named_after_is_distributed_in_every_interleaving() {
    let squatter: Change = ("member-1 exports under the name of member-2", |hub| {
        let name = app_1_of("member-2").meta.name.name;
        export_app_1(hub, app_1_of("member-1").called(&name), 5);
    });
    let holder: Change = ("member-2 exports", |hub| export_app_1(hub, app_1_of("member-2"), 5));
    for in_order in [true, false] {
        assert_eq!(distributed_in_the_end(vec![squatter, holder], in_order), of_member_2());
        assert_eq!(distributed_in_the_end(vec![holder, squatter], in_order), of_member_2());
    }
}

/// Also rule T4.
#[test]
fn of_two_exports_of_one_source_slice_the_older_is_distributed_in_every_interleaving() {
    let older: Change = ("member-2 exports", |hub| export_app_1(hub, app_1_of("member-2"), 5));
    let later: Change = ("member-1 exports a second later", |hub| export_app_1(hub, app_1_of("member-1"), 6));
    for in_order in [true, false] {
        assert_eq!(distributed_in_the_end(vec![older, later], in_order), of_member_2());
    }
}
