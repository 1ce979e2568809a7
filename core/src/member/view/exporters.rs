//! Exporting members that serve an imported Service: they have imported slices with ready endpoints.

use super::serving::{Clients, Served};
use super::value::Value;
use super::{Effects, View, add};
use crate::model::{EndpointSlice, Kind};
use crate::plan::{Action, Patch, Write};
use fleetnet_types::{ClusterId, ObjectName};

impl View {
    /// Updates what the imported slice with this name serves. Called after a change of the slice and of its distributed
    /// slice.
    pub(super) fn review_serving(&mut self, name: &ObjectName, effects: &mut Effects) {
        let after = self.served_by(name);
        if self.serving.slices.get(name) == after.as_ref() {
            return;
        }
        let before = match after.clone() {
            Some(after) => self.serving.slices.insert(name.clone(), after),
            None => self.serving.slices.remove(name),
        };
        for (changed, by) in [(before, -1), (after, 1)] {
            let Some((all_served, exporter)) = changed else { continue };
            for served in all_served {
                let [was, is] = add(&mut self.serving.exporters, (served.clone(), exporter.clone()), by);
                effects.values.extend((was == 0 || is == 0).then_some(Value::Serving(served)));
            }
        }
    }

    fn served_by(&self, name: &ObjectName) -> Option<(Vec<Served>, ClusterId)> {
        let has_ready = |slice: &&EndpointSlice| slice.imported && !slice.content.endpoints.is_empty();
        let imported = self.slices.live(name).filter(has_ready)?;
        let distributed = self.distributed_slice_of(name).filter(|it| !it.meta.deleting)?;
        let in_system = name.namespace == self.settings.fleet_system_namespace;
        // Without routing slices, all clients of an import by the standard API have the same endpoints.
        let count = |it: &Clients| *it == Clients::Gateways || in_system || self.settings.routing_slices;
        let served = |clients: Clients| {
            let service = ObjectName::new(name.namespace.clone(), clients.service(imported)?.clone());
            Some(Served::by(clients, &service, &imported.content))
        };
        let stays = |it: &Served| self.serving.in_flight.get(name).is_none_or(|after| after.contains(it));
        let served = Clients::ALL.into_iter().filter(count).filter_map(served).flatten();
        let served: Vec<Served> = served.filter(stays).collect();
        (!served.is_empty()).then(|| (served, distributed.spec.reference.cluster.clone()))
    }

    /// Records what an imported slice will serve after one of these writes.
    pub(in crate::member) fn slice_write_begun(&mut self, name: &ObjectName, writes: &[Write], effects: &mut Effects) {
        let of_slice = |write: &&Write| write.kind() == Kind::EndpointSlice && write.at == *name;
        let after = match writes.iter().find(of_slice).map(|write| &write.action) {
            Some(Action::Patch { patch: Patch::ImportedSlice(slice), .. }) if !slice.content.endpoints.is_empty() => {
                let of = |clients: Clients| {
                    let service = clients.service_of(slice.service.as_ref(), slice.mcs.as_ref())?.clone();
                    Some(Served::by(clients, &ObjectName::new(name.namespace.clone(), service), &slice.content))
                };
                Clients::ALL.into_iter().filter_map(of).flatten().collect()
            }
            Some(Action::Patch { .. } | Action::Delete { .. }) => Vec::new(),
            Some(Action::Create(_)) | None => return,
        };
        self.serving.in_flight.insert(name.clone(), after);
        self.review_serving(name, effects);
    }

    pub(in crate::member) fn slice_write_ended(&mut self, name: &ObjectName, effects: &mut Effects) {
        if self.serving.in_flight.remove(name).is_some() {
            self.review_serving(name, effects);
        }
    }

    /// Returns the exporting members that serve an imported Service.
    pub(super) fn exporters_that_serve(&self, served: &Served) -> impl Iterator<Item = &ClusterId> + use<'_> {
        let served = served.clone();
        let from = self.serving.exporters.range((served.clone(), ClusterId::default())..);
        from.map(|(entry, _)| entry).take_while(move |(of, _)| *of == served).map(|(_, exporter)| exporter)
    }
}
