//! Conversion of a plan of the `endpointslice` library to requests of the engine, one phase at a time.
//!
//! The engine runs the writes of one plan concurrently. For each address type, kube-controller-manager writes creates,
//! then updates, then deletes, and stops at a failure. So each plan here has only one phase, and the outcome of its
//! writes leads to the next plan. No endpoint is removed before its replacement is written.

use super::alike::reads_the_same;
use super::names;
use crate::limits::WRITES_PER_PHASE;
use endpointslice::Text;
pub(crate) use endpointslice::metrics::Operation;
use endpointslice::model::EndpointSlice;
use endpointslice::plan::{FamilyPlan, Plan, Update};
use endpointslice::trigger::pods_of;
use fleetnet_runtime::Verb;
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Write to one slice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SliceWrite {
    /// Namespace of the slice.
    pub namespace: Text,
    /// Name of the slice.
    pub name: Text,
    /// Request for the engine, with its precondition.
    pub verb: Verb,
    /// Data that the engine returns when the write has succeeded.
    pub receipt: SliceReceipt,
}

/// Data about a write that the controller needs while the write is in flight, and again when the write has succeeded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SliceReceipt {
    /// Operation (create, update or delete), for the metric of changes.
    pub operation: Operation,
    /// Names of the pods whose endpoints the written slice contains.
    pub pods: Arc<[Text]>,
}

/// Phase of a plan: writes that do not wait for each other. For each address type, these are creates, updates or
/// deletes.
#[derive(Debug, Default)]
pub(super) struct Phase {
    pub(super) writes: Vec<SliceWrite>,
}

/// Returns the next writes of a plan. Each address type has its own phases: first creates, then updates, then deletes.
/// Slices whose address type the Service no longer has are deleted last. `uid` is the UID of the Service. `is_taken` is
/// true for names of existing slices.
pub(super) fn next_phase(plan: &Plan, uid: &str, is_taken: impl Fn(&str) -> bool) -> Phase {
    let mut phase = Phase::default();
    for FamilyPlan { draft, .. } in &plan.families {
        if !draft.creates.is_empty() {
            let seed = format!("{uid}/{}", draft.address_type);
            phase.create(&draft.creates, &seed, &is_taken);
        } else if !phase.update_all(&draft.updates) {
            draft.deletes.iter().take(WRITES_PER_PHASE).for_each(|slice| phase.delete(slice));
        }
    }
    if phase.writes.is_empty() {
        plan.unsupported.iter().for_each(|slice| phase.delete(slice));
    }
    phase
}

/// Returns the slices of a plan whose deletion must wait until the plan's creates and updates of the same address type
/// are written.
pub(super) fn delayed_deletes(plan: &Plan) -> BTreeSet<Text> {
    let must_wait = |family: &&FamilyPlan| !family.draft.creates.is_empty() || !family.draft.updates.is_empty();
    let deletes = plan.families.iter().filter(must_wait).flat_map(|family| &family.draft.deletes);
    deletes.map(|slice| slice.metadata.name.clone()).collect()
}

/// True if the plan has no creates, and all its updates fit in the next phase. After this phase, only deletes are left.
pub(super) fn is_all_but_deletes(plan: &Plan) -> bool {
    let is_all =
        |family: &FamilyPlan| family.draft.creates.is_empty() && family.draft.updates.len() <= WRITES_PER_PHASE;
    plan.families.iter().all(is_all)
}

/// True if the plan has another phase after the next phase.
pub(super) fn has_phases_after_the_next(plan: &Plan) -> bool {
    let is_more = |FamilyPlan { draft, .. }: &FamilyPlan| {
        let phases = [!draft.creates.is_empty(), !draft.updates.is_empty(), !draft.deletes.is_empty()];
        phases.into_iter().filter(|is_any| *is_any).count() > 1
    };
    plan.families.iter().any(is_more) || !plan.unsupported.is_empty()
}

impl Phase {
    /// Adds deletes that earlier plans delayed, unless the phase has them already. The writes that these deletes waited
    /// for have succeeded.
    pub(super) fn delete_also(&mut self, plan: &Plan, names: &BTreeSet<Text>) {
        for slice in plan.families.iter().flat_map(|family| &family.draft.deletes) {
            let name = &slice.metadata.name;
            if names.contains(name) && !self.writes.iter().any(|write| write.name == *name) {
                self.delete(slice);
            }
        }
    }

    fn create(&mut self, slices: &[EndpointSlice], seed: &str, is_taken: impl Fn(&str) -> bool) {
        let Some(beginning) = slices.first().map(|slice| &*slice.metadata.generate_name) else { return };
        // The slices of a Service share a name prefix; `free` adds a different suffix for each slice.
        for (slice, name) in slices.iter().zip(names::free(beginning, seed, is_taken)).take(WRITES_PER_PHASE) {
            let mut slice = slice.clone();
            slice.metadata.name = name;
            let body = serde_json::to_value(&slice).unwrap_or_default();
            self.add(&slice, Verb::Create { body: body.into() }, receipt(Operation::Create, &slice));
        }
    }

    /// Adds the updates that change something to the phase. Returns false if there are none. An update that changes
    /// nothing is skipped, because the deletes of the plan would wait for it. Such updates occur while a Service has
    /// two slices without endpoints, of which one will be deleted.
    fn update_all(&mut self, updates: &[Update]) -> bool {
        let mut changing = updates.iter().filter(|update| !reads_the_same(&update.before, &update.after)).peekable();
        let is_any = changing.peek().is_some();
        changing.take(WRITES_PER_PHASE).for_each(|update| self.update(update));
        is_any
    }

    fn update(&mut self, update: &Update) {
        // A resourceVersion that is not a number cannot be a precondition. The value 0 then makes the engine read the
        // slice again before the write.
        let resource_version = update.before.metadata.resource_version.parse().unwrap_or(0);
        let body = replacement(update);
        self.add(
            &update.before,
            Verb::Replace { resource_version, body: body.into() },
            receipt(Operation::Update, &update.after),
        );
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

/// Returns the slice in the request of a write; `None` for a delete.
pub(super) fn requested_slice(verb: &Verb) -> Option<EndpointSlice> {
    match verb {
        Verb::Create { body } | Verb::Replace { body, .. } | Verb::Patch { body, .. } => {
            EndpointSlice::deserialize(&**body).ok()
        }
        Verb::Delete { .. } => None,
    }
}

/// Returns the body of an update. The body keeps foreign metadata and omits fields that only the API server sets.
fn replacement(update: &Update) -> Value {
    let mut slice = update.after.clone();
    slice.metadata.uid = update.before.metadata.uid.clone();
    slice.metadata.resource_version = Text::default();
    slice.metadata.generation = 0;
    (slice.metadata.creation_timestamp, slice.metadata.deletion_timestamp) = (None, None);
    serde_json::to_value(slice).unwrap_or_default()
}
