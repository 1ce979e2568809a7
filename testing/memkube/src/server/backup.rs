//! Backup and restore of a server's data, as with an etcd snapshot.

use super::MemKube;
use crate::object::{Object, meta_text};
use crate::registry::ResourceId;
use crate::store::{Key, Store};
use serde_json::Value;

/// Distance of the first resourceVersion after [`MemKube::restore_bumped`] from the last one before.
const BUMP: u64 = 1_000_000_000;

/// Data of a server at one moment. The backup shares the stored objects with the server.
#[derive(Debug)]
pub struct Backup(Store);

impl MemKube {
    /// Returns a backup of the current data.
    #[must_use]
    pub fn backup(&self) -> Backup {
        Backup(self.0.state.lock().store.fork())
    }

    /// Restores a backup: its objects and resourceVersions replace all objects of the server, and open watches end.
    /// Registered kinds do not change.
    pub fn restore(&self, backup: &Backup) {
        let mut state = self.0.state.lock();
        state.store.replace_with(&backup.0);
    }

    /// Restores a backup as [`MemKube::restore`] does, and raises the resourceVersion of the server above each one that
    /// a client has seen, as `etcdutl snapshot restore --bump-revision --mark-compacted` does. Watches from earlier
    /// versions get 410.
    pub fn restore_bumped(&self, backup: &Backup) {
        let mut state = self.0.state.lock();
        let revision = state.store.revision();
        state.store.replace_with(&backup.0);
        state.store.bump(revision + BUMP);
    }

    /// Stores objects as another server had them: with their UIDs, statuses and resourceVersions. No admission and no
    /// validation takes place, and the audit log does not show it.
    ///
    /// # Errors
    /// If an object has a kind that is not registered, or no resourceVersion that is higher than that of the server.
    /// The text names it.
    pub fn load(&self, objects: impl IntoIterator<Item = Object>) -> Result<(), String> {
        let mut ordered: Vec<(u64, ResourceId, Object)> = Vec::new();
        let named = |object: &Object| {
            let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
            format!("{kind} {}/{}", meta_text(object, "namespace"), meta_text(object, "name"))
        };
        let mut state = self.0.state.lock();
        for object in objects {
            let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
            let (group, kind) = (text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group), text("kind"));
            let mut definitions = state.registry.definitions();
            let definition = definitions.find(|it| it.group == group && it.kind == kind);
            let id = definition.ok_or_else(|| format!("{}: the kind is not registered", named(&object)))?.id();
            let version = meta_text(&object, "resourceVersion").parse();
            ordered.push((version.map_err(|_| format!("{} has no resourceVersion", named(&object)))?, id, object));
        }
        ordered.sort_by_key(|(version, ..)| *version);
        for (version, id, object) in ordered {
            let key = Key::new(meta_text(&object, "namespace"), meta_text(&object, "name"));
            if version <= state.store.revision() {
                return Err(format!("{} has the resourceVersion {version}, which is not new", named(&object)));
            }
            state.store.advance_to(version - 1);
            state.put(&id, key, object).map_err(|status| status.message)?;
        }
        Ok(())
    }
}
