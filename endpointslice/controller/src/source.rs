//! Watches of the EndpointSlice controller. While the controller is inactive, it watches only what the decision to
//! become active needs: slices, and the Lease of kube-controller-manager.
//!
//! An EndpointSlice is decoded in full only if its JSON contains the controller's name, so other slices cost little.

use super::settings::Settings;
use super::takeover::{LeaseSeen, Mode};
use super::view::{Input, Object};
use endpointslice::model::{EndpointSlice, Metadata};
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::limits::ERROR_MESSAGE_BYTES;
use fleetnet_runtime::{Decoder, Logic, Observed, Resource, ResponseSink, SourceSpec, Undecodable};
use fleetnet_types::{ObjectName, Timestamp, Uid};
use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Namespace and name of the Lease of kube-controller-manager.
const LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");

/// Kind that the EndpointSlice controller watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Input of the controller's plans.
    Input(Input),
    /// Lease of this cluster's kube-controller-manager. A renewed Lease shows that kube-controller-manager is active.
    KubeControllerManagerLease,
}

/// Decoded object of a watch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Watched {
    /// Object of an input of the controller.
    Input(Box<Object>),
    /// Lease of kube-controller-manager.
    Lease(LeaseSeen),
}

impl Watched {
    fn input(object: Object) -> Self {
        Self::Input(Box::new(object))
    }
}

/// Returns the kinds that an active or inactive controller watches.
fn watched(mode: Mode, serves: bool) -> Vec<Source> {
    let inputs = if serves { &Input::ALL[..] } else { &[Input::EndpointSlice] };
    let lease = (mode == Mode::Auto).then_some(Source::KubeControllerManagerLease);
    inputs.iter().copied().map(Source::Input).chain(lease).collect()
}

/// Returns the watches of an active or inactive controller. `response_sink` belongs to the agent that exports the
/// slices.
pub(super) fn sources<L>(
    cluster: &Arc<Cluster>,
    settings: &Settings,
    serves: bool,
    response_sink: Option<&ResponseSink>,
) -> Vec<SourceSpec<L>>
where
    L: Logic<Source = Source, Object = Watched>,
{
    let of = |source| match source {
        Source::Input(input) => input_source(input, serves, cluster, settings, response_sink),
        Source::KubeControllerManagerLease => lease_source(cluster),
    };
    watched(settings.mode, serves).into_iter().map(of).collect()
}

fn input_source<L>(
    input: Input,
    serves: bool,
    cluster: &Arc<Cluster>,
    settings: &Settings,
    response_sink: Option<&ResponseSink>,
) -> SourceSpec<L>
where
    L: Logic<Source = Source, Object = Watched>,
{
    let core = |kind, plural| Resource { group: "", version: "v1", kind, plural };
    let resource = match input {
        Input::Service => core("Service", "services"),
        Input::Pod => core("Pod", "pods"),
        Input::Node => core("Node", "nodes"),
        Input::EndpointSlice => {
            let group = "discovery.k8s.io";
            Resource { group, version: "v1", kind: "EndpointSlice", plural: "endpointslices" }
        }
    };
    let source = Source::Input(input);
    let (metadata_only, decode) = match input {
        // While another controller makes the slices, their generations show its writes.
        Input::EndpointSlice if !serves => (true, metadata_decoder()),
        _ => (false, decoder_of(source, settings.config.controller_name())),
    };
    // Only the controller needs pods and Nodes. The agent reads Services and slices for other parts too, and cannot
    // work without them.
    let is_own = matches!(input, Input::Pod | Input::Node);
    SourceSpec {
        // In mode `on` the user requires the controller, so the agent is not ready without this permission.
        optional: is_own && settings.mode == Mode::Auto,
        // Without the permission the controller stops. Otherwise it would publish outdated endpoints.
        freezes_when_forbidden: is_own,
        response_sink: response_sink.filter(|_| input == Input::EndpointSlice).cloned(),
        metadata_only,
        ..SourceSpec::new(source, Arc::clone(cluster), resource, decode)
    }
}

fn lease_source<L>(cluster: &Arc<Cluster>) -> SourceSpec<L>
where
    L: Logic<Source = Source, Object = Watched>,
{
    let source = Source::KubeControllerManagerLease;
    let resource = Resource { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };
    SourceSpec {
        namespace: Some(LEASE.0.to_owned()),
        name: Some(LEASE.1),
        optional: true,
        // Without the permission the controller stops. Otherwise it would write while it cannot observe another
        // controller.
        freezes_when_forbidden: true,
        ..SourceSpec::new(source, Arc::clone(cluster), resource, decoder_of(source, ""))
    }
}

