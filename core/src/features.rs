//! Features: additions to the Go form of objects, and the form of an object for each peer.
//!
//! When a Go agent updates an object, it drops the fields that it does not know. If our agent added these fields again
//! each time, the two agents would write for ever. So our agent uses a feature only for a peer that announced the
//! feature ([`crate::handshake`]). For all other peers, our agent writes and compares objects in exactly the Go form.

use crate::model::{AddressType, Announcement, Endpoint, ImportStatus, SessionAffinity, SliceContent};
use crate::variants::variants;
use fleetnet_types::Text;
use std::borrow::Cow;

/// Addition to the objects as the Go agents write them. Each agent announces the features that it supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    IPv6,
    /// Separate list in a slice for draining endpoints, which are not ready but still serving.
    DrainingEndpoints,
    /// Host names and zones of endpoints in slices.
    EndpointDetails,
    Headless,
    SessionAffinity,
    /// List of silent members in the MemberAgent, whose endpoints importers do not treat as usual.
    SilentMembers,
    /// Services of the standard API `multicluster.x-k8s.io`.
    McsApi,
    /// Cluster selectors and weights of Services. A member agent announces it only if it selects clusters.
    ClusterSelection,
}

/// Name in the hub agent's announcement for the offer of a slice stream. It changes no object, so it is no [`Feature`].
pub const SLICE_STREAM: &str = "SliceStream";

/// Name in an agent's announcement for traces: the agent carries the annotation `tracing.k8s.io/traceparent`. No rule
/// reads the annotation, so this is no [`Feature`].
pub const TRACING: &str = "Tracing";

// The names are those in announcements.
variants!(Feature, name: IPv6 = "IPv6", DrainingEndpoints = "DrainingEndpoints", EndpointDetails = "EndpointDetails",
    Headless = "Headless", SessionAffinity = "SessionAffinity", SilentMembers = "SilentMembers",
    McsApi = "MulticlusterApi", ClusterSelection = "ClusterSelection");

impl Feature {
    /// Features of slices, announced by agents that import slices.
    pub const OF_SLICES: [Self; 4] = [Self::IPv6, Self::DrainingEndpoints, Self::EndpointDetails, Self::SilentMembers];
    /// Features of Services, announced by agents that create derived Services.
    pub const OF_SERVICES: [Self; 2] = [Self::Headless, Self::SessionAffinity];
}

/// Set of features: one bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u32);

impl Features {
    pub const NONE: Self = Self(0);
    /// All features that this version of fleetnet supports.
    pub const ALL: Self = Self((1 << Feature::ALL.len()) - 1); // does not compile with more than 31 features

    pub const fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u8) != 0
    }

    #[must_use]
    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !(1 << feature as u8))
    }

    /// Returns the features of both sets.
    #[must_use]
    pub(crate) const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the names of the features, in the order of announcements.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Feature::ALL.into_iter().filter(move |feature| self.has(*feature)).map(Feature::name)
    }

    /// Returns the feature with this name; `None` if this version does not know the name.
    pub fn named(name: &str) -> Option<Feature> {
        Feature::ALL.into_iter().find(|feature| feature.name() == name)
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        Self(features.into_iter().fold(0, |set, feature| set | 1 << feature as u8))
    }
}

/// Fields of an endpoint that a feature adds: the feature, the test for a value, and the removal of all values.
type Addition = (Feature, fn(&Endpoint) -> bool, fn(&mut Endpoint));

const OF_ENDPOINTS: [Addition; 1] = [(
    Feature::EndpointDetails,
    |endpoint| endpoint.hostname.is_some() || endpoint.zone.is_some(),
    |endpoint| (endpoint.hostname, endpoint.zone) = (None, None),
)];

/// Returns the slice reduced to the peer's features; `None` if the peer does not support such slices.
pub(crate) fn slice_for(peer: Features, content: &SliceContent) -> Option<Cow<'_, SliceContent>> {
    match content.address_type {
        AddressType::IPv4 => {}
        AddressType::IPv6 if peer.has(Feature::IPv6) => {}
        AddressType::IPv6 | AddressType::Other(_) => return None,
    }
    let all = || content.endpoints.iter().chain(&content.draining);
    let is_unknown = |(feature, has, _): &Addition| !peer.has(*feature) && all().any(has);
    let mut reduced = Cow::Borrowed(content);
    if !peer.has(Feature::DrainingEndpoints) && !content.draining.is_empty() {
        reduced.to_mut().draining = Vec::new();
    }
    for (_, _, remove) in OF_ENDPOINTS.into_iter().filter(is_unknown) {
        let reduced = reduced.to_mut();
        reduced.endpoints.iter_mut().chain(&mut reduced.draining).for_each(remove);
    }
    Some(reduced)
}

/// True if `written` is the slice `source`, reduced to any set of features.
pub(crate) fn is_form_of(written: &SliceContent, source: &SliceContent) -> bool {
    let mut peers = vec![Features::ALL];
    for feature in OF_ENDPOINTS.map(|(feature, ..)| feature).into_iter().chain([Feature::DrainingEndpoints]) {
        peers.extend(peers.clone().into_iter().map(|peer| peer.without(feature)));
    }
    peers.into_iter().any(|peer| slice_for(peer, source).is_some_and(|content| *content == *written))
}

/// Returns the ServiceImport's status reduced to the peer's features.
pub(crate) fn import_for(peer: Features, status: &ImportStatus) -> ImportStatus {
    ImportStatus { session_affinity: affinity_for(peer, status.session_affinity), ..status.clone() }
}

/// Returns a Service's session affinity reduced to the peer's features.
pub(crate) fn affinity_for(peer: Features, affinity: SessionAffinity) -> SessionAffinity {
    if peer.has(Feature::SessionAffinity) { affinity } else { SessionAffinity::None }
}

