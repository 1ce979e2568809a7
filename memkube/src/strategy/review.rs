//! Reviews: who is behind a token, and who may do what.

use super::{Context, Strategy};
use crate::auth::{Call, Target, User, Verb};
use crate::object::{Object, at, text_at};
use crate::status::{FieldError, Named, Status};
use serde_json::{Value, json};

/// Whom tokens of this server are for.
const AUDIENCE: &str = "https://kubernetes.default.svc";

/// Who is behind a token.
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
        let status = match context.tokens.get(token).filter(|_| for_us) {
            None => json!({"user": {}, "error": "invalid bearer token"}),
            Some(user) => json!({"authenticated": true, "user": described(user), "audiences": [AUDIENCE]}),
        };
        object.insert("status".to_owned(), status);
        Ok(object)
    }
}

fn described(user: &User) -> Value {
    let mut groups: Vec<&str> = user.groups.iter().map(String::as_str).collect();
    groups.push("system:authenticated");
    json!({"username": &*user.name, "groups": groups})
}

/// Whether a user may do something: the one who asks, or another.
#[derive(Clone, Copy, Debug)]
pub(super) enum AccessReview {
    /// `SelfSubjectAccessReview`.
    OfSelf,
    /// `SubjectAccessReview`.
    OfOther,
}

impl Strategy for AccessReview {
    fn review(&self, context: &mut Context<'_>, mut object: Object) -> Result<Object, Status> {
        let user = match self {
            Self::OfSelf => context.user.clone(),
            Self::OfOther => subject(&object)?,
        };
        let resource = at(&object, "spec.resourceAttributes").filter(|attributes| attributes.is_object());
        let path = at(&object, "spec.nonResourceAttributes").filter(|attributes| attributes.is_object());
        let allowed = match (resource, path) {
            (Some(attributes), None) => call(user, attributes).is_some_and(|call| context.policy.allows(&call)),
            (None, Some(attributes)) => {
                let text = |name: &str| attributes[name].as_str().unwrap_or_default();
                context.policy.allows_path(&user, text("verb"), text("path"))
            }
            (Some(_), Some(attributes)) => {
                let text = |name: &str| attributes[name].as_str().unwrap_or_default();
                let shown = json!({"Path": text("path"), "Verb": text("verb")});
                let why = "cannot be specified in combination with resourceAttributes";
                return Err(refused("spec.nonResourceAttributes", &shown, why));
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

/// The call that attributes describe; none where there is no such verb.
fn call(user: User, attributes: &Value) -> Option<Call> {
    let text = |name: &str| attributes[name].as_str().unwrap_or_default();
    Some(Call {
        user,
        verb: Verb::of(text("verb"))?,
        target: Target {
            group: text("group").into(),
            version: text("version").into(),
            resource: text("resource").into(),
            subresource: text("subresource").into(),
            namespace: text("namespace").into(),
            name: text("name").into(),
        },
    })
}

/// 422, in which kube-apiserver leaves out the kind.
fn refused(field: &str, value: &Value, why: &str) -> Status {
    let named = Named { group: "authorization.k8s.io", kind: "", name: "" };
    Status::invalid(named, &[FieldError::invalid(field, value, why)])
}
