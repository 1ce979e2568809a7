//! Open streams as the engine of the hub agent sees them. A member has one stream: a new one ends the old one, whose
//! later messages are dropped.

use super::message::{FromStream, Outbox, Shown, StreamEvent};
use fleetnet_agent::mailbox::Closed;
use fleetnet_core::hub::{Key, Planner};
use fleetnet_core::plan::Preview;
use fleetnet_types::{MemberNamespace, ObjectName, Timestamp, Traceparent};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Open streams, by the member namespace of the importer.
#[derive(Debug)]
pub(crate) struct Streams {
    open: BTreeMap<MemberNamespace, Arc<Outbox>>,
    leads: watch::Sender<bool>,
}

impl Default for Streams {
    fn default() -> Self {
        Self { open: BTreeMap::new(), leads: watch::Sender::new(false) }
    }
}

impl Streams {
    /// Returns a channel that is true while this replica leads.
    pub(crate) fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Accepts streams from now on, because this replica leads.
    pub(crate) fn accept(&self) {
        self.leads.send_replace(true);
    }

    /// Ends all streams, because the process stops or does not lead any more. The objects of their previews are due.
    pub(crate) fn stop(&mut self, view: &mut Planner, at: Timestamp, requeue: &mut Vec<Key>) {
        self.leads.send_replace(false);
        for (importer, outbox) in std::mem::take(&mut self.open) {
            outbox.close(Closed::Stopping);
            view.stream_ended(&importer, at, requeue);
        }
    }

    /// Handles a message of a stream.
    pub(crate) fn receive(&mut self, message: FromStream, view: &mut Planner, at: Timestamp, requeue: &mut Vec<Key>) {
        let FromStream { importer, outbox, event } = message;
        let is_open = self.open.get(&importer).is_some_and(|open| Arc::ptr_eq(open, &outbox));
        match event {
            StreamEvent::Began if !*self.leads.borrow() => outbox.close(Closed::Stopping),
            StreamEvent::Began => {
                if let Some(old) = self.open.insert(importer.clone(), outbox) {
                    old.close(Closed::Superseded);
                    view.stream_ended(&importer, at, requeue);
                }
                view.stream_began(&importer, at, requeue);
            }
            _ if !is_open => {}
            StreamEvent::Acknowledged { slice, generation } => {
                let at_object = ObjectName::new(importer, slice);
                view.acknowledged(&at_object, generation, at, requeue);
            }
            StreamEvent::Ended(silent) => {
                self.open.remove(&importer);
                view.stream_ended(&importer, at.plus_micros(-micros(silent)), requeue);
            }
        }
    }

    /// Puts the message of a plan into the stream of its importer. Returns true if it is a preview that will be sent.
    pub(crate) fn send(&self, key: &Key, preview: Preview, traceparent: Option<Traceparent>) -> bool {
        let Key::DistributedSlice { slice, importer } = key else { return false };
        let Some(outbox) = self.open.get(importer) else { return false };
        match preview {
            Preview::Show(spec) => outbox.put(slice, Shown { spec, traceparent }),
            Preview::EndStream => {
                outbox.close(Closed::Outdated);
                false
            }
        }
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_core::model::{AddressType, HubSliceSpec, Reference, SliceContent};
    use futures::FutureExt as _;

    fn message(outbox: &Arc<Outbox>, event: StreamEvent) -> FromStream {
        FromStream { importer: "fleet-member-a".into(), outbox: Arc::clone(outbox), event }
    }

    fn show() -> Preview {
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
        Preview::Show(HubSliceSpec { reference, owner: ObjectName::new("work", "app"), content })
    }

    fn key(slice: &str) -> Key {
        Key::DistributedSlice { slice: slice.into(), importer: "fleet-member-a".into() }
    }

    /// Rule J11: A member opens a second stream
    /// Then: The new stream ends the old one (ABORTED). Later messages of the old stream do not count
    #[tokio::test]
    async fn a_new_stream_ends_the_old_one_and_late_messages_of_it_are_dropped() {
        let (mut streams, mut view) = (Streams::default(), Planner::default());
        streams.accept();
        let outboxes = [(); 2].map(|()| Arc::new(Outbox::default()));
        let mut receive = |streams: &mut Streams, outbox, event| {
            streams.receive(message(outbox, event), &mut view, Timestamp::EPOCH, &mut Vec::new());
            view.clone()
        };
        let one = receive(&mut streams, &outboxes[0], StreamEvent::Began);
        streams.send(&key("app-1"), show(), None);
        streams.send(&Key::Slice("app-1".into()), show(), None);
        assert_eq!(outboxes[0].len(), 1);
        assert_eq!(receive(&mut streams, &outboxes[1], StreamEvent::Began), one, "a stream is open");
        assert_eq!(outboxes[0].closed().now_or_never(), Some(Closed::Superseded));
        assert_eq!(
            receive(&mut streams, &outboxes[0], StreamEvent::Ended(Duration::ZERO)),
            one,
            "another stream has ended"
        );
        streams.send(&key("app-1"), show(), None);
        assert_eq!(outboxes[1].take().map(|(slice, ..)| slice), Some("app-1".into()));
        let ended = receive(&mut streams, &outboxes[1], StreamEvent::Ended(Duration::ZERO));
        assert_eq!(ended, Planner::default());
        streams.send(&key("app-1"), show(), None);
        assert!(outboxes[1].is_empty());
    }

    /// Also rule J6.
    #[tokio::test]
    async fn a_preview_that_is_not_valid_any_more_ends_the_stream() {
        let (mut streams, outbox) = (Streams::default(), Arc::new(Outbox::default()));
        streams.accept();
        streams.receive(
            message(&outbox, StreamEvent::Began),
            &mut Planner::default(),
            Timestamp::EPOCH,
            &mut Vec::new(),
        );
        streams.send(&key("app-1"), Preview::EndStream, None);
        assert_eq!(outbox.closed().now_or_never(), Some(Closed::Outdated));
    }

    #[tokio::test]
    async fn a_stop_ends_all_streams_and_refuses_new_ones() {
        let mut streams = Streams::default();
        let (leads, outbox) = (streams.leads(), Arc::new(Outbox::default()));
        assert!(!*leads.borrow());
        streams.accept();
        assert!(*leads.borrow());
        streams.receive(
            message(&outbox, StreamEvent::Began),
            &mut Planner::default(),
            Timestamp::EPOCH,
            &mut Vec::new(),
        );
        streams.stop(&mut Planner::default(), Timestamp::EPOCH, &mut Vec::new());
        assert_eq!(outbox.closed().now_or_never(), Some(Closed::Stopping));
        assert!(!*leads.borrow());
    }

    #[tokio::test]
    async fn a_stream_that_begins_too_late_is_closed() {
        let (mut streams, outbox) = (Streams::default(), Arc::new(Outbox::default()));
        streams.receive(
            message(&outbox, StreamEvent::Began),
            &mut Planner::default(),
            Timestamp::EPOCH,
            &mut Vec::new(),
        );
        assert_eq!(outbox.closed().now_or_never(), Some(Closed::Stopping));
        assert!(streams.open.is_empty());
    }
}