impl Announcement {
    pub fn new(version: impl Into<Text>, features: Features) -> Self {
        Self { version: version.into(), features: features.names().map(Text::from).collect() }
    }

    /// Adds traces to the announcement, unless it has them.
    pub fn add_traces(&mut self) {
        if !self.has_traces() {
            self.features.push(TRACING.into());
        }
    }

    /// Adds cluster selection to the announcement.
    pub fn add_cluster_selection(&mut self) {
        self.features.push(Feature::ClusterSelection.name().into());
    }

    /// True if the announcing agent takes part in traces.
    pub fn has_traces(&self) -> bool {
        self.features.iter().any(|name| **name == *TRACING)
    }

    /// Returns the announced features that this version knows.
    pub fn known_features(&self) -> Features {
        self.features.iter().filter_map(|name| Features::named(name)).collect()
    }

    #[must_use]
    pub(crate) fn without(&self, feature: Feature) -> Self {
        let features = self.features.iter().filter(|name| ***name != *feature.name()).cloned().collect();
        Self { features, version: self.version.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(address: &str) -> Endpoint {
        let plain = Endpoint { addresses: vec![address.into()], ..Endpoint::default() };
        Endpoint { hostname: Some("db-0".into()), zone: Some("zone-1".into()), ..plain }
    }

    fn content(address_type: AddressType) -> SliceContent {
        SliceContent { address_type, endpoints: vec![endpoint("a")], draining: vec![endpoint("b")], ports: Vec::new() }
    }

    #[test]
    fn traces_are_announced_once_and_no_rule_reads_them() {
        let mut announcement = Announcement::new("1.2.3", Features::NONE);
        assert!(!announcement.has_traces());
        (0..2).for_each(|_| announcement.add_traces());
        assert_eq!(announcement.features, [Text::from("Tracing")]);
        assert!(announcement.has_traces() && announcement.known_features() == Features::NONE);
    }

    #[test]
    fn every_feature_is_found_by_its_name_and_unknown_ones_are_nobodys() {
        for feature in Feature::ALL {
            assert_eq!(Features::named(feature.name()), Some(feature));
            assert!(Features::ALL.has(feature) && !Features::NONE.has(feature));
            assert!(!Features::ALL.without(feature).has(feature));
        }
        assert_eq!(Features::named("Telepathy"), None);
        assert_eq!(Feature::ALL.into_iter().collect::<Features>(), Features::ALL);
        let of_parts = Feature::OF_SLICES.into_iter().chain(Feature::OF_SERVICES);
        let all: Features = of_parts.chain([Feature::McsApi, Feature::ClusterSelection]).collect();
        assert_eq!(all, Features::ALL, "each is somebody's to understand");
    }

    /// Rule F2: Endpoints are not ready but still accept connections (condition `serving`)
    /// Then: The exported slice contains these endpoints in `drainingEndpoints`. In the imported slice, these endpoints
    /// have the conditions `serving` and `terminating`. So kube-proxy uses these endpoints if no endpoint is ready
    #[test]
    fn a_peer_gets_the_features_that_it_announced_and_no_more() {
        let plain = Endpoint { addresses: vec!["a".into()], ..Endpoint::default() };
        let full = content(AddressType::IPv4);
        let go = SliceContent { endpoints: vec![plain], draining: Vec::new(), ..full.clone() };
        let drained = Endpoint { addresses: vec!["b".into()], ..Endpoint::default() };
        let undetailed = SliceContent { draining: vec![drained], ..go.clone() };
        let ready_only = SliceContent { draining: Vec::new(), ..full.clone() };
        let table = [
            (Features::ALL, Some(full.clone()), "all of it"),
            (Features::NONE, Some(go), "the Go form"),
            (Features::ALL.without(Feature::EndpointDetails), Some(undetailed), "addresses"),
            (Features::ALL.without(Feature::DrainingEndpoints), Some(ready_only), "ready ones"),
            (Features::ALL.without(Feature::IPv6), Some(full.clone()), "IPv4 is for everybody"),
        ];
        for (peer, reduced, why) in table {
            assert_eq!(slice_for(peer, &full).map(Cow::into_owned), reduced, "{why}");
            assert!(reduced.is_some_and(|reduced| is_form_of(&reduced, &full)), "{why}");
        }
        let changed = SliceContent { draining: Vec::new(), endpoints: vec![endpoint("c")], ..full.clone() };
        assert!(!is_form_of(&changed, &full) && !is_form_of(&full, &changed));
        let six = content(AddressType::IPv6);
        assert_eq!(slice_for(Features::ALL.without(Feature::IPv6), &six), None);
        assert!(matches!(slice_for(Features::ALL, &six), Some(Cow::Borrowed(_))), "and costs no copy");
        assert!(is_form_of(&six, &six) && !is_form_of(&full, &six));
        let go = Features::NONE;
        for part in [
            Endpoint { zone: None, ..endpoint("a") },
            Endpoint { hostname: None, ..endpoint("a") },
            Endpoint { addresses: vec!["a".into()], ..Endpoint::default() },
        ] {
            let is_plain = part.hostname.is_none() && part.zone.is_none();
            let source = SliceContent { endpoints: vec![part], draining: Vec::new(), ..full.clone() };
            let reduced = slice_for(go, &source).expect("IPv4 is for everybody");
            assert!(reduced.endpoints.iter().all(|it| it.hostname.is_none() && it.zone.is_none()));
            assert_eq!(matches!(reduced, Cow::Borrowed(_)), is_plain, "without any feature, it costs no copy");
        }
        let names = content(AddressType::Other("FQDN".into()));
        assert_eq!(slice_for(Features::ALL, &names), None, "no cluster can import it");
    }
}
