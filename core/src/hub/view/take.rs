//! Stores changes of objects in the hub agent's view, and tells which values they change.

use super::endpoint_counts::counted;
use super::value::{Bucket, Value};
use super::{Effects, Key, View, accepts, budget, importers, records};
use crate::feature_set::Announced;
use crate::features::Features;
use crate::index::Taken;
use crate::limits::{CONTENTS_COMPARED_MAX, FEATURE_GAIN_MICROS};
use crate::model::{
    HubSlice, InternalServiceExport, InternalServiceImport, Kind, MemberAgent, Namespace, Object, Properties,
    ServiceImport, SliceContent,
};
use crate::names;
use crate::ranges::SourceRanges;
use fleetnet_types::{Change, ClusterId, MemberNamespace, ObjectName, Text, Timestamp};
use std::sync::Arc;

/// Declares the functions of a view that store and remove objects. Each kind has its table, and what is to do after a
/// change of the object with this `name`, which was `before`.
macro_rules! stored_kinds {
    (
        ($self:ident, $name:ident, $before:ident, $at:ident, $effects:ident)
        of the $agent:ident agent: [$($other:ident),*]
        $($kind:ident: $table:ident => $after:expr;)*
    ) => {
        /// Stores the newest state of an object. Returns false if only its resourceVersion changed.
        #[allow(unused_variables, reason = "some changes need no further state")]
        fn take(&mut $self, object: Object, $at: Timestamp, $effects: &mut Effects) -> bool {
            let $name = &object.meta().name.clone();
            match object {
                $(Object::$kind(object) => $self.$table.take(object).changed(|$before| $after),)*
                $(Object::$other(_))|* => false,
            }
        }

        /// Removes an object. Returns false if the table does not have it.
        #[allow(unused_variables, reason = "some changes need no further state")]
        fn forget(
            &mut $self, kind: Kind, $name: &ObjectName, uid: &str, $at: Timestamp, $effects: &mut Effects,
        ) -> bool {
            match kind {
                $(Kind::$kind => {
                    Taken::removed($self.$table.remove($name, uid)).changed(|$before| $after)
                })*
                $(Kind::$other)|* => false,
            }
        }
    };
}

impl View {
    /// Stores a change of an object, which the agent saw at the time `at`.
    pub(in crate::hub) fn apply(&mut self, kind: Kind, change: Change<Object>, at: Timestamp) -> Effects {
        let mut effects = Effects::default();
        let name = match &change {
            Change::Applied(object) => object.meta().name.clone(),
            Change::Undecodable { name } | Change::Removed { name, .. } => name.clone(),
        };
        let member = name.member_namespace();
        let (bytes, refused) = (self.bytes_kept(kind, &name), self.budgets.refused(&member));
        let change = self.budgets.admit(kind, change, bytes);
        let is_other_decodability = match &change {
            Change::Undecodable { .. } => self.undecodable.insert(kind, name.clone()),
            Change::Applied(_) | Change::Removed { .. } => self.undecodable.remove(kind, &name),
        };
        if is_other_decodability {
            self.decodability_changed(kind, &name, &mut effects);
        }
        let is_changed = match change {
            Change::Applied(mut object) => {
                self.prepare(&mut object, at);
                self.take(object, at, &mut effects)
            }
            Change::Removed { uid, .. } => self.forget(kind, &name, &uid, at, &mut effects),
            Change::Undecodable { .. } => false,
        };
        effects.values.extend(is_changed.then(|| Value::Object(kind, name.clone())));
        self.budgets.kept(&member, bytes, self.bytes_kept(kind, &name));
        effects.keys.extend(self.refusal_changed(&member, refused));
        effects
    }

    /// Returns the number of bytes that count for the present state of an object; 0 if there is none.
    fn bytes_kept(&self, kind: Kind, name: &ObjectName) -> usize {
        match kind {
            Kind::EndpointSliceExport => self.slice_exports.get(name).map_or(0, budget::of_slice),
            Kind::InternalServiceExport => self.internal_exports.get(name).map_or(0, budget::of_internal_export),
            Kind::InternalServiceImport => self.claims.get(name).map_or(0, budget::of_claim),
            _ => 0,
        }
    }

