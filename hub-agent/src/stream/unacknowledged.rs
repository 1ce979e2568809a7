//! Previews of one stream that the member has not acknowledged.

use crate::limits::{SURPLUS_ACKNOWLEDGEMENTS, UNACKNOWLEDGED_SLICES};
use fleetnet_types::Text;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// Previews without an acknowledgement.
#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    /// Previews, by the name of the slice.
    previews: HashMap<Text, Previews>,
    /// Number of acknowledgements that mean nothing.
    surplus: usize,
}

/// Previews of one slice.
#[derive(Debug)]
struct Previews {
    /// Generation of the source slice in the last preview.
    generation: i64,
    /// Time since which the last preview waits, first in the mailbox.
    since: Instant,
    /// Number of earlier previews.
    earlier: usize,
}

/// Meaning of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acknowledged {
    /// The member has imported the last preview of a slice. It took this time.
    Last(Duration),
    /// The member has imported an earlier preview of a slice.
    Earlier,
    /// Nothing: the member has acknowledged as many previews as it got.
    Nothing,
}

impl Unacknowledged {
    /// Checks that the stream may send a preview of this slice.
    pub(super) fn check(&self, slice: &Text) -> Result<(), Status> {
        if self.previews.len() < UNACKNOWLEDGED_SLICES || self.previews.contains_key(slice) {
            return Ok(());
        }
        Err(Status::resource_exhausted(format!(
            "the member has not acknowledged the previews of {UNACKNOWLEDGED_SLICES} slices"
        )))
    }

    /// Records that a preview was sent.
    pub(super) fn sent(&mut self, slice: Text, generation: i64, since: Instant) {
        let earlier = self.previews.get(&slice).map_or(0, |before| before.earlier + 1);
        self.previews.insert(slice, Previews { generation, since, earlier });
    }

    /// Handles an acknowledgement. At most one counts for each preview, so a member cannot flood the engine. Too many
    /// that do not count end the stream.
    pub(super) fn acknowledged(&mut self, slice: &Text, generation: i64) -> Result<Acknowledged, Status> {
        let meaning = self.meaning(slice, generation)?;
        if meaning == Acknowledged::Nothing {
            self.surplus += 1;
        }
        if self.surplus > SURPLUS_ACKNOWLEDGEMENTS {
            return Err(Status::resource_exhausted(format!(
                "the member sent {SURPLUS_ACKNOWLEDGEMENTS} more acknowledgements than it got previews"
            )));
        }
        Ok(meaning)
    }

    fn meaning(&mut self, slice: &Text, generation: i64) -> Result<Acknowledged, Status> {
        let Some(sent) = self.previews.get_mut(slice) else { return Ok(Acknowledged::Nothing) };
        if generation > sent.generation {
            return Err(Status::invalid_argument("an acknowledgement of a preview that was not sent"));
        }
        if generation == sent.generation {
            let took = sent.since.elapsed();
            self.previews.remove(slice);
            return Ok(Acknowledged::Last(took));
        }
        if sent.earlier == 0 {
            return Ok(Acknowledged::Nothing);
        }
        sent.earlier = sent.earlier.saturating_sub(1);
        Ok(Acknowledged::Earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    /// Rule J12: A member reads its stream slowly, does not acknowledge previews, or acknowledges more than it got
    /// Then: A newer preview of a slice replaces the one that waits. At most 10,000 slices wait; the objects of further
    /// slices are written after 1 s. Previews of 10,000 slices without an acknowledgement end the stream
    /// (RESOURCE_EXHAUSTED). At most one acknowledgement counts for each preview. More than 1,000 that do not count end
    /// the stream (RESOURCE_EXHAUSTED)
    #[tokio::test(start_paused = true)]
    async fn at_most_one_acknowledgement_counts_for_each_preview() {
        let (mut sent, slice) = (Unacknowledged::default(), Text::from("app-1"));
        let acknowledged = |sent: &mut Unacknowledged, generation| {
            sent.acknowledged(&slice, generation).map_err(|status| status.code())
        };
        assert_eq!(acknowledged(&mut sent, 5), Ok(Acknowledged::Nothing), "nothing was sent");
        for generation in [5, 6, 8] {
            sent.sent("app-1".into(), generation, Instant::now());
        }
        assert_eq!(acknowledged(&mut sent, 9), Err(Code::InvalidArgument));
        let earlier = [5, 6, 7, 5, 6].map(|generation| acknowledged(&mut sent, generation));
        let (counts, nothing) = (Ok(Acknowledged::Earlier), Ok(Acknowledged::Nothing));
        assert_eq!(earlier, [counts, counts, nothing, nothing, nothing]);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(acknowledged(&mut sent, 8), Ok(Acknowledged::Last(Duration::from_secs(2))));
        assert_eq!(acknowledged(&mut sent, 8), Ok(Acknowledged::Nothing));
    }

    /// Also rule J12.
    #[tokio::test(start_paused = true)]
    async fn a_member_may_send_1_000_acknowledgements_more_than_it_got_previews() {
        let (mut sent, slice) = (Unacknowledged::default(), Text::from("app-1"));
        for generation in 1..=10_000 {
            sent.sent(slice.clone(), generation, Instant::now());
            assert!(sent.acknowledged(&slice, generation).is_ok(), "one for each preview");
        }
        for number in 1..=1_000 {
            assert_eq!(sent.acknowledged(&slice, 1).ok(), Some(Acknowledged::Nothing), "{number}");
        }
        let refused = sent.acknowledged(&slice, 1).map_err(|status| status.code());
        assert_eq!(refused, Err(Code::ResourceExhausted));
    }

    /// Also rule J12.
    #[tokio::test(start_paused = true)]
    async fn a_member_that_acknowledges_nothing_may_get_previews_of_10_000_slices() {
        let mut sent = Unacknowledged::default();
        for number in 0..10_000 {
            let slice = Text::from(number.to_string());
            assert!(sent.check(&slice).is_ok(), "{number}");
            sent.sent(slice, 1, Instant::now());
        }
        assert!(sent.check(&"0".into()).is_ok(), "a further preview of the same slice");
        let refused = sent.check(&"10000".into()).map_err(|status| status.code());
        assert_eq!(refused, Err(Code::ResourceExhausted));
        assert!(sent.acknowledged(&"0".into(), 1).is_ok());
        assert!(sent.check(&"10000".into()).is_ok());
    }
}
