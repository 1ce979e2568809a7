//! The agents of a fleet: their namespaces, and how to recognize their Deployments.

use fleetnet_api::names::{FLEET_SYSTEM_NAMESPACE, labels};
use fleetnet_core::names::is_dns_1123_label;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// Recommended label of Kubernetes with the name of a program.
const NAME_LABEL: &str = "app.kubernetes.io/name";
/// Recommended label of Kubernetes with the part of a product. The charts set it if the agent has another name.
const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// Value of the label [`labels::PART_OF`] on the objects that install fleetnet.
const PRODUCT: &str = "fleetnet";

/// Namespace in which agents run. It has their Deployments, Leases and Secret, and the derived Services and imported
/// slices of the fleet's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentNamespace(String);

impl Default for AgentNamespace {
    fn default() -> Self {
        Self(FLEET_SYSTEM_NAMESPACE.to_owned())
    }
}

impl FromStr for AgentNamespace {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        if is_dns_1123_label(written) {
            return Ok(Self(written.to_owned()));
        }
        let valid = "use at most 63 lower-case letters, digits and dashes, with a letter or digit first and last";
        Err(format!("it is not the name of a namespace: {valid}"))
    }
}

impl Deref for AgentNamespace {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Namespaces of the agents of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentNamespaces {
    /// Namespace of the hub agent.
    pub hub: AgentNamespace,
    /// Namespace of the member agents, the same in all members.
    pub members: AgentNamespace,
}

impl AgentNamespaces {
    /// Returns the namespace of an agent.
    #[must_use]
    pub const fn of(&self, agent: Agent) -> &AgentNamespace {
        match agent {
            Agent::Hub => &self.hub,
            Agent::Member => &self.members,
        }
    }
}

/// Agent of fleetnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Hub,
    Member,
}

impl Agent {
    /// All agents.
    pub const ALL: [Self; 2] = [Self::Hub, Self::Member];

    /// Returns the name of the program. The holder of a Lease begins with it, also if the Deployment has another name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hub => "hub-agent",
            Self::Member => "member-agent",
        }
    }

    /// True if a Deployment or a pod with this name is that of the Go agent in the place of this agent.
    #[must_use]
    pub fn is_go(self, name: &str) -> bool {
        let names: &[&str] = match self {
            Self::Hub => &["hub-net-controller-manager"],
            Self::Member => &["member-net-controller-manager", "mcs-controller-manager"],
        };
        names.iter().any(|go| name.starts_with(go))
    }

    /// True if a Deployment with this metadata is that of the agent: by the labels that the charts and the manifests
    /// set, or by its name. Deployments of other products, such as the Go agents and the agents of a fleet manager, are
    /// not part of fleetnet.
    #[must_use]
    pub fn owns(self, metadata: &ObjectMeta) -> bool {
        let label = |name: &str| metadata.labels.as_ref().and_then(|labels| labels.get(name)).map(String::as_str);
        if label(labels::PART_OF) != Some(PRODUCT) {
            return false;
        }
        match label(COMPONENT_LABEL) {
            // The agents may have any name then, also that of the other one.
            Some(component) if Self::ALL.iter().any(|agent| agent.name() == component) => component == self.name(),
            _ => label(NAME_LABEL) == Some(self.name()) || metadata.name.as_deref() == Some(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_that_of_an_agent_by_its_labels() {
        let part_of = ("app.kubernetes.io/part-of", "fleetnet");
        let (name, component) = ("app.kubernetes.io/name", "app.kubernetes.io/component");
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<Agent>);
        let table: &[Case<'_>] = &[
            // Manifests and charts without other names.
            ("member-agent", &[part_of, (name, "member-agent")], Some(Agent::Member)),
            ("hub-agent", &[part_of, (name, "hub-agent")], Some(Agent::Hub)),
            // Charts with nameOverride or fullnameOverride.
            ("fabric", &[part_of, (name, "fabric"), (component, "member-agent")], Some(Agent::Member)),
            ("fabric", &[part_of, (name, "hub-agent"), (component, "hub-agent")], Some(Agent::Hub)),
            ("hub-agent", &[part_of, (name, "hub-agent"), (component, "member-agent")], Some(Agent::Member)),
            // A label of the user.
            ("member-agent", &[part_of, (name, "member-agent"), (component, "network")], Some(Agent::Member)),
            ("member-agent", &[part_of], Some(Agent::Member)),
            // Other programs of fleetnet and other products: Go agents, and the member agent of a fleet manager.
            ("fabric", &[part_of, (name, "fabric")], None),
            ("member-net-controller-manager", &[(name, "member-net-controller-manager")], None),
            ("member-agent", &[(name, "member-agent")], None),
            ("member-agent", &[("app.kubernetes.io/part-of", "fleet"), (component, "member-agent")], None),
            ("member-agent", &[], None),
        ];
        for (number, (object, labels, expected)) in table.iter().enumerate() {
            let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            let metadata =
                ObjectMeta { name: Some((*object).to_owned()), labels: Some(labels), ..ObjectMeta::default() };
            let found: Vec<Agent> = Agent::ALL.into_iter().filter(|it| it.owns(&metadata)).collect();
            assert_eq!(found, expected.iter().copied().collect::<Vec<_>>(), "case {number}");
        }
    }

    #[test]
    fn a_namespace_has_a_valid_name() {
        let longest = "a".repeat(63);
        for name in ["fleet-system", "fabric", "1", longest.as_str()] {
            assert_eq!(name.parse::<AgentNamespace>().map(|it| it.to_string()), Ok(name.to_owned()));
        }
        let long = "a".repeat(64);
        for name in ["", "Fleet", "a/b", "a.b", "-a", "a-", "a?b", "..", long.as_str()] {
            assert!(name.parse::<AgentNamespace>().unwrap_err().contains("at most 63"), "{name:?}");
        }
    }
}