    /// Adds to the numbers of objects in other member namespaces that the exports of these members cause, by their
    /// member namespaces.
    pub(super) fn add_fan_out(
        &mut self,
        exporters: impl IntoIterator<Item = MemberNamespace>,
        by: isize,
        effects: &mut Effects,
    ) {
        for namespace in exporters {
            if self.budgets.add_fan_out(&namespace, by) {
                effects.keys.extend(names::cluster_of(&namespace).map(Key::Member));
                effects.values.push(Value::FanOut(namespace));
            }
        }
    }

    /// Returns the key of a member whose first object was refused, or whose last refused object was taken.
    fn refusal_changed(&self, namespace: &MemberNamespace, before: usize) -> Option<Key> {
        let is_changed = (before == 0) != (self.budgets.refused(namespace) == 0);
        is_changed.then(|| names::cluster_of(namespace).map(Key::Member)).flatten()
    }

    /// An object became undecodable, became decodable again or is gone.
    fn decodability_changed(&self, kind: Kind, name: &ObjectName, effects: &mut Effects) {
        effects.values.push(Value::Undecodable(kind, name.clone()));
        effects.values.push(Value::UndecodableNamed(kind, name.name.clone()));
        // A value is whether a namespace has such objects, not which ones, because a member can make very many.
        if !self.undecodable.any_beside(kind, name) {
            effects.values.push(Value::UndecodableIn(kind, name.member_namespace()));
        }
    }

    /// Lets an object share memory with others before it is stored.
    fn prepare(&mut self, object: &mut Object, at: Timestamp) {
        if let Object::EndpointSliceImport(slice) = object {
            self.share_content(slice);
            let before = self.distributed_slices.get(&slice.meta.name);
            self.previews.object_changed(before, slice, at);
        } else if let Object::MergedServiceImport(import) = object {
            self.share(import);
        }
    }

    stored_kinds! { (self, name, before, at, effects)
        of the member agent: [
            Service, EndpointSlice, ServiceExport, McsServiceExport, McsServiceImport, MultiClusterService,
            SystemNamespace, InternalMemberCluster, ClusterProperty, Node
        ]
        InternalServiceExport: internal_exports => self.internal_export_changed(name, before, effects);
        InternalServiceImport: claims => self.claim_changed(name, before, effects);
        ServiceImport: hub_imports => self.import_changed(name, before.as_ref(), effects);
        EndpointSliceExport: slice_exports => self.slice_export_changed(name, before, at, effects);
        EndpointSliceImport: distributed_slices => self.distributed_slice_changed(name, before.as_ref(), effects);
        Namespace: namespaces => self.namespace_changed(name, before.as_ref(), effects);
        MemberAgent: member_agents => self.member_agent_changed(name, before.as_ref(), at, effects);
        MergedServiceImport: merged_imports => self.merged_import_changed(name, before.as_ref(), effects);
        MemberCluster: member_clusters => ();
    }

    /// An InternalServiceExport changed or is gone, and was `before`.
    fn internal_export_changed(
        &mut self,
        name: &ObjectName,
        before: Option<InternalServiceExport>,
        effects: &mut Effects,
    ) {
        self.export_changed(name, before.as_ref(), effects);
        let before = before.map(|export| export.reference.source);
        let after = self.internal_exports.get(name).map(|export| export.reference.source.clone());
        effects.moved(Bucket::InternalExports, before.as_ref(), after.as_ref());
        self.internal_exports_of.shift(before, after, name);
    }

    fn claim_changed(&mut self, name: &ObjectName, before: Option<InternalServiceImport>, effects: &mut Effects) {
        let before = before.map(|claim| claim.reference.source);
        let after = self.claims.get(name).map(|claim| claim.reference.source.clone());
        effects.moved_claim(name, before.as_ref(), after.as_ref());
        self.claims_of.shift(before, after, name);
    }