/// Returns the decoder of a kind. `controller` is the name of the controller in the label of its slices.
pub(crate) fn decoder_of(source: Source, controller: &str) -> Decoder<Watched> {
    match source {
        Source::Input(Input::Service) => decoder(|service| Watched::input(Object::Service(service))),
        Source::Input(Input::Pod) => decoder(|pod| Watched::input(Object::Pod(pod))),
        Source::Input(Input::Node) => decoder(|node| Watched::input(Object::Node(node))),
        Source::Input(Input::EndpointSlice) => slice_decoder(controller),
        Source::KubeControllerManagerLease => decoder(|lease| Watched::Lease(seen(&lease))),
    }
}

/// Metadata of an object, decoded even if its other fields fail to decode.
#[derive(Default, Deserialize)]
struct WithMetadata {
    #[serde(default)]
    metadata: Metadata,
}

/// Returns the decoder of a kind whose objects are decoded in full.
fn decoder<T: DeserializeOwned + 'static>(of: fn(T) -> Watched) -> Decoder<Watched> {
    Arc::new(move |json| {
        let object = serde_json::from_slice(json).map(of).map_err(|error| reason(&error));
        observed(json, |_| object)
    })
}

/// Returns the decoder of slices. Of a slice that does not contain the controller's name, it decodes only the metadata.
/// The controller needs only the name of such a slice, so that no new slice gets the same name.
fn slice_decoder(controller: &str) -> Decoder<Watched> {
    let controller = Finder::new(controller.as_bytes()).into_owned();
    Arc::new(move |json| {
        observed(json, |metadata| {
            let Metadata { namespace, name, .. } = metadata;
            let slice = if controller.find(json).is_some() {
                serde_json::from_slice(json).map_err(|error| reason(&error))?
            } else {
                let metadata = Metadata { namespace: namespace.clone(), name: name.clone(), ..Metadata::default() };
                EndpointSlice { metadata, ..EndpointSlice::default() }
            };
            Ok(Watched::input(Object::EndpointSlice(slice)))
        })
    })
}

/// Returns the decoder of slices of which the server sends only the metadata.
fn metadata_decoder() -> Decoder<Watched> {
    Arc::new(|json| {
        observed(json, |metadata| {
            let slice = EndpointSlice { metadata: metadata.clone(), ..EndpointSlice::default() };
            Ok(Watched::input(Object::EndpointSlice(slice)))
        })
    })
}

fn observed(
    json: &[u8],
    decode: impl FnOnce(&Metadata) -> Result<Watched, String>,
) -> Result<Observed<Watched>, Undecodable> {
    let WithMetadata { metadata } = serde_json::from_slice(json).unwrap_or_default();
    let name = ObjectName::new(&*metadata.namespace, &*metadata.name);
    let uid = Uid::from(&*metadata.uid);
    let undecodable = |why: String| Undecodable { why, ..Undecodable::default() };
    let version = metadata.resource_version.parse();
    let resource_version = version.map_err(|_| undecodable("its resourceVersion is not a number".to_owned()))?;
    match decode(&metadata) {
        Ok(object) => Ok(Observed { name, uid, resource_version, object }),
        Err(why) => Err(Undecodable { name, uid, resource_version, why }),
    }
}

