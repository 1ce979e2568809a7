//! State of a ServiceExport that must survive a restart of the agent. The state answers two questions: does the outcome
//! in the status belong to the current export, and is a withdrawal unfinished?
//!
//! The reason of the condition `Valid` answers both questions, except for weight 0: a ServiceExport with weight 0 has
//! the reason `ServiceIsValid`, as with the Go agents. So the condition `Withdrawn` shows weight 0. The same status
//! write sets `Valid` and `Withdrawn`.
//!
//! The module `withdrawal` removes the exported slices.

use super::earlier_versions;
use crate::conditions::{self, ConditionValue, DesiredCondition, VALID, WITHDRAWN};
use crate::model::{Condition, ServiceExport};
use crate::reasons::Reason;
use fleetnet_types::ConditionStatus;

/// Reasons of the condition `Valid` while the Service is exported. `ServiceIsValid` is also the reason if the weight is
/// 0 and the export is withdrawn.
const EXPORTED: [Reason; 5] = [
    Reason::ServiceIsValid,
    Reason::ServiceExportInvalidWeightAnnotation,
    Reason::TooManyPorts,
    Reason::NameHeldByAnother,
    Reason::WriteRefused,
];

/// Reasons of the condition `Valid` after the Service was withdrawn.
const NOT_EXPORTED: [Reason; 3] = [Reason::ServiceNotFound, Reason::ServiceIneligible, Reason::ServiceImported];

/// True if the outcome of conflict resolution in a ServiceExport's status belongs to the current export: the
/// ServiceExport has the cleanup finalizer, and its Service is not withdrawn (B9 in docs/contributors/behaviour.md).
pub(crate) fn shows_outcome(export: &ServiceExport) -> bool {
    let Some(valid) = valid(export).filter(|_| export.meta.finalizers.ours) else { return false };
    has_any(valid, &EXPORTED) && !has_weight_zero(export)
}

/// True while the withdrawal of an export is unfinished: the conditions show a withdrawal, and the cleanup finalizer
/// still exists.
pub(crate) fn is_being_withdrawn(export: &ServiceExport) -> bool {
    let is_withdrawn = |valid: &Condition| has_any(valid, &NOT_EXPORTED) || has_weight_zero(export);
    export.meta.finalizers.ours && valid(export).is_some_and(is_withdrawn)
}

/// Returns the desired condition `Withdrawn` of an export with weight 0. `None` if fleetnet 0.1.0 or a Go agent already
/// recorded weight 0 in the condition `Valid`, so that an upgrade costs no write.
pub(super) fn withdrawn(export: &ServiceExport, component: &'static str) -> Option<DesiredCondition> {
    let earlier = |valid: &Condition| earlier_versions::is_weight_zero(&export.meta.name, valid);
    if valid(export).is_some_and(earlier) && !is_marked(export) {
        return None;
    }
    Some(DesiredCondition::new(WITHDRAWN, ConditionValue::withdrawn(&export.meta.name), component).without_event())
}

/// Returns the desired condition `Withdrawn` False of an export whose weight is no longer 0. `None` if the condition is
/// not True.
pub(super) fn not_withdrawn(export: &ServiceExport, component: &'static str) -> Option<DesiredCondition> {
    let value = is_marked(export).then(|| ConditionValue::not_withdrawn(&export.meta.name))?;
    Some(DesiredCondition::new(WITHDRAWN, value, component).without_event())
}

/// True if the condition `Valid` was set while the weight was 0.
fn has_weight_zero(export: &ServiceExport) -> bool {
    let is_zero = |valid: &Condition| is_marked(export) || earlier_versions::is_weight_zero(&export.meta.name, valid);
    valid(export).is_some_and(|valid| conditions::has_reason(valid, Reason::ServiceIsValid) && is_zero(valid))
}

/// True if the condition `Withdrawn` has status True.
fn is_marked(export: &ServiceExport) -> bool {
    conditions::find(&export.conditions, WITHDRAWN).is_some_and(|condition| condition.status == ConditionStatus::True)
}

fn valid(export: &ServiceExport) -> Option<&Condition> {
    conditions::find(&export.conditions, VALID)
}

fn has_any(condition: &Condition, reasons: &[Reason]) -> bool {
    reasons.iter().any(|reason| conditions::has_reason(condition, *reason))
}