    /// A slice of an accepted exporter has a key for each importer.
    fn import_changed(&self, service: &ObjectName, before: Option<&ServiceImport>, effects: &mut Effects) {
        let after = self.hub_imports.get(service);
        effects.keys.extend(after.map(|_| Key::Service(service.clone())));
        let other_exporters = before.map(|it| &it.status.clusters) != after.map(|it| &it.status.clusters);
        let gone = importers(before).filter(|importer| !records(after, importer));
        let new = importers(after).filter(|importer| !records(before, importer));
        let changed: Vec<&MemberNamespace> = gone.chain(new).collect();
        if other_exporters {
            effects.values.push(Value::Exporters(service.clone()));
        }
        if !changed.is_empty() || before.is_some() != after.is_some() {
            effects.values.push(Value::Importers(service.clone()));
        }
        effects.values.extend(changed.iter().map(|importer| Value::Importer(service.clone(), (*importer).clone())));
        if !other_exporters && changed.is_empty() {
            return; // then no slice gets a new importer
        }
        for slice in self.slice_exports_of.get(service).filter(|slice| accepts(after, slice)) {
            let is_new = |importer: &&MemberNamespace| !accepts(before, slice) || !records(before, importer);
            effects
                .keys
                .extend(importers(after).filter(is_new).map(|importer| Key::distributed_slice(&slice.name, importer)));
        }
    }

    fn slice_export_changed(
        &mut self,
        name: &ObjectName,
        before: Option<HubSlice>,
        at: Timestamp,
        effects: &mut Effects,
    ) {
        let after = self.slice_exports.get(name).map(|slice| (slice.spec.clone(), counted(slice)));
        let (after, endpoints) = after.unzip();
        let counts = self.endpoint_counts.count(&name.member_namespace(), before.as_ref().map(counted), endpoints);
        effects.values.extend(counts);
        if let Some(after) = &after {
            for distributed in self.distributed_slices_named.get(&name.name) {
                let share_content =
                    |distributed: &mut HubSlice| _ = share(&mut distributed.spec.content, &after.content);
                self.distributed_slices.compact(distributed, share_content);
            }
        }
        let appears = isize::from(after.is_some()) - isize::from(before.is_some());
        let named = |is_there| Some(name.name.clone()).filter(|_| is_there);
        self.slice_exports_named.shift(named(before.is_some()), named(after.is_some()), name);
        if appears != 0 {
            let by = appears * self.number_of_distributed_slices(&name.name);
            self.add_fan_out([name.member_namespace()], by, effects);
            effects.values.push(Value::SliceExportsNamed(name.name.clone()));
            effects.keys.extend(after.as_ref().map(|_| Key::Slice(name.name.clone())));
        }
        let (before, after) = (before.map(|slice| slice.spec.owner), after.map(|spec| spec.owner));
        if let Some(after) = after.as_ref().filter(|after| before.as_ref() != Some(*after)) {
            let import = self.hub_imports.get(after).filter(|import| accepts(Some(import), name));
            let importers = importers(import).chain(self.merged_imports.importers(after));
            effects.keys.extend(importers.map(|importer| Key::distributed_slice(&name.name, importer)));
        }
        effects.moved(Bucket::SliceExports, before.as_ref(), after.as_ref());
        self.slice_exports_of.shift(before, after, name);
        if appears < 0 {
            self.end_silence_without_exports(&name.member_namespace(), at, effects);
        }
    }

    fn distributed_slice_changed(&mut self, name: &ObjectName, before: Option<&HubSlice>, effects: &mut Effects) {
        let after = self.distributed_slices.get(name);
        let count = |slice: Option<&HubSlice>| isize::from(slice.is_some_and(|slice| !slice.meta.deleting));
        let (by, is_there) = (count(after) - count(before), after.is_some());
        let named = |is_there| Some(name.name.clone()).filter(|_| is_there);
        self.distributed_slices_named.shift(named(before.is_some()), named(is_there), name);
        if before.is_some() != is_there {
            effects.values.push(Value::DistributedSlicesNamed(name.name.clone()));
        }
        if before.is_none() {
            effects.keys.push(Key::distributed_slice(&name.name, &name.member_namespace()));
        }
        if !is_there {
            self.previews.object_gone(name);
        }
        self.count_distributed_slice(&name.name, by, effects);
    }

