//! Slice streams in a simulated fleet. Both ends lose a stream independently, and messages of an earlier stream do not
//! arrive.

use super::agent::Message;
use super::world::{Step, Who, World, settings};
use fleetnet_core::member::StreamEnd;
use fleetnet_core::plan::Preview;
use fleetnet_core::{hub, member};
use fleetnet_types::{ObjectName, Text, Timestamp};
use std::collections::VecDeque;

/// Slice stream of a member, as both ends see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// True while the member's end is open.
    is_member_open: bool,
    /// True while the hub agent's end is open.
    is_hub_open: bool,
    to_member: VecDeque<(Text, Message)>,
    to_hub: VecDeque<(Text, Message)>,
}

impl World {
    /// Begins a new stream of a member. It ends the old one.
    pub(crate) fn connect(&mut self, index: usize) {
        self.lose_stream(index, true);
        self.lose_stream(index, false);
        let mut requeue = Vec::new();
        self.hub_agent.view.stream_began(&settings(index).hub_namespace, self.now, &mut requeue);
        self.hub_agent.requeue.extend(requeue);
        let (agent, mut requeue) = (&mut self.members[index].agent, Vec::new());
        agent.view.slice_stream.chosen = member::SliceStreamUse::Fixed;
        agent.view.stream_began(self.now, &mut requeue);
        agent.requeue.extend(requeue);
        let stream = Stream { is_member_open: true, is_hub_open: true, ..Stream::default() };
        self.streams.insert(index, stream);
    }

    /// One end of a stream notices that the stream ended: that of the member, or that of the hub agent.
    pub(crate) fn lose_stream(&mut self, index: usize, at_member: bool) {
        self.end_stream(index, at_member, StreamEnd::Other);
    }

    /// Ends a stream at one end. The member sees this `end`.
    fn end_stream(&mut self, index: usize, at_member: bool, end: StreamEnd) {
        let Some(stream) = self.streams.get_mut(&index) else { return };
        let (now, is_open) = (self.now, if at_member { &mut stream.is_member_open } else { &mut stream.is_hub_open });
        if !std::mem::take(is_open) {
            return;
        }
        if at_member {
            let (agent, mut requeue) = (&mut self.members[index].agent, Vec::new());
            agent.view.stream_ended(end, now, &mut requeue);
            agent.requeue.extend(requeue);
        } else {
            let mut requeue = Vec::new();
            self.hub_agent.view.stream_ended(&settings(index).hub_namespace, self.now, &mut requeue);
            self.hub_agent.requeue.extend(requeue);
        }
    }

    /// The streams of an agent that restarts end. Its own end has no view to tell.
    pub(super) fn lose_streams(&mut self, who: Who) {
        for (index, stream) in &mut self.streams {
            match who {
                Who::Hub => stream.is_hub_open = false,
                Who::Member(member) if member == *index => stream.is_member_open = false,
                Who::Member(_) => {}
            }
        }
    }

    /// Ends all streams at both ends.
    pub(crate) fn lose_all_streams(&mut self) {
        for index in 0..self.members.len() {
            self.lose_stream(index, true);
            self.lose_stream(index, false);
        }
    }

    /// Moves the messages of the last plans into the streams. A message without a stream is lost.
    pub(super) fn send_messages(&mut self) {
        for (key, message) in std::mem::take(&mut self.hub_agent.messages) {
            let hub::Key::DistributedSlice { slice, importer } = key else { panic!("a message of {key:?}") };
            let stream = self.streams.iter_mut().find(|(index, _)| *settings(**index).hub_namespace == *importer);
            let Some((index, stream)) = stream.filter(|(_, stream)| stream.is_hub_open) else { continue };
            let (index, ends) = (*index, message == Message::Preview(Preview::EndStream));
            stream.to_member.push_back((slice, message));
            if ends {
                self.lose_stream(index, false);
            }
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            for (key, message) in std::mem::take(&mut member.agent.messages) {
                let member::Key::SliceImport(slice) = key else { panic!("a message of {key:?}") };
                if let Some(stream) = self.streams.get_mut(&index).filter(|stream| stream.is_member_open) {
                    stream.to_hub.push_back((slice.name, message));
                }
            }
        }
    }

    pub(super) fn message_steps(&self) -> Vec<Step> {
        let steps = self.streams.iter().flat_map(|(member, stream)| {
            let down = (!stream.to_member.is_empty()).then_some(Step::Message { member: *member, down: true });
            down.into_iter()
                .chain((!stream.to_hub.is_empty()).then_some(Step::Message { member: *member, down: false }))
        });
        steps.collect()
    }

    pub(super) fn deliver_message(&mut self, index: usize, down: bool) {
        let (now, stream) = (self.now, self.streams.get_mut(&index).expect("a stream"));
        let (queue, is_open) = match down {
            true => (&mut stream.to_member, stream.is_member_open),
            false => (&mut stream.to_hub, stream.is_hub_open),
        };
        let (slice, message) = queue.pop_front().expect("a message");
        if is_open {
            self.delivered_previews += usize::from(matches!(message, Message::Preview(Preview::Show(_))));
            self.receive(index, &slice, message, now);
        }
    }

    /// Gives a message to the agent that it is for.
    pub(crate) fn receive(&mut self, index: usize, slice: &Text, message: Message, now: Timestamp) {
        let (agent, mut requeue) = (&mut self.members[index].agent, Vec::new());
        match message {
            Message::Preview(Preview::Show(spec)) => agent.view.show_preview(slice, spec, now, &mut requeue),
            Message::Preview(Preview::EndStream) => return self.end_stream(index, true, StreamEnd::ByHub),
            Message::Acknowledged(generation) => {
                let at = ObjectName::new(settings(index).hub_namespace, slice.clone());
                let mut requeue = Vec::new();
                self.hub_agent.view.acknowledged(&at, generation, now, &mut requeue);
                self.hub_agent.requeue.extend(requeue);
            }
        }
        agent.requeue.extend(requeue);
    }
}
