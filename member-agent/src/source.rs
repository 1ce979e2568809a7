//! Watches of the member agent: the kinds of the fleet half (exports and imports), and the kinds of the EndpointSlice controller.
//! Only the controller watches pods, Nodes and the Lease of kube-controller-manager.
//!
//! The fleet half and the controller share one watch of Services and one watch of EndpointSlices. Each event is decoded for both.
//! An EndpointSlice is decoded for the controller only if its JSON contains the controller's name, so other slices cost nothing.

use crate::endpoints::takeover::{LEASE_NAME, LEASE_NAMESPACE, LeaseSeen, Mode};
use crate::endpoints::{self, Input, Settings};
use crate::logic::Member;
use crate::{export, import};
use endpointslice::model::Metadata;
use fleetnet_agent::convert;
use fleetnet_core::model::{self as fleet, Kind};
use fleetnet_runtime::client::Cluster;
use fleetnet_runtime::{Decoder, Observed, Resource, SourceSpec, Undecodable};
use fleetnet_types::{ObjectName, Timestamp, Uid};
use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Kind that the agent watches. Each kind is watched in one cluster only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Kind that the fleet half (exports and imports) reads. Services and EndpointSlices are also for the EndpointSlice
    /// controller.
    Fleet(Kind),
    /// Pods of this cluster, in all namespaces.
    Pod,
    /// Nodes of this cluster.
    Node,
    /// Lease of this cluster's kube-controller-manager. A renewed Lease shows that kube-controller-manager is active.
    KubeControllerManagerLease,
}

impl From<Kind> for Source {
    fn from(kind: Kind) -> Self {
        Self::Fleet(kind)
    }
}

impl Source {
    /// Returns the input of the EndpointSlice controller that this source provides, if any.
    pub(crate) const fn input(self) -> Option<Input> {
        match self {
            Self::Fleet(Kind::Service) => Some(Input::Service),
            Self::Fleet(Kind::EndpointSlice) => Some(Input::EndpointSlice),
            Self::Pod => Some(Input::Pod),
            Self::Node => Some(Input::Node),
            Self::Fleet(_) | Self::KubeControllerManagerLease => None,
        }
    }
}

/// Decoded object. The variant shows which parts of the agent read the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// Object that only the fleet half reads.
    Fleet(fleet::Object),
    /// Service, or EndpointSlice with the controller's name: decoded for the fleet half and for the controller.
    Both(fleet::Object, Box<endpoints::Object>),
    /// Object that only the EndpointSlice controller reads.
    Endpoints(Box<endpoints::Object>),
    /// Lease of kube-controller-manager.
    Lease(LeaseSeen),
}

impl From<fleet::Object> for Object {
    fn from(object: fleet::Object) -> Self {
        Self::Fleet(object)
    }
}

impl Object {
    fn endpoints(object: endpoints::Object) -> Self {
        Self::Endpoints(Box::new(object))
    }
}

/// Returns the watches of the member agent: kinds in its own cluster, and also kinds in its member namespace of the hub if the
/// agent belongs to a fleet. `endpoints` adds the watches of the EndpointSlice controller; `None` if the controller is off.
pub fn sources(
    member: &Arc<Cluster>,
    hub: Option<(&str, &Arc<Cluster>)>,
    endpoints: Option<&Settings>,
) -> Vec<SourceSpec<Member>> {
    let mut kinds = vec![Kind::Service, Kind::EndpointSlice];
    if hub.is_some() {
        kinds = export::LOCAL.into_iter().chain(import::LOCAL).collect();
    }
    let mut sources: Vec<_> = kinds.into_iter().map(|kind| convert::source(kind, member, None)).collect();
    if let Some((namespace, hub)) = hub {
        let remote = export::REMOTE.into_iter().chain(import::REMOTE);
        sources.extend(remote.map(|kind| convert::source(kind, hub, Some(namespace))));
        // Optional, because a hub of Go agents lacks the CRD of MemberAgent. This agent then announces no features and writes the
        // Go form.
        sources.push(SourceSpec { optional: true, ..convert::source(Kind::MemberAgent, hub, Some(namespace)) });
        // Optional: the UID of the namespace `kube-system` distinguishes this cluster from another cluster with the same cluster
        // id. Without the right to read the namespace, the agent does not make this check.
        let kube_system = convert::source(Kind::Namespace, member, None);
        sources.push(SourceSpec { optional: true, name: Some("kube-system"), ..kube_system });
    }
    if let Some(settings) = endpoints {
        sources.iter_mut().for_each(|spec| decode_for_both(spec, settings));
        sources.extend(of_endpoints(member, settings));
    }
    sources
}