    /// Lets a distributed slice use the content of its export or of another distributed slice, if it is equal. A fleet
    /// with many importers has very many distributed slices of each export, in few forms.
    fn share_content(&self, distributed: &mut HubSlice) {
        let name = &distributed.meta.name.name;
        let exports = self.slice_exports_named.get(name).filter_map(|export| self.slice_exports.get(export));
        // Distributed slices are listed and written in the order of their names, so an equal one is usually near.
        let slices = self.distributed_slices_named.around(name, &distributed.meta.name);
        let slices = slices.filter_map(|other| self.distributed_slices.get(other));
        let mut compared: Vec<&Arc<SliceContent>> = Vec::new();
        for content in exports.chain(slices).map(|other| &other.spec.content) {
            if compared.iter().any(|other| Arc::ptr_eq(other, content)) {
                continue;
            }
            if compared.len() == CONTENTS_COMPARED_MAX || share(&mut distributed.spec.content, content) {
                return;
            }
            compared.push(content);
        }
    }

    /// Adds to the number of distributed slices with this name that are not being deleted.
    fn count_distributed_slice(&mut self, name: &Text, by: isize, effects: &mut Effects) {
        let exporters: Vec<MemberNamespace> =
            self.slice_exports_named.get(name).map(|export| export.member_namespace()).collect();
        self.add_fan_out(exporters, by, effects);
        let before = self.distributed_slice_counts.get(name).copied().unwrap_or_default();
        let after = before + by;
        if after == 0 {
            self.distributed_slice_counts.remove(name)
        } else {
            self.distributed_slice_counts.insert(name.clone(), after)
        };
        if (before == 0) != (after == 0) {
            effects.values.push(Value::HasDistributedSlices(name.clone()));
        }
    }

    /// Returns the number of distributed slices with this name that are not being deleted.
    fn number_of_distributed_slices(&self, name: &Text) -> isize {
        self.distributed_slice_counts.get(name).copied().unwrap_or_default()
    }

    fn namespace_changed(&self, name: &ObjectName, before: Option<&Namespace>, effects: &mut Effects) {
        let is_open =
            |it: &Namespace| it.exporters.is_none() && it.importers.is_none() && it.source_ranges == SourceRanges::Any;
        let is_changed = match (before, self.namespaces.get(name)) {
            (Some(before), Some(after)) => {
                (&before.exporters, &before.importers, &before.source_ranges)
                    != (&after.exporters, &after.importers, &after.source_ranges)
            }
            (None, Some(after)) => self.namespace_policy.needs_namespace() || !is_open(after),
            (_, None) => true,
        };
        effects.values.extend(is_changed.then(|| Value::Lists(name.name.clone())));
        let (before, after) = (before.map(|it| &it.properties), self.namespaces.get(name).map(|it| &it.properties));
        let is_set = |properties: &&Result<Properties, Text>| properties.as_ref() != Ok(&Properties::new());
        let is_changed = before.filter(is_set) != after.filter(is_set);
        effects.values.extend(is_changed.then(|| Value::Properties(MemberNamespace::from(name.name.clone()))));
    }

    fn member_agent_changed(
        &mut self,
        name: &ObjectName,
        before: Option<&MemberAgent>,
        at: Timestamp,
        effects: &mut Effects,
    ) {
        let (before, after) = (before.map(|it| &it.properties), self.member_agents.get(name).map(|it| &it.properties));
        let is_changed = before.filter(|it| !it.is_empty()) != after.filter(|it| !it.is_empty());
        effects.values.extend(is_changed.then(|| Value::Properties(name.member_namespace())));
        if self.member_agents.get(name).is_some() {
            effects.keys.extend(names::member_of_agent(name).map(Key::Member));
        } else {
            self.offered.remove(&*name.name);
        }
        self.record_member(name, at, effects);
    }

    /// Records what a MemberAgent says about its member.
    fn record_member(&mut self, name: &ObjectName, at: Timestamp, effects: &mut Effects) {
        if let Some(cluster) = names::member_of_agent(name) {
            self.record_announcement(name, at, effects);
            self.record_silence(name, cluster, at, effects);
        }
    }

