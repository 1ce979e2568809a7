//! Protobuf messages of the supported kinds: number, name and type of each field.
//!
//! Source: the `generated.proto` files of Kubernetes 1.35.

pub(super) struct Field {
    pub(super) number: u64,
    /// Name in JSON.
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) shape: Shape,
}

/// Cardinality of a field.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Field that is not a pointer. Go always encodes the field, so zero counts as absent.
    Value,
    /// Pointer: the field occurs at most once. Zero is a value.
    Pointer,
    /// Repeated field.
    List,
    /// Repeated field of messages with the fields `key` and `value`.
    Map,
}

/// Type of a field.
pub(super) enum Shape {
    /// UTF-8 string.
    Text,
    /// Bytes, in JSON as base64.
    Bytes,
    /// Integer of at most 64 bits.
    Number,
    Flag,
    /// Integer or string, encoded as one message.
    IntOrString,
    Message(&'static [Field]),
    /// Field that memkube drops, because it has no effect in a create.
    Ignored,
}

const fn field(number: u64, name: &'static str, form: Form, shape: Shape) -> Field {
    Field { number, name, form, shape }
}

const fn text(number: u64, name: &'static str) -> Field {
    field(number, name, Form::Value, Shape::Text)
}

const fn text_pointer(number: u64, name: &'static str) -> Field {
    field(number, name, Form::Pointer, Shape::Text)
}

const fn texts(number: u64, name: &'static str) -> Field {
    field(number, name, Form::List, Shape::Text)
}

const fn number(number: u64, name: &'static str) -> Field {
    field(number, name, Form::Value, Shape::Number)
}

const fn flag(number: u64, name: &'static str) -> Field {
    field(number, name, Form::Value, Shape::Flag)
}

const fn flag_pointer(number: u64, name: &'static str) -> Field {
    field(number, name, Form::Pointer, Shape::Flag)
}

const fn message(number: u64, name: &'static str, fields: &'static [Field]) -> Field {
    field(number, name, Form::Value, Shape::Message(fields))
}

const fn messages(number: u64, name: &'static str, fields: &'static [Field]) -> Field {
    field(number, name, Form::List, Shape::Message(fields))
}

const fn text_map(number: u64, name: &'static str) -> Field {
    const ENTRY: &[Field] = &[text(1, "key"), text(2, "value")];
    field(number, name, Form::Map, Shape::Message(ENTRY))
}

const fn bytes_map(number: u64, name: &'static str) -> Field {
    const ENTRY: &[Field] = &[text(1, "key"), field(2, "value", Form::Value, Shape::Bytes)];
    field(number, name, Form::Map, Shape::Message(ENTRY))
}

const fn ignored(number: u64, name: &'static str) -> Field {
    field(number, name, Form::Value, Shape::Ignored)
}

/// Fields of a kind's message, or `None` if memkube does not support the kind.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<&'static [Field]> {
    Some(match (api_version, kind) {
        ("v1", "ConfigMap") => CONFIG_MAP,
        ("v1", "Namespace") => NAMESPACE,
        ("v1", "Secret") => SECRET,
        ("v1", "Service") => SERVICE,
        ("v1", "ServiceAccount") => SERVICE_ACCOUNT,
        ("rbac.authorization.k8s.io/v1", "Role" | "ClusterRole") => ROLE,
        ("rbac.authorization.k8s.io/v1", "RoleBinding" | "ClusterRoleBinding") => ROLE_BINDING,
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview") => SELF_SUBJECT_ACCESS_REVIEW,
        _ => return None,
    })
}

/// Envelope of every object (`runtime.Unknown`).
pub(super) const UNKNOWN: &[Field] = &[
    message(1, "typeMeta", &[text(1, "apiVersion"), text(2, "kind")]),
    field(2, "raw", Form::Value, Shape::Bytes),
    text(3, "contentEncoding"),
    text(4, "contentType"),
];

pub(super) const INT_OR_STRING: &[Field] = &[number(1, "type"), number(2, "intVal"), text(3, "strVal")];

const OWNER_REFERENCE: &[Field] = &[
    text(1, "kind"),
    text(3, "name"),
    text(4, "uid"),
    text(5, "apiVersion"),
    flag_pointer(6, "controller"),
    flag_pointer(7, "blockOwnerDeletion"),
];

