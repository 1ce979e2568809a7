//! From the library's plan to the engine's requests, one phase at a time.
//!
//! The writes of one engine's plan run at once. What upstream does in turn for an address type (creates, then updates,
//! then deletes, and nothing more after a failure) is therefore a phase for each plan: the outcome of one plans the next.
//! So nothing is removed before what makes up for it stands.

use super::alike::reads_the_same;
use super::names;
use endpointslice::Text;
pub use endpointslice::metrics::Operation;
use endpointslice::model::EndpointSlice;
use endpointslice::plan::{FamilyPlan, Plan, Update};
use endpointslice::trigger::pods_of;
use fleetnet_runtime::Verb;
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One write to one slice.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceWrite {
    /// The slice's namespace.
    pub namespace: Text,
    /// The slice's name.
    pub name: Text,
    /// What to do, with its precondition.
    pub verb: Verb,
    /// What comes back with it.
    pub receipt: SliceReceipt,
}

/// What is to be known of a write while it is under way, and when it has been carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceReceipt {
    /// What to do, for the count of changes.
    pub operation: Operation,
    /// The pods whose endpoints it writes.
    pub pods: Arc<[Text]>,
}

/// Of one phase and address type no more are planned at once: each outcome plans the rest.
const MOST_WRITES: usize = 32;

/// The writes of the next phase.
#[derive(Debug, Default)]
pub(super) struct Phase {
    pub(super) writes: Vec<SliceWrite>,
}

/// The next phase of each address type; when there is none, the slices of address types that the Service has no more.
/// `uid` is the Service's, and `is_taken` says whether a slice of a name is there.
pub(super) fn next_phase(plan: &Plan, uid: &str, is_taken: impl Fn(&str) -> bool) -> Phase {
    let mut phase = Phase::default();
    for FamilyPlan { draft, .. } in &plan.families {
        if !draft.creates.is_empty() {
            let seed = format!("{uid}/{}", draft.address_type);
            phase.create(&draft.creates, &seed, &is_taken);
        } else if !phase.update_all(&draft.updates) {
            draft.deletes.iter().take(MOST_WRITES).for_each(|slice| phase.delete(slice));
        }
    }
    if phase.writes.is_empty() {
        plan.unsupported.iter().for_each(|slice| phase.delete(slice));
    }
    phase
}

/// The slices that a plan deletes, while others of the same address type are written first.
pub(super) fn held_back(plan: &Plan) -> BTreeSet<Text> {
    let is_held = |family: &&FamilyPlan| !family.draft.creates.is_empty() || !family.draft.updates.is_empty();
    let deletes = plan.families.iter().filter(is_held).flat_map(|family| &family.draft.deletes);
    deletes.map(|slice| slice.metadata.name.clone()).collect()
}

/// Whether the next phase has all that a plan adds and changes.
pub(super) fn is_all_but_deletes(plan: &Plan) -> bool {
    let is_all = |family: &FamilyPlan| family.draft.creates.is_empty() && family.draft.updates.len() <= MOST_WRITES;
    plan.families.iter().all(is_all)
}

/// Whether another phase follows the next one if that goes well.
pub(super) fn has_phases_after_the_next(plan: &Plan) -> bool {
    let is_more = |FamilyPlan { draft, .. }: &FamilyPlan| {
        let phases = [!draft.creates.is_empty(), !draft.updates.is_empty(), !draft.deletes.is_empty()];
        phases.into_iter().filter(|is_any| *is_any).count() > 1
    };
    plan.families.iter().any(is_more) || !plan.unsupported.is_empty()
}

impl Phase {
    /// What goes together with the phase: what had to come first has come with an earlier plan.
    pub(super) fn delete_also(&mut self, plan: &Plan, names: &BTreeSet<Text>) {
        let deletes = plan.families.iter().flat_map(|family| &family.draft.deletes);
        deletes.filter(|slice| names.contains(&slice.metadata.name)).for_each(|slice| self.delete(slice));
    }

    fn create(&mut self, slices: &[EndpointSlice], seed: &str, is_taken: impl Fn(&str) -> bool) {
        let Some(beginning) = slices.first().map(|slice| &*slice.metadata.generate_name) else { return };
        // A Service gives all of its slices names that begin alike.
        for (slice, name) in slices.iter().zip(names::free(beginning, seed, is_taken)).take(MOST_WRITES) {
            let mut slice = slice.clone();
            slice.metadata.name = name;
            let body = serde_json::to_value(&slice).unwrap_or_default();
            self.add(&slice, Verb::Create { body }, receipt(Operation::Create, &slice));
        }
    }

    /// False if there is nothing to update. Of two slices that would both do as placeholder the plan makes the one of the
    /// other, again and again until the other is gone: what is carried out already must not keep it waiting.
    fn update_all(&mut self, updates: &[Update]) -> bool {
        let mut changing = updates.iter().filter(|update| !reads_the_same(&update.before, &update.after)).peekable();
        let is_any = changing.peek().is_some();
        changing.take(MOST_WRITES).for_each(|update| self.update(update));
        is_any
    }

    fn update(&mut self, update: &Update) {
        // A version that is no number would be refused as a precondition; the engine then reads the slice again.
        let resource_version = update.before.metadata.resource_version.parse().unwrap_or(0);
        let body = replacement(update);
        self.add(&update.before, Verb::Replace { resource_version, body }, receipt(Operation::Update, &update.after));
    }

    fn delete(&mut self, slice: &EndpointSlice) {
        let receipt = SliceReceipt { operation: Operation::Delete, pods: Arc::default() };
        self.add(slice, Verb::Delete { uid: (&*slice.metadata.uid).into() }, receipt);
    }

    fn add(&mut self, slice: &EndpointSlice, verb: Verb, receipt: SliceReceipt) {
        let (namespace, name) = (slice.metadata.namespace.clone(), slice.metadata.name.clone());
        self.writes.push(SliceWrite { namespace, name, verb, receipt });
    }
}

fn receipt(operation: Operation, written: &EndpointSlice) -> SliceReceipt {
    SliceReceipt { operation, pods: pods_of(written).cloned().collect() }
}

/// What a write asks a slice to be; none if it is to go.
pub(super) fn asked(verb: &Verb) -> Option<EndpointSlice> {
    match verb {
        Verb::Create { body } | Verb::Replace { body, .. } | Verb::Patch { body, .. } => {
            EndpointSlice::deserialize(body).ok()
        }
        Verb::Delete { .. } => None,
    }
}

/// The slice as it should be, with what others wrote in its metadata, but for what the API server alone decides.
fn replacement(update: &Update) -> Value {
    let mut slice = update.after.clone();
    slice.metadata.uid = update.before.metadata.uid.clone();
    slice.metadata.resource_version = Text::default();
    slice.metadata.generation = 0;
    (slice.metadata.creation_timestamp, slice.metadata.deletion_timestamp) = (None, None);
    serde_json::to_value(slice).unwrap_or_default()
}
