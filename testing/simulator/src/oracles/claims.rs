//! Of all members with claims of type LoadBalancer for a Service, at most one has a grant.

use super::{Oracle, Seen};
use fleetnet_core::model::{ConsumerType, Object};
use fleetnet_types::ObjectName;
use std::collections::BTreeMap;

/// Granted claims of type LoadBalancer: the Service of each claim, by the name of the claim.
#[derive(Debug, Default)]
pub(super) struct OneExclusive(BTreeMap<ObjectName, ObjectName>);

impl Oracle for OneExclusive {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(Object::InternalServiceImport(claim)) = seen.newest() else { return Ok(false) };
        let name = &claim.meta.name;
        let is_granted = seen.after.is_some()
            && claim.consumer_type == ConsumerType::LoadBalancer
            && !claim.meta.deleting
            && !claim.status.clusters.is_empty();
        if !is_granted {
            self.0.remove(name);
            return Ok(false);
        }
        let service = claim.reference.source.clone();
        // A member has two claims after somebody changed the first one. The grant belongs to the member.
        let is_other = |other: &ObjectName| other.namespace != name.namespace;
        let other =
            self.0.iter().find(|(other, of)| is_other(other) && **of == service).map(|(other, _)| other.clone());
        self.0.insert(name.clone(), service.clone());
        match other {
            // A member can change the type of its own claim, so only a grant by the hub agent counts.
            Some(other) if seen.agent == Some(sim::fleet::Place::Hub) => {
                Err(format!("{service}: both claims {name} and {other} have type LoadBalancer and are granted"))
            }
            _ => Ok(true),
        }
    }

    fn restored(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;
    use sim::fleet::Place;

    fn claim(member: &str, service: &str, consumer: &str, clusters: &[&str]) -> State {
        claim_named(&format!("fleet-member-{member}/work-{service}"), member, service, consumer, clusters)
    }

    fn claim_named(name: &str, member: &str, service: &str, consumer: &str, clusters: &[&str]) -> State {
        let clusters: Vec<_> = clusters.iter().map(|cluster| json!({"cluster": cluster})).collect();
        let rest = json!({
            "metadata": {"annotations": {"networking.fleet.azure.com/service-type": consumer}},
            "spec": {"serviceImportReference": {"clusterId": member, "namespace": "work", "name": service}},
            "status": {"clusters": clusters},
        });
        state(Kind::InternalServiceImport, name, &rest)
    }

    #[test]
    fn only_one_exclusive_claim_of_a_service_may_show_a_grant() {
        let first = claim("member-1", "app", "LoadBalancer", &["member-3"]);
        for (why, second, is_right) in [
            ("two exclusive claims", claim("member-2", "app", "LoadBalancer", &["member-3"]), false),
            ("one without a grant", claim("member-2", "app", "LoadBalancer", &[]), true),
            ("a shared claim", claim("member-2", "app", "ClusterIP", &["member-3"]), true),
            (
                "a second claim of the member",
                claim_named("fleet-member-member-1/other", "member-1", "app", "LoadBalancer", &["member-3"]),
                true,
            ),
            ("another Service", claim("member-2", "web", "LoadBalancer", &["member-3"]), true),
        ] {
            let mut rule = OneExclusive::default();
            let hub = Some(Place::Hub);
            rule.committed(&seen(Place::Hub, hub, None, Some(&first))).expect("the first claim");
            let committed = rule.committed(&seen(Place::Hub, hub, None, Some(&second)));
            assert_eq!(committed.is_ok(), is_right, "{why}: {committed:?}");
            rule.committed(&seen(Place::Hub, hub, Some(&first), None)).expect("the first claim is gone");
            let again = rule.committed(&seen(Place::Hub, hub, None, Some(&second)));
            assert!(again.is_ok(), "{why}, after the first claim: {again:?}");
        }
    }
}
