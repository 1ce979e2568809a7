//! Merges by the standard API, one for each Service that it exports. They are computed from the exports of the Service,
//! and again after a change of a value that they depend on.

use super::value::{Computation, Value};
use super::{Effects, Key, View};
use crate::conditions;
use crate::features::Feature;
use crate::hub::merge::Merge;
use crate::model::{InternalServiceExport, McsExport, MergedServiceImport, Place, ServicePort, SessionAffinity};
use fleetnet_types::{MemberNamespace, ObjectName, Uid};
use std::sync::Arc;

/// True if a MergedServiceImport shows that its member imports the Service.
fn is_used(object: &MergedServiceImport) -> bool {
    object.meta.finalizers.ours && !object.meta.deleting
}

/// Fields of an export that the merge depends on.
#[derive(PartialEq)]
struct MergeFields<'a> {
    uid: &'a Uid,
    deleting: bool,
    ports: &'a [ServicePort],
    headless: bool,
    session_affinity: SessionAffinity,
    mcs: Option<&'a McsExport>,
    precedence: &'a [Place],
    has_outcome: bool,
    weight: Option<i64>,
}

fn merge_fields(export: &InternalServiceExport) -> MergeFields<'_> {
    MergeFields {
        uid: &export.meta.uid,
        deleting: export.meta.deleting,
        ports: &export.ports,
        headless: export.headless,
        session_affinity: export.session_affinity,
        mcs: export.mcs.as_deref(),
        precedence: &export.precedence,
        has_outcome: conditions::merge_outcome(&export.conditions).is_some(),
        weight: export.weight,
    }
}

impl View {
    /// Stores the merge of the exports of a Service; `None` if the standard API does not export it. Returns the value
    /// and the keys that this concerns.
    pub(in crate::hub) fn store_merge(&mut self, service: &ObjectName, merge: Option<Merge>) -> Effects {
        let mut effects = Effects::default();
        let before = match merge.clone() {
            Some(merge) => self.merges.insert(service.clone(), merge),
            None => self.merges.remove(service),
        };
        if before == merge {
            return effects;
        }
        effects.values.push(Value::Merge(service.clone()));
        let clusters = |merge: &Option<Merge>| merge.iter().flat_map(Merge::clusters).cloned().collect::<Vec<_>>();
        if clusters(&before) != clusters(&merge) {
            effects.values.push(Value::Exporters(service.clone()));
        }
        if before.is_none() {
            effects.keys.extend(self.mcs_members().map(|importer| Key::merged_import(service, importer)));
        }
        effects
    }

    /// True if the standard API exports a Service from any cluster.
    pub(in crate::hub) fn exports_by_mcs_api(&self, service: &ObjectName) -> bool {
        self.mcs_exports_of.get(service).next().is_some()
    }

    /// Returns the member namespaces of the members that import Services of the standard API.
    fn mcs_members(&self) -> impl Iterator<Item = &MemberNamespace> {
        let members = self.announced.iter().filter(|(_, announced)| announced.has(Feature::McsApi));
        members.map(|(namespace, _)| namespace)
    }

    /// Adds the keys of the Services that a member imports from now on.
    pub(super) fn member_announced(&self, namespace: &MemberNamespace, effects: &mut Effects) {
        if self.announced.get(namespace).is_some_and(|announced| announced.has(Feature::McsApi)) {
            effects.keys.extend(self.merges.keys().map(|service| Key::merged_import(service, namespace)));
        }
    }

    /// Records a change of an export, which was `before`. Adds its Service if the merge depends on the change.
    pub(super) fn export_changed(
        &mut self,
        name: &ObjectName,
        before: Option<&InternalServiceExport>,
        effects: &mut Effects,
    ) {
        let after = self.internal_exports.get(name);
        let service = |export: &InternalServiceExport| export.mcs.as_ref().map(|_| export.reference.source.clone());
        let (of_before, of_after) = (before.and_then(service), after.and_then(service));
        if of_before == of_after && before.map(merge_fields) == after.map(merge_fields) {
            return;
        }
        effects.results.extend(of_before.iter().chain(&of_after).cloned().map(Computation::Merge));
        if of_before != of_after {
            effects.values.extend(of_before.iter().chain(&of_after).cloned().map(Value::Exporters));
        }
        let exports =
            |view: &Self, service: &ObjectName| view.mcs_exports_of.get_in(service, &name.namespace).next().is_some();
        let begins = of_after.clone().filter(|service| !exports(self, service));
        self.mcs_exports_of.shift(of_before.clone(), of_after, name);
        let ends = of_before.filter(|service| !exports(self, service));
        for (service, by) in ends.map(|it| (it, -1)).into_iter().chain(begins.map(|it| (it, 1))) {
            let objects = isize::try_from(self.merged_imports.number_of(&service)).unwrap_or(isize::MAX);
            self.add_fan_out([name.member_namespace()], by * objects, effects);
        }
    }

