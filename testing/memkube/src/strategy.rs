//! Rules of one kind: defaults, validation, and the fields that a write may change. The verbs call the methods of
//! [`Strategy`].
//!
//! A create calls these methods in order:
//!
//! 1. `decode`, `set_defaults`, `prepare_for_create`, `validate`.
//! 2. After the object is stored: `committed`.
//!
//! An update (replace or patch) calls:
//!
//! 1. `decode`, `set_defaults`.
//! 2. `prepare_for_update` or `prepare_for_status_update`.
//! 3. `validate_update` or `validate_status_update`.
//! 4. After the object is stored: `committed`.
//!
//! The verbs validate metadata, which has the same rules for all kinds.

mod addresses;
pub(crate) mod builtin;
mod custom_resource;
mod custom_resource_definition;
mod endpoint_slice;
mod event;
mod lease;
mod list_merge;
mod namespace;
mod pod;
mod review;
mod secret;
mod service;
pub(crate) mod typed;
pub(crate) mod workload;

pub use list_merge::ListMerge;

use crate::auth::{Policy, Token, User};
use crate::columns::{AGE, Column, NAME};
use crate::issuer::Issuer;
use crate::object::Object;
use crate::random::Random;
use crate::registry::{Definition, ResourceId};
use crate::status::{FieldError, Status};
use crate::store::{Change, Fields, Store};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// Context of a call: the request and the state of the server.
#[allow(missing_debug_implementations, reason = "it is made for one call")]
pub struct Context<'a> {
    pub definition: &'a Definition,
    /// Version of the request. Objects have the form of this version.
    pub version: &'a str,
    /// All stored objects.
    pub store: &'a Store,
    pub user: &'a User,
    pub now: Timestamp,
    /// Random numbers from the server's seed.
    pub random: &'a mut Random,
    pub policy: &'a dyn Policy,
    /// Users and audiences by their bearer token.
    pub tokens: &'a BTreeMap<String, Token>,
    pub(crate) issuer: Issuer,
}

/// Rule of a kind: the changes that increment `metadata.generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has no generation.
    Absent,
    /// The generation is 1 after the create. The generation increments when a field outside metadata changes. A change
    /// of status counts only if the kind has no status subresource.
    Content,
    /// Like `Content`, but a change of labels increments the generation too (EndpointSlice).
    ContentAndLabels,
}

/// Effect of a commit on the registered resources. The server executes the effect immediately, under the same lock.
#[allow(missing_debug_implementations, reason = "strategies are code")]
pub enum Effect {
    /// Registers a resource, or replaces its definition.
    Register(Box<Definition>, Box<dyn Strategy>),
    /// Removes a resource and its objects.
    Unregister(ResourceId),
}

/// Findings in the body of a request that do not make the body invalid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Texts of findings, for example `unknown field "spec.foo"`. The query parameter `fieldValidation` decides if the
    /// server ignores the findings, sends them as warnings or rejects the request.
    pub strict: Vec<String>,
}

/// Error for a body that cannot be decoded as an object of the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable(pub String);

