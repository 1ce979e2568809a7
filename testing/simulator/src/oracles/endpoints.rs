//! An importer never writes an endpoint that no exporter of the Service has had for a while, and never keeps it for
//! long.

use super::{Oracle, Seen};
use crate::disturbances;
use crate::world::WORK;
use fleetnet_core::model::{EndpointSlice, Object};
use fleetnet_types::{ObjectName, Text};
use serde_json::Value;
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Endpoints of each source slice, and when each endpoint was last in one.
#[derive(Debug, Default)]
pub(super) struct OnlyLive {
    sources: BTreeMap<(usize, ObjectName), Source>,
    /// Endpoints of each imported slice.
    imported: BTreeMap<(usize, ObjectName), BTreeSet<String>>,
    /// Calm time at which an endpoint was removed.
    removed: BTreeMap<String, Duration>,
}

/// Source slice.
#[derive(Debug, Default)]
struct Source {
    /// Service of the slice.
    service: Option<Text>,
    endpoints: BTreeSet<String>,
}

impl Source {
    /// True if the name of an imported slice shows that it is of this Service. A forged name shows nothing: the
    /// exporting member may have taken the forged export over.
    fn is_of_service_of(&self, imported: &str) -> bool {
        let is_forged = imported.starts_with(disturbances::FORGED);
        is_forged || self.service.as_ref().is_some_and(|service| imported.contains(&format!("-{WORK}-{service}-")))
    }
}

/// Mark of an endpoint that is not ready, and still serving.
const DRAINING: &str = " (draining)";
/// Prefix of the addresses in forged slices (`disturbances/hostile.rs`). A member may export any address, so they are
/// no fault.
const FORGED_ADDRESSES: &str = "10.66.";

/// Returns the endpoints of a slice that get connections: the ready ones, and those that are draining (not ready, and
/// still serving).
fn serving(slice: &[u8]) -> BTreeSet<String> {
    let slice: Value = serde_json::from_slice(slice).unwrap_or_default();
    let mut serving = BTreeSet::new();
    for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
        let state = match (&endpoint["conditions"]["ready"], &endpoint["conditions"]["serving"]) {
            (Value::Bool(false), Value::Bool(true)) => DRAINING,
            (Value::Bool(false), _) => continue,
            _ => "",
        };
        let addresses = endpoint["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str);
        serving.extend(addresses.map(|address| format!("{address}{state}")));
    }
    serving
}

impl OnlyLive {
    /// True if a source slice has this endpoint.
    fn has(&self, address: &str) -> bool {
        self.sources.values().any(|source| source.endpoints.contains(address))
    }

    /// True if a source slice of the Service of this imported slice has this endpoint.
    fn is_live(&self, address: &str, imported: &ObjectName) -> bool {
        let mut sources = self.sources.values().filter(|source| source.endpoints.contains(address));
        sources.any(|source| source.is_of_service_of(&imported.name))
    }

    fn source(&mut self, index: usize, slice: &EndpointSlice, seen: &Seen<'_>) {
        let key = (index, slice.meta.name.clone());
        let mut endpoints = if seen.after.is_some() { serving(seen.json) } else { BTreeSet::new() };
        // Importers may show the ready endpoints of a silent member as draining ones.
        let ready = endpoints.iter().filter(|endpoint| !endpoint.ends_with(DRAINING));
        endpoints.extend(ready.map(|endpoint| format!("{endpoint}{DRAINING}")).collect::<Vec<_>>());
        let source = Source { service: slice.service.clone(), endpoints };
        let before = self.sources.insert(key, source).unwrap_or_default();
        for address in before.endpoints {
            if !self.has(&address) {
                self.removed.insert(address, seen.calm);
            }
        }
    }
}

