//! Distributed slices (EndpointSliceImports) in the member's view: their validated contents, and the indexes of them.

use super::selections::Selected;
use super::shares::{Counted, granted};
use super::value::{Bucket, Computation, Value};
use super::{Admission, Effects, Key, View};
use crate::admission::{Source, admit, has_ipv6};
use crate::index::Taken;
use crate::model::{HubSlice, Kind, SliceContent};
use crate::names;
use fleetnet_types::{ObjectName, Text};
use std::borrow::Cow;
use std::collections::BTreeSet;

impl View {
    pub(super) fn take_distributed_slice(&mut self, slice: HubSlice, effects: &mut Effects) -> bool {
        let slice = self.with_preview(slice);
        self.store_distributed_slice(slice, effects)
    }

    /// Stores a distributed slice, with the content of its object or of a preview.
    pub(super) fn store_distributed_slice(&mut self, slice: HubSlice, effects: &mut Effects) -> bool {
        let (name, owner) = (slice.meta.name.clone(), slice.spec.owner.clone());
        let origin = slice.spec.reference.cluster.clone();
        let counted = Counted::of(&slice);
        let Taken::Changed(before) = self.distributed_slices.take(slice) else { return false };
        self.shift_share(before.as_ref().and_then(Counted::of).as_ref(), counted.as_ref(), effects);
        if before.is_none() {
            effects.keys.push(Key::SliceImport(self.in_system(name.name.clone())));
        }
        if before.as_ref().is_none_or(|before| before.spec.owner != owner) && self.is_for_imports(&owner.namespace) {
            effects.keys.extend(self.imports_by_mcs_api(&name.name, &owner).map(Key::SliceImport));
        }
        if self.settings.cluster_selection.is_some() && before.as_ref().is_none_or(|it| it.spec.owner != owner) {
            let namespaces = [&self.settings.fleet_system_namespace, &owner.namespace].map(Text::clone);
            let selected = namespaces.map(|namespace| Selected { namespace, service: owner.clone() });
            effects.results.extend(selected.map(Computation::Selection));
        }
        let has_ipv6 = self.admit(&name);
        let origin_before = before.as_ref().map(|old| old.spec.reference.cluster.clone());
        self.distributed_slices_from.shift(origin_before, Some(origin), &name);
        let owner_before = before.map(|old| old.spec.owner);
        let six = has_ipv6.then(|| owner.clone());
        self.shift(Bucket::Ipv6Slices, &name, [owner_before.clone(), six], effects);
        if let Some(before) = owner_before.as_ref().filter(|before| **before != owner) {
            self.shift(Bucket::Contested, &name, [Some(before.clone()), None], effects);
            self.review_serving_of(&name.name, before, effects);
            if before.namespace != owner.namespace {
                for at in self.imports_by_mcs_api(&name.name, before) {
                    self.written.remove(&at);
                }
            }
        }
        self.review_serving_of(&name.name, &owner, effects);
        self.shift(Bucket::DistributedSlices, &name, [owner_before, Some(owner)], effects);
        self.review_contested(&name.name, effects);
        true
    }

    /// Validates the content of a distributed slice. Returns true if an IPv6 address is to be imported.
    fn admit(&mut self, name: &ObjectName) -> bool {
        let before = self.admissions.remove(&name.name);
        let Some(slice) = self.distributed_slices.get(name) else { return false };
        let reference = &slice.spec.reference;
        let ranges = self.settings.source_ranges.get(&reference.cluster).map(Vec::as_slice);
        // By the standard API, an exporter also imports its own slices.
        let is_foreign = reference.cluster != self.settings.cluster;
        let own = is_foreign.then_some((&self.own_addresses, &self.settings.own_ranges));
        let admitted = admit(&slice.spec.content, Source { ranges, own });
        let content = granted(admitted.content, self.shares.grant(slice));
        let is_six = !slice.meta.deleting && has_ipv6(&content);
        if let Cow::Owned(content) = content {
            let not_imported = admitted.not_imported;
            // The same parts keep the generation that had them first.
            let since = before.filter(|before| before.not_imported == not_imported).map(|before| before.since);
            let since = since.unwrap_or(reference.generation);
            self.admissions.insert(name.name.clone(), Admission { content, not_imported, since });
        }
        is_six
    }