/// Rules of one kind. The default implementations are those of a kind without special rules.
///
/// Only [`Strategy::committed`] may change the state of the strategy, for example allocations. After every other
/// method, the request may still fail or be a dry run.
pub trait Strategy: Send + 'static {
    /// Checks the body of a request, including `apiVersion` and `kind`. Metadata is already checked.
    ///
    /// Drops unknown fields and adds them to `findings`. Rejects values of the wrong type.
    ///
    /// # Errors
    /// If the body is not an object of the kind. The response is 400, or 422 for the result of a patch.
    fn decode(&self, version: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        let _ = (version, object, findings);
        Ok(())
    }

    /// Sets defaults for fields that the client omitted.
    fn set_defaults(&self, version: &str, object: &mut Object) {
        let _ = (version, object);
    }

    /// Drops fields that a client may not set, and sets fields that the server decides. Metadata is already complete.
    ///
    /// # Errors
    /// Response that rejects the request.
    fn prepare_for_create(&self, context: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        if context.definition.has_status() {
            object.remove("status");
        }
        Ok(())
    }

    /// Restores fields that this request may not change. The verbs increment the generation, not this method.
    ///
    /// # Errors
    /// Response that rejects the request.
    fn prepare_for_update(&self, context: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        if context.definition.has_status() {
            copy_member("status", old, object);
        }
        Ok(())
    }

    /// Restores everything except the status. By default, the metadata of built-in kinds is not restored either.
    ///
    /// # Errors
    ///
    /// Response that rejects the request.
    fn prepare_for_status_update(
        &self,
        context: &mut Context<'_>,
        object: &mut Object,
        old: &Object,
    ) -> Result<(), Status> {
        let new = std::mem::replace(object, old.clone());
        let written: &[&str] = if context.definition.custom {
            &["apiVersion", "kind", "status"]
        } else {
            &["apiVersion", "kind", "status", "metadata"]
        };
        written.iter().for_each(|name| copy_member(name, &new, object));
        Ok(())
    }

    fn validate(&self, context: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let _ = (context, object);
        Vec::new()
    }

    /// Validates an update. By default, an update is validated like a new object.
    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let _ = old;
        self.validate(context, object)
    }

    fn validate_status_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        self.validate_update(context, object, old)
    }

    /// Returns the rule that a name breaks. By default, a name must be an RFC 1123 subdomain, as for most kinds.
    /// `prefix` is true for a `generateName`.
    fn check_name(&self, name: &str, prefix: bool) -> Option<&'static str> {
        crate::object::names::subdomain(name, prefix)
    }

    /// Rule for the changes that increment the generation.
    fn generation(&self) -> Generation {
        Generation::Absent
    }

    /// Names of selectable fields, except `metadata.name` and `metadata.namespace`.
    fn selectable_names(&self, version: &str) -> Vec<String> {
        let _ = version;
        Vec::new()
    }

    /// Values of the selectable fields of an object.
    fn selectable_fields(&self, object: &Object) -> Fields {
        let _ = object;
        Fields::new()
    }

    /// Columns of the kind in a `Table`.
    fn columns(&self, version: &str) -> Vec<Column> {
        let _ = version;
        vec![Column::text(NAME.0, NAME.1), Column::age(AGE.0, AGE.1)]
    }

    /// True if an update may have no resourceVersion.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// True if a replace of an absent object creates the object.
    fn allows_create_on_update(&self) -> bool {
        false
    }

    /// True if the response to a delete is the object instead of a Status.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// Seconds between a delete request and the removal of the object. `None` for kinds without graceful deletion, so
    /// for all kinds except Pods. `asked` is the client's `gracePeriodSeconds`.
    fn grace_period_seconds(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        let _ = (object, asked);
        None
    }

    /// Changes an object whose deletion has started but is not complete. The object already has its deletionTimestamp.
    fn mark_deleting(&self, object: &mut Object) {
        crate::object::set_meta(object, "deletionGracePeriodSeconds", 0);
    }

    /// True if something other than `metadata.finalizers` delays the deletion, for example `spec.finalizers` of a
    /// namespace.
    fn keeps_deleted(&self, object: &Object) -> bool {
        let _ = object;
        false
    }

    /// Way in which a strategic merge patch merges the list at a path, for example `spec.ports`. Paths contain no list
    /// indexes.
    fn list_merge(&self, path: &str) -> ListMerge {
        list_merge::list_merge(path)
    }

    /// True if objects of this version differ from stored objects only in `apiVersion`, so they need no conversion.
    fn stored_form_serves(&self, version: &str) -> bool {
        let _ = version;
        true
    }

    /// Converts an object to another version. Called only if [`Strategy::stored_form_serves`] returns false for the
    /// version.
    fn convert(&self, object: &mut Object, to: &str) {
        let _ = (object, to);
    }

    /// Called after a change of an object was stored. Returns the effects of the change.
    fn committed(&mut self, change: &Change) -> Vec<Effect> {
        let _ = change;
        Vec::new()
    }

    /// Handles a create of a resource that is not stored, such as a review. Returns the object of the response.
    ///
    /// # Errors
    /// Response that rejects the request.
    fn review(&self, context: &mut Context<'_>, object: Object) -> Result<Object, Status> {
        let _ = context;
        Ok(object)
    }
}

/// Strategy of a kind without special rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Strategy for Plain {}

/// Copies a member from `from` to `to`. Removes the member from `to` if it is absent in `from`.
pub fn copy_member(name: &str, from: &Object, to: &mut Object) {
    match from.get(name).cloned() {
        Some(value) => to.insert(name.to_owned(), value),
        None => to.remove(name),
    };
}

/// Values of fields by their paths, for field selectors. An absent field counts as empty.
fn fields_at(object: &Object, paths: &[&str]) -> Fields {
    let value = |path: &&str| match crate::object::at(object, path) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    paths.iter().map(|path| ((*path).to_owned(), value(path))).collect()
}