fn of_endpoints(member: &Arc<Cluster>, settings: &Settings) -> [SourceSpec<Member>; 3] {
    let core = |kind, plural| Resource { group: "", version: "v1", kind, plural };
    let spec = |source, resource, decode| SourceSpec {
        source,
        cluster: Arc::clone(member),
        resource,
        namespace: None,
        name: None,
        // Optional in mode `auto`. In mode `on` the user requires the controller, so the agent is not ready without this
        // permission.
        optional: settings.mode == Mode::Auto,
        // Without the permission the controller stops. Otherwise it would publish outdated endpoints, or write while it cannot
        // observe another controller.
        freezes_when_forbidden: true,
        metadata_only: false,
        decode,
    };
    let lease = Resource { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };
    [
        spec(Source::Pod, core("Pod", "pods"), decoder(|pod| Object::endpoints(endpoints::Object::Pod(pod)))),
        spec(Source::Node, core("Node", "nodes"), decoder(|node| Object::endpoints(endpoints::Object::Node(node)))),
        SourceSpec {
            namespace: Some(LEASE_NAMESPACE.to_owned()),
            name: Some(LEASE_NAME),
            optional: true,
            ..spec(Source::KubeControllerManagerLease, lease, decoder(|lease| Object::Lease(seen(&lease))))
        },
    ]
}

/// Adds the EndpointSlice controller's decoder to the watches of Services and EndpointSlices.
fn decode_for_both(spec: &mut SourceSpec<Member>, settings: &Settings) {
    match spec.source {
        Source::Fleet(Kind::Service) => {
            spec.decode = both(Kind::Service, |_| true, endpoints::Object::Service);
        }
        Source::Fleet(Kind::EndpointSlice) => {
            let manager = Finder::new(settings.config.controller_name().as_bytes()).into_owned();
            let bears_its_name = move |json: &[u8]| manager.find(json).is_some();
            spec.decode = both(Kind::EndpointSlice, bears_its_name, endpoints::Object::EndpointSlice);
        }
        _ => {}
    }
}

fn both<T: DeserializeOwned + 'static>(
    kind: Kind,
    is_wanted: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    of: fn(T) -> endpoints::Object,
) -> Decoder<Object> {
    Arc::new(move |json| {
        let observed = convert::observe(kind, json)?;
        if !is_wanted(json) {
            return Ok(observed.map(Object::Fleet));
        }
        match serde_json::from_slice(json) {
            Ok(object) => Ok(observed.map(|fleet| Object::Both(fleet, Box::new(of(object))))),
            Err(error) => Err(Undecodable {
                name: observed.name,
                uid: observed.uid,
                resource_version: observed.resource_version,
                why: error.to_string(),
            }),
        }
    })
}

/// Metadata of an object, decoded even if its other fields fail to decode.
#[derive(Default, Deserialize)]
struct WithMetadata {
    #[serde(default)]
    metadata: Metadata,
}

/// Returns the decoder of a kind that only the EndpointSlice controller reads.
fn decoder<T: DeserializeOwned + 'static>(of: fn(T) -> Object) -> Decoder<Object> {
    Arc::new(move |json| {
        let WithMetadata { metadata } = serde_json::from_slice(json).unwrap_or_default();
        let name = ObjectName::new(&*metadata.namespace, &*metadata.name);
        let uid = Uid::from(&*metadata.uid);
        let undecodable = |why: String| Undecodable { why, ..Undecodable::default() };
        let version = metadata.resource_version.parse();
        let resource_version = version.map_err(|_| undecodable("its resourceVersion is not a number".to_owned()))?;
        match serde_json::from_slice(json) {
            Ok(object) => Ok(Observed { name, uid, resource_version, object: of(object) }),
            Err(error) => Err(Undecodable { name, uid, resource_version, why: error.to_string() }),
        }
    })
}

