//! Node of a schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// Field of an error about the object as a whole.
pub(super) const NOWHERE: &str = "<nil>";

/// Node of a schema: the schema of one value.
#[derive(Default)]
pub(super) struct Node {
    /// The schema as the user wrote it, without the parts that are in the other fields.
    pub(super) given: JSONSchemaProps,
    pub(super) default: Option<Value>,
    pub(super) allowed: Option<Vec<Value>>,
    pub(super) pattern: Option<Regex>,
    pub(super) properties: BTreeMap<String, Node>,
    /// `additionalProperties`: the schema of members that are not in `properties`.
    pub(super) additional: Option<Box<Node>>,
    /// True for members that are in no schema: `additionalProperties: true` or `x-kubernetes-preserve-unknown-fields`.
    pub(super) keeps_unknown: bool,
    pub(super) items: Option<Box<Node>>,
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
}

impl Node {
    pub(super) fn nullable(&self) -> bool {
        self.given.nullable == Some(true)
    }

    pub(super) fn int_or_string(&self) -> bool {
        self.given.x_kubernetes_int_or_string == Some(true)
    }

    /// Schema of a member; `None` if the member has no schema.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }
}
