//! Objects without which a key does not exist. The agent forgets what it recorded about a key with the last of them.
//!
//! This is read through a [`Reader`], so the record of a key contains the objects that keep it. When the last one goes,
//! the key is planned once more, and forgotten.

use super::reader::Reader;
use super::{Key, is_among};
use crate::names;
use fleetnet_types::{MemberNamespace, ObjectName};

impl Reader<'_> {
    /// True if an object exists that the key is for.
    pub(crate) fn has(self, key: &Key) -> bool {
        match key {
            Key::Service(service) => {
                self.hub_imports().get(service).is_some()
                    || self.internal_exports_of(service).next().is_some()
                    || self.claims_of(service).next().is_some()
            }
            Key::Slice(name) => self.slice_exports_named(name).next().is_some(),
            Key::DistributedSlice { slice, importer } => {
                let at = ObjectName::new(importer, slice.clone());
                self.distributed_slices().get(&at).is_some()
                    || self.slice_exports_named(slice).any(|export| self.receives(importer, export))
            }
            Key::MergedImport { service, importer } => {
                let at = ObjectName::new(importer, names::merged_import_name(service));
                self.merged_import(&at).is_some()
                    || self.merged_imports_in(service, importer).next().is_some()
                    || self.has_announcement(importer) && self.merge_of(service).is_some()
            }
            Key::Member(cluster) => self.member_agents().get(&names::member_agent(cluster)).is_some(),
        }
    }

    /// True if an importer receives an exported slice: the ServiceImport records the importer and lists the exporter,
    /// or the importer imports the Service by the standard API.
    fn receives(self, importer: &MemberNamespace, export: &ObjectName) -> bool {
        let Some(export) = self.slice_exports().get(export) else { return false };
        let service = &export.spec.owner;
        let is_accepted = || self.exporters(service).is_some_and(|exporters| is_among(exporters, &export.meta.name));
        self.imports_by_mcs_api(service, importer) || self.is_recorded(service, importer) && is_accepted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::model::{ImportType, MergedCluster, MergedImport, MergedServiceImport, Object, SessionAffinity};
    use crate::reads::Reads;
    use crate::support::build::{
        Build, BuildImport, BuildInternalExport, IntoObject, claim, distributed_slice, internal_export, mcs_part,
        member_agent, merged_service_import, named, resolved, service, service_import, slice, slice_export,
    };
    use crate::support::view::hub_view;
    use std::sync::Arc;

    /// Asserts for each row if its key exists in a hub with its objects.
    fn assert_exist(table: impl IntoIterator<Item = (&'static str, Key, Vec<Object>, bool)>) {
        for (case, key, objects, expected) in table {
            let (view, reads) = (hub_view(objects), Reads::default());
            assert_eq!(Reader::new(&view, &reads).has(&key), expected, "{key:?}: {case}");
        }
    }

    fn export() -> Object {
        internal_export("member-1", &service("work/app")).mcs(mcs_part()).object()
    }

    /// Returns the MergedServiceImport of a Service for member-2, with the finalizer of its member.
    fn merged_import(service: &str) -> MergedServiceImport {
        let import = MergedImport {
            import_type: ImportType::ClusterSetIp,
            ports: Vec::new(),
            session_affinity: SessionAffinity::None,
            properties: mcs_part().properties,
            clusters: vec![MergedCluster { cluster: "member-1".into(), ports: None }],
        };
        merged_service_import("member-2", service, &Arc::new(import)).marked()
    }

    #[test]
    fn a_service_exists_with_its_import_an_export_or_a_claim() {
        let key = || Key::Service(named("work/app"));
        let import = service_import("work/app");
        assert_exist([
            ("nothing", key(), Vec::new(), false),
            ("its ServiceImport", key(), vec![import.clone().object()], true),
            ("an export", key(), vec![export()], true),
            ("a claim", key(), vec![claim("member-2", &import).object()], true),
            ("another Service", key(), vec![service_import("work/other").object()], false),
        ]);
    }

    #[test]
    fn a_distributed_slice_exists_with_its_object_or_while_its_importer_receives_an_export() {
        let export = slice_export("member-1", &slice("work/app-1"));
        let key = || Key::distributed_slice(&export.meta.name.name, &names::member_namespace("member-2"));
        let with_export = |object: Option<Object>| -> Vec<Object> {
            object.into_iter().chain([Object::EndpointSliceExport(export.clone())]).collect()
        };
        let import = |exporter: &str, importer: &str| {
            Some(service_import("work/app").showing(resolved(&[exporter])).claimed_by(&[importer]).object())
        };
        assert_exist([
            ("no import", key(), with_export(None), false),
            ("exporter and importer are recorded", key(), with_export(import("member-1", "member-2")), true),
            ("another exporter is recorded", key(), with_export(import("member-3", "member-2")), false),
            ("another importer is recorded", key(), with_export(import("member-1", "member-3")), false),
            ("the standard API imports it", key(), with_export(Some(merged_import("work/app").object())), true),
            ("the import goes", key(), with_export(Some(merged_import("work/app").deleting().object())), false),
            ("no export", key(), import("member-1", "member-2").into_iter().collect(), false),
            ("its object", key(), vec![Object::EndpointSliceImport(distributed_slice("member-2", &export))], true),
        ]);
    }

    #[test]
    fn a_merged_import_exists_with_its_object_or_while_its_member_gets_the_service() {
        let key = || Key::merged_import(&named("work/app"), &names::member_namespace("member-2"));
        let agent = |cluster: &str| member_agent(cluster, Features::ALL, Features::ALL).object();
        let own = merged_import("work/app");
        let of_another_service = MergedServiceImport { service: named("work/other"), ..own.clone() };
        let mut under_another_name = own.clone();
        under_another_name.meta.name.name = "other".into();
        let mut of_another_member = own.clone();
        of_another_member.meta.name.namespace = names::member_namespace("member-3").into();
        assert_exist([
            ("nothing", key(), Vec::new(), false),
            ("its member does not announce anything", key(), vec![export(), agent("member-3")], false),
            ("nobody exports the Service", key(), vec![agent("member-2")], false),
            ("the member gets the Service", key(), vec![export(), agent("member-2")], true),
            ("its object", key(), vec![own.object()], true),
            ("its name, with another Service", key(), vec![of_another_service.object()], true),
            ("its Service, under another name", key(), vec![under_another_name.object()], true),
            ("another importer", key(), vec![of_another_member.object()], false),
        ]);
    }
}
