//! The hub agent distributes a slice only to members that have a claim on the Service, and whose claim is recorded.

use super::{Oracle, Seen};
use fleetnet_core::model::{HubSliceSpec, InternalServiceImport, Object};
use fleetnet_types::{MemberNamespace, ObjectName};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Importers of each Service by their namespaces, and when a namespace was last one of them.
#[derive(Debug, Default)]
pub(super) struct OnlyToImporters {
    recorded: BTreeMap<ObjectName, BTreeSet<MemberNamespace>>,
    ended: BTreeMap<(ObjectName, MemberNamespace), Duration>,
    claims: Claims,
}

/// Claims of all members.
#[derive(Debug, Default)]
struct Claims {
    /// Namespace and Service of each claim, by the name of the claim.
    present: BTreeMap<ObjectName, (MemberNamespace, ObjectName)>,
    /// When a namespace last lost a claim on a Service.
    ended: BTreeMap<(MemberNamespace, ObjectName), Duration>,
    /// True after a restore of the hub: claims are back that no change has shown.
    is_restored: bool,
}

impl Claims {
    fn changed(&mut self, seen: &Seen<'_>, claim: &InternalServiceImport) {
        let (name, of) = (&claim.meta.name, (claim.meta.name.member_namespace(), claim.reference.source.clone()));
        let before = self.present.remove(name);
        if seen.after.is_some() {
            self.present.insert(name.clone(), of);
        }
        self.ended.extend(before.map(|before| (before, seen.calm)));
    }

    /// True if a namespace has a claim on a Service, or had one until a short time ago.
    fn has(&self, seen: &Seen<'_>, namespace: &MemberNamespace, service: &ObjectName) -> bool {
        let of = (namespace.clone(), service.clone());
        let had = || self.ended.get(&of).is_some_and(|ended| seen.calm <= *ended + seen.freshness);
        self.is_restored || self.present.values().any(|present| *present == of) || had()
    }
}

impl OnlyToImporters {
    fn record(&mut self, service: &ObjectName, importers: BTreeSet<MemberNamespace>, calm: Duration) {
        let before = self.recorded.insert(service.clone(), importers.clone()).unwrap_or_default();
        for gone in before.difference(&importers) {
            self.ended.insert((service.clone(), gone.clone()), calm);
        }
    }
}

impl Oracle for OnlyToImporters {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        if seen.server != Place::Hub {
            return Ok(false);
        }
        match seen.newest() {
            Some(Object::ServiceImport(import)) => {
                let importers = seen.after.map(|_| import.claims.importers.keys().cloned().collect());
                self.record(&import.meta.name, importers.unwrap_or_default(), seen.calm);
            }
            Some(Object::InternalServiceImport(claim)) => self.claims.changed(seen, claim),
            Some(Object::EndpointSliceImport(slice)) if seen.agent == Some(Place::Hub) && is_distributed(seen) => {
                let (service, namespace) = (&slice.spec.owner, &slice.meta.name.member_namespace());
                if !self.claims.has(seen, namespace, service) {
                    return Err(format!(
                        "{} is distributed, and {namespace} has no claim on {service}",
                        slice.meta.name
                    ));
                }
                if seen.before.is_some() {
                    return Ok(true);
                }
                let is_recorded = self.recorded.get(service).is_some_and(|importers| importers.contains(namespace));
                let ended = self.ended.get(&(service.clone(), namespace.clone()));
                let was_recorded = ended.is_some_and(|ended| seen.calm <= *ended + seen.freshness);
                if !is_recorded && !was_recorded {
                    return Err(format!(
                        "{} is distributed, and {namespace} does not import {service}",
                        slice.meta.name
                    ));
                }
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn restored(&mut self) {
        self.claims.is_restored = true;
    }
}

/// True if this change gives a distributed slice its content.
fn is_distributed(seen: &Seen<'_>) -> bool {
    seen.after.is_some() && seen.before.and_then(spec) != seen.after.and_then(spec)
}

fn spec(object: &Object) -> Option<&HubSliceSpec> {
    if let Object::EndpointSliceImport(slice) = object { Some(&slice.spec) } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::support::{seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;

    const NAMESPACE: &str = "fleet-member-member-2";

    #[test]
    fn a_slice_needs_a_claim_and_a_record_of_its_importer() {
        let owner = json!({"namespace": "work", "name": "app"});
        let reference = json!({"clusterId": "member-1", "namespace": "work", "name": "app-1"});
        let slice = |address: &str| {
            let spec = json!({"endpoints": [{"addresses": [address]}], "endpointSliceReference": reference, "ownerServiceReference": owner});
            state(Kind::EndpointSliceImport, "fleet-member-member-2/app-1", &json!({"spec": spec}))
        };
        let claim =
            json!({"spec": {"serviceImportReference": {"clusterId": "member-2", "namespace": "work", "name": "app"}}});
        let claim = state(Kind::InternalServiceImport, "fleet-member-member-2/work-app", &claim);
        let record = json!({"MemberClusters": {NAMESPACE: "member-2"}}).to_string();
        let record = json!({"metadata": {"annotations": {"networking.fleet.azure.com/service-in-use-by": record}}});
        let import = state(Kind::ServiceImport, "work/app", &record);
        let (one, other) = (slice("10.0.0.1"), slice("10.0.0.2"));
        let table = [(false, false, false), (true, false, false), (false, true, false), (true, true, true)];
        for (has_claim, is_recorded, is_right) in table {
            let mut rule = OnlyToImporters::default();
            if has_claim {
                rule.committed(&seen(Place::Hub, Some(Place::Hub), None, Some(&claim))).expect("no rule about claims");
            }
            if is_recorded {
                rule.committed(&seen(Place::Hub, Some(Place::Hub), None, Some(&import)))
                    .expect("no rule about imports");
            }
            let created = rule.committed(&seen(Place::Hub, Some(Place::Hub), None, Some(&one)));
            assert_eq!(created.is_ok(), is_right, "{has_claim} {is_recorded}: {created:?}");
            let changed = rule.committed(&seen(Place::Hub, Some(Place::Hub), Some(&one), Some(&other)));
            assert_eq!(changed.is_ok(), has_claim, "a change needs a claim: {changed:?}");
            let touched = rule.committed(&seen(Place::Hub, Some(Place::Hub), Some(&one), Some(&one)));
            assert_eq!(touched, Ok(false), "the same content");
            rule.committed(&seen(Place::Hub, Some(Place::Hub), Some(&claim), None)).expect("no rule about claims");
            let late = Seen {
                calm: Duration::from_secs(1_300),
                ..seen(Place::Hub, Some(Place::Hub), Some(&one), Some(&other))
            };
            assert!(rule.committed(&late).is_err(), "the claim ended minutes ago");
            rule.restored();
            assert!(rule.committed(&late).is_ok(), "claims are back that no change has shown");
        }
    }
}
