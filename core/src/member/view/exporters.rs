//! Exporting members that serve an imported Service: they have imported slices with ready endpoints.

use super::serving::Served;
use super::value::Value;
use super::{Effects, View};
use crate::model::EndpointSlice;
use fleetnet_types::{ClusterId, ObjectName};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Serving {
    /// For each imported slice with ready endpoints: what it serves, and its exporting member.
    slices: BTreeMap<ObjectName, (Vec<Served>, ClusterId)>,
    /// Number of these slices.
    exporters: BTreeMap<Served, BTreeMap<ClusterId, u32>>,
}

impl View {
    /// Updates what the imported slice with this name serves. Called after a change of the slice and of its distributed
    /// slice.
    pub(super) fn review_serving(&mut self, name: &ObjectName, effects: &mut Effects) {
        let after = self.served_by(name);
        let before = self.serving.slices.get(name);
        if before == after.as_ref() {
            return;
        }
        let before = match after.clone() {
            Some(after) => self.serving.slices.insert(name.clone(), after),
            None => self.serving.slices.remove(name),
        };
        let each =
            |(served, exporter): (Vec<Served>, ClusterId)| served.into_iter().map(move |it| (it, exporter.clone()));
        for (served, exporter) in before.into_iter().flat_map(each) {
            let exporters = self.serving.exporters.entry(served.clone()).or_default();
            let number = exporters.entry(exporter.clone()).or_default();
            *number = number.saturating_sub(1);
            if *number == 0 {
                exporters.remove(&exporter);
                effects.values.push(Value::Serving(served.clone()));
            }
            if exporters.is_empty() {
                self.serving.exporters.remove(&served);
            }
        }
        for (served, exporter) in after.into_iter().flat_map(each) {
            let number = self.serving.exporters.entry(served.clone()).or_default().entry(exporter).or_default();
            *number += 1;
            if *number == 1 {
                effects.values.push(Value::Serving(served));
            }
        }
    }

    fn served_by(&self, name: &ObjectName) -> Option<(Vec<Served>, ClusterId)> {
        let has_ready = |slice: &&EndpointSlice| slice.imported && !slice.content.endpoints.is_empty();
        let imported = self.slices.live(name).filter(has_ready)?;
        let distributed = self.distributed_slices.live(&self.in_hub(name.name.clone()))?;
        let service = if name.namespace == self.settings.fleet_system_namespace {
            imported.service.as_ref()?
        } else if name.namespace == distributed.spec.owner.namespace {
            &imported.standard.as_ref()?.service
        } else {
            return None;
        };
        let service = ObjectName::new(name.namespace.clone(), service.clone());
        Some((Served::by(&service, &imported.content), distributed.spec.reference.cluster.clone()))
    }

    /// Returns the exporting members that serve an imported Service.
    pub(super) fn exporters_that_serve(&self, served: &Served) -> impl Iterator<Item = &ClusterId> + use<'_> {
        self.serving.exporters.get(served).into_iter().flat_map(BTreeMap::keys)
    }
}
