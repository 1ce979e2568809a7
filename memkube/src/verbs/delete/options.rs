//! Options of a delete, from the request's body or query.

use crate::object::shape::go_type;
use crate::object::{self, Object, finalizers};
use crate::status::{FieldError, Named, Status};
use crate::store::Stored;
use crate::verbs::garbage::{FOREGROUND, ORPHAN};
use crate::verbs::options;
use crate::wire::Request;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) grace_period_seconds: Option<i64>,
    /// True if the request has `orphanDependents=false`. If the object still exists after the delete, the response is then 202
    /// instead of 200.
    pub(crate) waits: bool,
    propagation: Option<Propagation>,
    uid: Option<String>,
    revision: Option<String>,
}

/// `propagationPolicy`: rule for the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    /// Dependents are deleted before the object.
    Foreground,
    /// Dependents are deleted after the object.
    Background,
    /// Dependents stay.
    Orphan,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    api_version: Option<String>,
    kind: Option<String>,
    dry_run: Option<Vec<String>>,
    grace_period_seconds: Option<i64>,
    orphan_dependents: Option<bool>,
    preconditions: Option<Preconditions>,
    propagation_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    pub(crate) fn of(request: &Request) -> Result<Self, Status> {
        let body = if request.body.is_empty() { from_query(request)? } else { from_body(&request.body)? };
        let mut errors = Vec::new();
        let policies = ["Foreground", "Background", "Orphan", "nil"];
        if let Some(policy) = &body.propagation_policy {
            if body.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid("propagationPolicy", &json!(policy), why));
            } else if !policies[..3].contains(&policy.as_str()) {
                errors.push(FieldError::not_supported("propagationPolicy", &json!(policy), &policies));
            }
        }
        let waits = body.orphan_dependents == Some(false);
        let propagation = match (body.orphan_dependents, body.propagation_policy.as_deref()) {
            (Some(true), _) | (None, Some("Orphan")) => Some(Propagation::Orphan),
            (None, Some("Foreground")) => Some(Propagation::Foreground),
            (Some(false), _) | (None, Some(_)) => Some(Propagation::Background),
            (None, None) => None,
        };
        let dry_run = options::dry_run(&body.dry_run.unwrap_or_default(), &mut errors);
        options::refuse("DeleteOptions", &errors)?;
        let preconditions = body.preconditions.unwrap_or_default();
        Ok(Self {
            dry_run,
            grace_period_seconds: body.grace_period_seconds,
            waits,
            propagation,
            uid: preconditions.uid,
            revision: preconditions.resource_version,
        })
    }

    /// Adds the finalizer of the propagation policy, and removes the finalizers of other policies. Changes nothing if the
    /// request has no policy. Returns true if the finalizers changed.
    pub(crate) fn mark(&self, object: &mut Object) -> bool {
        let Some(propagation) = self.propagation else { return false };
        let before: Vec<String> = finalizers(object).map(str::to_owned).collect();
        let others = before.iter().map(String::as_str).filter(|finalizer| ![ORPHAN, FOREGROUND].contains(finalizer));
        let own = match propagation {
            Propagation::Foreground => Some(FOREGROUND),
            Propagation::Orphan => Some(ORPHAN),
            Propagation::Background => None,
        };
        let after: Vec<&str> = others.chain(own).collect();
        let same = after.len() == before.len() && before.iter().all(|finalizer| after.contains(&finalizer.as_str()));
        if !same {
            let after = json!(after);
            object::set_meta(object, "finalizers", after);
        }
        !same
    }

    /// Checks the preconditions of a delete: the UID and resourceVersion in its options.
    pub(crate) fn check(&self, named: Named<'_>, stored: &Stored) -> Result<(), Status> {
        let own = stored.header.uid.as_ref();
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != own) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({own}). The object might have \
                 been deleted and then recreated"
            );
            return Err(Status::conflict(named, &why));
        }
        let own = stored.header.revision.to_string();
        if let Some(revision) = self.revision.as_deref().filter(|revision| *revision != own) {
            let why = format!(
                "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record \
                 ({own}). The object might have been modified"
            );
            return Err(Status::conflict(named, &why));
        }
        Ok(())
    }
}

fn from_query(request: &Request) -> Result<Body, Status> {
    let query = &request.query;
    let text = |name: &str| Some(query.text(name).to_owned()).filter(|text| !text.is_empty());
    Ok(Body {
        dry_run: Some(query.all("dryRun").to_vec()),
        grace_period_seconds: query.number("gracePeriodSeconds")?,
        orphan_dependents: query.has("orphanDependents").then(|| query.flag("orphanDependents")),
        propagation_policy: text("propagationPolicy"),
        ..Body::default()
    })
}

fn from_body(body: &[u8]) -> Result<Body, Status> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("couldn't get version/kind; json parse error: {error}")))?;
    if !value.is_object() {
        let found = go_type(&value);
        let message =
            format!("couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value");
        return Err(Status::bad_request(message));
    }
    let body: Body = serde_json::from_value(value)
        .map_err(|error| Status::bad_request(format!("DeleteOptions in version \"v1\" cannot be handled: {error}")))?;
    // `apiVersion` is not checked, because clients may also send the group and version of the resource.
    let kind = body.kind.as_deref().unwrap_or("DeleteOptions");
    if kind != "DeleteOptions" {
        let version = body.api_version.as_deref().unwrap_or_default();
        let message = format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        return Err(Status::bad_request(message));
    }
    Ok(body)
}
