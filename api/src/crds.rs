//! CustomResourceDefinitions, generated from the types of [`crate::crd`].
//!
//! The definitions of the API group `networking.fleet.azure.com` have two forms. [`Form::Full`] is the form that
//! fleetnet installs. [`Form::Go`] omits the additions of fleetnet. The Go form equals the output of controller-gen for
//! the Go agents' types, with these intended differences:
//!
//! - The descriptions are written for fleetnet.
//! - The annotation `controller-gen.kubebuilder.io/version` is absent, because controller-gen did not write these
//!   files.
//! - `spec.conversion` is absent: its default in an API server is the strategy `None`.

use crate::crd::shared::ADDED;
use crate::crd::{self, mcs, service_export};
use crate::names::{MCS_OLD_VERSION, MCS_RELEASE, labels};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources,
};
use kube::CustomResourceExt;
use kube::core::crd::merge_crds;
use serde_json::{Map, Value, json};

/// Form of the CustomResourceDefinitions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// Form with fleetnet's additions, which fleetnet installs.
    Full,
    /// Form without fleetnet's additions, as in clusters with the Go agents.
    Go,
}

/// Revision of the full form, the value of the label [`labels::CRD_REVISION`]. Raise it by one if the full form differs
/// from the CustomResourceDefinitions of the previous release and still has their revision. A test compares both.
// no limit: a revision
pub const REVISION: u32 = 1;

/// Patterns that fleetnet widens. Each row has the kind, the field (as a JSON pointer into the schema of a version),
/// and the pattern of the Go form. From Kubernetes 1.36, the name of a Service may begin with a digit (KEP-5311).
const WIDENED: [(&str, &str, &str); 1] = [(
    "MultiClusterService",
    "/properties/spec/properties/serviceImport/properties/name",
    "^([a-z]([-a-z0-9]*[a-z0-9])?)$",
)];

/// Parts of the schemas in which fleetnet limits the length of lists and texts. Each row has the kinds, and the part as
/// a JSON pointer into the schema of a version. The Go form has no such limits.
const LIMITED: [(&[&str], &str); 2] = [
    (&["EndpointSliceExport", "EndpointSliceImport", "InternalServiceExport", "InternalServiceImport"], SPEC),
    (&["ServiceImport", "InternalServiceImport"], "/properties/status/properties/ports"),
];
const LIMITS: [&str; 4] = ["maxItems", "minItems", "maxLength", "minLength"];
const SPEC: &str = "/properties/spec/properties";
const SLICES: &[&str] = &["EndpointSliceExport", "EndpointSliceImport"];

/// Returns the CustomResourceDefinitions of a form, sorted by the plural name of the kind. The full form has nine
/// kinds. The Go form has no MemberAgent and no MergedServiceImport.
pub fn all(form: Form) -> Vec<CustomResourceDefinition> {
    let service_exports = merge_crds(
        vec![service_export::v1alpha1::ServiceExport::crd(), service_export::v1beta1::ServiceExport::crd()],
        "v1beta1",
    )
    .expect("two versions of one kind, each with one version, merge");
    let generated = [
        Some(crd::EndpointSliceExport::crd()),
        Some(crd::EndpointSliceImport::crd()),
        Some(crd::InternalServiceExport::crd()),
        Some(crd::InternalServiceImport::crd()),
        (form == Form::Full).then(crd::MemberAgent::crd),
        (form == Form::Full).then(crd::MergedServiceImport::crd),
        Some(crd::MultiClusterService::crd()),
        Some(service_exports),
        Some(crd::ServiceImport::crd()),
    ];
    generated.into_iter().flatten().map(|definition| finish(definition, form)).collect()
}