    /// Records the last renewal and the silence of a member.
    fn record_silence(&mut self, name: &ObjectName, cluster: ClusterId, at: Timestamp, effects: &mut Effects) {
        let agent = self.member_agents.live(name);
        match agent {
            Some(agent) => self.last_renewals.seen(&cluster, agent, at),
            None => self.last_renewals.gone(&cluster),
        }
        // A silent member whose MemberAgent was deleted stays silent.
        if agent.is_none() && self.slice_exports.in_namespace(&name.namespace).next().is_some() {
            return;
        }
        let silence = agent.and_then(|agent| agent.status.silence).filter(|it| it.phase.treatment().is_some());
        let before = match silence {
            Some(silence) => self.silent.insert(cluster.clone(), silence),
            None => self.silent.remove(&cluster),
        };
        if before != silence {
            effects.values.push(Value::Silence(cluster));
            effects.values.push(Value::SilentMembers);
        }
    }

    /// Ends the silence of a member without MemberAgent and exported slices. Another cluster may then use the id, with
    /// Go agents.
    fn end_silence_without_exports(&mut self, namespace: &MemberNamespace, at: Timestamp, effects: &mut Effects) {
        let Some(cluster) = names::cluster_of(namespace) else { return };
        self.record_silence(&names::member_agent(&cluster), cluster, at, effects);
    }

    /// Records the announcement of a member.
    fn record_announcement(&mut self, name: &ObjectName, at: Timestamp, effects: &mut Effects) {
        let namespace = &name.member_namespace();
        let announcement =
            self.member_agents.live(name).map(|agent| &agent.member).filter(|member| !member.version.is_empty());
        let announcement = announcement.map(|member| member.known_features());
        let announcement = announcement.map(|features| self.gained(namespace, features, at));
        let changed = self.announced.entry(namespace.clone()).or_default().record(announcement, at);
        // Expired announcements of members that left. A member that never announced anything changes nothing.
        let over = self.announced.extract_if(.., |_, announced| announced.is_over(at));
        let left = over.filter(|(_, announced)| *announced != Announced::Never);
        effects.values.extend(left.map(|(namespace, _)| Value::Announced(namespace)));
        self.gains.retain(|namespace, _| self.announced.contains_key(namespace));
        if changed {
            effects.values.push(Value::Announced(namespace.clone()));
            self.member_announced(namespace, effects);
        }
    }
}

impl View {
    /// Returns the features of a member that count now. A lost feature counts at once. Gained features count at most
    /// once a minute, because each gain writes the slices of the member again. The next renewal asks again.
    fn gained(&mut self, namespace: &MemberNamespace, announced: Features, at: Timestamp) -> Features {
        let before = self.announced.get(namespace).and_then(|announced| announced.features());
        let Some(before) = before.filter(|before| before.common(announced) != announced) else { return announced };
        let last = self.gains.get(namespace);
        if last.is_some_and(|last| at < last.plus_micros(FEATURE_GAIN_MICROS)) {
            return before.common(announced);
        }
        self.gains.insert(namespace.clone(), at);
        announced
    }
}

/// Lets `content` use the memory of `other`, if both are equal. Returns true if they are.
fn share(content: &mut Arc<SliceContent>, other: &Arc<SliceContent>) -> bool {
    let is_equal = *content == *other;
    if is_equal {
        *content = Arc::clone(other);
    }
    is_equal
}

impl Effects {
    /// Adds the buckets of an index that lost or got the name of an object.
    fn moved(&mut self, bucket: Bucket, before: Option<&ObjectName>, after: Option<&ObjectName>) {
        if before == after {
            return;
        }
        let services = before.into_iter().chain(after).cloned();
        self.values.extend(services.map(|service| Value::Bucket(bucket, service)));
        if bucket != Bucket::SliceExports {
            self.keys.extend(after.cloned().map(Key::Service));
        }
    }

