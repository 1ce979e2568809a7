//! Query parameters of requests, with the checks of kube-apiserver.

use crate::status::{FieldError, Named, Status};
use crate::wire::{Query, Request};
use serde_json::{Value, json};

/// Longest `fieldManager` (apimachinery's `FieldManagerMaxLength`).
const FIELD_MANAGER_BYTES: usize = 128;

/// `fieldValidation`: the rule for unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

pub(super) struct WriteOptions {
    pub(super) dry_run: bool,
    pub(super) field_validation: FieldValidation,
}

impl WriteOptions {
    /// Decodes the options. `kind` is the kind in error messages, for example `CreateOptions`.
    pub(super) fn of(request: &Request, kind: &str) -> Result<Self, Status> {
        let query = &request.query;
        let mut errors = Vec::new();
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        if query.text("fieldManager").len() > FIELD_MANAGER_BYTES {
            errors.push(FieldError::too_long("fieldManager", FIELD_MANAGER_BYTES));
        }
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", &json!(other), &supported));
                FieldValidation::Warn
            }
        };
        refuse(kind, &errors)?;
        Ok(Self { dry_run, field_validation })
    }
}

/// Returns an error with code 422 if there are invalid options.
pub(super) fn refuse(kind: &str, errors: &[FieldError]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    let named = Named { group: "meta.k8s.io", kind, name: "" };
    Err(Status::invalid(named, errors))
}

/// Returns true for a dry run, in which the server stores nothing.
pub(super) fn dry_run(values: &[String], errors: &mut Vec<FieldError>) -> bool {
    if !values.iter().all(|value| value == "All") {
        errors.push(FieldError::not_supported("dryRun", &json!(values), &["All"]));
    }
    !values.is_empty()
}

/// State that a read requests with `resourceVersion` and `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The newest state.
    Newest,
    /// Any state; an earlier state is allowed.
    Any,
    /// This revision or a newer one.
    NotOlderThan(u64),
    /// Exactly this revision.
    Exactly(u64),
}

#[derive(Clone, Debug)]
pub(super) struct ListOptions {
    pub(super) wanted: Wanted,
    pub(super) limit: Option<usize>,
    pub(super) continue_token: String,
    pub(super) bookmarks: bool,
    pub(super) send_initial_events: Option<bool>,
    pub(super) timeout_seconds: Option<u64>,
}

impl ListOptions {
    pub(super) fn of(query: &Query, watch: bool) -> Result<Self, Status> {
        let send_initial_events = query.has("sendInitialEvents").then(|| query.flag("sendInitialEvents"));
        check_match(query, watch, send_initial_events)?;
        let version = query.text("resourceVersion");
        let positive = |number: i64| usize::try_from(number).ok().filter(|number| *number > 0);
        let limit = query.number("limit")?.and_then(positive);
        // A limit together with a resourceVersion, but without `resourceVersionMatch`, requests exactly this resourceVersion.
        let exactly = match query.text("resourceVersionMatch") {
            "" => limit.is_some() && !watch,
            word => word == "Exact",
        };
        let wanted = match version {
            "" => Wanted::Newest,
            "0" => Wanted::Any,
            _ => match (revision(version, watch)?, exactly) {
                (revision, true) => Wanted::Exactly(revision),
                (revision, false) => Wanted::NotOlderThan(revision),
            },
        };
        let timeout = query.number("timeoutSeconds")?;
        Ok(Self {
            wanted,
            // kube-apiserver reads a list with `resourceVersion=0` from its watch cache, and ignores the limit.
            limit: limit.filter(|_| wanted != Wanted::Any),
            continue_token: query.text("continue").to_owned(),
            bookmarks: query.flag("allowWatchBookmarks"),
            send_initial_events,
            timeout_seconds: timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0),
        })
    }
}

/// Checks the options of a get.
pub(super) fn get(query: &Query) -> Result<(), Status> {
    match query.text("resourceVersion") {
        "" => Ok(()),
        version => revision(version, true).map(drop),
    }
}

/// Parses a resourceVersion. If `plain` is true, the error has code 500 and a message without a prefix, as for gets and
/// watches.
fn revision(version: &str, plain: bool) -> Result<u64, Status> {
    version.parse().map_err(|_| {
        let why = format!(
            "resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax"
        );
        if plain { Status::unexpected(why) } else { Status::bad_request(format!("invalid resource version: {why}")) }
    })
}

const WITH_CONTINUE: &str = "resourceVersionMatch is forbidden when continue is provided";

/// Checks `resourceVersionMatch` and `sendInitialEvents`.
fn check_match(query: &Query, watch: bool, send_initial_events: Option<bool>) -> Result<(), Status> {
    let wanted = query.text("resourceVersionMatch");
    let version = query.text("resourceVersion");
    let mut errors = Vec::new();
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    if watch {
        let not_older_than = wanted == "NotOlderThan";
        if send_initial_events.is_some() && !not_older_than {
            forbid("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if send_initial_events.is_none() && !wanted.is_empty() {
            forbid(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            );
        }
        if !wanted.is_empty() && !not_older_than {
            errors.push(FieldError::not_supported("resourceVersionMatch", &Value::from(wanted), &["NotOlderThan"]));
        }
        if !query.text("continue").is_empty() {
            errors.push(FieldError::forbidden("resourceVersionMatch", WITH_CONTINUE));
        }
        return refuse("ListOptions", &errors);
    }
    if send_initial_events.is_some() {
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    if !wanted.is_empty() {
        if version.is_empty() {
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !query.text("continue").is_empty() {
            forbid("resourceVersionMatch", WITH_CONTINUE);
        }
        match wanted {
            "Exact" if version == "0" => {
                forbid("resourceVersionMatch", "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
            "Exact" | "NotOlderThan" => {}
            other => errors.push(FieldError::not_supported(
                "resourceVersionMatch",
                &Value::from(other),
                &["Exact", "NotOlderThan", ""],
            )),
        }
    }
    refuse("ListOptions", &errors)
}
