//! The slice stream as the engine of the member agent sees it.

use super::connection::{Dialer, Use};
use super::message::{Acknowledgements, FromStream, Message, StreamEvent};
use crate::limits::STREAM_REPORT_BYTES;
use fleetnet_agent::traces::Traces;
use fleetnet_core::clocks::Clock;
use fleetnet_core::member::{Key, Planner, SliceStreamServer, StreamEnd};
use fleetnet_core::model::SliceStreamReport;
use fleetnet_runtime::io::events::shortened;
use fleetnet_types::{ClusterId, Text, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Stream of a member.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Value of the flags of the stream.
    chosen: Use,
    /// Server to connect to; `None` for no stream.
    server: Option<SliceStreamServer>,
    dialer: watch::Sender<Option<Dialer>>,
    open: Open,
}

/// Open stream, and the clocks that it has shown.
#[derive(Debug, Default)]
struct Open {
    stream: Option<Arc<Acknowledgements>>,
    /// Clocks of the exporting members, compared with that of this member.
    exporters: BTreeMap<ClusterId, Clock>,
}

impl Stream {
    pub(crate) fn new(chosen: Use) -> Self {
        Self { chosen, ..Self::default() }
    }

    /// Returns a channel with the dialer of the server; `None` while there shall be no stream.
    pub(crate) fn dialer(&self) -> watch::Receiver<Option<Dialer>> {
        self.dialer.subscribe()
    }

    /// Connects to another server, if the offer of the hub agent has changed.
    pub(crate) fn choose(&mut self, view: &mut Planner, now: Timestamp) {
        let server = view.slice_stream_to_open(now);
        if server == self.server {
            return;
        }
        let dialer = match (&server, &self.chosen) {
            (Some(SliceStreamServer::Fixed), Use::Fixed(dialer)) => Ok(Some(dialer.clone())),
            (Some(SliceStreamServer::Offered(offer)), Use::Offered(dialers)) => dialers.dialer(offer).map(Some),
            (_, _) => Ok(None),
        };
        let malformed = dialer.as_ref().err().map(|why| {
            tracing::warn!(side = "hub", %why, "the hub agent offers a slice stream at an address that is not used");
            report("MalformedOffer", &format!("the address that the hub agent offers is not used: {why}"))
        });
        view.slice_stream.report = malformed;
        self.server = server;
        self.dialer.send_replace(dialer.unwrap_or_default());
    }

    /// Handles a message of the client of the stream. Messages of an earlier stream are dropped.
    pub(crate) fn receive(
        &mut self,
        message: Message,
        (view, traces): (&mut Planner, &mut Traces),
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) {
        match message {
            Message::FromStream(message) => self.receive_news(message, (view, traces), at, requeue),
            Message::NotConnected { reason, message } if self.server.is_some() => {
                view.slice_stream.report = Some(report(reason, &message));
            }
            Message::NotConnected { .. } => {}
        }
    }

    fn receive_news(
        &mut self,
        message: FromStream,
        (view, traces): (&mut Planner, &mut Traces),
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) {
        let FromStream { stream, event } = message;
        let is_open = self.open.stream.as_ref().is_some_and(|open| Arc::ptr_eq(open, &stream));
        match event {
            StreamEvent::Began => {
                self.end(StreamEnd::Other, (view, traces), at, requeue);
                self.open.stream = Some(stream);
                view.stream_began(at, requeue);
                let (reason, message) = ("Connected".into(), Text::default());
                view.slice_stream.report = Some(SliceStreamReport { connected: true, reason, message });
            }
            _ if !is_open => {}
            StreamEvent::Preview { slice, spec, exporter, traceparent } => {
                let (object, generation) = (view.in_hub(slice.clone()), spec.reference.generation);
                let cluster = spec.reference.cluster.clone();
                match exporter {
                    Some(clock) => drop(self.open.exporters.insert(cluster, clock)),
                    // Its stream has ended, and its clock may have been set since.
                    None => drop(self.open.exporters.remove(&cluster)),
                }
                view.show_preview(&slice, spec, at, requeue);
                // The view does not store a preview that is older than the object, or of an unknown slice.
                let shown = view.distributed_slices.get(&object);
                if shown.is_some_and(|shown| shown.spec.reference.generation == generation) {
                    traces.preview(object, traceparent.map(|traceparent| *traceparent), generation, at);
                }
            }
            StreamEvent::Ended(end) => self.end(end, (view, traces), at, requeue),
        }
    }

