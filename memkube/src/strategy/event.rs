//! Rules of Events, in the core group and in `events.k8s.io`.

mod shape;
use super::{Context, Findings, Strategy, Undecodable, addresses};
use crate::object::{Object, at, meta_text, text_at};
use crate::status::FieldError;
use crate::store::Fields;
use serde_json::{Value, json};

/// Namespace of Events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";
const INSTANCE_BYTES: usize = 128;
const NOTE_BYTES: usize = 1024;

const SELECTABLE: [&str; 11] = [
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "reportingComponent",
    "source",
    "type",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Events of `v1`.
    Core,
    /// Events of `events.k8s.io/v1`.
    Group,
}

impl Event {
    /// Names of the two fields that differ between the two forms: the field of the object, and the field of the reporting
    /// controller.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Core => ("involvedObject", "reportingComponent"),
            Self::Group => ("regarding", "reportingController"),
        }
    }
}

impl Strategy for Event {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        let kind = match self {
            Self::Core => &shape::CORE,
            Self::Group => &shape::GROUP,
        };
        super::shape::read(kind, object, findings)
    }

    fn has_dependents(&self) -> bool {
        false
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = place_error(object, self.names().0).into_iter().collect();
        let has_time = at(object, "eventTime").is_some_and(|time| !time.is_null());
        if has_time {
            errors.extend(reporter_errors(object, self.names().1));
        }
        if *self == Self::Group {
            errors.extend(group_errors(object, has_time));
        }
        errors
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = self.validate(context, object);
        if *self == Self::Group {
            let fixed =
                ["regarding", "related", "reason", "action", "type", "reportingController", "eventTime", "note"];
            let changed = fixed.into_iter().filter(|name| object.get(*name) != old.get(*name));
            errors.extend(changed.map(|name| {
                let shown = object.get(name).cloned().unwrap_or_default();
                FieldError::invalid(name, &shown, "field is immutable")
            }));
        }
        errors
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        match self {
            Self::Core => SELECTABLE.map(str::to_owned).to_vec(),
            Self::Group => Vec::new(),
        }
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        let value = |name: &str| match name {
            "source" => match text_at(object, "source.component") {
                "" => text_at(object, "reportingComponent"),
                component => component,
            },
            name => text_at(object, name),
        };
        match self {
            Self::Core => SELECTABLE.map(|name| (name.to_owned(), value(name).to_owned())).into(),
            Self::Group => Fields::new(),
        }
    }
}

/// Returns an error if an Event is not in the namespace of the object that the Event is about.
fn place_error(object: &Object, regarding: &str) -> Option<FieldError> {
    let field = format!("{regarding}.namespace");
    let about = text_at(object, &field);
    let own = meta_text(object, "namespace");
    let fits = if about.is_empty() { own == DEFAULT_NAMESPACE } else { own == about };
    // kube-apiserver reports `involvedObject.namespace` for both forms of Events. In `events.k8s.io` the field is
    // `regarding.namespace`.
    let why = "does not match event.namespace";
    (!fits).then(|| FieldError::invalid("involvedObject.namespace", &json!(about), why))
}

fn reporter_errors(object: &Object, reporter: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = text_at(object, reporter);
    if name.is_empty() {
        errors.push(FieldError::required(reporter, ""));
    }
    errors.extend(addresses::qualified(reporter, name));
    let instance = text_at(object, "reportingInstance");
    if instance.is_empty() {
        errors.push(FieldError::required("reportingInstance", ""));
    }
    if instance.len() > INSTANCE_BYTES {
        let why = format!("can have at most {INSTANCE_BYTES} characters");
        errors.push(FieldError::invalid("reportingInstance", &json!(""), &why));
    }
    for name in ["action", "reason"] {
        let text = text_at(object, name);
        if text.is_empty() {
            errors.push(FieldError::required(name, ""));
        }
        if text.len() > INSTANCE_BYTES {
            let why = format!("can have at most {INSTANCE_BYTES} characters");
            errors.push(FieldError::invalid(name, &json!(""), &why));
        }
    }
    errors
}

fn group_errors(object: &Object, has_time: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !has_time {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = text_at(object, "type");
    if !matches!(kind, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", &json!(kind), &format!("has invalid value: {kind}")));
    }
    if text_at(object, "note").len() > NOTE_BYTES {
        let why = format!("can have at most {NOTE_BYTES} characters");
        errors.push(FieldError::invalid("message", &Value::from(""), &why));
    }
    errors
}
