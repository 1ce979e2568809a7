//! Slices of silent members for importers that do not know silent members, such as Go agents. The hub agent withdraws
//! the endpoints in steps, and never the last endpoints of a Service.

use crate::feature_set::FeatureSet;
use crate::features::Feature;
use crate::hub::view::reader::Reader;
use crate::limits::WITHDRAWAL_STEP_MICROS;
use crate::model::{HubSlice, HubSliceSpec, Silence};
use crate::names;
use fleetnet_types::{MemberNamespace, ObjectName, Timestamp};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// True if the hub agent withdraws the endpoints of this export from importers with these features, because its
/// exporter is silent.
pub(super) fn is_withdrawn(view: Reader<'_>, export: &HubSlice, importer: FeatureSet) -> bool {
    !importer.has(Feature::SilentMembers) && silence_of(view, &export.meta.name.member_namespace()).is_some()
}

fn silence_of(view: Reader<'_>, exporter: &MemberNamespace) -> Option<Silence> {
    names::cluster_of(exporter).and_then(|cluster| view.silence_of(&cluster)).copied()
}

/// Returns the part of an exported slice that an importer with these features gets, and the time of the next step.
/// `spec` has the addresses that importers may get.
pub(super) fn slice_for<'a>(
    view: Reader<'_>,
    export: &HubSlice,
    spec: &'a HubSliceSpec,
    (importer, features): (&MemberNamespace, FeatureSet),
    now: Timestamp,
) -> (Cow<'a, HubSliceSpec>, Option<Timestamp>) {
    let whole = (Cow::Borrowed(spec), None);
    if features.has(Feature::SilentMembers) {
        return whole;
    }
    let silence = silence_of(view, &export.meta.name.member_namespace()).filter(|_| view.silence_limits().is_some());
    let Some(silence) = silence else { return whole };
    if !has_other_endpoints(view, export, importer) {
        return whole;
    }
    let (own, next) = step(silence, now);
    // Members with the same step fell silent together. Those that did before have lost more of their endpoints.
    let (mut ready, mut silent): (usize, BTreeMap<Reverse<i64>, usize>) = (0, BTreeMap::new());
    for (exporter, number) in view.endpoint_counts(&spec.owner, &spec.content.address_type) {
        match silence_of(view, exporter) {
            None => ready += number,
            Some(silence) => *silent.entry(Reverse(step(silence, now).0)).or_default() += number,
        }
    }
    for (Reverse(steps), number) in silent {
        let kept = kept(ready, number, steps);
        if steps == own {
            let again = (kept > 0).then_some(next);
            return (Cow::Owned(first_endpoints(spec, share(spec.content.endpoints.len(), kept, number))), again);
        }
        ready += kept;
    }
    whole
}

/// True if the importer has a slice with ready endpoints of the same Service and address type, from a member that is
/// not silent.
fn has_other_endpoints(view: Reader<'_>, export: &HubSlice, importer: &MemberNamespace) -> bool {
    let of_others =
        view.slice_exports_of(&export.spec.owner).filter(|other| silence_of(view, &other.member_namespace()).is_none());
    let mut slices = of_others.filter_map(|other| {
        let at = ObjectName::new(importer, other.name.clone());
        view.distributed_slices().live(&at)
    });
    slices.any(|distributed| {
        let content = &distributed.spec.content;
        distributed.spec.owner == export.spec.owner
            && content.address_type == export.spec.content.address_type
            && !content.endpoints.is_empty()
            && silence_of(view, &names::member_namespace(&distributed.spec.reference.cluster)).is_none()
    })
}

/// Returns how many of its endpoints a slice keeps, if the Service keeps `kept` of `number`.
fn share(endpoints: usize, kept: usize, number: usize) -> usize {
    (endpoints * kept).div_ceil(number.max(1))
}

/// Returns a slice with its first endpoints.
fn first_endpoints(spec: &HubSliceSpec, number: usize) -> HubSliceSpec {
    let mut content = (*spec.content).clone();
    content.endpoints.truncate(number);
    HubSliceSpec { content: Arc::new(content), ..spec.clone() }
}

/// Returns the number of the present step, from 1, and the time of the next one. Steps count from the first judgement.
fn step(silence: Silence, now: Timestamp) -> (i64, Timestamp) {
    let steps = now.0.saturating_sub(silence.since.0).max(0) / WITHDRAWAL_STEP_MICROS + 1;
    (steps, silence.since.plus_micros(steps.saturating_mul(WITHDRAWAL_STEP_MICROS)))
}

/// Returns how many of the endpoints of silent members an importer keeps after this number of steps. A step withdraws
/// at most half of the endpoints of the Service.
fn kept(ready: usize, silent: usize, steps: i64) -> usize {
    let mut kept = silent;
    for _ in 0..steps {
        if ready == 0 || kept == 0 {
            break;
        }
        kept -= kept.min((ready + kept) / 2);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SilencePhase;

    /// Also rule O21.
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

    /// Also rule O21.
    #[test]
    fn a_step_takes_a_minute_from_the_first_judgement_on() {
        let since = Timestamp::from_seconds(1_000);
        let silence = Silence { phase: SilencePhase::Draining, since, renewed: Timestamp(0), count: 1 };
        for (second, expected, next) in [
            (1_000, 1, 1_060),
            (1_059, 1, 1_060),
            (1_060, 2, 1_120),
            (0, 1, 1_060), // the clock was set back
        ] {
            let next = Timestamp::from_seconds(next);
            assert_eq!(step(silence, Timestamp::from_seconds(second)), (expected, next), "{second}");
        }
    }

    /// Also rule O21.
    #[test]
    fn each_slice_keeps_its_share_rounded_up() {
        for (endpoints, kept, number, expected) in
            [(10, 5, 10, 5), (3, 5, 10, 2), (10, 0, 10, 0), (4, 10, 10, 4), (0, 5, 10, 0)]
        {
            assert_eq!(share(endpoints, kept, number), expected, "{endpoints} {kept}");
        }
    }
}