impl Oracle for OnlyLive {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        let (Place::Member(index), Some(Object::EndpointSlice(slice))) = (seen.server, seen.newest()) else {
            return Ok(false);
        };
        if *slice.meta.name.namespace == *WORK {
            self.source(index, slice, seen);
            return Ok(false);
        }
        let key = (index, slice.meta.name.clone());
        // Nobody routes to a slice whose labels somebody removed.
        if seen.after.is_none() || !slice.imported {
            self.imported.remove(&key);
            return Ok(false);
        }
        let shown = serving(seen.json);
        let shown_before = self.imported.insert(key, shown.clone()).unwrap_or_default();
        if seen.agent.is_none() {
            return Ok(false);
        }
        for address in shown.difference(&shown_before) {
            let removed = self.removed.get(address);
            let is_recent = removed.is_some_and(|removed| seen.calm <= *removed + seen.freshness);
            if !self.is_live(address, &slice.meta.name) && !is_recent && !address.starts_with(FORGED_ADDRESSES) {
                let when = removed.map_or_else(
                    || "no slice of this Service has had".to_owned(),
                    |removed| format!("was removed {} calm seconds ago", (seen.calm - *removed).as_secs()),
                );
                return Err(format!(
                    "{} in {:?} has the endpoint {address}, which {when}",
                    slice.meta.name, seen.server
                ));
            }
        }
        Ok(true)
    }

    fn passed(&self, calm: Duration, freshness: Duration) -> Result<(), String> {
        for ((member, slice), addresses) in &self.imported {
            for address in addresses.iter().filter(|address| !self.is_live(address, slice)) {
                if let Some(removed) = self.removed.get(address).filter(|removed| calm > **removed + freshness) {
                    let seconds = (calm - *removed).as_secs();
                    return Err(format!(
                        "{slice} in {:?} still has the endpoint {address}, which was removed {seconds} calm seconds ago",
                        Place::Member(*member)
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::json;

    const MEMBER: Place = Place::Member(0);

    #[test]
    fn an_importer_must_not_keep_an_endpoint_for_longer_than_the_bound() {
        let slice = ObjectName::new("fleet-system", "member-2-work-app-1-0a1b2");
        let address = "10.0.0.1".to_owned();
        let (removed, freshness) = (Duration::from_secs(10), Duration::from_mins(1));
        let mut rule = OnlyLive::default();
        rule.imported.insert((0, slice), [address.clone()].into());
        rule.removed.insert(address.clone(), removed);
        assert_eq!(rule.passed(removed + freshness, freshness), Ok(()));
        let late = removed + freshness + Duration::from_millis(1);
        assert!(rule.passed(late, freshness).is_err_and(|text| text.contains("still has the endpoint 10.0.0.1")));
        let source = |service: &str| Source { service: Some(service.into()), endpoints: [address.clone()].into() };
        rule.sources.insert((1, ObjectName::new(WORK, "web-0")), source("web"));
        assert!(rule.passed(late, freshness).is_err(), "a slice of another Service has it");
        rule.sources.insert((1, ObjectName::new(WORK, "app-0")), source("app"));
        assert_eq!(rule.passed(late, freshness), Ok(()), "another slice has it");
    }

    fn slice(path: &str, labels: serde_json::Value, conditions: &[serde_json::Value]) -> State {
        let endpoint = |(number, conditions): (usize, &serde_json::Value)| json!({"addresses": [format!("10.0.0.{number}")], "conditions": conditions});
        let endpoints: Vec<_> = conditions.iter().enumerate().map(endpoint).collect();
        let rest = json!({"metadata": {"labels": labels}, "addressType": "IPv4", "endpoints": endpoints, "ports": []});
        state(Kind::EndpointSlice, path, &rest)
    }

    #[test]
    fn an_importer_shows_an_endpoint_as_ready_only_if_its_source_does() {
        let (ready, unknown) = (json!({"ready": true}), json!({}));
        let unready = json!({"ready": false, "serving": false});
        let draining = json!({"ready": false, "serving": true});
        for (source, imported, is_right) in [
            (&ready, &ready, true),
            (&unknown, &ready, true),
            (&draining, &draining, true),
            (&unready, &ready, false),
            (&unready, &draining, false),
            (&draining, &ready, false),
            (&unready, &unready, true),
        ] {
            let mut rule = OnlyLive::default();
            let labels = json!({"kubernetes.io/service-name": "app"});
            let source_slice = slice("work/app-1", labels, std::slice::from_ref(source));
            rule.committed(&seen(Place::Member(1), None, None, Some(&source_slice))).expect("no rule about sources");
            let labels = json!({
                "kubernetes.io/service-name": "work-app",
                "endpointslice.kubernetes.io/managed-by": "endpointsliceimport-controller.networking.fleet.azure.com",
            });
            let imported_slice =
                slice("fleet-system/member-2-work-app-1-0a1b2", labels, std::slice::from_ref(imported));
            let committed = rule.committed(&seen(MEMBER, Some(MEMBER), None, Some(&imported_slice)));
            assert_eq!(committed.is_ok(), is_right, "{source} is imported as {imported}: {committed:?}");
        }
    }
}
