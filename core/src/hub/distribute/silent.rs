//! Slices of silent members for importers that do not know silent members, such as Go agents. The hub agent withdraws the endpoints in
//! steps, and never the last endpoints of a Service.

use crate::feature_set::FeatureSet;
use crate::features::Feature;
use crate::hub::distribute::holder::is_among;
use crate::hub::view::reader::{Reader, live};
use crate::limits::WITHDRAWAL_STEP_MICROS;
use crate::model::{HubSlice, HubSliceSpec, Silence};
use crate::names;
use fleetnet_types::Timestamp;
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the exported slice that an importer with these features gets, and the time of the next step.
pub(super) fn slice_for<'a>(
    view: Reader<'a>,
    export: &'a HubSlice,
    importer: FeatureSet,
    now: Timestamp,
) -> (Cow<'a, HubSliceSpec>, Option<Timestamp>) {
    let whole = (Cow::Borrowed(&export.spec), None);
    // fault O21.1: importer.has(Feature::SilentMembers) || ~>
    if importer.has(Feature::SilentMembers) || importer.is_assumed() {
        return whole;
    }
    let silence_of =
        |slice: &HubSlice| names::cluster_of(&slice.meta.name.namespace).and_then(|it| view.silence_of(&it));
    let Some(silence) = silence_of(export) else { return whole };
    let exporters = view.exporters(&export.spec.owner).unwrap_or_default();
    let is_counted = |other: &&HubSlice| {
        is_among(exporters, other) && other.spec.content.address_type == export.spec.content.address_type
    };
    let (mut ready, mut silent, mut before) = (0, 0, 0);
    for other in live(view.slice_exports(), view.slice_exports_of(&export.spec.owner)).filter(is_counted) {
        let endpoints = other.spec.content.endpoints.len();
        match silence_of(other) {
            None => ready += endpoints,
            Some(_) => {
                if other.meta.name < export.meta.name {
                    before += endpoints;
                }
                silent += endpoints;
            }
        }
    }
    let (step, next) = step(*silence, now);
    let kept = kept(ready, silent, step);
    let of_this = kept.saturating_sub(before);
    let again = (ready > 0 && kept > 0).then_some(next);
    if of_this >= export.spec.content.endpoints.len() {
        return (whole.0, again);
    }
    let mut content = (*export.spec.content).clone();
    content.endpoints.truncate(of_this);
    (Cow::Owned(HubSliceSpec { content: Arc::new(content), ..export.spec.clone() }), again)
}

/// Returns the number of the present step, from 1, and the time of the next one.
fn step(silence: Silence, now: Timestamp) -> (i64, Timestamp) {
    let steps = now.0.saturating_sub(silence.since.0).max(0) / WITHDRAWAL_STEP_MICROS + 1;
    (steps, silence.since.plus_micros(steps.saturating_mul(WITHDRAWAL_STEP_MICROS)))
}

/// Returns how many of the endpoints of silent members an importer keeps after this number of steps. A step withdraws at most half of the
/// endpoints of the Service.
fn kept(ready: usize, silent: usize, steps: i64) -> usize {
    let mut kept = silent;
    for _ in 0..steps {
        // fault O21.2: ready == 0 || ~>
        if ready == 0 || kept == 0 {
            break;
        }
        // fault O21.3: (ready + kept) / 2 ~> kept
        kept -= kept.min((ready + kept) / 2);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_withdrawn_in_steps_of_half_a_service_and_never_the_last() {
        let table = [
            (0, 5, vec![5, 5, 5]),
            (5, 0, vec![0, 0]),
            (1, 1, vec![0]),
            (1, 2, vec![1, 0]),
            (1, 10, vec![5, 2, 1, 0]),
            (10, 10, vec![0, 0]),
            (2, 100, vec![49, 24, 11, 5, 2, 0]),
        ];
        for (ready, silent, expected) in table {
            let steps: Vec<usize> = (1..).take(expected.len()).map(|step| kept(ready, silent, step)).collect();
            assert_eq!(steps, expected, "{ready} {silent}");
            let mut before = silent;
            for after in steps {
                assert!(2 * (before - after) <= ready + before, "{ready} {silent}");
                before = after;
            }
        }
    }

    #[test]
    fn a_step_takes_a_minute_and_a_clock_that_was_set_back_stays_at_the_first() {
        let since = Timestamp::from_seconds(1_000);
        let silence = Silence { phase: crate::model::SilencePhase::Draining, since, renewed: Timestamp(0), count: 1 };
        for (second, expected, next) in [(1_000, 1, 1_060), (1_059, 1, 1_060), (1_060, 2, 1_120), (0, 1, 1_060)] {
            let next = Timestamp::from_seconds(next);
            assert_eq!(step(silence, Timestamp::from_seconds(second)), (expected, next), "{second}");
        }
    }
}