    /// The same for a claim.
    fn moved_claim(&mut self, name: &ObjectName, before: Option<&ObjectName>, after: Option<&ObjectName>) {
        self.moved(Bucket::Claims, before, after);
        if before != after {
            let services = before.into_iter().chain(after).cloned();
            self.values.extend(services.map(|service| Value::ClaimsIn(service, name.member_namespace())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Planner;
    use crate::support::build::{
        Build, BuildHubSlice, BuildImport, IntoObject, claim, distributed_slice, internal_export, member_agent,
        namespace, resolved, seconds, service, service_import, slice, slice_export,
    };
    use fleetnet_types::{Removal, Uid};
    use std::collections::BTreeSet;

    fn stored(objects: impl IntoIterator<Item = HubSlice>, export: &HubSlice) -> Planner {
        let mut view = Planner::default();
        for slice in objects {
            let is_export = slice.meta.name == export.meta.name;
            let object =
                if is_export { Object::EndpointSliceExport(slice) } else { Object::EndpointSliceImport(slice) };
            view.applied(object, seconds(1), &mut Vec::new());
        }
        view
    }

    /// Returns the number of different places in memory that have the content of a slice.
    fn places(view: &Planner) -> usize {
        let slices = view.slice_exports.iter().chain(view.distributed_slices.iter());
        slices.map(|slice| Arc::as_ptr(&slice.spec.content)).collect::<BTreeSet<_>>().len()
    }

    /// Rule D14: Many members import a slice
    /// Then: The hub agent stores the content of the EndpointSliceExport and of all distributed slices
    /// (EndpointSliceImports) made from it once, in any order of arrival. Distributed slices that are reduced to
    /// fewer features share their content with each other
    #[test]
    fn distributed_slices_share_the_content_of_their_export_in_whatever_order_they_arrive() {
        // Each object is decoded apart, so its content has a place of its own.
        let apart = |mut slice: HubSlice| {
            slice.spec.content = Arc::new((*slice.spec.content).clone());
            slice
        };
        let export = slice_export("member-1", &slice("work/app-1"));
        let slices = || ["member-2", "member-3", "member-4"].map(|importer| distributed_slice(importer, &export));
        let first = [export.clone()].into_iter().chain(slices());
        let last = slices().into_iter().chain([export.clone()]);
        let middle = slices().into_iter().take(1).chain([export.clone()]).chain(slices().into_iter().skip(1));
        for order in [first.map(apart).collect::<Vec<_>>(), last.map(apart).collect(), middle.map(apart).collect()] {
            assert_eq!(places(&stored(order, &export)), 1);
        }
        let reduced = |slice: HubSlice| slice.with_addresses(&["10.0.0.9"], 1);
        let mixed = [export.clone()].into_iter().chain(slices().map(reduced)).map(apart);
        assert_eq!(places(&stored(mixed, &export)), 2, "slices of a reduced form share it with each other");
    }

    /// Also rule D14.
    #[test]
    fn twenty_distributed_slices_of_two_forms_keep_two_contents() {
        type IsReduced = fn(usize) -> bool;
        let export = slice_export("member-0", &slice("work/app-1"));
        let distributed = |number: usize, is_reduced| {
            let distributed = distributed_slice(&format!("member-{number}"), &export);
            let mut distributed = if is_reduced { distributed.with_addresses(&["10.0.0.9"], 1) } else { distributed };
            distributed.spec.content = Arc::new((*distributed.spec.content).clone());
            distributed
        };
        let table: [(IsReduced, &str); 4] = [
            (|number| number > 10, "only the first importer has the form of the export"),
            (|number| number % 2 == 0, "each importer is between two of the other form"),
            (|number| number == 10 || number == 29, "two importers that are far from each other have a reduced form"),
            (|number| number < 29, "only the last importer has the form of the export"),
        ];
        for (is_reduced, case) in table {
            let slices = || (10..30).map(|number| distributed(number, is_reduced(number)));
            let forward = [export.clone()].into_iter().chain(slices());
            let backward = [export.clone()].into_iter().chain(slices().rev());
            let export_last = slices().chain([export.clone()]);
            for order in [forward.collect::<Vec<_>>(), backward.collect(), export_last.collect()] {
                assert_eq!(places(&stored(order, &export)), 2, "{case}");
            }
        }
    }

    #[test]
    fn a_distributed_slice_is_compared_with_a_few_contents_only() {
        let export = slice_export("member-0", &slice("work/app-1"));
        let distributed = |number: usize, address: usize| {
            let address = format!("10.0.1.{address}");
            distributed_slice(&format!("member-{}", 100 + number), &export).with_addresses(&[&address], 1)
        };
        // The first and the last slice are equal. Between them are others, and the export has its own content.
        for (others, expected) in
            [(CONTENTS_COMPARED_MAX - 2, CONTENTS_COMPARED_MAX), (CONTENTS_COMPARED_MAX - 1, CONTENTS_COMPARED_MAX + 2)]
        {
            let slices = (0..=others).map(|number| distributed(number, number)).chain([distributed(others + 1, 0)]);
            assert_eq!(places(&stored([export.clone()].into_iter().chain(slices), &export)), expected, "{others}");
        }
    }

    /// Returns the keys of distributed slices that a change requeues, although no plan has read anything.
    fn slices(view: &mut Planner, object: Object) -> Vec<Key> {
        let mut requeue = Vec::new();
        view.applied(object, seconds(1), &mut requeue);
        requeue.retain(|key| matches!(key, Key::DistributedSlice { .. }));
        requeue
    }

    #[test]
    fn a_slice_has_a_key_for_each_importer_once_its_exporter_is_accepted() {
        let export = |cluster: &str, name: &str| slice_export(cluster, &slice(name).uid(name));
        let of = |cluster: &str, name: &str| Object::EndpointSliceExport(export(cluster, name));
        let key = |exporter: &str, importer: &str| {
            Key::distributed_slice(&export(exporter, "work/app-1").meta.name.name, &names::member_namespace(importer))
        };
        let import = |exporters: &[&str], importers: &[&str]| {
            service_import("work/app").showing(resolved(exporters)).claimed_by(importers).object()
        };
        let mut view = Planner::default();
        for cluster in ["member-1", "member-3"] {
            assert_eq!(slices(&mut view, of(cluster, "work/app-1")), [], "nobody imports it");
        }
        let steps = [
            ("it is imported", import(&["member-1"], &["member-2"]), vec![key("member-1", "member-2")]),
            ("an importer", import(&["member-1"], &["member-2", "member-4"]), vec![key("member-1", "member-4")]),
            (
                "an exporter",
                import(&["member-1", "member-3"], &["member-2", "member-4"]),
                vec![key("member-3", "member-2"), key("member-3", "member-4")],
            ),
            ("an importer leaves", import(&["member-1", "member-3"], &["member-2"]), Vec::new()),
            ("an exporter leaves", import(&["member-1"], &["member-2"]), Vec::new()),
            ("a slice changes", Object::EndpointSliceExport(export("member-1", "work/app-1").marked()), Vec::new()),
            ("a slice of another exporter", of("member-3", "work/app-2"), Vec::new()),
        ];
        for (step, object, expected) in steps {
            assert_eq!(slices(&mut view, object), expected, "{step}");
        }
        assert_eq!(slices(&mut view, of("member-1", "work/app-2")).len(), 1);
    }

    #[test]
    fn a_removal_changes_the_object_unless_it_was_created_again() {
        let export = slice_export("member-1", &slice("work/app-1"));
        let import = service_import("work/app");
        let objects = [
            internal_export("member-1", &service("work/app")).object(),
            claim("member-2", &import).object(),
            import.object(),
            Object::EndpointSliceExport(export.clone()),
            Object::EndpointSliceImport(distributed_slice("member-2", &export)),
            namespace("work").object(),
            member_agent("member-1", Features::ALL, Features::ALL).object(),
        ];
        let mut view = View::default();
        for object in &objects {
            view.apply(object.kind(), Change::Applied(object.clone()), seconds(1));
        }
        for object in &objects {
            let (kind, meta) = (object.kind(), object.meta());
            let mut removed = |uid: Uid| {
                let change = Change::Removed { name: meta.name.clone(), uid, how: Removal::Deleted };
                view.apply(kind, change, seconds(2)).values
            };
            assert_eq!(removed("uid-of-another".into()), [], "{kind:?}");
            assert!(removed(meta.uid.clone()).contains(&Value::Object(kind, meta.name.clone())), "{kind:?}");
        }
    }
}