    fn end(
        &mut self,
        end: StreamEnd,
        (view, traces): (&mut Planner, &mut Traces),
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) {
        self.open = Open::default();
        traces.drop_previews();
        view.stream_ended(end, at, requeue);
    }

    /// Moves the clock of this member, after it was set by this duration.
    pub(crate) fn clock_set(&mut self, micros: i64) {
        self.open.exporters.values_mut().for_each(|clock| *clock = clock.after_other_was_set(micros));
    }

    /// Sends to the hub agent that this member has imported a preview.
    pub(crate) fn acknowledge(&self, slice: &Text, generation: i64) {
        if let Some(open) = &self.open.stream {
            open.put(slice, generation);
        }
    }

    /// Returns a time of an exporter's clock on the clock of this member. `None` while the clocks are not known.
    pub(crate) fn corrected(&self, exporter: &ClusterId, time: Timestamp) -> Option<Timestamp> {
        Some(self.open.exporters.get(exporter)?.on_other(time))
    }
}

/// Returns the report of a stream that is not open. The API server rejects a renewal of the MemberAgent with a longer
/// message, and then the member would lose its id.
fn report(reason: &str, message: &str) -> SliceStreamReport {
    let message = shortened(message, STREAM_REPORT_BYTES).into();
    SliceStreamReport { connected: false, reason: reason.into(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Dialers;
    use fleetnet_core::member::{Settings, SliceStreamUse};
    use fleetnet_core::model::{
        AddressType, Announcement, Finalizers, HubSliceSpec, Kind, MemberAgent, MemberStatus, Meta, Object, Reference,
        SliceContent, SliceStreamOffer,
    };
    use fleetnet_types::{ObjectName, WatchState};

    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn planner() -> Planner {
        planner_with(None)
    }

    fn planner_with(announces: Option<Announcement>) -> Planner {
        Planner::new(Settings {
            cluster: "a".into(),
            hub_namespace: "fleet-member-a".into(),
            fleet_system_namespace: "fleet-system".into(),
            derived_service_grace_micros: 0,
            source_ranges: BTreeMap::new(),
            own_ranges: fleetnet_core::member::OwnRanges::default(),
            load_balancers_per_namespace: None,
            announces,
            leader: "a-1".into(),
            takeover_after_micros: 1_800_000_000,
            membership: fleetnet_core::member::Membership::default(),
            mcs_api: fleetnet_core::member::McsApi::Off,
            routing_slices: false,
            cluster_selection: None,
            limits: fleetnet_core::member::Limits::default(),
        })
    }

    /// Also rule J11.
    #[test]
    fn messages_of_an_earlier_stream_are_dropped() {
        let (mut stream, mut view) = (Stream::default(), planner());
        let streams = [(); 2].map(|()| Arc::new(Acknowledgements::default()));
        let mut receive = |stream: &mut Stream, of: &Arc<Acknowledgements>, event| {
            let message = Message::FromStream(FromStream { stream: Arc::clone(of), event });
            stream.receive(message, (&mut view, &mut Traces::default()), Timestamp::EPOCH, &mut Vec::new());
            stream.open.exporters.len()
        };
        assert_eq!(receive(&mut stream, &streams[0], preview(Some(1))), 0, "it has not begun");
        receive(&mut stream, &streams[0], StreamEvent::Began);
        assert_eq!(receive(&mut stream, &streams[0], preview(Some(1))), 1);
        assert_eq!(receive(&mut stream, &streams[1], StreamEvent::Began), 0, "the hub agent may be another one");
        assert_eq!(receive(&mut stream, &streams[0], preview(Some(1))), 0);
        receive(&mut stream, &streams[0], StreamEvent::Ended(StreamEnd::Other));
        stream.acknowledge(&"app-1".into(), 7);
        assert!(streams[0].is_empty());
        assert_eq!(streams[1].take().map(|(slice, generation, _)| (slice, generation)), Some(("app-1".into(), 7)));
        receive(&mut stream, &streams[1], StreamEvent::Ended(StreamEnd::Other));
        stream.acknowledge(&"app-1".into(), 8);
        assert!(streams[1].is_empty());
    }

    /// Returns a preview of a slice of member b, whose clock is ahead by this number of seconds.
    fn preview(clock: Option<i64>) -> StreamEvent {
        let reference = Reference {
            cluster: "b".into(),
            source: ObjectName::new("work", "app-1"),
            uid: "uid".into(),
            resource_version: "1".into(),
            generation: 1,
            exported_since: None,
        };
        let (address_type, endpoints, draining, ports) = (AddressType::IPv4, Vec::new(), Vec::new(), Vec::new());
        let content = SliceContent { address_type, endpoints, draining, ports }.into();
        let spec = HubSliceSpec { reference, owner: ObjectName::new("work", "app"), content };
        let exporter = clock.map(|seconds| Clock { offset_micros: seconds * 1_000_000, uncertainty_micros: 10 });
        StreamEvent::Preview { slice: "app-1".into(), spec, exporter, traceparent: None }
    }

    /// Also rule J13.
    #[test]
    fn a_time_of_an_exporter_is_corrected_by_the_clock_in_its_last_preview() {
        let (mut stream, mut view, open) = (Stream::default(), planner(), Arc::default());
        let mut receive = |stream: &mut Stream, event| {
            let message = Message::FromStream(FromStream { stream: Arc::clone(&open), event });
            stream.receive(message, (&mut view, &mut Traces::default()), Timestamp::EPOCH, &mut Vec::new());
        };
        let corrected = |stream: &Stream| stream.corrected(&"b".into(), Timestamp(10_000_000)).map(|at| at.0);
        receive(&mut stream, StreamEvent::Began);
        assert_eq!(corrected(&stream), None);
        receive(&mut stream, preview(Some(6)));
        assert_eq!(corrected(&stream), Some(4_000_000));
        stream.clock_set(60_000_000);
        assert_eq!(corrected(&stream), Some(64_000_000), "the clock of this member is a minute ahead now");
        receive(&mut stream, preview(Some(-1)));
        assert_eq!(corrected(&stream), Some(11_000_000));
        receive(&mut stream, preview(None));
        assert_eq!(corrected(&stream), None, "the stream of the exporter has ended");
    }

    fn meta(name: ObjectName, uid: &str) -> Meta {
        Meta {
            name,
            uid: uid.into(),
            resource_version: 1,
            generation: 1,
            created: Timestamp(0),
            deleting: false,
            finalizers: Finalizers::default(),
        }
    }

    /// Returns the view of a member that uses the stream which the hub agent offers at this address.
    fn offered(address: Option<&str>) -> Planner {
        let mut view = planner_with(Some(Announcement::default()));
        let agent = MemberAgent {
            meta: meta(ObjectName::new("fleet-member-a", "a"), "uid"),
            member: Announcement::default(),
            cluster_uid: Some("one".into()),
            leader: Some("a-2".into()),
            renewed: Some(NOW),
            stopped: None,
            properties: BTreeMap::new(),
            status: MemberStatus {
                slice_stream: address
                    .map(|address| SliceStreamOffer { address: address.into(), ca_bundle: "PEM".into() }),
                ..MemberStatus::default()
            },
        };
        let namespace = meta(ObjectName::new("", "kube-system"), "one");
        for object in [Object::SystemNamespace(namespace), Object::MemberAgent(agent)] {
            view.applied(object, NOW, &mut Vec::new());
        }
        for kind in [Kind::MemberAgent, Kind::SystemNamespace, Kind::EndpointSlice] {
            view.watch_state(kind, WatchState::Complete, NOW, &mut Vec::new());
        }
        view.slice_stream.chosen = SliceStreamUse::Offered;
        view
    }

    /// Also rule J18.
    #[test]
    fn a_changed_offer_is_used_once_and_a_malformed_one_is_reported() {
        let mut stream = Stream::new(Use::Offered(Dialers::default()));
        let mut dialer = stream.dialer();
        let mut choose = |stream: &mut Stream, offer| {
            let mut view = offered(offer);
            stream.choose(&mut view, NOW);
            let is_new = dialer.has_changed().expect("the stream lives");
            (
                dialer.borrow_and_update().as_ref().map(|dialer| dialer.address.clone()),
                is_new,
                view.slice_stream.report.clone(),
            )
        };
        assert_eq!(choose(&mut stream, Some("hub:1")), (Some("hub:1".to_owned()), true, None));
        assert_eq!(choose(&mut stream, Some("hub:1")), (Some("hub:1".to_owned()), false, None));
        assert_eq!(choose(&mut stream, Some("hub:2")), (Some("hub:2".to_owned()), true, None));
        let (none, is_new, report) = choose(&mut stream, Some("hub"));
        assert_eq!((none, is_new), (None, true));
        assert_eq!(report.map(|report| report.reason), Some("MalformedOffer".into()));
        assert_eq!(choose(&mut stream, None), (None, true, None));
    }

    /// Also rule J19.
    #[test]
    fn what_came_of_the_stream_is_reported() {
        let (mut view, mut stream) = (offered(Some("hub:1")), Stream::new(Use::Offered(Dialers::default())));
        let receive = |stream: &mut Stream, view: &mut Planner, message| {
            stream.receive(message, (view, &mut Traces::default()), NOW, &mut Vec::new());
            view.slice_stream.report.clone().map(|report| (report.connected, report.reason.to_string()))
        };
        let refused = || Message::NotConnected { reason: "Refused", message: "no".to_owned() };
        assert_eq!(receive(&mut stream, &mut view, refused()), None, "late: no stream is wanted");
        stream.choose(&mut view, NOW);
        assert_eq!(receive(&mut stream, &mut view, refused()), Some((false, "Refused".to_owned())));
        let began = FromStream { stream: Arc::default(), event: StreamEvent::Began };
        let began = Message::FromStream(began);
        assert_eq!(receive(&mut stream, &mut view, began), Some((true, "Connected".to_owned())));
        assert_eq!(receive(&mut stream, &mut view, refused()), Some((false, "Refused".to_owned())));
    }

    /// Also rule J19.
    #[test]
    fn a_report_is_never_longer_than_the_definition_of_memberagent_allows() {
        assert_eq!(&*report("Refused", "no").message, "no");
        let definition = fleetnet_api::crds::all(fleetnet_api::crds::Form::Full);
        let definition = definition.iter().find(|it| it.spec.names.kind == "MemberAgent").expect("a definition");
        let schema = serde_json::to_value(&definition.spec.versions[0].schema).expect("a schema");
        let spec = &schema["openAPIV3Schema"]["properties"]["spec"]["properties"];
        let longest = spec["sliceStream"]["properties"]["message"]["maxLength"].as_u64();
        let characters = report("Refused", &"x".repeat(10_000)).message.chars().count();
        assert!(longest.is_some_and(|longest| characters as u64 <= longest), "{characters} of {longest:?}");
    }
}
