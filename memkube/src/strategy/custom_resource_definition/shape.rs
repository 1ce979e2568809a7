//! Fields of a CustomResourceDefinition and their types.

use super::super::shape::{Shape, Struct, TEXT, TEXTS, always, full, present};

pub(super) static DEFINITION: Struct = Struct {
    name: "v1.CustomResourceDefinition",
    fields: &[always("spec", Shape::Struct(&SPEC)), always("status", Shape::Struct(&STATUS))],
};

static SPEC: Struct = Struct {
    name: "v1.CustomResourceDefinitionSpec",
    fields: &[
        always("group", TEXT),
        always("names", Shape::Struct(&NAMES)),
        always("scope", Shape::Text("v1.ResourceScope")),
        always("versions", Shape::List(&Shape::Struct(&VERSION))),
        present("conversion", Shape::Struct(&CONVERSION)),
        full("preserveUnknownFields", Shape::Flag),
    ],
};

static NAMES: Struct = Struct {
    name: "v1.CustomResourceDefinitionNames",
    fields: &[
        always("plural", TEXT),
        full("singular", TEXT),
        full("shortNames", TEXTS),
        always("kind", TEXT),
        full("listKind", TEXT),
        full("categories", TEXTS),
    ],
};

static VERSION: Struct = Struct {
    name: "v1.CustomResourceDefinitionVersion",
    fields: &[
        always("name", TEXT),
        always("served", Shape::Flag),
        always("storage", Shape::Flag),
        full("deprecated", Shape::Flag),
        present("deprecationWarning", TEXT),
        present("schema", Shape::Struct(&VALIDATION)),
        present("subresources", Shape::Struct(&SUBRESOURCES)),
        full("additionalPrinterColumns", Shape::List(&Shape::Struct(&COLUMN))),
        full("selectableFields", Shape::List(&Shape::Struct(&SELECTABLE))),
    ],
};

static VALIDATION: Struct =
    Struct { name: "v1.CustomResourceValidation", fields: &[present("openAPIV3Schema", Shape::Struct(&SCHEMA))] };

static SUBRESOURCES: Struct = Struct {
    name: "v1.CustomResourceSubresources",
    fields: &[present("status", Shape::Struct(&STATUS_SUBRESOURCE)), present("scale", Shape::Struct(&SCALE))],
};

static STATUS_SUBRESOURCE: Struct = Struct { name: "v1.CustomResourceSubresourceStatus", fields: &[] };

static SCALE: Struct = Struct {
    name: "v1.CustomResourceSubresourceScale",
    fields: &[always("specReplicasPath", TEXT), always("statusReplicasPath", TEXT), present("labelSelectorPath", TEXT)],
};

static COLUMN: Struct = Struct {
    name: "v1.CustomResourceColumnDefinition",
    fields: &[
        always("name", TEXT),
        always("type", TEXT),
        full("format", TEXT),
        full("description", TEXT),
        full("priority", Shape::Int32),
        always("jsonPath", TEXT),
    ],
};

static SELECTABLE: Struct = Struct { name: "v1.SelectableField", fields: &[always("jsonPath", TEXT)] };

static CONVERSION: Struct = Struct {
    name: "v1.CustomResourceConversion",
    fields: &[always("strategy", Shape::Text("v1.ConversionStrategyType")), present("webhook", Shape::Any)],
};

static STATUS: Struct = Struct {
    name: "v1.CustomResourceDefinitionStatus",
    fields: &[
        always("conditions", Shape::List(&Shape::Struct(&CONDITION))),
        always("acceptedNames", Shape::Struct(&NAMES)),
        always("storedVersions", TEXTS),
        full("observedGeneration", Shape::Int64),
    ],
};

static CONDITION: Struct = Struct {
    name: "v1.CustomResourceDefinitionCondition",
    fields: &[
        always("type", TEXT),
        always("status", TEXT),
        always("lastTransitionTime", Shape::Time),
        full("reason", TEXT),
        full("message", TEXT),
        full("observedGeneration", Shape::Int64),
    ],
};

static SCHEMA: Struct = Struct {
    name: "v1.JSONSchemaProps",
    fields: &[
        full("id", TEXT),
        full("$schema", TEXT),
        present("$ref", TEXT),
        full("description", TEXT),
        full("type", TEXT),
        full("format", TEXT),
        full("title", TEXT),
        present("default", Shape::Any),
        present("maximum", Shape::Any),
        full("exclusiveMaximum", Shape::Flag),
        present("minimum", Shape::Any),
        full("exclusiveMinimum", Shape::Flag),
        present("maxLength", Shape::Int64),
        present("minLength", Shape::Int64),
        full("pattern", TEXT),
        present("maxItems", Shape::Int64),
        present("minItems", Shape::Int64),
        full("uniqueItems", Shape::Flag),
        present("multipleOf", Shape::Any),
        full("enum", Shape::List(&Shape::Any)),
        present("maxProperties", Shape::Int64),
        present("minProperties", Shape::Int64),
        full("required", TEXTS),
        present("items", Shape::Struct(&SCHEMA)),
        full("allOf", Shape::List(&Shape::Struct(&SCHEMA))),
        full("oneOf", Shape::List(&Shape::Struct(&SCHEMA))),
        full("anyOf", Shape::List(&Shape::Struct(&SCHEMA))),
        present("not", Shape::Struct(&SCHEMA)),
        full("properties", Shape::Map(&Shape::Struct(&SCHEMA))),
        present("additionalProperties", Shape::FlagOr(&SCHEMA)),
        full("patternProperties", Shape::Map(&Shape::Struct(&SCHEMA))),
        full("dependencies", Shape::Any),
        present("additionalItems", Shape::Any),
        full("definitions", Shape::Map(&Shape::Struct(&SCHEMA))),
        present("externalDocs", Shape::Any),
        present("example", Shape::Any),
        full("nullable", Shape::Flag),
        present("x-kubernetes-preserve-unknown-fields", Shape::Flag),
        full("x-kubernetes-embedded-resource", Shape::Flag),
        full("x-kubernetes-int-or-string", Shape::Flag),
        full("x-kubernetes-list-map-keys", TEXTS),
        present("x-kubernetes-list-type", TEXT),
        present("x-kubernetes-map-type", TEXT),
        full("x-kubernetes-validations", Shape::List(&Shape::Struct(&RULE))),
    ],
};

static RULE: Struct = Struct {
    name: "v1.ValidationRule",
    fields: &[
        always("rule", TEXT),
        full("message", TEXT),
        full("messageExpression", TEXT),
        present("reason", Shape::Text("v1.FieldValueErrorReason")),
        full("fieldPath", TEXT),
        present("optionalOldSelf", Shape::Flag),
    ],
};
