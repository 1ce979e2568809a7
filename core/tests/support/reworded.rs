//! Check that no decision reads the message of a condition. For every plan that a test makes, this check makes a second
//! plan from a view in which all messages of conditions are different. The two plans may differ in messages only.

use super::agent::{View, applied};
use fleetnet_core::model::{Condition, Object};
use fleetnet_core::plan::{Action, Patch, Plan, Write};
use fleetnet_core::reasons::Reason;
use fleetnet_types::Timestamp;
use std::cell::Cell;

/// Maximum number of plans that an agent may need to correct all changed messages.
const CORRECTIONS_MAX: usize = 3;

thread_local! {
    static READS_EARLIER_VERSIONS: Cell<bool> = const { Cell::new(false) };
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of plans of this thread that were compared with a plan for changed messages.
pub(crate) fn compared() -> u64 {
    COMPARED.get()
}

/// Runs a test without the check of this file. Such a test is about messages of earlier versions, which are the only
/// messages that a decision may read.
pub(crate) fn with_messages_of_earlier_versions<R>(work: impl FnOnce() -> R) -> R {
    READS_EARLIER_VERSIONS.set(true);
    let result = work();
    READS_EARLIER_VERSIONS.set(false);
    result
}

/// Asserts that a plan for `key` does not depend on the messages of conditions.
pub(crate) fn assert_reworded_plan_is_the_same<V: View>(view: &V, key: &V::Key, now: Timestamp) {
    if READS_EARLIER_VERSIONS.get() {
        return;
    }
    let objects = view.objects_with_conditions();
    let reworded = objects.iter().cloned().filter_map(reworded).collect::<Vec<_>>();
    if reworded.is_empty() {
        return;
    }
    COMPARED.set(COMPARED.get() + 1);
    // The view may have an earlier state of an undecodable object. In the view with changed messages the object is
    // decodable, so in this one too.
    let mut as_before = view.clone();
    objects.into_iter().for_each(|object| as_before.observe(applied(object), now, &mut Vec::new()));
    let expected = settled(as_before, key, now);
    let mut view = view.clone();
    reworded.into_iter().for_each(|object| view.observe(applied(object), now, &mut Vec::new()));
    // A plan may first correct the messages of an object. In this case, apply the correction to the view and plan
    // again.
    for _ in 0..CORRECTIONS_MAX {
        let plan = view.decide(key, now);
        let decided = Decisions::of(&view, &plan);
        let is_expected = decided.writes.iter().all(|write| expected.writes.iter().any(|other| is_same(other, write)));
        assert!(is_expected, "{key:?} depends on the message of a condition: {decided:#?} is not {expected:#?}");
        if decided.corrected.is_empty() {
            assert_eq!(decided.writes.len(), expected.writes.len(), "{key:?}: {decided:#?} is not {expected:#?}");
            assert_eq!(decided.again, expected.again, "{key:?} depends on the message of a condition");
            assert_eq!(decided.reasons, expected.reasons, "{key:?} depends on the message of a condition");
            return;
        }
        decided.corrected.into_iter().for_each(|object| view.observe(applied(object), now, &mut Vec::new()));
    }
    panic!("{key:?} corrects messages again and again");
}

/// Returns the decisions for a view after its plans have corrected all messages.
fn settled<V: View>(mut view: V, key: &V::Key, now: Timestamp) -> Decisions {
    let mut decisions = Decisions::of(&view, &view.decide(key, now));
    for _ in 0..CORRECTIONS_MAX {
        for object in std::mem::take(&mut decisions.corrected) {
            view.observe(applied(object), now, &mut Vec::new());
        }
        decisions = Decisions::of(&view, &view.decide(key, now));
    }
    decisions
}

/// Writes and blocking reasons of a plan, without messages.
#[derive(Debug)]
struct Decisions {
    writes: Vec<Write>,
    again: Option<Timestamp>,
    /// Reason of each `BlockingReason` in the plan.
    reasons: Vec<Reason>,
    /// Objects of which the plan changes only messages, in their state after the plan's write.
    corrected: Vec<Object>,
}

impl Decisions {
    fn of<V: View>(view: &V, plan: &Plan) -> Self {
        let mut decisions = Self {
            writes: Vec::new(),
            again: plan.again,
            reasons: plan.blocking_reasons.iter().map(|blocking_reason| blocking_reason.reason).collect(),
            corrected: Vec::new(),
        };
        for write in &plan.writes {
            match corrected(view, write) {
                Some(object) => decisions.corrected.push(object),
                None => decisions.writes.push(without_messages(write)),
            }
        }
        decisions
    }
}

/// Returns the object with changed messages in its conditions; `None` if the object has no conditions.
fn reworded(mut object: Object) -> Option<Object> {
    let list = conditions_of(&mut object).filter(|list| !list.is_empty())?;
    for condition in list {
        condition.message = condition.message.chars().rev().collect::<String>().into();
    }
    Some(object)
}

/// Returns the object after a write that changes only messages; `None` for any other write.
fn corrected<V: View>(view: &V, write: &Write) -> Option<Object> {
    let Action::Patch { patch, .. } = &write.action else { return None };
    let find = |object: &Object| object.kind() == write.kind() && object.meta().name == write.at;
    let mut object = view.objects_with_conditions().into_iter().find(find)?;
    let list = match (patch, &object) {
        (
            Patch::ServiceExportConditions(list)
            | Patch::McsServiceExportConditions(list)
            | Patch::InternalServiceExportConditions(list)
            | Patch::InternalServiceExportMerge { conditions: list, precedence: _ },
            _,
        ) => list,
        (Patch::MultiClusterServiceStatus { conditions, load_balancer }, Object::MultiClusterService(request))
            if request.load_balancer == *load_balancer =>
        {
            conditions
        }
        _ => return None,
    };
    if let (Patch::InternalServiceExportMerge { precedence, .. }, Object::InternalServiceExport(export)) =
        (patch, &mut object)
    {
        export.precedence.clone_from(precedence);
    }
    let present = conditions_of(&mut object)?;
    if cleared(present) != cleared(list) {
        return None;
    }
    list.clone_into(present);
    Some(object)
}

fn without_messages(write: &Write) -> Write {
    let mut write = write.clone();
    write.events.iter_mut().for_each(|event| event.message.clear());
    if let Action::Patch {
        patch:
            Patch::ServiceExportConditions(list)
            | Patch::McsServiceExportConditions(list)
            | Patch::InternalServiceExportConditions(list)
            | Patch::InternalServiceExportMerge { conditions: list, precedence: _ }
            | Patch::MultiClusterServiceStatus { conditions: list, .. },
        ..
    } = &mut write.action
    {
        list.iter_mut().for_each(|condition| condition.message = "".into());
    }
    write
}

/// True if both writes are equal apart from Events, and the second write emits at least the Events of the first write.
/// The second write may emit more Events, because the agent also emits an Event for a changed message.
fn is_same(expected: &Write, reworded: &Write) -> bool {
    let silent = |write: &Write| Write { events: Vec::new(), ..write.clone() };
    silent(expected) == silent(reworded) && expected.events.iter().all(|event| reworded.events.contains(event))
}

/// Returns conditions without messages and observedGeneration. Both may differ, because a write that corrects a message
/// also updates observedGeneration.
fn cleared(list: &[Condition]) -> Vec<Condition> {
    list.iter().map(|condition| Condition { message: "".into(), observed_generation: 0, ..condition.clone() }).collect()
}

fn conditions_of(object: &mut Object) -> Option<&mut Vec<Condition>> {
    match object {
        Object::ServiceExport(export) => Some(&mut export.conditions),
        Object::McsServiceExport(export) => Some(&mut export.conditions),
        Object::InternalServiceExport(export) => Some(&mut export.conditions),
        Object::MultiClusterService(service) => Some(&mut service.conditions),
        _ => None,
    }
}
