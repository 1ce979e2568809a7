//! Mailbox: messages about slices that wait for the slice stream. A new message about a slice replaces the one that
//! waits, so a slow reader delays nobody and uses bounded memory.

use crate::limits::MAILBOX_SLICES;
use fleetnet_types::Text;
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// Messages that wait for one stream.
#[derive(Debug)]
pub struct Mailbox<M> {
    state: Mutex<State<M>>,
    changed: Notify,
    closed: watch::Sender<Option<Closed>>,
}

#[derive(Debug)]
struct State<M> {
    /// Slices with a waiting message, the longest waiting first.
    order: VecDeque<Text>,
    messages: HashMap<Text, (M, Instant)>,
}

/// Reason why the owner of a mailbox closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Another stream of the same member began.
    Superseded,
    /// The process stops.
    Stopping,
    /// A message that was sent is not valid any more.
    Outdated,
}

impl<M> Default for Mailbox<M> {
    fn default() -> Self {
        let state = State { order: VecDeque::new(), messages: HashMap::new() };
        Self { state: Mutex::new(state), changed: Notify::new(), closed: watch::Sender::new(None) }
    }
}

impl<M> Mailbox<M> {
    /// Adds a message about a slice. It replaces a message about the slice that waits, and keeps its place and its
    /// time. Returns false if the mailbox is full or closed.
    pub fn put(&self, slice: &Text, message: M) -> bool {
        let mut state = self.state.lock();
        let is_full = state.order.len() >= MAILBOX_SLICES && !state.messages.contains_key(slice);
        if is_full || self.closed.borrow().is_some() {
            return false;
        }
        match state.messages.entry(slice.clone()) {
            Entry::Occupied(mut waiting) => waiting.get_mut().0 = message,
            Entry::Vacant(place) => {
                place.insert((message, Instant::now()));
                state.order.push_back(slice.clone());
            }
        }
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Takes the message that has waited longest, with the time since which it waits.
    pub fn take(&self) -> Option<(Text, M, Instant)> {
        let mut state = self.state.lock();
        let slice = state.order.pop_front()?;
        let (message, since) = state.messages.remove(&slice)?;
        Some((slice, message, since))
    }

    /// Returns the number of messages that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.lock().order.len()
    }

    /// True if no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the mailbox. Its messages are dropped.
    pub fn close(&self, why: Closed) {
        let mut state = self.state.lock();
        self.closed.send_if_modified(|closed| closed.replace(closed.unwrap_or(why)).is_none());
        state.order.clear();
        state.messages.clear();
    }

    /// Waits until a message waits. One task at a time may wait.
    pub async fn ready(&self) {
        while self.is_empty() {
            self.changed.notified().await;
        }
    }

    /// Waits until the mailbox is closed.
    pub async fn closed(&self) -> Closed {
        let mut closed = self.closed.subscribe();
        let closed = closed.wait_for(Option::is_some).await.map(|closed| *closed);
        match closed {
            Ok(Some(why)) => why,
            // Never happens: the sender lives as long as the mailbox, and the value is set.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn taken(mailbox: &Mailbox<u32>) -> Vec<(String, u32)> {
        std::iter::from_fn(|| mailbox.take()).map(|(slice, message, _)| (slice.to_string(), message)).collect()
    }

    /// Also rule J12.
    #[tokio::test(start_paused = true)]
    async fn the_newest_message_about_a_slice_takes_the_place_of_an_older_one() {
        let mailbox = Mailbox::default();
        assert_eq!(mailbox.ready().now_or_never(), None, "nothing waits");
        let begun = Instant::now();
        mailbox.put(&"a".into(), 1);
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        mailbox.put(&"b".into(), 2);
        mailbox.put(&"a".into(), 3);
        mailbox.ready().await;
        assert_eq!(mailbox.len(), 2);
        assert_eq!(mailbox.take(), Some(("a".into(), 3, begun)), "it waits since its first message");
        mailbox.put(&"a".into(), 4);
        assert_eq!(taken(&mailbox), [("b".to_owned(), 2), ("a".to_owned(), 4)]);
        assert!(mailbox.is_empty());
    }

    #[tokio::test]
    async fn a_waiting_reader_is_notified_of_a_message_and_of_the_end() {
        let mailbox = Mailbox::default();
        let put = async { mailbox.put(&"a".into(), 1) };
        tokio::join!(mailbox.ready(), put);
        let close = async { mailbox.close(Closed::Superseded) };
        assert_eq!(tokio::join!(mailbox.closed(), close).0, Closed::Superseded);
        assert_eq!(mailbox.take(), None, "its messages are dropped");
        mailbox.close(Closed::Stopping);
        mailbox.put(&"a".into(), 2);
        assert_eq!((mailbox.closed().await, mailbox.take()), (Closed::Superseded, None));
    }

    /// Also rule J12.
    #[test]
    fn a_full_mailbox_drops_messages_about_further_slices() {
        let mailbox = Mailbox::default();
        for number in 0..=10_000 {
            mailbox.put(&number.to_string().into(), 1);
        }
        assert!(mailbox.put(&"0".into(), 2) && !mailbox.put(&"one more".into(), 1));
        assert_eq!(mailbox.len(), 10_000);
        assert_eq!(mailbox.take().map(|(slice, message, _)| (slice.to_string(), message)), Some(("0".to_owned(), 2)));
    }
}