    /// Validates distributed slices again whose content is `concerned` by a change of this cluster's own addresses.
    pub(super) fn admit_again(&mut self, concerned: impl Fn(&SliceContent) -> bool, effects: &mut Effects) {
        let all = self.distributed_slices.iter().filter(|slice| concerned(&slice.spec.content));
        let all: Vec<(ObjectName, ObjectName)> =
            all.map(|slice| (slice.meta.name.clone(), slice.spec.owner.clone())).collect();
        for (name, owner) in all {
            let before = self.admissions.get(&name.name).cloned();
            let has_ipv6 = self.admit(&name);
            if self.admissions.get(&name.name) != before.as_ref() {
                self.shift(Bucket::Ipv6Slices, &name, [Some(owner.clone()), has_ipv6.then_some(owner)], effects);
                effects.object_changed(Kind::EndpointSliceImport, name);
            }
        }
    }

    pub(super) fn forget_distributed_slice(&mut self, name: &ObjectName, before: HubSlice, effects: &mut Effects) {
        self.admissions.remove(&name.name);
        self.shift_share(Counted::of(&before).as_ref(), None, effects);
        self.previews.remove(&name.name);
        self.distributed_slices_from.remove(&before.spec.reference.cluster, name);
        let owner = before.spec.owner;
        for at in self.imports_of_slice(&name.name, &owner) {
            self.written.remove(&at);
        }
        for bucket in [Bucket::DistributedSlices, Bucket::Ipv6Slices, Bucket::Contested] {
            self.shift(bucket, name, [Some(owner.clone()), None], effects);
        }
        self.review_serving_of(&name.name, &owner, effects);
    }

    /// Counts a distributed slice. Validates the slices again of which another part is imported now.
    fn shift_share(&mut self, before: Option<&Counted>, after: Option<&Counted>, effects: &mut Effects) {
        let mut changed = BTreeSet::new();
        self.shares.shift(before, after, self.settings.limits.imports, &mut changed);
        for name in changed.into_iter().map(|name| self.in_hub(name)).collect::<Vec<_>>() {
            let Some(owner) = self.distributed_slices.get(&name).map(|slice| slice.spec.owner.clone()) else {
                continue;
            };
            let has_ipv6 = self.admit(&name);
            self.shift(Bucket::Ipv6Slices, &name, [Some(owner.clone()), has_ipv6.then_some(owner)], effects);
            effects.values.push(Value::Object(Kind::EndpointSliceImport, name));
        }
    }

    /// Updates what the imported slices of a distributed slice serve.
    fn review_serving_of(&mut self, name: &Text, owner: &ObjectName, effects: &mut Effects) {
        for at in self.imports_of_slice(name, owner) {
            self.review_serving(&at, effects);
        }
    }

    /// Returns the names of the slices that are imported from a distributed slice: that of the fleet's API and those of
    /// the standard API.
    pub(super) fn imports_of_slice(&self, name: &Text, owner: &ObjectName) -> Vec<ObjectName> {
        [self.in_system(name.clone())].into_iter().chain(self.imports_by_mcs_api(name, owner)).collect()
    }

    /// Returns the names of the slices that the standard API imports from a distributed slice.
    fn imports_by_mcs_api(&self, name: &Text, owner: &ObjectName) -> impl Iterator<Item = ObjectName> + use<> {
        let routing = self.settings.routing_slices.then(|| names::routing_slice(name));
        let namespace = owner.namespace.clone();
        [name.clone()].into_iter().chain(routing).map(move |name| ObjectName::new(namespace.clone(), name))
    }

    /// Records if another EndpointSlice of this cluster perhaps has the name of a distributed slice.
    pub(super) fn review_contested(&mut self, name: &Text, effects: &mut Effects) {
        let (at, distributed) = (self.in_system(name.clone()), self.in_hub(name.clone()));
        let Some(owner) = self.distributed_slices.get(&distributed).map(|slice| slice.spec.owner.clone()) else {
            return;
        };
        let is_foreign = self.slices.get(&at).is_some_and(|present| !present.imported);
        let is_contested = is_foreign || self.undecodable.has(Kind::EndpointSlice, &at);
        self.shift(Bucket::Contested, &distributed, [Some(owner.clone()), is_contested.then_some(owner)], effects);
    }
}
