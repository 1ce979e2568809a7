//! An import of the standard API stays as it is while nobody changes anything that it depends on. This concerns the
//! addresses of its derived Service, its endpoints, and the export that decides conflicts. Neither faults nor a restore
//! of the hub are a reason to change them.
//!
//! The endpoints of a silent member may be draining, and are withdrawn if the hub agent says so. A ready endpoint must
//! be left.
//!
//! Gateways and kube-proxy read slices with different labels. With routing slices, no slice has both.

use super::{Oracle, Seen};
use crate::mcs::{NAMESPACE, exporter};
use crate::world::member;
use fleetnet_core::model::{EndpointSlice, MergedServiceImport, Object, Service, Treatment};
use fleetnet_types::{ClusterId, ObjectName};
use sim::fleet::Place;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The imports of a Service by the standard API.
#[derive(Debug, Default)]
pub(super) struct Unchanged {
    /// Exporting clusters: those with the Service, and those with a ServiceExport.
    services: BTreeSet<Place>,
    exports: BTreeSet<Place>,
    /// Clusters whose namespace imports.
    importers: BTreeSet<Place>,
    /// Addresses in each source slice.
    sources: BTreeMap<(Place, ObjectName), BTreeSet<String>>,
    /// Imported slices that each reader has.
    imported: BTreeMap<(Reader, Place, ObjectName), Imported>,
    /// Exporters whose endpoints a cluster withdraws because they are silent.
    withdrawn: BTreeMap<Place, BTreeSet<ClusterId>>,
    /// Export that decides conflicts, as each importer knows it.
    winners: BTreeMap<Place, ClusterId>,
    /// The same before the first change that nobody may make. `None` while users change something.
    winner: Option<ClusterId>,
    /// Calm time of the last restore of the hub.
    restored: Option<Duration>,
    /// Calm time of the last change.
    last: Duration,
}

/// Reader of imported slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    Gateway,
    KubeProxy,
}

impl Reader {
    fn has(self, slice: &EndpointSlice) -> bool {
        match self {
            Self::Gateway => slice.mcs.is_some(),
            Self::KubeProxy => slice.service.is_some(),
        }
    }
}

/// Imported slice.
#[derive(Clone, Debug, Default)]
struct Imported {
    exporter: ClusterId,
    ready: BTreeSet<String>,
    /// Ready and draining addresses.
    all: BTreeSet<String>,
}

fn set<T: Ord>(set: &mut BTreeSet<T>, value: T, is_in: bool) {
    if is_in {
        set.insert(value);
    } else {
        set.remove(&value);
    }
}

impl Unchanged {
    fn is_exporter(&self, place: Place) -> bool {
        self.services.contains(&place) && self.exports.contains(&place)
    }

    /// True if an exporter has this endpoint.
    fn is_live(&self, address: &str) -> bool {
        self.sources.iter().any(|((place, _), addresses)| self.is_exporter(*place) && addresses.contains(address))
    }

    /// True if a cluster imports the Service and its import may not change now.
    fn is_fixed(&self, seen: &Seen<'_>) -> bool {
        let is_exported = self.services.iter().any(|place| self.is_exporter(*place));
        !seen.may_withdraw && is_exported && self.importers.contains(&seen.server)
    }

    fn source(&mut self, slice: &EndpointSlice, seen: &Seen<'_>) {
        let addresses = if seen.after.is_some() { addresses(slice).0 } else { BTreeSet::new() };
        self.sources.insert((seen.server, slice.meta.name.clone()), addresses);
    }

    fn imported(&mut self, reader: Reader, slice: &EndpointSlice, seen: &Seen<'_>) -> Result<bool, String> {
        let key = (reader, seen.server, slice.meta.name.clone());
        let is_read = seen.after.is_some() && reader.has(slice);
        let (ready, all) = if is_read { addresses(slice) } else { Default::default() };
        let exporter = exporter(slice);
        let is_withdrawn = self.withdrawn.get(&seen.server).is_some_and(|clusters| clusters.contains(&exporter));
        let before = self.imported.insert(key, Imported { exporter, ready, all }).unwrap_or_default();
        if !self.is_fixed(seen) {
            return Ok(false);
        }
        let is_here = |(of, place, _): &(Reader, Place, ObjectName)| (*of, *place) == (reader, seen.server);
        let here = || self.imported.iter().filter(|(key, _)| is_here(key)).map(|(_, slice)| slice);
        let left: BTreeSet<&String> = here().flat_map(|slice| &slice.all).collect();
        let gone: Vec<&String> =
            before.all.iter().filter(|address| !left.contains(address) && self.is_live(address)).collect();
        if !gone.is_empty() && !is_withdrawn {
            let (of, at) = (before.exporter, seen.server);
            return Err(format!("{gone:?} of {of} in {at:?} are withdrawn for {reader:?}"));
        }
        let is_any_ready = here().any(|slice| !slice.ready.is_empty());
        if !is_any_ready && before.ready.iter().any(|address| self.is_live(address)) {
            return Err(format!("no imported endpoint in {:?} is ready for {reader:?} any more", seen.server));
        }
        Ok(true)
    }

