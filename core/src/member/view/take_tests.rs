//! Tests of the effects of a change: which values it changes, and which keys and facts it adds. A plan that reads only
//! the names in an index depends on these values.

use super::value::{Bucket, Computation, Fact, Value};
use super::{Key, Limits, McsApi, Settings, View};
use crate::features::Features;
use crate::model::{EndpointSlice, Kind, MembershipState, Object};
use crate::support::agent::{KindChange, applied, removed, undecodable_change};
use crate::support::build::{
    Build, BuildImport, BuildRequest, IntoObject, claim, derived_service, distributed_slice, imported_slice,
    internal_export, internal_member_cluster, mcs_export, member_agent, named, namespace, request, service,
    service_export, service_import, slice, slice_export,
};
use crate::support::mcs;
use crate::support::view::SEEN;
use crate::support::world::settings;
use fleetnet_types::{ObjectName, Text, Uid};

/// Returns what these values are now.
fn values(view: &View) -> Vec<(Value, String)> {
    let buckets = [
        Bucket::Slices,
        Bucket::InternalExports,
        Bucket::SliceExports,
        Bucket::MultiClusterServices,
        Bucket::DerivedServices,
        Bucket::Claims,
        Bucket::DistributedSlices,
        Bucket::Ipv6Slices,
    ];
    let names = ["work/app", "work/new", "other/app", "work/app-1", "work/app-2", "other/app-1"].map(named);
    let mut values = vec![(Value::HasUndecodable, view.undecodable.is_empty().to_string())];
    for bucket in buckets {
        let list = |of: &ObjectName| format!("{:?}", view.bucket(bucket, of).collect::<Vec<_>>());
        values.extend(names.iter().map(|of| (Value::Bucket(bucket, of.clone()), list(of))));
    }
    for namespace in ["work", "other"].map(Text::from) {
        for kind in [Kind::InternalServiceExport, Kind::EndpointSliceExport] {
            let may = view.may_export_more(kind, &namespace).to_string();
            values.push((Value::MayExportMore(kind, namespace.clone()), may));
        }
        let all = view.multi_cluster_services.in_namespace(&namespace);
        let requests: Vec<_> = all.map(|it| (it.meta.name.clone(), it.load_balancer_requested_since())).collect();
        values.push((Value::Requests(namespace), format!("{requests:?}")));
    }
    for uid in ["uid-request-work/app", "uid-request-work/new"].map(Uid::from) {
        let list = format!("{:?}", view.imports_of.get(&uid).collect::<Vec<_>>());
        values.push((Value::ImportsOf(uid), list));
    }
    values
}

/// Returns an object of each kind, and another state of the object.
fn objects() -> Vec<[Object; 2]> {
    let distributed = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1")));
    let by_users = [service_export("work/app").object(), mcs_export("work/app").object()];
    let by_others = [
        namespace("work").object(),
        internal_member_cluster("member-1", MembershipState::Join).object(),
        member_agent("member-1", Features::ALL, Features::ALL).object(),
        mcs::merged(mcs::import()).object(),
    ];
    let mut all = vec![
        [derived_service("x", "work/app").object(), derived_service("x", "work/new").uid("uid-x-2").object()],
        [slice("work/app-1").object(), EndpointSlice { service: Some("new".into()), ..slice("work/app-1") }.object()],
        [request("work/app").object(), request("work/app").importing("new").object()],
    ];
    let import = service_import("work/app");
    let controlled = ["work/app", "work/new"].map(|path| import.clone().controlled_by(&request(path)).object());
    let (internal, claim) = (internal_export("member-1", &service("work/app")), claim("member-1", &import));
    let export = slice_export("member-1", &slice("work/app-1"));
    let (mut other_internal, mut other_claim, mut other_export) = (internal.clone(), claim.clone(), export.clone());
    let mut other_distributed = distributed.clone();
    other_internal.reference.source = named("other/app");
    other_claim.reference.source = named("work/new");
    other_export.spec.reference.source = named("other/app-1");
    other_distributed.spec.owner = named("work/new");
    all.extend([
        controlled,
        [internal.object(), other_internal.object()],
        [claim.object(), other_claim.object()],
        [export, other_export].map(Object::EndpointSliceExport),
        [distributed, other_distributed].map(Object::EndpointSliceImport),
    ]);
    all.extend(by_users.into_iter().chain(by_others).map(|object| [object.clone(), touched(&touched(&object))]));
    all
}

