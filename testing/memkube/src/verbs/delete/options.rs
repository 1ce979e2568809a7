//! Options of a delete, from the request's body or query.

use crate::status::{FieldError, Named, Status};
use crate::store::Stored;
use crate::verbs::garbage::{FOREGROUND, ORPHAN};
use crate::verbs::options;
use crate::wire::Request;
use serde::Deserialize;
use serde_json::json;

#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) grace_period_seconds: Option<i64>,
    /// Finalizer of the propagation policy. `None` for deletion of the dependents in the background.
    pub(crate) finalizer: Option<&'static str>,
    preconditions: Preconditions,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Body {
    dry_run: Option<Vec<String>>,
    grace_period_seconds: Option<i64>,
    orphan_dependents: Option<bool>,
    preconditions: Option<Preconditions>,
    propagation_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    pub(crate) fn of(request: &Request) -> Result<Self, Status> {
        let body = if request.body.is_empty() {
            from_query(request)?
        } else {
            serde_json::from_slice(&request.body)
                .map_err(|error| Status::bad_request(format!("DeleteOptions cannot be handled: {error}")))?
        };
        let mut errors = Vec::new();
        let policy = match body.orphan_dependents {
            Some(true) => Some("Orphan".to_owned()),
            _ => body.propagation_policy,
        };
        let finalizer = match policy.as_deref() {
            None | Some("Background") => None,
            Some("Foreground") => Some(FOREGROUND),
            Some("Orphan") => Some(ORPHAN),
            Some(other) => {
                let supported = ["Background", "Foreground", "Orphan"];
                errors.push(FieldError::not_supported("propagationPolicy", &json!(other), &supported));
                None
            }
        };
        let dry_run = options::dry_run(&body.dry_run.unwrap_or_default(), &mut errors);
        options::refuse("DeleteOptions", &errors)?;
        let preconditions = body.preconditions.unwrap_or_default();
        Ok(Self { dry_run, grace_period_seconds: body.grace_period_seconds, finalizer, preconditions })
    }

    /// Checks the preconditions of a delete: the UID and resourceVersion in its options.
    pub(crate) fn check(&self, named: Named<'_>, stored: &Stored) -> Result<(), Status> {
        let Preconditions { uid, resource_version } = &self.preconditions;
        let revision = stored.header.revision.to_string();
        for (name, wanted, own) in [("UID", uid, &*stored.header.uid), ("ResourceVersion", resource_version, &revision)]
        {
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != own) {
                let why =
                    format!("the {name} in the precondition ({wanted}) does not match the {name} in record ({own})");
                return Err(Status::conflict(named, &why));
            }
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
        preconditions: None,
    })
}