#[derive(Deserialize)]
struct Lease {
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseSpec {
    renew_time: Option<jiff::Timestamp>,
    lease_duration_seconds: Option<u32>,
}

fn seen(lease: &Lease) -> LeaseSeen {
    LeaseSeen {
        renewed: lease.spec.renew_time.map(|time| Timestamp(time.as_microsecond())),
        duration: Duration::from_secs(lease.spec.lease_duration_seconds.unwrap_or_default().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use endpointslice::Config;
    use fleetnet_types::ObjectName;

    const OURS: &str = "endpointslice-controller.k8s.io";

    fn slice(managed_by: &str) -> String {
        format!(
            r#"{{"metadata":{{"namespace":"ns","name":"web-1","uid":"u","resourceVersion":"7",
                "labels":{{"kubernetes.io/service-name":"web","endpointslice.kubernetes.io/managed-by":"{managed_by}"}}}},
                "addressType":"IPv4","endpoints":[{{"addresses":["10.0.0.1"]}}],"ports":[]}}"#
        )
    }

    fn decode_slice(json: &str) -> Object {
        let manager = Finder::new(Config::default().controller_name().as_bytes()).into_owned();
        let decode =
            both(Kind::EndpointSlice, move |json| manager.find(json).is_some(), endpoints::Object::EndpointSlice);
        decode(json.as_bytes()).expect("readable").object
    }

    #[test]
    fn a_slice_with_the_controllers_name_is_read_for_both_and_others_for_the_fleet_only() {
        let Object::Both(fleet::Object::EndpointSlice(fleet), local) = decode_slice(&slice(OURS)) else {
            panic!("read for both");
        };
        let endpoints::Object::EndpointSlice(lean) = *local else { panic!("{local:?}") };
        assert_eq!(fleet.meta.name, ObjectName::new("ns", "web-1"));
        assert_eq!((&*lean.metadata.name, lean.endpoints.len()), ("web-1", 1));
        assert!(matches!(decode_slice(&slice("somebody-else")), Object::Fleet(_)));
    }

    #[test]
    fn what_only_the_controller_reads_has_its_metadata_even_where_it_is_nonsense() {
        let decode = decoder(|pod| Object::endpoints(endpoints::Object::Pod(pod)));
        let json =
            r#"{"metadata":{"namespace":"ns","name":"web-0","uid":"u","resourceVersion":"7"},"spec":"nonsense"}"#;
        let undecodable = decode(json.as_bytes()).expect_err("nonsense");
        assert_eq!((undecodable.name, undecodable.resource_version), (ObjectName::new("ns", "web-0"), 7));
        let observed = decode(json.replace(r#""nonsense""#, "{}").as_bytes()).expect("readable");
        assert_eq!(
            (observed.name, &*observed.uid, observed.resource_version),
            (ObjectName::new("ns", "web-0"), "u", 7)
        );
    }

    #[test]
    fn a_lease_has_the_time_of_its_renewal_and_its_duration() {
        let decode = decoder(|lease| Object::Lease(seen(&lease)));
        let json = r#"{"metadata":{"namespace":"kube-system","name":"kube-controller-manager","uid":"u","resourceVersion":"7"},
            "spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2027-01-15T08:00:00.000001Z"}}"#;
        let observed = decode(json.as_bytes()).expect("readable");
        let renewed = Some(Timestamp(1_800_000_000_000_001));
        assert_eq!(observed.object, Object::Lease(LeaseSeen { renewed, duration: Duration::from_secs(15) }));
        let empty = json.replace(r#""leaseDurationSeconds":15,"renewTime":"2027-01-15T08:00:00.000001Z""#, r#""x":1"#);
        assert_eq!(decode(empty.as_bytes()).expect("readable").object, Object::Lease(LeaseSeen::default()));
    }
}