/// Returns an object with another generation and the same content.
fn touched(object: &Object) -> Object {
    let mut touched = object.clone();
    touched.meta_mut().generation += 9;
    touched
}

/// Returns changes of an object, each with true if it changes the value of the object.
fn changes([object, other]: &[Object; 2]) -> Vec<(KindChange, bool)> {
    let (kind, name) = (object.kind(), &object.meta().name);
    let gone = |uid: &str| removed(kind, name.clone(), uid.into());
    let undecodable = || undecodable_change(kind, name.clone());
    vec![
        (applied(object.clone()), true),
        (applied(object.clone()), false),
        (applied(touched(object)), true),
        (applied(other.clone()), true),
        (gone("uid-of-nobody"), false),
        (gone(&other.meta().uid), true),
        (gone(&other.meta().uid), false),
        (undecodable(), true),
        (undecodable(), false),
        (applied(object.clone()), true),
        (undecodable(), true),
        (gone(&object.meta().uid), true),
    ]
}

#[test]
fn a_change_tells_the_values_that_it_changes_and_no_others() {
    let limits = Limits { exports_per_namespace: 1, ..Limits::default() };
    let settings = Settings { limits, mcs_api: McsApi::AllNamespaces, ..settings(0) };
    let second = slice_export("member-1", &slice("work/app-2"));
    let further = distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1")));
    let seeds = [
        Vec::new(),
        vec![applied(Object::EndpointSliceExport(second)), applied(Object::EndpointSliceImport(further))],
        vec![undecodable_change(Kind::Service, named("work/undecodable"))],
    ];
    for seed in seeds {
        for pair in objects() {
            let mut view = View::new(settings.clone());
            seed.iter().cloned().for_each(|(kind, change)| drop(view.apply(kind, change, SEEN)));
            let object = Value::Object(pair[0].kind(), pair[0].meta().name.clone());
            for (index, ((kind, change), is_changed)) in changes(&pair).into_iter().enumerate() {
                let before = values(&view);
                let effects = view.apply(kind, change, SEEN);
                // An object of the seed changes in the same way as one that comes.
                let is_seed = index == 0 && seed.iter().any(|(of, _)| *of == kind);
                assert!(is_seed || effects.values.contains(&object) == is_changed, "{index}: {object:?} {effects:?}");
                for ((value, before), (_, after)) in before.iter().zip(&values(&view)) {
                    let is_told = effects.values.contains(value);
                    assert_eq!(is_told, before != after, "{index}: {value:?} was {before}, and is {after}");
                }
            }
        }
    }
}

#[test]
fn only_a_slice_that_is_imported_here_has_the_key_and_the_facts_of_an_import() {
    use McsApi::{AllNamespaces, Off};
    let table = [
        (Off, "fleet-system/x-1", true, 2),
        (AllNamespaces, "fleet-system/x-1", true, 3),
        (AllNamespaces, "work/x-1", true, 2),
        (Off, "work/x-1", true, 0),
        (Off, "fleet-system/x-1", false, 0),
        (AllNamespaces, "work/x-1", false, 0),
    ];
    for (mcs_api, path, imported, number) in table {
        let mut view = View::new(Settings { mcs_api, ..settings(0) });
        let slice = EndpointSlice { imported, ..imported_slice("x-1", "x") };
        let mut slice = EndpointSlice { observed_generation: None, ..slice };
        slice.meta.name = named(path);
        let (kind, change) = applied(slice.object());
        let effects = view.apply(kind, change, SEEN);
        let keys = (number > 0).then(|| Key::SliceImport(named(path)));
        assert_eq!(effects.keys, keys.into_iter().collect::<Vec<_>>(), "{mcs_api:?} {path}");
        let facts = [Fact::Orphaned(named(path)), Fact::Outdated(named(path)), Fact::Unlisted(named(path))];
        assert_eq!(effects.results, facts.map(Computation::Fact)[..number], "{mcs_api:?} {path}");
    }
}
