//! Agents withdraw nothing live while nobody changes anything that an import depends on: no endpoint of an imported
//! slice that its exporter has, no derived Service with an exporter. Faults are no reason. The rule looks at the first
//! import of the first Service, which users do not touch in this time.
//!
//! If another MultiClusterService controls the import, its deletion hands the import over. Then the rule does not apply
//! in this cluster.
//!
//! The endpoints of a silent member may be draining, and are withdrawn if the hub agent says so. A ready endpoint must
//! be left.

use super::{Oracle, Seen};
use crate::world::member;
use fleetnet_core::model::{Endpoint, MemberAgent, Object, ServicePort, Treatment};
use fleetnet_types::{ObjectName, Text};
use histories::users::{APPS, REQUEST_NAMES};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};

/// Endpoints of each imported slice of the first derived Service, by cluster and name, and what the first
/// MultiClusterService of each cluster imports.
#[derive(Debug, Default)]
pub(super) struct NothingLive {
    endpoints: BTreeMap<(Place, ObjectName), BTreeSet<String>>,
    /// The ready endpoints among them.
    ready: BTreeMap<(Place, ObjectName), BTreeSet<String>>,
    /// Clusters whose endpoints this cluster withdraws because they are silent.
    withdrawn: BTreeMap<Place, BTreeSet<Text>>,
    imports: BTreeMap<Place, Text>,
    /// Clusters in which another MultiClusterService controls the import of the first Service, or did when users last
    /// changed it.
    controlled_by_other: BTreeSet<Place>,
    /// Endpoints of each source slice of the first Service, by cluster and name.
    sources: BTreeMap<(Place, ObjectName), BTreeSet<String>>,
    /// The clusters that have the first Service, and those that have a ServiceExport for it.
    services: BTreeMap<Place, Vec<ServicePort>>,
    exports: BTreeSet<Place>,
    /// True if the hub was restored from a backup.
    is_restored: bool,
}

fn addresses(endpoints: &[Endpoint]) -> BTreeSet<String> {
    endpoints.iter().flat_map(|endpoint| &endpoint.addresses).map(ToString::to_string).collect()
}

/// Returns the name of the derived Service of the first MultiClusterService.
fn derived() -> String {
    REQUEST_NAMES[0].replace('/', "-")
}

impl NothingLive {
    /// Stores what the exporters of the first Service have.
    fn store(&mut self, seen: &Seen<'_>) {
        let exists = seen.after.is_some_and(|object| !object.meta().deleting);
        match seen.newest() {
            Some(Object::Service(service)) if service.meta.name.to_string() == APPS[0] => {
                if exists {
                    self.services.insert(seen.server, service.ports.clone());
                } else {
                    self.services.remove(&seen.server);
                }
            }
            Some(Object::ServiceExport(export)) if export.meta.name.to_string() == APPS[0] => {
                // A weight of 0 withdraws an export.
                if exists && export.weight.as_deref() != Some("0") {
                    self.exports.insert(seen.server);
                } else {
                    self.exports.remove(&seen.server);
                }
            }
            Some(Object::ServiceImport(import)) if import.meta.name.to_string() == APPS[0] => {
                let is_controller = |name: &Text| REQUEST_NAMES[0].ends_with(&format!("/{name}"));
                if import.controller().is_some_and(|owner| !is_controller(&owner.name)) {
                    self.controlled_by_other.insert(seen.server);
                } else if seen.may_withdraw {
                    self.controlled_by_other.remove(&seen.server);
                }
            }
            Some(Object::EndpointSlice(slice))
                if !slice.imported && slice.service.as_deref().is_some_and(|name| APPS[0].ends_with(name)) =>
            {
                let now = if exists { addresses(&slice.content.endpoints) } else { BTreeSet::new() };
                self.sources.insert((seen.server, slice.meta.name.clone()), now);
            }
            _ => {}
        }
    }

    /// Returns the ports of each exported Service.
    fn exported(&self) -> impl Iterator<Item = &Vec<ServicePort>> {
        self.exports.iter().filter_map(|place| self.services.get(place))
    }

    /// True if exports conflict. After a restore, another one of them may be accepted than before.
    fn is_in_conflict(&self) -> bool {
        let mut all = self.exported();
        let first = all.next();
        all.any(|ports| Some(ports) != first)
    }

    /// True if an exporter has this endpoint.
    fn is_live(&self, address: &str) -> bool {
        let exporters = |place| self.services.contains_key(&place) && self.exports.contains(&place);
        self.sources.iter().any(|((place, _), addresses)| exporters(*place) && addresses.contains(address))
    }