/// Returns the CustomResourceDefinitions of the API group `multicluster.x-k8s.io`, with the schemas and labels of the
/// Go module `sigs.k8s.io/mcs-api`.
pub fn mcs() -> Vec<CustomResourceDefinition> {
    let generated = [mcs::ServiceExport::crd(), mcs::ServiceImport::crd()];
    let labels = [(labels::PART_OF, "fleetnet"), (labels::MCS_RELEASE, MCS_RELEASE), (labels::MCS_REVISION, "0")];
    generated
        .into_iter()
        .map(|mut definition| {
            definition.spec.versions = definition.spec.versions.into_iter().flat_map(with_old_version).collect();
            let mut definition = shape_definition(definition);
            definition.spec.names.list_kind = None; // the default of an API server
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
            definition.metadata.labels = Some(labels.into_iter().collect());
            definition
        })
        .collect()
}

/// Adds the older version with the same schema.
fn with_old_version(version: CustomResourceDefinitionVersion) -> [CustomResourceDefinitionVersion; 2] {
    let name = MCS_OLD_VERSION.to_owned();
    [CustomResourceDefinitionVersion { name, storage: false, ..version.clone() }, version]
}

/// Returns the file name of a CustomResourceDefinition: `<group>_<plural>.yaml`.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural)
}

/// Returns a CustomResourceDefinition as YAML. The text is reproducible: keys are in alphabetical order, and whole
/// numbers have no fraction.
pub fn yaml(definition: &CustomResourceDefinition) -> String {
    let mut value = serde_json::to_value(definition).expect("a definition has string keys and so is JSON");
    whole_numbers(&mut value);
    let mut options = serde_saphyr::SerializerOptions::default();
    options.prefer_block_scalars = false;
    let mut text = String::from("# Generated by `cargo xtask crds`. Do not edit.\n");
    serde_saphyr::to_fmt_writer_with_options(&mut text, &value, options).expect("JSON is YAML");
    text
}

