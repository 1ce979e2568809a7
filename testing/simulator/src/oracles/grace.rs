//! The derived Service of an import without exporters stays for the grace period, also if somebody sets clocks.

use super::{Oracle, Seen};
use fleetnet_core::model::{MultiClusterService, Object, ServiceImport};
use fleetnet_types::{ObjectName, Timestamp};
use member_agent::DERIVED_SERVICE_GRACE;
use sim::fleet::Place;
use std::collections::BTreeMap;

/// The imports of each cluster.
#[derive(Debug, Default)]
pub(super) struct GracePeriod {
    multi_cluster_services: BTreeMap<(Place, ObjectName), MultiClusterService>,
    /// ServiceImports, each with the time since which it has no exporter.
    imports: BTreeMap<(Place, ObjectName), (ServiceImport, Timestamp)>,
}

impl GracePeriod {
    fn store(&mut self, import: &ServiceImport, seen: &Seen<'_>) {
        let key = (seen.server, import.meta.name.clone());
        if seen.after.is_none() {
            self.imports.remove(&key);
            return;
        }
        let since = self.imports.get(&key).filter(|(before, _)| has_no_exporter(before)).map(|(_, since)| *since);
        self.imports.insert(key, (import.clone(), since.unwrap_or(seen.at)));
    }

    /// Returns the time since which the import of a MultiClusterService waits for exporters. `None` if the
    /// MultiClusterService may lose its derived Service for another reason.
    fn waits_since(&self, server: Place, request: &ObjectName) -> Option<Timestamp> {
        let request =
            self.multi_cluster_services.get(&(server, request.clone())).filter(|request| !request.meta.deleting)?;
        let (import, since) = self.imports.get(&(server, request.import()))?;
        let is_controller = import.controller().is_some_and(|owner| owner.uid == request.meta.uid);
        (is_controller && !import.meta.deleting && has_no_exporter(import)).then_some(*since)
    }
}

fn has_no_exporter(import: &ServiceImport) -> bool {
    import.status.clusters.is_empty()
}

impl Oracle for GracePeriod {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        if seen.server == Place::Hub {
            return Ok(false);
        }
        match seen.newest() {
            Some(Object::ServiceImport(import)) => self.store(import, seen),
            Some(Object::MultiClusterService(request)) => {
                let key = (seen.server, request.meta.name.clone());
                if seen.after.is_some() {
                    self.multi_cluster_services.insert(key, request.clone());
                } else {
                    self.multi_cluster_services.remove(&key);
                }
            }
            Some(Object::Service(service)) if seen.after.is_none() && seen.agent.is_some() => {
                let since = service.derived_from.as_ref().and_then(|request| self.waits_since(seen.server, request));
                if let Some(waited) = since.map(|since| seen.at.since(since)).filter(|it| *it < DERIVED_SERVICE_GRACE) {
                    let name = &service.meta.name;
                    return Err(format!("{name} in {:?} is removed {waited:?} after its last exporter", seen.server));
                }
                return Ok(since.is_some());
            }
            _ => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;
    use std::time::Duration;

    const MEMBER: Place = Place::Member(0);

    fn import(clusters: &[&str]) -> State {
        let clusters: Vec<_> = clusters.iter().map(|cluster| json!({"cluster": cluster})).collect();
        let owner = json!({"apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MultiClusterService",
            "name": "app", "uid": "mcs", "controller": true});
        let rest = json!({"metadata": {"ownerReferences": [owner]}, "status": {"clusters": clusters}});
        state(Kind::ServiceImport, "work/app", &rest)
    }

    #[test]
    fn a_derived_service_is_removed_only_after_the_grace_period_or_for_another_reason() {
        let request = state(
            Kind::MultiClusterService,
            "work/app",
            &json!({"metadata": {"uid": "mcs"}, "spec": {"serviceImport": {"name": "app"}}}),
        );
        let labels = json!({
            "networking.fleet.azure.com/multi-cluster-service-name": "app",
            "networking.fleet.azure.com/multi-cluster-service-namespace": "work",
        });
        let derived = state(
            Kind::Service,
            "fleet-system/work-app",
            &json!({"metadata": {"labels": labels}, "spec": {"ports": []}}),
        );
        for (why, clusters, has_request, waited, is_right) in [
            ("too early", &[][..], true, DERIVED_SERVICE_GRACE - Duration::from_millis(1), false),
            ("in time", &[], true, DERIVED_SERVICE_GRACE, true),
            ("another reason: there are exporters", &["member-2"], true, Duration::ZERO, true),
            ("another reason: nobody asks for it", &[], false, Duration::ZERO, true),
        ] {
            let (mut rule, import) = (GracePeriod::default(), import(clusters));
            if has_request {
                rule.committed(&seen(MEMBER, None, None, Some(&request))).expect("no rule about requests");
            }
            rule.committed(&seen(MEMBER, Some(MEMBER), None, Some(&import))).expect("no rule about imports");
            let mut removed = seen(MEMBER, Some(MEMBER), Some(&derived), None);
            removed.at = removed.at + waited;
            let committed = rule.committed(&removed);
            assert_eq!(committed.is_ok(), is_right, "{why}: {committed:?}");
        }
    }
}