    /// Stores which members a cluster withdraws.
    fn store_silence(&mut self, agent: &MemberAgent) {
        let Some(place) = member(&agent.meta.name.name) else { return };
        let silent = agent.status.silent_members.iter().filter(|member| member.treatment == Treatment::Withdrawn);
        self.withdrawn.insert(place, silent.map(|member| Text::from(&*member.cluster)).collect());
    }

    /// True if this cluster withdraws the endpoints of this imported slice, because its exporter is silent.
    fn is_withdrawn(&self, place: Place, slice: &ObjectName) -> bool {
        let of = |cluster: &Text| slice.name.starts_with(&format!("{cluster}-"));
        self.withdrawn.get(&place).is_some_and(|clusters| clusters.iter().any(of))
    }

    /// True if agents may withdraw endpoints of the first derived Service in this cluster now.
    fn may_withdraw(&self, seen: &Seen<'_>) -> bool {
        let imports_first = self.imports.get(&seen.server).is_some_and(|name| APPS[0].ends_with(&format!("/{name}")));
        let is_handed_over = self.controlled_by_other.contains(&seen.server);
        seen.may_withdraw || !imports_first || is_handed_over || (self.is_restored && self.is_in_conflict())
    }
}

impl Oracle for NothingLive {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let is_removed = seen.after.is_none();
        self.store(seen);
        match seen.newest() {
            Some(Object::MemberAgent(agent)) => self.store_silence(agent),
            Some(Object::MultiClusterService(request)) if request.meta.name.to_string() == REQUEST_NAMES[0] => {
                if is_removed {
                    self.imports.remove(&seen.server);
                } else {
                    self.imports.insert(seen.server, request.import_name.clone());
                }
            }
            Some(Object::EndpointSlice(slice))
                if slice.imported && slice.service.as_deref() == Some(derived().as_str()) =>
            {
                let ready = if is_removed { BTreeSet::new() } else { addresses(&slice.content.endpoints) };
                let draining = if is_removed { BTreeSet::new() } else { addresses(&slice.content.draining) };
                let now = ready.union(&draining).cloned().collect();
                let key = (seen.server, slice.meta.name.clone());
                let were_ready = self.ready.insert(key.clone(), ready).unwrap_or_default();
                let before = self.endpoints.insert(key, now).unwrap_or_default();
                let here = self.endpoints.iter().filter(|((place, _), _)| *place == seen.server);
                let left: BTreeSet<&String> = here.flat_map(|(_, endpoints)| endpoints).collect();
                let gone: Vec<&String> =
                    before.iter().filter(|address| !left.contains(address) && self.is_live(address)).collect();
                if self.may_withdraw(seen) {
                    return Ok(false);
                }
                if !gone.is_empty() && !self.is_withdrawn(seen.server, &slice.meta.name) {
                    return Err(format!("{gone:?} of {} in {:?} are withdrawn", derived(), seen.server));
                }
                let is_any_ready =
                    self.ready.iter().any(|((place, _), ready)| *place == seen.server && !ready.is_empty());
                if !is_any_ready && were_ready.iter().any(|address| self.is_live(address)) {
                    return Err(format!("no endpoint of {} in {:?} is ready any more", derived(), seen.server));
                }
                return Ok(true);
            }
            Some(Object::Service(service))
                if is_removed
                    && *service.meta.name.name == *derived()
                    && service.derived_from.is_some()
                    && self.exported().next().is_some()
                    && !self.may_withdraw(seen) =>
            {
                return Err(format!("the derived Service {} in {:?} is removed", service.meta.name, seen.server));
            }
            _ => {}
        }
        Ok(false)
    }

    fn restored(&mut self) {
        self.is_restored = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use crate::oracles::Seen;
    use fleetnet_core::model::Kind;
    use serde_json::json;

    const EXPORTER: Place = Place::Member(0);
    const IMPORTER: Place = Place::Member(1);

    fn slice(path: &str, service: &str, is_imported: bool, addresses: &[&str]) -> State {
        let manager = is_imported.then_some("endpointsliceimport-controller.networking.fleet.azure.com");
        let labels = json!({"kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by": manager.unwrap_or("endpointslice-controller.k8s.io")});
        let endpoints: Vec<_> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
        let rest = json!({"metadata": {"labels": labels}, "addressType": "IPv4", "endpoints": endpoints, "ports": []});
        state(Kind::EndpointSlice, path, &rest)
    }

    /// Returns the rule of a fleet in which member-2 imports the two endpoints that member-1 exports.
    fn importing() -> NothingLive {
        let mut rule = NothingLive::default();
        let service = state(Kind::Service, "work/app", &json!({"spec": {"ports": []}}));
        let export = state(Kind::ServiceExport, "work/app", &json!({}));
        let request =
            state(Kind::MultiClusterService, "work/app", &json!({"spec": {"serviceImport": {"name": "app"}}}));
        let source = slice("work/app-1", "app", false, &["10.0.0.1", "10.0.0.2"]);
        for (place, object) in [(EXPORTER, &service), (EXPORTER, &export), (EXPORTER, &source), (IMPORTER, &request)] {
            rule.committed(&seen(place, None, None, Some(object))).expect("no rule about objects of users");
        }
        let imported = slice("fleet-system/app-1", "work-app", true, &["10.0.0.1", "10.0.0.2"]);
        rule.committed(&seen(IMPORTER, Some(IMPORTER), None, Some(&imported))).expect("the first import");
        rule
    }

    #[test]
    fn a_live_endpoint_is_not_withdrawn_while_nothing_changes() {
        let fewer = slice("fleet-system/app-1", "work-app", true, &["10.0.0.1"]);
        let moved = slice("fleet-system/app-2", "work-app", true, &["10.0.0.2"]);
        let change = |may_withdraw| Seen { may_withdraw, ..seen(IMPORTER, Some(IMPORTER), None, Some(&fewer)) };
        assert!(importing().committed(&change(false)).is_err(), "10.0.0.2 is live");
        assert_eq!(importing().committed(&change(true)), Ok(false), "users changed something");
        let mut rule = importing();
        rule.committed(&seen(IMPORTER, Some(IMPORTER), None, Some(&moved))).expect("a second slice");
        assert_eq!(rule.committed(&change(false)), Ok(true), "another slice has it");
        let mut rule = importing();
        let source = slice("work/app-1", "app", false, &["10.0.0.1"]);
        rule.committed(&seen(EXPORTER, None, None, Some(&source))).expect("no rule about objects of users");
        assert_eq!(rule.committed(&change(false)), Ok(true), "its exporter has removed it");
        let mut rule = importing();
        let weight = json!({"metadata": {"annotations": {"networking.fleet.azure.com/weight": "0"}}});
        let export = state(Kind::ServiceExport, "work/app", &weight);
        rule.committed(&seen(EXPORTER, None, None, Some(&export))).expect("no rule about objects of users");
        assert_eq!(rule.committed(&change(false)), Ok(true), "its exporter has withdrawn it");
    }

    #[test]
    fn an_import_that_another_multi_cluster_service_controls_may_be_handed_over() {
        let fewer = slice("fleet-system/app-1", "work-app", true, &["10.0.0.1"]);
        let import = |controller: &str| {
            let owner = json!({"apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MultiClusterService",
                "name": controller, "uid": controller, "controller": true});
            state(Kind::ServiceImport, "work/app", &json!({"metadata": {"ownerReferences": [owner]}}))
        };
        let withdraws = |controllers: &[(&str, bool)]| {
            let mut rule = importing();
            for (controller, may_withdraw) in controllers {
                let import = import(controller);
                let stored =
                    Seen { may_withdraw: *may_withdraw, ..seen(IMPORTER, Some(IMPORTER), None, Some(&import)) };
                rule.committed(&stored).expect("no rule about ServiceImports");
            }
            let change = Seen { may_withdraw: false, ..seen(IMPORTER, Some(IMPORTER), None, Some(&fewer)) };
            rule.committed(&change).is_ok()
        };
        assert!(!withdraws(&[("app", true), ("app", false)]), "the first one controls its import");
        assert!(withdraws(&[("other", true), ("app", false)]), "the other one is deleted later");
        assert!(!withdraws(&[("other", true), ("app", true)]), "the import was handed over before");
    }

    #[test]
    fn a_derived_service_with_an_exporter_is_not_removed_while_nothing_changes() {
        let labels = json!({
            "networking.fleet.azure.com/multi-cluster-service-name": "app",
            "networking.fleet.azure.com/multi-cluster-service-namespace": "work",
        });
        let rest = json!({"metadata": {"labels": labels}, "spec": {"ports": []}});
        let derived = state(Kind::Service, "fleet-system/work-app", &rest);
        for (may_withdraw, is_right) in [(false, false), (true, true)] {
            let removed = Seen { may_withdraw, ..seen(IMPORTER, Some(IMPORTER), Some(&derived), None) };
            assert_eq!(importing().committed(&removed).is_ok(), is_right);
        }
    }
}