    fn derived(&self, derived: &Service, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(Object::Service(before)) = seen.before.filter(|_| self.is_fixed(seen)) else { return Ok(false) };
        let is_same = seen.after.is_some() && derived.cluster_ips == before.cluster_ips;
        let (name, at) = (&derived.meta.name, seen.server);
        is_same.then_some(true).ok_or_else(|| format!("the addresses of the derived Service {name} in {at:?} change"))
    }

    fn merged(&mut self, merged: &MergedServiceImport, seen: &Seen<'_>) -> Result<bool, String> {
        let Some(importer) = fleetnet_core::names::cluster_of(&merged.meta.name.namespace).as_deref().and_then(member)
        else {
            return Ok(false);
        };
        let winner = merged.import.clusters.first().map(|part| part.cluster.clone());
        // An importer whose agent does not run keeps an import from before a change while it is being deleted.
        match winner.filter(|_| seen.after.is_some() && !merged.meta.deleting) {
            Some(winner) => self.winners.insert(importer, winner),
            None => self.winners.remove(&importer),
        };
        Ok(!seen.may_withdraw)
    }
}

/// Returns the ready addresses of a slice, and all that get connections.
fn addresses(slice: &EndpointSlice) -> (BTreeSet<String>, BTreeSet<String>) {
    let of = |endpoints: &[fleetnet_core::model::Endpoint]| -> BTreeSet<String> {
        endpoints.iter().flat_map(|endpoint| &endpoint.addresses).map(ToString::to_string).collect()
    };
    let ready = of(&slice.content.endpoints);
    let all = ready.union(&of(&slice.content.draining)).cloned().collect();
    (ready, all)
}