    /// Returns the members that export a Service by the standard API, by their member namespaces.
    fn mcs_exporters(&self, service: &ObjectName) -> Vec<MemberNamespace> {
        let mut exporters: Vec<MemberNamespace> =
            self.mcs_exports_of.get(service).map(|export| export.member_namespace()).collect();
        exporters.dedup();
        exporters
    }

    /// A MergedServiceImport changed or is gone, and was `before`.
    pub(super) fn merged_import_changed(
        &mut self,
        name: &ObjectName,
        before: Option<&MergedServiceImport>,
        effects: &mut Effects,
    ) {
        let (after, importer) = (self.merged_imports.get(name), name.member_namespace());
        let services = [before, after.as_ref()].map(|object| object.map(|object| object.service.clone()));
        let used = [before, after.as_ref()].map(|object| object.filter(|it| is_used(it)).map(|it| it.service.clone()));
        if services[0] != services[1] {
            for (service, by) in services.iter().zip([-1, 1]) {
                let exporters = service.as_ref().map(|service| self.mcs_exporters(service)).unwrap_or_default();
                self.add_fan_out(exporters, by, effects);
            }
            effects.values.extend(services[1].clone().map(|service| Value::Importer(service, importer.clone())));
            effects.keys.extend(services[1].as_ref().map(|service| Key::merged_import(service, &importer)));
        }
        let [used_before, used_after] = used;
        self.use_changed(&importer, used_before, used_after, effects);
    }

    /// A member imports another Service by the standard API than before, or begins or ends to do so.
    fn use_changed(
        &self,
        importer: &MemberNamespace,
        before: Option<ObjectName>,
        after: Option<ObjectName>,
        effects: &mut Effects,
    ) {
        if before == after {
            return;
        }
        for service in before.iter().chain(&after) {
            effects.values.push(Value::Importers(service.clone()));
            effects.values.push(Value::Importer(service.clone(), importer.clone()));
        }
        for slice in after.iter().flat_map(|service| self.slice_exports_of.get(service)) {
            effects.keys.push(Key::distributed_slice(&slice.name, importer));
        }
    }

