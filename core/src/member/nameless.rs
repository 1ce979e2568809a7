//! Exports and imports for which each name is borne by somebody else's object (B3), and imports of which a slice cannot be
//! imported under its name (P5). Their conditions say so, and tell here whom to plan anew when such an object is gone.

use super::{Key, View};
use crate::conditions::{self, VALID};
use crate::ids::{ObjectName, Text};
use crate::model::Condition;
use crate::reasons::Reason;
use std::collections::BTreeSet;

/// Those of a member: none, as it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nameless {
    exports: BTreeSet<ObjectName>,
    wishes: BTreeSet<ObjectName>,
}

impl View {
    /// A ServiceExport has changed, or is gone.
    pub(super) fn note_export_name(&mut self, name: &ObjectName) {
        let conditions = self.exports.get(name).map(|export| &export.conditions);
        note(&mut self.nameless.exports, name, conditions);
    }

    /// A MultiClusterService has changed, or is gone.
    pub(super) fn note_wish_name(&mut self, name: &ObjectName) {
        let conditions = self.multi_cluster_services.get(name).map(|wish| &wish.conditions);
        note(&mut self.nameless.wishes, name, conditions);
    }

    /// An InternalServiceExport is gone.
    pub(super) fn export_name_freed(&self, dirty: &mut Vec<Key>) {
        dirty.extend(self.nameless.exports.iter().cloned().map(Key::Export));
    }

    /// An InternalServiceImport, or a Service that could be in the way of a derived one, is gone.
    pub(super) fn import_name_freed(&self, dirty: &mut Vec<Key>) {
        for name in &self.nameless.wishes {
            let wish = self.multi_cluster_services.get(name);
            let import = wish.map(|wish| ObjectName::new(name.namespace.clone(), wish.import_name.clone()));
            dirty.extend(import.map(Key::Import));
            dirty.push(Key::MultiClusterService(name.clone()));
        }
    }
}

impl View {
    /// Pushes the MultiClusterServices whose condition may change because a slice of this cluster, or of the hub, has come,
    /// changed or gone under this name.
    pub(super) fn slice_name_dirties(&self, name: &Text, imported: &ObjectName, dirty: &mut Vec<Key>) {
        let is_held = self.slices.get(&self.in_system(name.clone())).is_some_and(|held| !held.imported);
        let concerned = |wish: &&ObjectName| is_held || self.nameless.wishes.contains(*wish);
        dirty.extend(self.wanting.get(imported).filter(concerned).cloned().map(Key::MultiClusterService));
    }
}

fn note(nameless: &mut BTreeSet<ObjectName>, name: &ObjectName, conditions: Option<&Vec<Condition>>) {
    // A claim of type LoadBalancer that is not granted may be one that has no name.
    let waits = |conditions: &&Vec<Condition>| {
        [Reason::NameHeldByAnother, Reason::LoadBalancerNotGranted]
            .iter()
            .any(|reason| conditions::says_reason(conditions, VALID, *reason))
    };
    if conditions.filter(waits).is_some() {
        nameless.insert(name.clone());
    } else {
        nameless.remove(name);
    }
}