impl Oracle for Unchanged {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        self.last = seen.calm;
        if seen.may_withdraw {
            self.winner = None;
        } else if self.winner.is_none() {
            self.winner = self.winners.values().next().cloned();
        }
        let exists = seen.after.is_some_and(|object| !object.meta().deleting);
        let Some(object) = seen.newest() else { return Ok(false) };
        let is_here = &*object.meta().name.namespace == NAMESPACE;
        match object {
            Object::MemberAgent(agent) => {
                let silent =
                    agent.status.silent_members.iter().filter(|member| member.treatment == Treatment::Withdrawn);
                if let Some(importer) = member(&agent.meta.name.name) {
                    self.withdrawn.insert(importer, silent.map(|member| member.cluster.clone()).collect());
                }
            }
            Object::MergedServiceImport(merged) => return self.merged(merged, seen),
            Object::Namespace(namespace) if &*namespace.meta.name.name == NAMESPACE => {
                set(&mut self.importers, seen.server, exists && namespace.is_importing);
            }
            Object::McsServiceExport(_) if is_here => set(&mut self.exports, seen.server, exists),
            Object::Service(derived) if is_here && derived.imports.is_some() => return self.derived(derived, seen),
            Object::Service(_) if is_here => set(&mut self.services, seen.server, exists),
            Object::EndpointSlice(slice) if is_here && (slice.imported || slice.mcs.is_some()) => {
                let of_both = [Reader::Gateway, Reader::KubeProxy].map(|reader| self.imported(reader, slice, seen));
                return of_both.into_iter().try_fold(false, |is_any, checked| Ok(is_any | checked?));
            }
            Object::EndpointSlice(slice) if is_here => self.source(slice, seen),
            _ => {}
        }
        Ok(false)
    }

    fn passed(&self, calm: Duration, freshness: Duration) -> Result<(), String> {
        // A restore brings an older state of the hub back for a while.
        if self.restored.is_some_and(|restored| calm < restored + freshness) {
            return Ok(());
        }
        let other = self.winners.iter().find(|(_, winner)| self.winner.as_ref().is_some_and(|first| first != *winner));
        other.map_or(Ok(()), |(importer, winner)| {
            Err(format!("the export of {winner} decides in {importer:?}, and nobody changed an export"))
        })
    }

    fn restored(&mut self) {
        self.restored = Some(self.last);
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{State, seen, state};
    use super::*;
    use fleetnet_core::model::Kind;
    use serde_json::{Value, json};

    const EXPORTER: Place = Place::Member(0);
    const IMPORTER: Place = Place::Member(1);

    fn slice(path: &str, labels: Value, addresses: &[&str]) -> State {
        let endpoints: Vec<_> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
        let rest = json!({"metadata": {"labels": labels}, "addressType": "IPv4", "endpoints": endpoints, "ports": []});
        state(Kind::EndpointSlice, path, &rest)
    }

    fn imported(addresses: &[&str]) -> State {
        let labels = json!({"multicluster.kubernetes.io/service-name": "app",
            "multicluster.kubernetes.io/source-cluster": "member-1",
            "endpointslice.kubernetes.io/managed-by": "endpointsliceimport-controller.networking.fleet.azure.com"});
        slice("standard/member-1-standard-app-0-a", labels, addresses)
    }

    fn derived(address: &str) -> State {
        let labels = json!({"app.kubernetes.io/managed-by": "fleetnet-member-agent",
            "multicluster.kubernetes.io/service-name": "app"});
        let spec = json!({"ports": [], "clusterIP": address, "clusterIPs": [address]});
        state(Kind::Service, "standard/derived-0", &json!({"metadata": {"labels": labels}, "spec": spec}))
    }

    fn merged(importer: &str, clusters: &[&str]) -> State {
        let clusters: Vec<_> = clusters.iter().map(|cluster| json!({"cluster": cluster})).collect();
        let spec = json!({"serviceReference": {"namespace": "standard", "name": "app"}, "type": "ClusterSetIP", "ports": [],
            "clusters": clusters});
        state(Kind::MergedServiceImport, &format!("fleet-member-{importer}/standard-app-0"), &json!({"spec": spec}))
    }

    /// Returns the rule of a fleet in which member-2 imports the endpoint that member-1 exports.
    fn importing() -> Unchanged {
        let mut rule = Unchanged::default();
        let service = state(Kind::Service, "standard/app", &json!({"spec": {"ports": []}}));
        let export = state(Kind::McsServiceExport, "standard/app", &json!({}));
        let source = slice("standard/app-0", json!({"kubernetes.io/service-name": "app"}), &["10.0.0.1"]);
        let labels = json!({"metadata": {"labels": {"fleetnet/import": "true"}}});
        let namespace = state(Kind::Namespace, "/standard", &labels);
        let of_users = [(EXPORTER, &service), (EXPORTER, &export), (EXPORTER, &source), (IMPORTER, &namespace)];
        for (place, object) in of_users {
            assert_eq!(rule.committed(&seen(place, None, None, Some(object))), Ok(false));
        }
        for object in [&imported(&["10.0.0.1"]), &derived("10.9.0.1")] {
            assert_eq!(rule.committed(&seen(IMPORTER, Some(IMPORTER), None, Some(object))), Ok(false));
        }
        assert_eq!(rule.committed(&seen(Place::Hub, None, None, Some(&merged("member-2", &["member-1"])))), Ok(false));
        rule
    }

    fn at_rest<'a>(place: Place, before: Option<&'a State>, after: Option<&'a State>) -> Seen<'a> {
        Seen { may_withdraw: false, ..seen(place, Some(place), before, after) }
    }

    #[test]
    fn a_live_endpoint_is_not_withdrawn_while_nothing_changes() {
        let none = imported(&[]);
        assert!(importing().committed(&at_rest(IMPORTER, None, Some(&none))).is_err(), "10.0.0.1 is live");
        assert_eq!(importing().committed(&seen(IMPORTER, Some(IMPORTER), None, Some(&none))), Ok(false));
        let mut rule = importing();
        let source = slice("standard/app-0", json!({"kubernetes.io/service-name": "app"}), &["10.0.0.2"]);
        rule.committed(&seen(EXPORTER, None, None, Some(&source))).expect("no rule about objects of users");
        assert_eq!(rule.committed(&at_rest(IMPORTER, None, Some(&none))), Ok(true), "its exporter has removed it");
        let silent =
            json!({"spec": {}, "status": {"silentMembers": [{"cluster": "member-1", "treatment": "Withdrawn"}]}});
        let silent = state(Kind::MemberAgent, "fleet-member-member-2/member-2", &silent);
        let mut rule = importing();
        rule.committed(&seen(Place::Hub, None, None, Some(&silent))).expect("no rule about MemberAgents");
        let committed = rule.committed(&at_rest(IMPORTER, None, Some(&none)));
        assert!(committed.is_err_and(|text| text.contains("ready")), "the last endpoint stays");
    }

    #[test]
    fn a_slice_is_unbound_only_when_another_one_is_bound() {
        let mut labels = json!({"multicluster.kubernetes.io/service-name": "app",
            "multicluster.kubernetes.io/source-cluster": "member-1",
            "endpointslice.kubernetes.io/managed-by": "endpointsliceimport-controller.networking.fleet.azure.com"});
        let unbound = slice("standard/member-1-standard-app-0-a", labels.clone(), &["10.0.0.1"]);
        labels["kubernetes.io/service-name"] = "derived-0".into();
        let bound = slice("standard/member-1-standard-app-0-a", labels.clone(), &["10.0.0.1"]);
        labels.as_object_mut().expect("labels").retain(|label, _| !label.starts_with("multicluster"));
        let routing = slice("standard/member-1-standard-app-0-a-routing", labels, &["10.0.0.1"]);
        for (has_routing_slice, is_right) in [(true, true), (false, false)] {
            let mut rule = importing();
            let written = [Some(&bound), Some(&routing).filter(|_| has_routing_slice)];
            for slice in written.into_iter().flatten() {
                assert_eq!(rule.committed(&at_rest(IMPORTER, None, Some(slice))), Ok(true));
            }
            assert_eq!(rule.committed(&at_rest(IMPORTER, None, Some(&unbound))).is_ok(), is_right);
            assert!(rule.committed(&at_rest(IMPORTER, Some(&routing), None)).is_err() == is_right, "nothing is left");
        }
    }

    #[test]
    fn the_addresses_of_a_derived_service_do_not_change_while_nothing_changes() {
        let (before, other) = (derived("10.9.0.1"), derived("10.9.0.2"));
        assert!(importing().committed(&at_rest(IMPORTER, Some(&before), None)).is_err());
        assert!(importing().committed(&at_rest(IMPORTER, Some(&before), Some(&other))).is_err());
        assert_eq!(importing().committed(&at_rest(IMPORTER, Some(&before), Some(&before))), Ok(true));
        assert_eq!(importing().committed(&seen(IMPORTER, Some(IMPORTER), Some(&before), None)), Ok(false));
        let mut rule = importing();
        let export = state(Kind::McsServiceExport, "standard/app", &json!({}));
        rule.committed(&seen(EXPORTER, None, Some(&export), None)).expect("no rule about objects of users");
        assert_eq!(rule.committed(&at_rest(IMPORTER, Some(&before), None)), Ok(false), "nobody exports it");
    }

    #[test]
    fn the_export_that_decides_stays_the_same_while_nothing_changes() {
        let (calm, freshness) = (Duration::from_secs(2_000), Duration::from_secs(240));
        let other = merged("member-2", &["member-3", "member-1"]);
        let mut rule = importing();
        rule.committed(&seen(Place::Hub, Some(Place::Hub), None, Some(&other))).expect("users changed something");
        assert_eq!(rule.passed(calm, freshness), Ok(()));
        let mut rule = importing();
        let late = merged("member-3", &["member-3"]);
        rule.committed(&seen(Place::Hub, Some(Place::Hub), None, Some(&late))).expect("users changed something");
        assert_eq!(rule.passed(calm, freshness), Ok(()), "importers learn of a change one after the other");
        let mut rule = importing();
        rule.committed(&at_rest(Place::Hub, None, Some(&other))).expect("it may be a restore");
        assert!(rule.passed(calm, freshness).is_err_and(|text| text.contains("member-3")));
        rule.restored();
        assert_eq!(rule.passed(Duration::from_secs(1_100), freshness), Ok(()));
        assert!(rule.passed(calm, freshness).is_err(), "the hub must know it again");
    }
}
