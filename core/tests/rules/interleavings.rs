//! Decisions that are spread over several objects of the hub, planned from views that lack the last write to any of them.

use crate::support::build::{
    Build, BuildClaim, BuildImport, BuildInternalExport, IntoObject, claim, in_hub_of, internal_export, named,
    no_conflict, resolved, seconds, service, service_import,
};
use crate::support::cluster::Cluster;
use crate::support::interleavings::{Change, Exploration};
use fleetnet_core::hub::Key;
use fleetnet_core::ids::{ObjectName, Text};
use fleetnet_core::model::{ImportStatus, InternalServiceImport, Kind, Object, ServiceImport};
use std::collections::BTreeMap;

/// Puts an object there as it is, status and all; created at that second.
fn put(hub: &mut Cluster, object: Object, second: i64) {
    let (kind, name) = (object.kind(), object.meta().name.clone());
    assert!(hub.create(object.clone(), seconds(second)), "{kind:?} {name} is there already");
    hub.edit(kind, &name, |stored| {
        let mut object = object;
        let (held, meta) = (stored.meta().clone(), object.meta_mut());
        (meta.uid, meta.resource_version, meta.created) = (held.uid, held.resource_version, held.created);
        *stored = object;
    });
}

fn app() -> Key {
    Key::Service(named("work/app"))
}

/// `work/app` is exported by member-1, resolved and imported by these members, which share it.
fn exported(sharers: &[&str]) -> Cluster {
    let mut hub = Cluster::default();
    let offer = internal_export("member-1", &service("work/app")).offered_since(seconds(2));
    put(&mut hub, offer.judged(no_conflict("work/app")).object(), 1);
    let import = service_import("work/app").showing(resolved(&["member-1"]));
    let import = if sharers.is_empty() { import } else { import.claimed_by(sharers) };
    put(&mut hub, import.object(), 1);
    for sharer in sharers {
        let shared = claim(sharer, &service_import("work/app")).east_west().marked().answered(resolved(&["member-1"]));
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
    // Nothing changes where the hub was first.
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

/// A recorded claim that is struck out, or an answer that is taken back, although the claim lives.
fn loses_what_is_granted(before: &Cluster, after: &Cluster) -> Option<String> {
    let recorded = |hub: &Cluster, namespace: &Text| import_of(hub).claims.importers.contains_key(namespace);
    claims(after).filter(|claim| !claim.meta.deleting).find_map(|claim| {
        let namespace = &claim.meta.name.namespace;
        let held = claims(before).find(|held| held.meta.name == claim.meta.name)?;
        if recorded(before, namespace) && !recorded(after, namespace) {
            return Some(format!("the recorded claim of {namespace} is struck out"));
        }
        let is_emptied = held.status != ImportStatus::default() && claim.status == ImportStatus::default();
        is_emptied.then(|| format!("the answer to the claim of {namespace} is taken back"))
    })
}

/// The recorded importers; and of each claim, by hub namespace, whether it is marked and answered.
type Outcome = (Vec<Text>, BTreeMap<Text, (bool, bool)>);

fn outcome(hub: &Cluster) -> Outcome {
    let shown = |claim: &InternalServiceImport| (claim.meta.finalizers.ours, !claim.status.clusters.is_empty());
    (
        import_of(hub).claims.importers.values().cloned().collect(),
        claims(hub).map(|claim| (claim.meta.name.namespace.clone(), shown(claim))).collect(),
    )
}

/// Explores what comes of these changes; the outcomes, each once.
fn outcomes(start: Cluster, changes: Vec<Change>, in_order: bool) -> Vec<Outcome> {
    let exploration = Exploration { start, key: app(), changes, in_order, wrong: loses_what_is_granted };
    let (ends, states) = exploration.run();
    assert!(states > 40, "only {states} states were reached");
    let mut outcomes: Vec<_> = ends.iter().map(outcome).collect();
    outcomes.sort();
    outcomes.dedup();
    outcomes
}

/// `holder` is recorded, marked and answered; the claim of `other` is neither.
fn held_by(holder: &str, other: &str) -> Outcome {
    let namespace = |cluster: &str| Text::from(format!("fleet-member-{cluster}"));
    (vec![holder.into()], [(namespace(holder), (true, true)), (namespace(other), (false, false))].into())
}

#[test]
fn of_two_exclusive_claims_of_one_second_the_first_holds_in_every_interleaving() {
    let second_by_name: Vec<Change> = vec![
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
    ];
    assert_eq!(outcomes(exported(&[]), second_by_name, true), [held_by("member-2", "member-3")]);
    let first_by_name: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
    ];
    assert_eq!(outcomes(exported(&[]), first_by_name, true), [held_by("member-3", "member-2")]);
}

/// One watch shows them in order; a view that is filled otherwise must not do harm either.
#[test]
fn in_whatever_order_claims_become_visible_one_holds_and_nothing_that_was_granted_is_taken_away() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
    ];
    let either = [held_by("member-2", "member-3"), held_by("member-3", "member-2")];
    assert_eq!(outcomes(exported(&[]), changes, false), either);
}