/// Returns the Helm template of a CustomResourceDefinition in its full form, for the chart `fleetnet-crds`.
pub fn chart_template(definition: &CustomResourceDefinition) -> String {
    let text = yaml(definition);
    let (head, rest) = text.split_once(METADATA).expect("the full form begins its metadata with a label");
    // Braces in a description must not begin an action of the template.
    let rest = rest.replace("{{", r#"{{ "{{" }}"#);
    format!("{head}{METADATA_OF_CHART}{rest}")
}

/// Beginning of the metadata of a CustomResourceDefinition as YAML.
const METADATA: &str = "metadata:\n  labels:\n";
/// Beginning of the metadata in the chart: [`METADATA`] with the chart's annotation and labels.
const METADATA_OF_CHART: &str = "\
metadata:
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
  labels:
    {{- include \"fleetnet-crds.labels\" . | nindent 4 }}
";

fn finish(mut definition: CustomResourceDefinition, form: Form) -> CustomResourceDefinition {
    if form == Form::Go {
        // The marks of the additions are titles, which the shape does not have.
        definition.spec.versions.iter_mut().for_each(|version| change_schema(version, leave_out_added));
    }
    let mut definition = shape_definition(definition);
    let kind = definition.spec.names.kind.clone();
    if form == Form::Full {
        let labels = [(labels::PART_OF, "fleetnet".to_owned()), (labels::CRD_REVISION, REVISION.to_string())];
        definition.metadata.labels = Some(labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect());
    }
    for version in &mut definition.spec.versions {
        if kind == "EndpointSliceExport" {
            // Add the status subresource to EndpointSliceExport, as in the Go agents' CRD. kube's derive adds it only
            // to a kind with a status field, and this kind has none. Without the subresource, a server would count the
            // generation in another way.
            let status = Some(CustomResourceSubresourceStatus(json!({})));
            version.subresources = Some(CustomResourceSubresources { status, scale: None });
        }
        if form == Form::Go {
            change_schema(version, |schema| narrow(schema, &kind));
            leave_out_columns(version, &kind);
        }
    }
    definition
}

/// Removes the printer columns that the Go agents' CRDs do not have.
fn leave_out_columns(version: &mut CustomResourceDefinitionVersion, kind: &str) {
    match (kind, &mut version.additional_printer_columns) {
        ("MultiClusterService", Some(columns)) => columns.retain(|column| column.name != "Derived-Service"),
        ("ServiceImport", columns) => *columns = None,
        _ => {}
    }
}

/// Gives a definition that kube's derive generated the form that controller-gen generates.
fn shape_definition(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let kind = definition.spec.names.kind.clone();
    definition.spec.names.list_kind = Some(format!("{kind}List"));
    definition.spec.versions.sort_by(|one, other| one.name.cmp(&other.name));
    for version in &mut definition.spec.versions {
        change_schema(version, |schema| {
            shape_root(schema, &kind);
            shape(schema);
        });
    }
    definition
}

fn change_schema(version: &mut CustomResourceDefinitionVersion, change: impl FnOnce(&mut Value)) {
    let schema = version.schema.as_mut().expect("the derive gives each version a schema");
    let derived = schema.open_api_v3_schema.take().expect("the derive gives each version a schema");
    let mut value = serde_json::to_value(derived).expect("a schema has string keys and so is JSON");
    change(&mut value);
    let changed = serde_json::from_value(value).expect("what was changed is still a schema");
    schema.open_api_v3_schema = Some(changed);
}

/// Makes the top level of a schema equal to the form that controller-gen generates.
fn shape_root(schema: &mut Value, kind: &str) {
    let properties = object_at(schema, "/properties");
    for name in ["apiVersion", "kind"] {
        properties.insert(name.into(), json!({ "type": "string" }));
    }
    properties.insert("metadata".into(), json!({ "type": "object" }));
    let root = object_at(schema, "");
    if matches!(kind, "InternalServiceExport" | "ServiceExport" | "ServiceImport") {
        root.remove("required");
    }
}

/// At every depth of a schema, removes keywords that only kube's derive writes, and adds keywords that only
/// controller-gen writes.
fn shape(value: &mut Value) {
    match value {
        Value::Object(schema) => {
            // Remove the keywords `nullable` and `title`. A property may have one of these names too, and stays: its
            // value is an object, and the value of a keyword is not.
            schema.retain(|key, value| !matches!(key.as_str(), "nullable" | "title") || value.is_object());
            if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
                schema.insert("anyOf".into(), json!([{ "type": "integer" }, { "type": "string" }]));
            }
            if let Some(Value::String(description)) = schema.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            if let Some(Value::Array(required)) = schema.get_mut("required") {
                required.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            }
            schema.values_mut().for_each(shape);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(shape),
        _ => {}
    }
}

/// At every depth of a schema, removes the fields that fleetnet adds.
fn leave_out_added(value: &mut Value) {
    match value {
        Value::Object(schema) => {
            schema.retain(|_, value| value["title"] != ADDED);
            schema.values_mut().for_each(leave_out_added);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(leave_out_added),
        _ => {}
    }
}

/// Gives the fields of the Go form the values that the Go agents accept.
fn narrow(schema: &mut Value, kind: &str) {
    for (_, pointer, pattern) in WIDENED.iter().filter(|(of, ..)| *of == kind) {
        object_at(schema, pointer).insert("pattern".into(), json!(pattern));
    }
    for (kinds, pointer) in LIMITED {
        if kinds.contains(&kind) {
            leave_out_limits(schema.pointer_mut(pointer).expect("the derived schema has an object there"));
        }
    }
    if SLICES.contains(&kind) {
        object_at(schema, "/properties/spec/properties/addressType").insert("enum".into(), json!(["IPv4"]));
    }
}

fn leave_out_limits(value: &mut Value) {
    match value {
        Value::Object(schema) => {
            schema.retain(|key, value| !(LIMITS.contains(&key.as_str()) && value.is_number()));
            schema.values_mut().for_each(leave_out_limits);
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(leave_out_limits),
        _ => {}
    }
}

fn object_at<'a>(schema: &'a mut Value, pointer: &str) -> &'a mut Map<String, Value> {
    schema.pointer_mut(pointer).and_then(Value::as_object_mut).expect("the derived schema has an object there")
}

/// Writes floating-point bounds as whole numbers, because `minimum: 1.0` in a definition looks like a mistake.
#[expect(clippy::cast_possible_truncation, reason = "only numbers that are whole and small are converted")]
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15) {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(whole_numbers),
        Value::Object(values) => values.values_mut().for_each(whole_numbers),
        _ => {}
    }
}
