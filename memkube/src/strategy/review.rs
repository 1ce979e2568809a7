//! Reviews of authentication and authorization.

use super::{Context, Strategy};
use crate::auth::{Call, Target, User, Verb};
use crate::object::{Object, at, create, meta_text, text_at};
use crate::status::{FieldError, Named, Status};
use serde_json::{Value, json};

/// Audience of this server's tokens.
const AUDIENCE: &str = "https://kubernetes.default.svc";

/// Strategy of TokenReviews: returns the user of a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenReview;

impl Strategy for TokenReview {
    fn review(&self, context: &mut Context<'_>, mut object: Object) -> Result<Object, Status> {
        let token = text_at(&object, "spec.token");
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let audiences = at(&object, "spec.audiences").and_then(Value::as_array);
        let for_us = audiences.is_none_or(|asked| asked.is_empty() || asked.iter().any(|one| one == AUDIENCE));
        let mut status = at(&object, "status").and_then(Value::as_object).cloned().unwrap_or_default();
        match context.tokens.get(token).filter(|_| for_us) {
            None => status.insert("error".to_owned(), json!("invalid bearer token")),
            Some(user) => {
                status.insert("authenticated".to_owned(), json!(true));
                status.insert("audiences".to_owned(), json!([AUDIENCE]));
                status.insert("user".to_owned(), described(user))
            }
        };
        status.entry("user").or_insert_with(|| json!({}));
        object.insert("status".to_owned(), status.into());
        if let Some(Value::Object(spec)) = object.get_mut("spec") {
            // Remove empty lists from `spec`, because Go omits them when it encodes the object.
            spec.retain(|_, field| field != &json!([]));
        }
        Ok(object)
    }
}

fn described(user: &User) -> Value {
    let mut groups: Vec<&str> = user.groups.iter().map(String::as_str).collect();
    groups.push("system:authenticated");
    json!({"username": &*user.name, "groups": groups})
}

/// Strategy of SelfSubjectReviews: returns the user of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelfSubjectReview;

impl Strategy for SelfSubjectReview {
    fn review(&self, context: &mut Context<'_>, mut object: Object) -> Result<Object, Status> {
        let at = create::timestamp(context.now);
        object.insert("metadata".to_owned(), json!({"creationTimestamp": at}));
        object.insert("status".to_owned(), json!({"userInfo": described(context.user)}));
        Ok(object)
    }
}

/// Strategy of access reviews, which return true if a user may make a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum AccessReview {
    /// `SelfSubjectAccessReview`: checks the user of the request.
    OfSelf,
    /// `SubjectAccessReview`: checks any user.
    OfOther,
    /// `LocalSubjectAccessReview`: checks any user, in one namespace.
    InNamespace,
}

impl Strategy for AccessReview {
    fn review(&self, context: &mut Context<'_>, mut object: Object) -> Result<Object, Status> {
        let user = match self {
            Self::OfSelf => context.user.clone(),
            Self::OfOther => subject(&object)?,
            Self::InNamespace => {
                check_local(&object)?;
                subject(&object)?
            }
        };
        let resource = at(&object, "spec.resourceAttributes").filter(|attributes| attributes.is_object());
        let path = at(&object, "spec.nonResourceAttributes").filter(|attributes| attributes.is_object());
        let allowed = match (resource, path) {
            (Some(attributes), None) => allowed(context, user, attributes),
            (None, Some(attributes)) => {
                let text = |name: &str| attributes[name].as_str().unwrap_or_default();
                context.policy.allows_path(&user, text("verb"), text("path"))
            }
            (Some(_), Some(attributes)) => {
                let why = "cannot be specified in combination with resourceAttributes";
                return Err(refused("spec.nonResourceAttributes", &shown(attributes), why));
            }
            (None, None) => {
                let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                return Err(refused("spec.resourceAttributes", &Value::Null, why));
            }
        };
        object.insert("status".to_owned(), json!({"allowed": allowed}));
        Ok(object)
    }
}

/// Checks that a LocalSubjectAccessReview asks about the namespace in its metadata.
fn check_local(object: &Object) -> Result<(), Status> {
    let asked = text_at(object, "spec.resourceAttributes.namespace");
    if at(object, "spec.resourceAttributes").is_some() && asked != meta_text(object, "namespace") {
        let field = "spec.resourceAttributes.namespace";
        return Err(refused(field, &json!(asked), "must match metadata.namespace"));
    }
    match at(object, "spec.nonResourceAttributes").filter(|attributes| attributes.is_object()) {
        Some(path) => Err(refused("spec.nonResourceAttributes", &shown(path), "disallowed on this kind of request")),
        None => Ok(()),
    }
}

/// Returns `nonResourceAttributes` as messages of kube-apiserver show it, with the field names of Go.
fn shown(path: &Value) -> Value {
    let text = |name: &str| path[name].as_str().unwrap_or_default();
    json!({"Path": text("path"), "Verb": text("verb")})
}

fn subject(object: &Object) -> Result<User, Status> {
    let name = text_at(object, "spec.user");
    let groups = at(object, "spec.groups").and_then(Value::as_array);
    let groups = groups.into_iter().flatten().filter_map(Value::as_str);
    let groups: Vec<String> = groups.map(str::to_owned).collect();
    if name.is_empty() && groups.is_empty() {
        return Err(refused("spec.user", &json!(""), "at least one of user or group must be specified"));
    }
    Ok(User::new(name).with_groups(groups))
}

/// True if the policy allows the request that the attributes describe. The verb may be any text.
fn allowed(context: &Context<'_>, user: User, attributes: &Value) -> bool {
    let text = |name: &str| attributes[name].as_str().unwrap_or_default();
    let target = Target {
        group: text("group").into(),
        version: text("version").into(),
        resource: text("resource").into(),
        subresource: text("subresource").into(),
        namespace: text("namespace").into(),
        name: text("name").into(),
    };
    match Verb::of(text("verb")) {
        Some(verb) => context.policy.allows(&Call { user, verb, target }),
        None => context.policy.allows_other(&user, text("verb"), &target),
    }
}

/// Response with code 422 for a bad field. As in kube-apiserver, the response does not contain the kind.
fn refused(field: &str, value: &Value, why: &str) -> Status {
    let named = Named { group: "authorization.k8s.io", kind: "", name: "" };
    Status::invalid(named, &[FieldError::invalid(field, value, why)])
}
