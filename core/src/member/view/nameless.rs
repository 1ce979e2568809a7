//! Exports and imports that wait for a free name: other objects have all names that the agent may give to the object that it
//! must create (B3 in docs/behaviour.md). This object is an InternalServiceExport, a claim, a derived Service or an imported
//! slice.
//!
//! The condition `Valid` shows that the export or import waits. When an object with such a name is gone, the waiting exports
//! and imports are requeued.

use super::{Key, View};
use crate::conditions::{self, VALID};
use crate::model::Condition;
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Text};
use std::collections::BTreeSet;

/// ServiceExports and MultiClusterServices that wait for a free name. Normally empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nameless {
    exports: BTreeSet<ObjectName>,
    mcs: BTreeSet<ObjectName>,
}

impl View {
    /// Records whether a ServiceExport waits for a name, after the ServiceExport changed or was deleted.
    pub(super) fn update_nameless_export(&mut self, name: &ObjectName) {
        let conditions = self.exports.get(name).map(|export| &export.conditions);
        note(&mut self.nameless.exports, name, conditions);
    }

    /// Records whether a MultiClusterService waits for a name, after the MultiClusterService changed or was deleted.
    pub(super) fn update_nameless_mcs(&mut self, name: &ObjectName) {
        let conditions = self.multi_cluster_services.get(name).map(|mcs| &mcs.conditions);
        note(&mut self.nameless.mcs, name, conditions);
    }

    /// Requeues the waiting exports after an InternalServiceExport is gone, because its name may be the name that they need.
    pub(super) fn export_name_freed(&self, requeue: &mut Vec<Key>) {
        requeue.extend(self.nameless.exports.iter().cloned().map(Key::Export));
    }

    /// Requeues the waiting imports after an InternalServiceImport is gone, or after a Service in the namespace of derived
    /// Services changed or is gone, because the imports may need the name of this object.
    pub(super) fn import_name_freed(&self, requeue: &mut Vec<Key>) {
        for name in &self.nameless.mcs {
            let mcs = self.multi_cluster_services.get(name);
            let import = mcs.map(|mcs| ObjectName::new(name.namespace.clone(), mcs.import_name.clone()));
            requeue.extend(import.map(Key::Import));
            requeue.push(Key::MultiClusterService(name.clone()));
        }
    }
}

impl View {
    /// Requeues MultiClusterServices of an import after a slice with this name changed, in this cluster or in the hub. Normally
    /// only those that wait for a name are requeued. If another writer's slice has the name, all are requeued, because they may
    /// have to wait now.
    pub(super) fn requeue_for_slice_name(&self, name: &Text, imported: &ObjectName, requeue: &mut Vec<Key>) {
        let is_used = self.slices.get(&self.in_system(name.clone())).is_some_and(|present| !present.imported);
        let concerned = |mcs: &&ObjectName| is_used || self.nameless.mcs.contains(*mcs);
        requeue.extend(self.mcs_of_import.get(imported).filter(concerned).cloned().map(Key::MultiClusterService));
    }
}

fn note(nameless: &mut BTreeSet<ObjectName>, name: &ObjectName, conditions: Option<&Vec<Condition>>) {
    // An import with the reason LoadBalancerNotGranted may wait for a name too: its second claim, of type LoadBalancer, may
    // have no free name.
    let waits = |conditions: &&Vec<Condition>| {
        [Reason::NameHeldByAnother, Reason::LoadBalancerNotGranted]
            .iter()
            .any(|reason| conditions::has_type_with_reason(conditions, VALID, *reason))
    };
    if conditions.filter(waits).is_some() {
        nameless.insert(name.clone());
    } else {
        nameless.remove(name);
    }
}
