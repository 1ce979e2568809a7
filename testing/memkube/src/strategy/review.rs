//! Reviews of authentication and authorization.

use super::{Context, Strategy};
use crate::auth::{AUDIENCE, Call, Target, Token, User, Verb};
use crate::object::{Object, at, create, text_at};
use crate::status::{FieldError, Named, Status};
use serde_json::{Value, json};

/// Strategy of TokenReviews: returns the user of a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenReview;

impl Strategy for TokenReview {
    fn review(&self, context: &mut Context<'_>, mut object: Object) -> Result<Object, Status> {
        let token = text_at(&object, "spec.token");
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let asked = at(&object, "spec.audiences").and_then(Value::as_array).filter(|asked| !asked.is_empty());
        let is_asked = |audience: &str| {
            asked.map_or(audience == AUDIENCE, |asked| asked.iter().any(|one| one.as_str() == Some(audience)))
        };
        let known = context.tokens.get(token).map(|Token { user, audience }| (user.clone(), vec![audience.clone()]));
        let known = known.or_else(|| context.issuer.read(token, context.store, context.now));
        let known = known.map(|(user, audiences)| {
            let audiences: Vec<String> = audiences.into_iter().filter(|audience| is_asked(audience)).collect();
            (user, audiences)
        });
        let status = match known.filter(|(_, audiences)| !audiences.is_empty()) {
            None => json!({"error": "invalid bearer token", "user": {}}),
            Some((user, audiences)) => {
                json!({"authenticated": true, "audiences": audiences, "user": described(&user)})
            }
        };
        object.insert("status".to_owned(), status);
        Ok(object)
    }
}

/// Strategy of SelfSubjectReviews: returns the user of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelfSubjectReview;

impl Strategy for SelfSubjectReview {
    fn review(&self, context: &mut Context<'_>, mut object: Object) -> Result<Object, Status> {
        object.insert("metadata".to_owned(), json!({"creationTimestamp": create::timestamp(context.now)}));
        object.insert("status".to_owned(), json!({"userInfo": described(context.user)}));
        Ok(object)
    }
}

fn described(user: &User) -> Value {
    let groups: Vec<&str> = user.groups.iter().map(String::as_str).chain(["system:authenticated"]).collect();
    json!({"username": &*user.name, "groups": groups})
}

/// Strategy of access reviews, which return true if a user may make a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum AccessReview {
    /// `SelfSubjectAccessReview`: checks the user of the request.
    OfSelf,
    /// `SubjectAccessReview`: checks any user.
    OfOther,
}

impl Strategy for AccessReview {
    fn review(&self, context: &mut Context<'_>, mut object: Object) -> Result<Object, Status> {
        let user = match self {
            Self::OfSelf => context.user.clone(),
            Self::OfOther => subject(&object)?,
        };
        let given = |name: &str| at(&object, name).filter(|attributes| attributes.is_object());
        let text = |attributes: &Value, name: &str| attributes[name].as_str().unwrap_or_default().to_owned();
        let allowed = match (given("spec.resourceAttributes"), given("spec.nonResourceAttributes")) {
            (Some(attributes), None) => allowed(context, user, attributes),
            (None, Some(path)) => context.policy.allows_path(&user, &text(path, "verb"), &text(path, "path")),
            (both, _) => {
                let field = if both.is_some() { "spec.nonResourceAttributes" } else { "spec.resourceAttributes" };
                let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                return Err(refused(field, why));
            }
        };
        object.insert("status".to_owned(), json!({"allowed": allowed}));
        Ok(object)
    }
}

fn subject(object: &Object) -> Result<User, Status> {
    let name = text_at(object, "spec.user");
    let groups = at(object, "spec.groups").and_then(Value::as_array).into_iter().flatten();
    let groups: Vec<String> = groups.filter_map(Value::as_str).map(str::to_owned).collect();
    if name.is_empty() && groups.is_empty() {
        return Err(refused("spec.user", "at least one of user or group must be specified"));
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
fn refused(field: &str, why: &str) -> Status {
    let named = Named { group: "authorization.k8s.io", kind: "", name: "" };
    Status::invalid(named, &[FieldError::invalid(field, &Value::Null, why)])
}
