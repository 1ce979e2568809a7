//! An agent exports a source slice only once: no second EndpointSliceExport for one source slice and one ServiceExport.
//!
//! A create of a killed process can arrive after users have deleted the ServiceExport and created it again. Nobody can
//! refuse it, and the next leader deletes this export. So the rule distinguishes the ServiceExports, whose UIDs are in
//! the names of exports.

use super::{Oracle, Seen};
use fleetnet_core::model::{HubSlice, Object};
use fleetnet_core::names::{SuffixLength, slice_export_name};
use fleetnet_types::{ObjectName, Text, Uid};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};

/// Exports that agents created, and the ServiceExports that users created.
#[derive(Debug, Default)]
pub(super) struct OnlyOnce {
    /// Source slice of each export, and the UID of its ServiceExport if its name shows it, by the name of the export.
    exports: BTreeMap<ObjectName, (Source, Option<Uid>)>,
    service_exports: BTreeSet<Uid>,
}

/// Member namespace of the exporter, and UID of the source slice.
type Source = (Text, Uid);

impl OnlyOnce {
    /// Returns the UID of the ServiceExport for which an agent named this export.
    fn service_export(&self, export: &HubSlice) -> Option<Uid> {
        let reference = &export.spec.reference;
        let ObjectName { namespace, name } = &reference.source;
        let named = |uid: &&Uid| {
            [SuffixLength::Short, SuffixLength::Long].into_iter().any(|length| {
                slice_export_name(&reference.cluster, namespace, name, &reference.uid, uid, length)
                    == export.meta.name.name
            })
        };
        self.service_exports.iter().find(named).cloned()
    }
}

impl Oracle for OnlyOnce {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let export = match seen.newest() {
            Some(Object::ServiceExport(export)) => {
                self.service_exports.insert(export.meta.uid.clone());
                return Ok(false);
            }
            Some(Object::EndpointSliceExport(export)) if seen.server == Place::Hub => export,
            _ => return Ok(false),
        };
        let name = &export.meta.name;
        if seen.after.is_none() || export.meta.deleting {
            self.exports.remove(name);
        }
        if seen.before.is_some() || seen.agent.is_none() {
            return Ok(false);
        }
        let source = (name.namespace.clone(), export.spec.reference.uid.clone());
        let of = self.service_export(export);
        let is_same = |(other, (slice, other_of)): &(&ObjectName, &(Source, Option<Uid>))| {
            *slice == source && *other != name && (of.is_none() || other_of.is_none() || of == *other_of)
        };
        let other = self.exports.iter().find(is_same).map(|(other, _)| other.clone());
        self.exports.insert(name.clone(), (source, of));
        match other {
            Some(other) => Err(format!("{name} and {other} export the same slice {}", export.spec.reference.source)),
            None => Ok(true),
        }
    }

    fn restored(&mut self) {
        self.exports.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;

    fn export(name: &str, uid: &str) -> State {
        let reference = json!({"clusterId": "member-1", "namespace": "work", "name": "app-1", "uid": uid});
        let owner = json!({"namespace": "work", "name": "app"});
        let rest = json!({"spec": {"endpointSliceReference": reference, "ownerServiceReference": owner}});
        state(Kind::EndpointSliceExport, &format!("fleet-member-member-1/{name}"), &rest)
    }

    /// Returns the name of the export of the slice `a` for this ServiceExport.
    fn named(service_export: &str, length: SuffixLength) -> String {
        slice_export_name("member-1", "work", "app-1", "a", service_export, length).to_string()
    }

    #[test]
    fn a_source_slice_has_one_export() {
        let [old, new] = ["uid-old", "uid-new"].map(|uid| named(uid, SuffixLength::Short));
        for (why, second, is_right) in [
            ("the same slice again", export("two", "a"), false),
            ("another slice", export("two", "b"), true),
            ("the same export again", export(&old, "a"), true),
            ("for another ServiceExport", export(&new, "a"), true),
            ("for the same ServiceExport", export(&named("uid-old", SuffixLength::Long), "a"), false),
        ] {
            let (mut rule, first, agent) = (OnlyOnce::default(), export(&old, "a"), Some(Place::Member(0)));
            for uid in ["uid-old", "uid-new"] {
                let service_export = state(Kind::ServiceExport, "work/app", &json!({"metadata": {"uid": uid}}));
                rule.committed(&seen(Place::Member(0), None, None, Some(&service_export))).expect("of users");
            }
            rule.committed(&seen(Place::Hub, agent, None, Some(&first))).expect("the first export");
            let committed = rule.committed(&seen(Place::Hub, agent, None, Some(&second)));
            assert_eq!(committed.is_ok(), is_right, "{why}: {committed:?}");
        }
    }
}