/// Returns the reason why an object is undecodable. It can repeat a value of the object, so it is cut to the limit of
/// messages.
fn reason(error: &serde_json::Error) -> String {
    let mut reason = error.to_string();
    if reason.len() > ERROR_MESSAGE_BYTES {
        reason.truncate(reason.floor_char_boundary(ERROR_MESSAGE_BYTES));
        reason.push('…');
    }
    reason
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
    use memkube::{MemKube, Options, User};

    fn slice(managed_by: &str) -> String {
        format!(
            r#"{{"metadata":{{"namespace":"ns","name":"web-1","uid":"u","resourceVersion":"7",
                "labels":{{"kubernetes.io/service-name":"web","endpointslice.kubernetes.io/managed-by":"{managed_by}"}}}},
                "addressType":"IPv4","endpoints":[{{"addresses":["10.0.0.1"]}}],"ports":[]}}"#
        )
    }

    #[test]
    fn a_slice_with_the_controllers_name_is_decoded_and_of_others_only_the_name() {
        for (manager, expected) in [("endpointslice-controller.k8s.io", 1), ("somebody-else", 0)] {
            let decode = slice_decoder(Config::default().controller_name());
            let observed = decode(slice(manager).as_bytes()).expect("readable");
            assert_eq!((&observed.name, observed.resource_version), (&ObjectName::new("ns", "web-1"), 7));
            let Watched::Input(object) = observed.object else { panic!("a slice") };
            let Object::EndpointSlice(slice) = *object else { panic!("a slice") };
            assert_eq!((&*slice.metadata.name, slice.endpoints.len()), ("web-1", expected), "{manager}");
        }
    }

    /// Also rule Y5.
    #[test]
    fn of_a_slice_without_content_the_generation_and_the_labels_are_decoded() {
        let json = r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"namespace":"ns","name":"web-1",
            "uid":"u","resourceVersion":"7","generation":3,"labels":{"kubernetes.io/service-name":"web"}}}"#;
        let observed = metadata_decoder()(json.as_bytes()).expect("readable");
        assert_eq!((&observed.name, observed.resource_version), (&ObjectName::new("ns", "web-1"), 7));
        let Watched::Input(object) = observed.object else { panic!("a slice") };
        let Object::EndpointSlice(slice) = *object else { panic!("a slice") };
        assert_eq!((slice.metadata.generation, slice.metadata.labels.len(), slice.endpoints.len()), (3, 1, 0));
    }

    /// Also rule Y5.
    #[tokio::test]
    async fn an_inactive_controller_watches_the_metadata_of_slices_and_an_active_one_their_content() {
        let server = MemKube::new(Options::new(Arc::new(|| jiff::Timestamp::UNIX_EPOCH), 1));
        let client = server.client(User::new("agent"));
        let cluster = Arc::new(Cluster::from_clients("member", client.clone(), client));
        for serves in [false, true] {
            let sources = sources::<crate::serving::Serving>(&cluster, &Settings::with_mode(Mode::Auto), serves, None);
            let only: Vec<&str> = sources.iter().filter(|it| it.metadata_only).map(|it| it.label).collect();
            assert_eq!(only, if serves { &[][..] } else { &["EndpointSlice"][..] }, "active: {serves}");
        }
    }

    #[test]
    fn the_reason_does_not_repeat_a_long_value() {
        let decode = decoder(|pod| Watched::input(Object::Pod(pod)));
        let long = "é".repeat(5_000);
        let json = format!(r#"{{"metadata":{{"name":"web-0","uid":"u","resourceVersion":"7"}},"spec":"{long}"}}"#);
        let why = decode(json.as_bytes()).expect_err("a text is no spec").why;
        assert!(why.len() < 2100 && why.ends_with('…'), "{} bytes", why.len());
    }

    #[test]
    fn an_object_that_is_nonsense_is_undecodable_with_its_name() {
        let decode = decoder(|pod| Watched::input(Object::Pod(pod)));
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

    /// Also rule Y5.
    #[test]
    fn pods_and_nodes_are_watched_only_while_the_controller_is_active() {
        let inputs = [Input::Service, Input::Pod, Input::Node, Input::EndpointSlice].map(Source::Input);
        let (slices, lease) = (Source::Input(Input::EndpointSlice), Source::KubeControllerManagerLease);
        assert_eq!(watched(Mode::Auto, false), [slices, lease]);
        assert_eq!(watched(Mode::Auto, true)[..], [&inputs[..], &[lease]].concat());
        assert_eq!(watched(Mode::On, false), [slices]);
        assert_eq!(watched(Mode::On, true), inputs);
    }

    #[test]
    fn a_lease_has_the_time_of_its_renewal_and_its_duration() {
        let decode = decoder(|lease| Watched::Lease(seen(&lease)));
        let json = r#"{"metadata":{"namespace":"kube-system","name":"kube-controller-manager","uid":"u","resourceVersion":"7"},
            "spec":{"holderIdentity":"a","leaseDurationSeconds":15,"renewTime":"2027-01-15T08:00:00.000001Z"}}"#;
        let observed = decode(json.as_bytes()).expect("readable");
        let renewed = Some(Timestamp(1_800_000_000_000_001));
        assert_eq!(observed.object, Watched::Lease(LeaseSeen { renewed, duration: Duration::from_secs(15) }));
        let empty = json.replace(r#""leaseDurationSeconds":15,"renewTime":"2027-01-15T08:00:00.000001Z""#, r#""x":1"#);
        assert_eq!(decode(empty.as_bytes()).expect("readable").object, Watched::Lease(LeaseSeen::default()));
    }
}
