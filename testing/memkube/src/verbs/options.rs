//! Query parameters of requests, with the checks of kube-apiserver.

use crate::status::{FieldError, Named, Status};
use crate::wire::{Query, Request};
use serde_json::{Value, json};

/// `fieldValidation`: the rule for unknown fields.
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
        // A limit together with a resourceVersion, but without `resourceVersionMatch`, requests exactly this
        // resourceVersion.
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

/// Parses a resourceVersion. If `plain` is true, the error has code 500, as for gets and watches.
fn revision(version: &str, plain: bool) -> Result<u64, Status> {
    version.parse().map_err(|_| {
        let why = format!("resourceVersion: Invalid value: {version:?}: invalid syntax");
        if plain { Status::unexpected(why) } else { Status::bad_request(why) }
    })
}

/// Checks `resourceVersionMatch` and `sendInitialEvents`.
fn check_match(query: &Query, watch: bool, send_initial_events: Option<bool>) -> Result<(), Status> {
    let wanted = query.text("resourceVersionMatch");
    let version = query.text("resourceVersion");
    let supported: &[&str] = if watch { &["NotOlderThan"] } else { &["Exact", "NotOlderThan"] };
    let given = !wanted.is_empty();
    let rules = [
        (watch && send_initial_events.is_some() && wanted != "NotOlderThan", "sendInitialEvents requires NotOlderThan"),
        (
            watch && send_initial_events.is_none() && given,
            "it is forbidden for watch unless sendInitialEvents is provided",
        ),
        (!watch && given && version.is_empty(), "it is forbidden unless resourceVersion is provided"),
        ((watch || given) && !query.text("continue").is_empty(), "it is forbidden when continue is provided"),
        (!watch && wanted == "Exact" && version == "0", "\"Exact\" is forbidden for resourceVersion \"0\""),
    ];
    let mut errors = Vec::new();
    if !watch && send_initial_events.is_some() {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    let broken = rules.into_iter().filter(|(broken, _)| *broken);
    errors.extend(broken.map(|(_, why)| FieldError::forbidden("resourceVersionMatch", why)));
    if given && !supported.contains(&wanted) {
        errors.push(FieldError::not_supported("resourceVersionMatch", &Value::from(wanted), supported));
    }
    refuse("ListOptions", &errors)
}