    /// Lets an object use the merged import of its Service, or the import of another importer, if it is equal. It also
    /// shares the texts that many objects have. A fleet with many importers has very many MergedServiceImports.
    pub(super) fn share(&self, object: &mut MergedServiceImport) {
        let merge = self.merges.get_key_value(&object.service);
        if let Some((service, _)) = merge {
            object.service = service.clone();
        }
        if let Some((importer, _)) = self.announced.get_key_value(&*object.meta.name.namespace) {
            object.meta.name.namespace = importer.into();
        }
        let import = merge.map(|(_, merge)| &merge.import).or_else(|| self.merged_imports.import_beside(object));
        if let Some(import) = import.filter(|import| **import == object.import) {
            object.import = Arc::clone(import);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::hub::merge::Conflicts;
    use crate::model::{ImportType, Kind, MemberAgent, MergedCluster, MergedImport, Object};
    use crate::names;
    use crate::support::build::{
        Build, BuildInternalExport, IntoObject, internal_export, mcs_part, member_agent, merged_service_import, named,
        port, seconds, service, slice, slice_export,
    };
    use fleetnet_types::{Change, Removal};

    fn app() -> ObjectName {
        named("work/app")
    }

    /// Returns a merge with these clusters.
    fn merge(clusters: &[&str]) -> Merge {
        let import = MergedImport {
            import_type: ImportType::ClusterSetIp,
            ports: vec![port("http", 80)],
            session_affinity: SessionAffinity::None,
            properties: mcs_part().properties,
            clusters: clusters.iter().map(|it| MergedCluster { cluster: (*it).into(), ports: None }).collect(),
        };
        let (selectors, weights) = Default::default();
        Merge { import: import.into(), conflicts: Conflicts::new(), places: Vec::new(), selectors, weights }
    }

    fn apply(view: &mut View, object: Object) -> Effects {
        view.apply(object.kind(), Change::Applied(object), seconds(1))
    }

    fn remove(view: &mut View, object: &MergedServiceImport) -> Effects {
        let (name, uid) = (object.meta.name.clone(), object.meta.uid.clone());
        view.apply(Kind::MergedServiceImport, Change::Removed { name, uid, how: Removal::Deleted }, seconds(2))
    }

    fn agent(cluster: &str, features: Features) -> MemberAgent {
        member_agent(cluster, features, Features::ALL)
    }

    fn key(importer: &str) -> Key {
        Key::merged_import(&app(), &names::member_namespace(importer))
    }

    fn given(importer: &str) -> MergedServiceImport {
        merged_service_import(importer, "work/app", &merge(&["member-1"]).import)
    }

    #[test]
    fn a_new_merged_import_has_a_key_for_each_member_that_imports_by_the_mcs_api() {
        let mut view = View::default();
        apply(&mut view, agent("member-1", Features::ALL).object());
        apply(&mut view, agent("member-2", Features::NONE).object());
        let value = || Value::Merge(app());
        let both = || vec![value(), Value::Exporters(app())];
        let place = Place { cluster: "member-1".into(), export_created: seconds(1), since: seconds(1) };
        let changed = Merge { places: vec![place], ..merge(&["member-1"]) };
        let steps = [
            (None, Vec::new(), Vec::new()),
            (Some(merge(&["member-1"])), both(), vec![key("member-1")]),
            (Some(merge(&["member-1"])), Vec::new(), Vec::new()),
            (Some(changed), vec![value()], Vec::new()),
            (Some(merge(&["member-1", "member-3"])), both(), Vec::new()),
            (None, both(), Vec::new()),
        ];
        for (step, (merge, values, keys)) in steps.into_iter().enumerate() {
            let effects = view.store_merge(&app(), merge);
            assert_eq!((effects.values, effects.keys), (values, keys), "step {step}");
        }
    }

    #[test]
    fn a_member_that_announces_the_mcs_api_has_a_key_for_each_merged_import() {
        let mut view = View::default();
        view.store_merge(&app(), Some(merge(&["member-1"])));
        for (features, is_importer) in [(Features::NONE, false), (Features::ALL, true)] {
            let effects = apply(&mut view, agent("member-2", features).object());
            assert_eq!(effects.keys.contains(&key("member-2")), is_importer, "{features:?}");
        }
    }

    #[test]
    fn exports_are_merged_again_only_after_a_change_that_counts() {
        let export = internal_export("member-1", &service("work/app")).mcs(mcs_part());
        let of_fleet = InternalServiceExport { mcs: None, ..export.clone() };
        let ports = vec![port("http", 81)];
        let steps = [
            ("a new export", export.clone(), true, true),
            ("its generation", export.clone().generation(2), false, false),
            ("its ports", InternalServiceExport { ports: ports.clone(), ..export }, true, false),
            ("its API", of_fleet.clone(), true, true),
            ("the ports of another API", InternalServiceExport { ports, ..of_fleet }, false, false),
        ];
        let mut view = View::default();
        for (step, export, merges, is_other_exporter) in steps {
            let effects = apply(&mut view, export.object());
            assert_eq!(effects.results.contains(&Computation::Merge(app())), merges, "{step}");
            assert_eq!(effects.values.contains(&Value::Exporters(app())), is_other_exporter, "{step}");
        }
    }

    #[test]
    fn two_exports_of_a_service_by_one_member_count_once_for_each_importer() {
        let mut view = View::default();
        view.budgets.fan_out_limit = Some(2);
        let export = internal_export("member-1", &service("work/app")).mcs(mcs_part());
        let mut second = export.clone();
        second.meta.name.name = "second".into();
        let namespace = export.meta.name.member_namespace();
        apply(&mut view, export.object());
        apply(&mut view, second.object());
        for (importer, may_fan_out) in [("member-2", true), ("member-3", false)] {
            apply(&mut view, given(importer).object());
            assert_eq!(view.budgets.may_fan_out(&namespace), may_fan_out, "{importer}");
        }
    }

    #[test]
    fn the_importers_of_a_service_change_only_when_a_member_begins_or_ends_to_import_it() {
        let mut view = View::default();
        let export = slice_export("member-1", &slice("work/app-1"));
        let distributed = Key::distributed_slice(&export.meta.name.name, &names::member_namespace("member-2"));
        apply(&mut view, Object::EndpointSliceExport(export));
        let object = given("member-2");
        let used = object.clone().marked();
        let changed = MergedServiceImport { import: merge(&["member-1", "member-3"]).import, ..used.clone() };
        let steps = [
            ("it comes", object.clone(), false, vec![key("member-2")]),
            ("its member imports it", used, true, vec![distributed]),
            ("its import changes", changed.clone(), false, Vec::new()),
            ("it is being deleted", changed.clone().deleting(), true, Vec::new()),
        ];
        let are_importers_others = |effects: &Effects| effects.values.contains(&Value::Importers(app()));
        for (step, object, are_others, keys) in steps {
            let effects = apply(&mut view, object.object());
            assert_eq!((are_importers_others(&effects), effects.keys), (are_others, keys), "{step}");
        }
        assert!(!are_importers_others(&remove(&mut view, &object)), "it was not imported any more");
        apply(&mut view, changed.object());
        assert!(are_importers_others(&remove(&mut view, &object)), "it was imported");
    }

    #[test]
    fn the_objects_of_all_importers_share_the_names_of_their_service_and_member() {
        let mut view = View::default();
        view.store_merge(&app(), Some(merge(&["member-1"])));
        apply(&mut view, agent("member-2", Features::ALL).object());
        let effects = apply(&mut view, given("member-2").object());
        let [Key::MergedImport { service, importer }] = &*effects.keys else { panic!("{:?}", effects.keys) };
        let (known, _) = view.merges.first_key_value().expect("it is merged");
        assert!(Arc::ptr_eq(&service.namespace, &known.namespace) && Arc::ptr_eq(&service.name, &known.name));
        let (member, _) = view.announced.first_key_value().expect("it has an agent");
        assert!(Arc::ptr_eq(importer.as_text(), member.as_text()));
    }
}
