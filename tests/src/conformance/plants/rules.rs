//! Faults in the rules of the kinds: one rule of a kind is left out.

use memkube::object::Object;
use memkube::status::FieldError;
use memkube::store::{Change, Fields};
use memkube::strategy::{Effect, Findings, Generation, ListMerge, Undecodable};
use memkube::{Context, Definition, Status, Strategy};
use serde_json::Value;

/// Rule that is left out, for all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slip {
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
    Dependents,
}

/// Faults, each with the theme that should detect it.
pub(super) const ALL: [(&str, &str, Slip); 21] = [
    ("bodies are not decoded", "verbs", Slip::Decoding),
    ("defaults are not set", "builtin", Slip::Defaults),
    ("what a client may not say is kept on create", "custom", Slip::CreatePreparation),
    ("what a client may not say is kept on update", "custom", Slip::UpdatePreparation),
    ("the status subresource writes everything", "custom", Slip::StatusPreparation),
    ("new objects are not checked", "builtin", Slip::Validation),
    ("updates are not checked", "custom", Slip::UpdateValidation),
    ("names are not checked", "metadata", Slip::Names),
    ("nothing has a generation", "metadata", Slip::Generation),
    ("labels move every generation", "custom", Slip::LabelGeneration),
    ("fields of kinds cannot be selected", "selectors", Slip::SelectableNames),
    ("fields of kinds are empty", "selectors", Slip::SelectableFields),
    ("replaces need no resourceVersion, or all do", "custom", Slip::Versions),
    ("replaces never create", "verbs", Slip::CreateOnUpdate),
    ("deletes answer with the wrong thing", "deletion", Slip::ReturnsDeleted),
    ("lists are replaced by strategic merges", "strategic", Slip::ListMerges),
    ("commits have no effects", "builtin", Slip::Commits),
    ("namespaces go at once", "deletion", Slip::KeepsDeleted),
    ("all is deleted at the same time", "deletion", Slip::DeletionTimes),
    ("nothing is given time to end", "pods", Slip::Grace),
    ("a delete does not ask what becomes of what is owned", "deletion", Slip::Dependents),
];

/// Rules of a kind without that rule.
pub(super) fn slipping(slip: Slip, _: &Definition, rules: Box<dyn Strategy>) -> Box<dyn Strategy> {
    Box::new(Slipping { slip, rules })
}

struct Slipping {
    slip: Slip,
    rules: Box<dyn Strategy>,
}

impl Slipping {
    fn slips(&self, slip: Slip) -> bool {
        self.slip == slip
    }
}

impl Strategy for Slipping {
    fn decode(&self, version: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        if self.slips(Slip::Decoding) { Ok(()) } else { self.rules.decode(version, object, findings) }
    }

    fn set_defaults(&self, version: &str, object: &mut Object) {
        if !self.slips(Slip::Defaults) {
            self.rules.set_defaults(version, object);
        }
    }

    fn prepare_for_create(&self, context: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        if self.slips(Slip::CreatePreparation) { Ok(()) } else { self.rules.prepare_for_create(context, object) }
    }

    fn prepare_for_update(&self, context: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        if self.slips(Slip::UpdatePreparation) { Ok(()) } else { self.rules.prepare_for_update(context, object, old) }
    }

    fn prepare_for_status_update(
        &self,
        context: &mut Context<'_>,
        object: &mut Object,
        old: &Object,
    ) -> Result<(), Status> {
        if self.slips(Slip::StatusPreparation) {
            return Ok(());
        }
        self.rules.prepare_for_status_update(context, object, old)
    }

    fn validate(&self, context: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        if self.slips(Slip::Validation) { Vec::new() } else { self.rules.validate(context, object) }
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        if self.slips(Slip::UpdateValidation) { Vec::new() } else { self.rules.validate_update(context, object, old) }
    }

    fn validate_status_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        if self.slips(Slip::UpdateValidation) {
            return Vec::new();
        }
        self.rules.validate_status_update(context, object, old)
    }

    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        if self.slips(Slip::Names) { Vec::new() } else { self.rules.check_name(name, prefix) }
    }

    fn generation(&self) -> Generation {
        match (self.slip, self.rules.generation()) {
            (Slip::Generation, _) => Generation::Absent,
            (Slip::LabelGeneration, Generation::Content) => Generation::ContentAndLabels,
            (_, generation) => generation,
        }
    }

    fn selectable_names(&self, version: &str) -> Vec<String> {
        if self.slips(Slip::SelectableNames) { Vec::new() } else { self.rules.selectable_names(version) }
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        if self.slips(Slip::SelectableFields) { Fields::new() } else { self.rules.selectable_fields(object) }
    }

    fn allows_unconditional_update(&self) -> bool {
        self.rules.allows_unconditional_update() != self.slips(Slip::Versions)
    }

    fn allows_create_on_update(&self) -> bool {
        self.rules.allows_create_on_update() && !self.slips(Slip::CreateOnUpdate)
    }

    fn returns_deleted(&self) -> bool {
        self.rules.returns_deleted() != self.slips(Slip::ReturnsDeleted)
    }

    fn grace_period_seconds(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        if self.slips(Slip::Grace) { None } else { self.rules.grace_period_seconds(object, asked) }
    }

    fn mark_deleting(&self, object: &mut Object) {
        self.rules.mark_deleting(object);
        if self.slips(Slip::DeletionTimes)
            && let Some(Value::Object(meta)) = object.get_mut("metadata")
        {
            meta.insert("deletionTimestamp".to_owned(), "2099-01-01T00:00:00Z".into());
        }
    }

    fn keeps_deleted(&self, object: &Object) -> bool {
        self.rules.keeps_deleted(object) && !self.slips(Slip::KeepsDeleted)
    }

    fn has_dependents(&self) -> bool {
        self.rules.has_dependents() && !self.slips(Slip::Dependents)
    }

    fn prepare_for_finalize(&self, object: &mut Object, old: &Object) {
        self.rules.prepare_for_finalize(object, old);
    }

    fn list_merge(&self, path: &str) -> ListMerge {
        if self.slips(Slip::ListMerges) { ListMerge::Replace } else { self.rules.list_merge(path) }
    }

    fn deprecation(&self, version: &str) -> Option<String> {
        self.rules.deprecation(version)
    }

    fn stored_form_serves(&self, version: &str) -> bool {
        self.rules.stored_form_serves(version)
    }

    fn convert(&self, object: &mut Object, from: &str, to: &str) {
        self.rules.convert(object, from, to);
    }

    fn committed(&mut self, change: &Change) -> Vec<Effect> {
        if self.slips(Slip::Commits) { Vec::new() } else { self.rules.committed(change) }
    }

    fn review(&self, context: &mut Context<'_>, object: Object) -> Result<Object, Status> {
        self.rules.review(context, object)
    }
}
