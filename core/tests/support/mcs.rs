//! Views of a member agent that imports Services by the standard API, and the effect of its writes.

use super::agent::{View as _, applied};
use super::build::{BuildService, mcs_part, merged_service_import, named, namespace, port, service};
use super::server::{made, merge};
use super::view::{SEEN, observe_change, observe_removal, planned};
use super::world::settings;
use fleetnet_core::member::{Key, McsApi, Planner, Settings};
use fleetnet_core::model::{
    ImportType, McsProperties, MergedCluster, MergedImport, MergedServiceImport, Namespace, Object, SessionAffinity,
};
use fleetnet_core::plan::{Action, Patch, Write};
use fleetnet_types::{ObjectName, WatchState};
use std::sync::Arc;

pub(crate) fn app() -> ObjectName {
    named("work/app")
}

pub(crate) fn view_of(api: McsApi, objects: impl IntoIterator<Item = Object>) -> Planner {
    let mut view = Planner::new(Settings { mcs_api: api, ..settings(0) });
    for kind in Planner::KINDS {
        view.watch_state(*kind, WatchState::Complete, SEEN, &mut Vec::new());
    }
    for object in objects {
        view.observe(applied(object), SEEN, &mut Vec::new());
    }
    view
}

pub(crate) fn view(objects: impl IntoIterator<Item = Object>) -> Planner {
    view_of(McsApi::LabelledNamespaces, objects)
}

pub(crate) fn importing() -> Namespace {
    Namespace { is_importing: true, ..namespace("work") }
}

pub(crate) fn import() -> MergedImport {
    let properties = McsProperties {
        labels: [("team".into(), "blue".into())].into(),
        internal_traffic_policy: Some("Local".into()),
        ..mcs_part().properties
    };
    MergedImport {
        import_type: ImportType::ClusterSetIp,
        ports: service("work/app").ports(&[port("http", 80)]).ports,
        session_affinity: SessionAffinity::None,
        properties,
        clusters: ["member-3", "member-2"].map(|cluster| MergedCluster { cluster: cluster.into(), ports: None }).into(),
    }
}

pub(crate) fn merged(import: MergedImport) -> MergedServiceImport {
    merged_service_import("member-1", "work/app", &Arc::new(import))
}

/// Lets an agent plan the key and applies its writes, as an API server does, until nothing is left to write. Returns
/// the kinds of the writes.
pub(crate) fn settle(view: &mut Planner, key: &Key) -> Vec<String> {
    let mut done = Vec::new();
    for _ in 0..20 {
        let plan = planned(view, key);
        if plan.writes.is_empty() {
            return done;
        }
        for write in plan.writes {
            let (verb, kind) = (verb(&write), write.kind());
            done.push(format!("{verb} {kind:?}"));
            execute(view, write);
        }
    }
    panic!("it never ends: {done:?}")
}

fn verb(write: &Write) -> &'static str {
    match &write.action {
        Action::Create(_) => "create",
        Action::Patch { patch: Patch::McsServiceImportStatus(_), .. } => "status",
        Action::Patch { .. } => "patch",
        Action::Delete { .. } => "delete",
    }
}

/// Applies a write to the view, as an API server does.
pub(crate) fn execute(view: &mut Planner, write: Write) {
    let mut objects = view.objects().into_iter();
    let present = objects.find(|object| object.kind() == write.kind() && object.meta().name == write.at);
    match (write.action, present) {
        (Action::Create(desired), None) => {
            let mut object = made(&write.at, &desired);
            object.meta_mut().uid = format!("uid-{}", write.at).into();
            object.meta_mut().resource_version = 1;
            observe_change(view, object);
        }
        (Action::Patch { patch, .. }, Some(mut object)) => {
            merge(&mut object, patch);
            object.meta_mut().resource_version += 1;
            let meta = object.meta();
            if meta.deleting && meta.finalizers == fleetnet_core::model::Finalizers::default() {
                observe_removal(view, &object);
            } else {
                observe_change(view, object);
            }
        }
        (Action::Delete { .. }, Some(object)) => drop(observe_removal(view, &object)),
        (action, present) => panic!("{action:?} of {present:?}"),
    }
}