const METADATA: Field = message(
    1,
    "metadata",
    &[
        text(1, "name"),
        text(2, "generateName"),
        text(3, "namespace"),
        ignored(4, "selfLink"),
        text(5, "uid"),
        text(6, "resourceVersion"),
        ignored(7, "generation"),
        ignored(8, "creationTimestamp"),
        ignored(9, "deletionTimestamp"),
        ignored(10, "deletionGracePeriodSeconds"),
        text_map(11, "labels"),
        text_map(12, "annotations"),
        messages(13, "ownerReferences", OWNER_REFERENCE),
        texts(14, "finalizers"),
        ignored(17, "managedFields"),
    ],
);

const CONFIG_MAP: &[Field] = &[METADATA, text_map(2, "data"), bytes_map(3, "binaryData"), flag_pointer(4, "immutable")];

const NAMESPACE: &[Field] = &[METADATA, message(2, "spec", &[texts(1, "finalizers")]), ignored(3, "status")];

const SECRET: &[Field] =
    &[METADATA, bytes_map(2, "data"), text(3, "type"), text_map(4, "stringData"), flag_pointer(5, "immutable")];

const OBJECT_REFERENCE: &[Field] = &[
    text(1, "kind"),
    text(2, "namespace"),
    text(3, "name"),
    text(4, "uid"),
    text(5, "apiVersion"),
    text(6, "resourceVersion"),
    text(7, "fieldPath"),
];

const SERVICE_ACCOUNT: &[Field] = &[
    METADATA,
    messages(2, "secrets", OBJECT_REFERENCE),
    messages(3, "imagePullSecrets", &[text(1, "name")]),
    flag_pointer(4, "automountServiceAccountToken"),
];

const SERVICE_PORT: &[Field] = &[
    text(1, "name"),
    text(2, "protocol"),
    number(3, "port"),
    field(4, "targetPort", Form::Value, Shape::IntOrString),
    number(5, "nodePort"),
    text_pointer(6, "appProtocol"),
];

const SERVICE_SPEC: &[Field] = &[
    messages(1, "ports", SERVICE_PORT),
    text_map(2, "selector"),
    text(3, "clusterIP"),
    text(4, "type"),
    texts(5, "externalIPs"),
    text(7, "sessionAffinity"),
    text(8, "loadBalancerIP"),
    texts(9, "loadBalancerSourceRanges"),
    text(10, "externalName"),
    text(11, "externalTrafficPolicy"),
    number(12, "healthCheckNodePort"),
    flag(13, "publishNotReadyAddresses"),
    message(14, "sessionAffinityConfig", &[message(1, "clientIP", &[number(1, "timeoutSeconds")])]),
    text_pointer(17, "ipFamilyPolicy"),
    texts(18, "clusterIPs"),
    texts(19, "ipFamilies"),
    flag_pointer(20, "allocateLoadBalancerNodePorts"),
    text_pointer(21, "loadBalancerClass"),
    text_pointer(22, "internalTrafficPolicy"),
    text_pointer(23, "trafficDistribution"),
];

const SERVICE: &[Field] = &[METADATA, message(2, "spec", SERVICE_SPEC), ignored(3, "status")];

const POLICY_RULE: &[Field] = &[
    texts(1, "verbs"),
    texts(2, "apiGroups"),
    texts(3, "resources"),
    texts(4, "resourceNames"),
    texts(5, "nonResourceURLs"),
];

const ROLE: &[Field] = &[METADATA, messages(2, "rules", POLICY_RULE)];

const ROLE_BINDING: &[Field] = &[
    METADATA,
    messages(2, "subjects", &[text(1, "kind"), text(2, "apiGroup"), text(3, "name"), text(4, "namespace")]),
    message(3, "roleRef", &[text(1, "apiGroup"), text(2, "kind"), text(3, "name")]),
];

const RESOURCE_ATTRIBUTES: &[Field] = &[
    text(1, "namespace"),
    text(2, "verb"),
    text(3, "group"),
    text(4, "version"),
    text(5, "resource"),
    text(6, "subresource"),
    text(7, "name"),
];

const SELF_SUBJECT_ACCESS_REVIEW: &[Field] = &[
    METADATA,
    message(
        2,
        "spec",
        &[
            message(1, "resourceAttributes", RESOURCE_ATTRIBUTES),
            message(2, "nonResourceAttributes", &[text(1, "path"), text(2, "verb")]),
        ],
    ),
    ignored(3, "status"),
];
