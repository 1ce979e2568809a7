//! Faults in the rules of memkube's kinds: each fault disables one rule.

use memkube::object::Object;
use memkube::status::FieldError;
use memkube::store::{Change, Fields};
use memkube::strategy::{Effect, Findings, Generation, ListMerge, Undecodable};
use memkube::{Column, Context, Definition, Status, Strategy};
use serde_json::Value;

/// Rule that the fault disables, for all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleFault {
    Decoding,
    Defaults,
    CreatePreparation,
    UpdatePreparation,
    StatusPreparation,
    Validation,
    UpdateValidation,
    Names,
    Generation,
    LabelGeneration,
    SelectableNames,
    SelectableFields,
    Versions,
    CreateOnUpdate,
    ReturnsDeleted,
    ListMerges,
    Commits,
    KeepsDeleted,
    DeletionTimes,
    Grace,
    Columns,
}

/// Faults in rules. Each entry has a description, the file in `table/` that should detect the fault, and the rule to
/// disable.
pub(super) const ALL: [(&str, &str, RuleFault); 21] = [
    ("bodies are not decoded", "verbs", RuleFault::Decoding),
    ("defaults are not set", "builtin", RuleFault::Defaults),
    ("what a client may not say is kept on create", "custom", RuleFault::CreatePreparation),
    ("what a client may not say is kept on update", "custom", RuleFault::UpdatePreparation),
    ("the status subresource writes everything", "custom", RuleFault::StatusPreparation),
    ("new objects are not checked", "builtin", RuleFault::Validation),
    ("updates are not checked", "custom", RuleFault::UpdateValidation),
    ("names are not checked", "metadata", RuleFault::Names),
    ("nothing has a generation", "metadata", RuleFault::Generation),
    ("labels move every generation", "custom", RuleFault::LabelGeneration),
    ("fields of kinds cannot be selected", "selectors", RuleFault::SelectableNames),
    ("fields of kinds are empty", "selectors", RuleFault::SelectableFields),
    ("replaces need no resourceVersion, or all do", "custom", RuleFault::Versions),
    ("replaces never create", "verbs", RuleFault::CreateOnUpdate),
    ("deletes answer with the wrong thing", "deletion", RuleFault::ReturnsDeleted),
    ("lists are replaced by strategic merges", "strategic", RuleFault::ListMerges),
    ("commits have no effects", "builtin", RuleFault::Commits),
    ("namespaces go at once", "deletion", RuleFault::KeepsDeleted),
    ("all is deleted at the same time", "deletion", RuleFault::DeletionTimes),
    ("there is no grace period", "pods", RuleFault::Grace),
    ("tables have no columns", "forms", RuleFault::Columns),
];

/// Returns the rules of a kind without the rule that the fault disables.
pub(super) fn with_fault(fault: RuleFault, _: &Definition, rules: Box<dyn Strategy>) -> Box<dyn Strategy> {
    Box::new(FaultyRules { fault, rules })
}

struct FaultyRules {
    fault: RuleFault,
    rules: Box<dyn Strategy>,
}

impl FaultyRules {
    fn has(&self, fault: RuleFault) -> bool {
        self.fault == fault
    }
}

impl Strategy for FaultyRules {
    fn decode(&self, version: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        if self.has(RuleFault::Decoding) { Ok(()) } else { self.rules.decode(version, object, findings) }
    }

    fn set_defaults(&self, version: &str, object: &mut Object) {
        if !self.has(RuleFault::Defaults) {
            self.rules.set_defaults(version, object);
        }
    }

    fn prepare_for_create(&self, context: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        if self.has(RuleFault::CreatePreparation) { Ok(()) } else { self.rules.prepare_for_create(context, object) }
    }

    fn prepare_for_update(&self, context: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        if self.has(RuleFault::UpdatePreparation) {
            Ok(())
        } else {
            self.rules.prepare_for_update(context, object, old)
        }
    }

    fn prepare_for_status_update(
        &self,
        context: &mut Context<'_>,
        object: &mut Object,
        old: &Object,
    ) -> Result<(), Status> {
        if self.has(RuleFault::StatusPreparation) {
            return Ok(());
        }
        self.rules.prepare_for_status_update(context, object, old)
    }

    fn validate(&self, context: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        if self.has(RuleFault::Validation) { Vec::new() } else { self.rules.validate(context, object) }
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        if self.has(RuleFault::UpdateValidation) {
            Vec::new()
        } else {
            self.rules.validate_update(context, object, old)
        }
    }

    fn validate_status_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        if self.has(RuleFault::UpdateValidation) {
            return Vec::new();
        }
        self.rules.validate_status_update(context, object, old)
    }

    fn check_name(&self, name: &str, prefix: bool) -> Option<&'static str> {
        if self.has(RuleFault::Names) { None } else { self.rules.check_name(name, prefix) }
    }

    fn generation(&self) -> Generation {
        match (self.fault, self.rules.generation()) {
            (RuleFault::Generation, _) => Generation::Absent,
            (RuleFault::LabelGeneration, Generation::Content) => Generation::ContentAndLabels,
            (_, generation) => generation,
        }
    }

    fn selectable_names(&self, version: &str) -> Vec<String> {
        if self.has(RuleFault::SelectableNames) { Vec::new() } else { self.rules.selectable_names(version) }
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        if self.has(RuleFault::SelectableFields) { Fields::new() } else { self.rules.selectable_fields(object) }
    }

    fn allows_unconditional_update(&self) -> bool {
        self.rules.allows_unconditional_update() != self.has(RuleFault::Versions)
    }

    fn allows_create_on_update(&self) -> bool {
        self.rules.allows_create_on_update() && !self.has(RuleFault::CreateOnUpdate)
    }

    fn returns_deleted(&self) -> bool {
        self.rules.returns_deleted() != self.has(RuleFault::ReturnsDeleted)
    }

    fn grace_period_seconds(&self, object: &Object, requested: Option<i64>) -> Option<i64> {
        if self.has(RuleFault::Grace) { None } else { self.rules.grace_period_seconds(object, requested) }
    }

    fn mark_deleting(&self, object: &mut Object) {
        self.rules.mark_deleting(object);
        if self.has(RuleFault::DeletionTimes)
            && let Some(Value::Object(meta)) = object.get_mut("metadata")
        {
            meta.insert("deletionTimestamp".to_owned(), "2099-01-01T00:00:00Z".into());
        }
    }

    fn keeps_deleted(&self, object: &Object) -> bool {
        self.rules.keeps_deleted(object) && !self.has(RuleFault::KeepsDeleted)
    }

    fn columns(&self, version: &str) -> Vec<Column> {
        if self.has(RuleFault::Columns) { Vec::new() } else { self.rules.columns(version) }
    }

    fn list_merge(&self, path: &str) -> ListMerge {
        if self.has(RuleFault::ListMerges) { ListMerge::Replace } else { self.rules.list_merge(path) }
    }

    fn stored_form_serves(&self, version: &str) -> bool {
        self.rules.stored_form_serves(version)
    }

    fn convert(&self, object: &mut Object, to: &str) {
        self.rules.convert(object, to);
    }

    fn committed(&mut self, change: &Change) -> Vec<Effect> {
        if self.has(RuleFault::Commits) { Vec::new() } else { self.rules.committed(change) }
    }

    fn review(&self, context: &mut Context<'_>, object: Object) -> Result<Object, Status> {
        self.rules.review(context, object)
    }
}