#[test]
fn a_mark_that_a_member_sets_itself_passes_no_older_claim() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims a second later", |hub| claim_at(hub, "member-2", 6)),
        ("member-2 marks its claim", |hub| forge_mark(hub, "member-2")),
    ];
    assert_eq!(outcomes(exported(&[]), changes, true), [held_by("member-3", "member-2")]);
}

/// Within one second a forged mark may win, and takes away nothing that was granted.
#[test]
fn a_mark_that_a_member_sets_itself_takes_no_granted_claim_away() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
        ("member-2 marks its claim", |hub| forge_mark(hub, "member-2")),
    ];
    let either = [held_by("member-2", "member-3"), held_by("member-3", "member-2")];
    assert_eq!(outcomes(exported(&[]), changes, true), either);
}

#[test]
fn a_mark_that_somebody_takes_off_a_recorded_claim_is_set_again_and_the_record_stays() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("its mark is taken off", |hub| unmark(hub, "member-3")),
        ("member-2 claims a second later", |hub| claim_at(hub, "member-2", 6)),
    ];
    assert_eq!(outcomes(exported(&[]), changes, true), [held_by("member-3", "member-2")]);
}

#[test]
fn shared_claims_stay_recorded_beside_exclusive_ones_that_race() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
    ];
    let (_, mut claims) = held_by("member-3", "member-2");
    claims.insert("fleet-member-member-4".into(), (true, true));
    assert_eq!(
        outcomes(exported(&["member-4"]), changes, true),
        [(vec!["member-3".into(), "member-4".into()], claims)]
    );
}

#[test]
fn a_claim_that_is_deleted_in_a_race_leaves_the_import_to_the_other() {
    let changes: Vec<Change> = vec![
        ("member-3 claims", |hub| claim_at(hub, "member-3", 5)),
        ("member-2 claims", |hub| claim_at(hub, "member-2", 5)),
        ("member-3 deletes its claim", |hub| hub.delete(Kind::InternalServiceImport, &claim_name("member-3"))),
    ];
    let (holder, mut claims) = held_by("member-2", "member-3");
    claims.remove("fleet-member-member-3");
    assert_eq!(outcomes(exported(&[]), changes, true), [(holder, claims)]);
}

/// A member that shares the import asks for LoadBalancer, and another one does within the same second. The first claim goes once
/// the second is answered, as the member agent does it.
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
        key: app(),
        changes,
        in_order: true,
        wrong: loses_what_is_granted,
    };
    let (ends, states) = exploration.run();
    assert!(states > 100, "only {states} states were reached");
    for end in &ends {
        let claims: Vec<(&str, bool)> =
            claims(end).map(|claim| (&*claim.meta.name.namespace, !claim.status.clusters.is_empty())).collect();
        let let_go = vec![("fleet-member-member-2", false), ("fleet-member-member-3", true)];
        let both =
            vec![("fleet-member-member-2", false), ("fleet-member-member-3", true), ("fleet-member-member-3", true)];
        assert!(claims == let_go || claims == both, "{claims:?}");
        let importers: Vec<&str> = import_of(end).claims.importers.values().map(|cluster| &**cluster).collect();
        assert_eq!(importers, ["member-3"]);
    }
    assert!(ends.iter().any(|end| claims(end).count() == 2), "the first one is let go in some of them");
}
