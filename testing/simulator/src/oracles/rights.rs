//! The hub agent accepts no export and grants no import of a member that has no right to it. The annotations of the
//! Service's namespace in the hub list who has the right. A member that loses the right loses its exports and imports
//! soon after.

use super::{Oracle, Seen};
use fleetnet_core::model::Object;
use fleetnet_core::names;
use fleetnet_types::{ClusterId, ObjectName, Text};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Role of a member for a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Exporter,
    Importer,
}

const ROLES: [Role; 2] = [Role::Exporter, Role::Importer];

/// List of members with a right. `None` if every member has the right.
type Listed = Option<BTreeSet<ClusterId>>;

/// Lists of each namespace of the hub, and the exporters and importers of each Service.
#[derive(Debug, Default)]
pub(super) struct OnlyAllowed {
    /// List of a namespace, and the calm time since which the list is in force.
    lists: BTreeMap<(Text, Role), (Listed, Duration)>,
    shown: BTreeMap<(ObjectName, Role), BTreeSet<ClusterId>>,
}

impl OnlyAllowed {
    /// Returns how long a member has not had a right; `None` if it has the right.
    fn denied_for(&self, service: &ObjectName, role: Role, cluster: &ClusterId, calm: Duration) -> Option<Duration> {
        let (listed, since) = self.lists.get(&(service.namespace.clone(), role))?;
        let is_denied = listed.as_ref().is_some_and(|listed| !listed.contains(cluster));
        is_denied.then(|| calm.saturating_sub(*since))
    }

    /// Checks the exporters and importers of each Service.
    fn check(&self, calm: Duration, freshness: Duration) -> Result<(), String> {
        for ((service, role), clusters) in &self.shown {
            for cluster in clusters {
                let denied = self.denied_for(service, *role, cluster, calm).filter(|denied| *denied > freshness);
                if let Some(denied) = denied {
                    let seconds = denied.as_secs();
                    return Err(format!(
                        "{cluster} is {role:?} of {service}, and has not had the right for {seconds} calm seconds"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Oracle for OnlyAllowed {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        if seen.server != Place::Hub {
            return Ok(false);
        }
        match seen.newest() {
            Some(Object::Namespace(namespace)) => {
                let lists = [namespace.exporters.clone(), namespace.importers.clone()];
                for (role, listed) in ROLES.into_iter().zip(lists) {
                    let listed = listed.filter(|_| seen.after.is_some());
                    let entry = self.lists.entry((namespace.meta.name.name.clone(), role));
                    let (before, since) = entry.or_insert((None, seen.calm));
                    if *before != listed {
                        (*before, *since) = (listed, seen.calm);
                    }
                }
                Ok(false)
            }
            Some(Object::ServiceImport(import)) => {
                let exporters = import.status.clusters.iter().cloned().collect();
                let importers = import.claims.importers.keys().filter_map(|of| names::cluster_of(of)).collect();
                for (role, clusters) in ROLES.into_iter().zip([exporters, importers]) {
                    let key = (import.meta.name.clone(), role);
                    self.shown.insert(key, if seen.after.is_some() { clusters } else { BTreeSet::new() });
                }
                self.check(seen.calm, seen.freshness).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn passed(&self, calm: Duration, freshness: Duration) -> Result<(), String> {
        self.check(calm, freshness)
    }

    fn restored(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::{Value, json};

    const LATER: Duration = Duration::from_secs(1_240);
    const TOO_LATE: Duration = Duration::from_secs(1_241);

    fn namespace(annotations: Value) -> State {
        state(Kind::Namespace, "/work", &json!({"metadata": {"annotations": annotations}}))
    }

    fn import() -> State {
        let record = json!({"MemberClusters": {"fleet-member-member-2": "member-2"}}).to_string();
        let annotations = json!({"networking.fleet.azure.com/service-in-use-by": record});
        let rest = json!({"metadata": {"annotations": annotations}, "status": {"clusters": [{"cluster": "member-1"}]}});
        state(Kind::ServiceImport, "work/app", &rest)
    }

    #[test]
    fn a_member_without_a_right_loses_exports_and_imports_soon() {
        let (exporters, importers) = ("networking.fleet.azure.com/exporters", "networking.fleet.azure.com/importers");
        let hub = |state: &State, calm: Duration, rule: &mut OnlyAllowed| {
            rule.committed(&Seen { calm, ..seen(Place::Hub, Some(Place::Hub), None, Some(state)) })
        };
        for (why, annotations, is_right) in [
            ("no list", json!({}), true),
            ("both are listed", json!({exporters: "member-1", importers: "member-2,member-3"}), true),
            ("the exporter is not listed", json!({exporters: "member-2"}), false),
            ("the importer is not listed", json!({importers: ""}), false),
        ] {
            let (mut rule, start) = (OnlyAllowed::default(), Duration::from_secs(1_000));
            hub(&namespace(annotations), start, &mut rule).expect("no rule about namespaces");
            assert_eq!(hub(&import(), LATER, &mut rule), Ok(true), "{why}: agents have time");
            let committed = hub(&import(), TOO_LATE, &mut rule);
            assert_eq!(committed.is_ok(), is_right, "{why}: {committed:?}");
            assert_eq!(rule.passed(TOO_LATE, Duration::from_secs(240)).is_ok(), is_right, "{why}: as time passes");
            hub(&namespace(json!({})), TOO_LATE, &mut rule).expect("no rule about namespaces");
            assert_eq!(rule.passed(TOO_LATE, Duration::from_secs(240)), Ok(()), "{why}: all members have the right");
        }
    }
}
