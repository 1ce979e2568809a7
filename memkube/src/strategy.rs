//! The rules of one kind: defaults, validation, what a write may change. The verbs ask; [`Strategy`] answers.
//!
//! On a create: `decode`, `set_defaults`, `prepare_for_create`, `validate`, then it is stored and `committed`. On an
//! update, however the new object came about (replace or patch): `decode`, `set_defaults`, `prepare_for_update` (or
//! `prepare_for_status_update`), `validate_update` (or `validate_status_update`), then stored and `committed`.
//! Metadata is checked by the verbs for all kinds alike.

mod addresses;
pub(crate) mod builtin;
mod config_map;
mod custom_resource;
mod custom_resource_definition;
mod endpoint_slice;
mod event;
mod lease;
mod namespace;
mod pod;
mod review;
mod service;
pub(crate) mod shape;

use crate::auth::{Policy, User};
use crate::object::Object;
use crate::random::Random;
use crate::registry::{Definition, ResourceId};
use crate::status::{FieldError, Status};
use crate::store::{Change, Fields, Store};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a rule may look at beside the object itself.
#[allow(missing_debug_implementations, reason = "it is made for one call")]
pub struct Context<'a> {
    /// The resource's.
    pub definition: &'a Definition,
    /// The version that the request speaks; objects are given and taken in it.
    pub version: &'a str,
    /// All other objects.
    pub store: &'a Store,
    /// Who asks.
    pub user: &'a User,
    /// The time.
    pub now: Timestamp,
    /// From the server's seed.
    pub random: &'a mut Random,
    /// Told to the client as `Warning` headers.
    pub warnings: &'a mut Vec<String>,
    /// Nothing will be stored.
    pub dry_run: bool,
    /// Who may do what.
    pub policy: &'a dyn Policy,
    /// Who is behind a token.
    pub tokens: &'a BTreeMap<String, User>,
}

/// When `metadata.generation` moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has none.
    Absent,
    /// 1 from the create on; up by one when anything but metadata and, where there is a status subresource, status
    /// changes.
    Content,
    /// As `Content`, and when labels change (EndpointSlice).
    ContentAndLabels,
}

/// Something that follows from a commit, done at once and under the same lock.
#[allow(missing_debug_implementations, reason = "strategies are code")]
pub enum Effect {
    /// There is a new resource, or a new form of one.
    Register(Box<Definition>, Box<dyn Strategy>),
    /// The resource is gone, with its objects.
    Unregister(ResourceId),
}

/// What a client's body had that the kind does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// As messages have them: `unknown field "spec.foo"`. They are ignored, warned of or refused by `fieldValidation`.
    pub strict: Vec<String>,
}

/// Why a client's body is no object of the kind, in the words of Go's decoder:
/// `json: cannot unmarshal number into Go struct field ServicePort.spec.ports.name of type string`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable(pub String);

/// How a strategic merge patch merges a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// The patch's list takes its place.
    Replace,
    /// Items are objects that this member tells apart.
    ByKey(&'static str),
    /// Items are values; those that are new are added.
    Set,
}

/// The rules of one kind. Every method has the default of a kind without rules of its own.
///
/// Methods that change state of the strategy itself (allocations) do it in [`Strategy::committed`] only, since a request
/// may still fail, or be a dry run, after everything else was asked.
pub trait Strategy: Send + 'static {
    /// Looks at what a client sent, `apiVersion` and `kind` included: drops fields that the kind does not have, noting
    /// them in `findings`, and refuses values of the wrong type.
    ///
    /// # Errors
    /// Where it is no such object at all. The verbs make 400 of it, or 422 where it is what came of a patch.
    fn decode(&self, version: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        let _ = (version, object, findings);
        Ok(())
    }

    /// Fills in what the client left out.
    fn set_defaults(&self, version: &str, object: &mut Object) {
        let _ = (version, object);
    }

    /// Drops what a client may not set and fills in what the server decides. Metadata is complete.
    ///
    /// # Errors
    /// What refuses the request as a whole.
    fn prepare_for_create(&self, context: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        if context.definition.has_status() {
            object.remove("status");
        }
        Ok(())
    }

    /// Puts back what this request may not change. Generation is moved by the verbs.
    ///
    /// # Errors
    /// What refuses the request as a whole.
    fn prepare_for_update(&self, context: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        if context.definition.has_status() {
            copy_member("status", old, object);
        }
        Ok(())
    }

    /// Puts back all but the status. The default is that of custom resources, where metadata stays as it was too.
    ///
    /// # Errors
    /// What refuses the request as a whole.
    fn prepare_for_status_update(
        &self,
        context: &mut Context<'_>,
        object: &mut Object,
        old: &Object,
    ) -> Result<(), Status> {
        let status = object.remove("status");
        let kept = ["apiVersion", "kind"].map(|name| (name, object.get(name).cloned()));
        if context.definition.custom {
            object.clone_from(old);
        } else {
            let metadata = object.remove("metadata");
            object.clone_from(old);
            put_member("metadata", metadata, object);
        }
        for (name, value) in kept {
            put_member(name, value, object);
        }
        put_member("status", status, object);
        Ok(())
    }

    /// What is wrong with a new object.
    fn validate(&self, context: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let _ = (context, object);
        Vec::new()
    }

    /// What is wrong with an update; the default is what is wrong with the new object.
    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let _ = old;
        self.validate(context, object)
    }

    /// What is wrong with an update of the status.
    fn validate_status_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        self.validate_update(context, object, old)
    }

    /// What is wrong with a name; the default is that of most kinds (RFC 1123 subdomain). `prefix`: it is what
    /// generated names begin with.
    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        crate::object::names::subdomain(name, prefix)
    }

    /// When the generation moves.
    fn generation(&self) -> Generation {
        Generation::Absent
    }

    /// Fields that field selectors know beside `metadata.name` and `metadata.namespace`.
    fn selectable_names(&self, version: &str) -> Vec<String> {
        let _ = version;
        Vec::new()
    }

    /// Their values in an object.
    fn selectable_fields(&self, object: &Object) -> Fields {
        let _ = object;
        Fields::new()
    }

    /// Whether an update without a resourceVersion is taken.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Whether a replace of what is not there creates it.
    fn allows_create_on_update(&self) -> bool {
        false
    }

    /// Whether a delete answers with the object instead of a status.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// Seconds that an object stays with a deletionTimestamp after a delete, for kinds that are deleted gracefully
    /// (Pods). `asked`: the client's `gracePeriodSeconds`.
    fn grace_period_seconds(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        let _ = (object, asked);
        None
    }

    /// Marks an object that is deleted but stays for now; it has its deletionTimestamp.
    fn mark_deleting(&self, object: &mut Object) {
        crate::object::set_meta(object, "deletionGracePeriodSeconds", 0);
    }

    /// Whether something beside `metadata.finalizers` keeps an object that is deleted (a namespace's
    /// `spec.finalizers`).
    fn keeps_deleted(&self, object: &Object) -> bool {
        let _ = object;
        false
    }

    /// Whether a delete can ask what becomes of what the object owns.
    fn has_dependents(&self) -> bool {
        true
    }

    /// Puts back all but `spec.finalizers`, for the subresource of namespaces.
    fn prepare_for_finalize(&self, object: &mut Object, old: &Object) {
        object.clone_from(old);
    }

    /// How a strategic merge patch merges the list at this path (`spec.ports`; the keys of lists are not in it).
    fn list_merge(&self, path: &str) -> ListMerge {
        crate::strategy::builtin::list_merge(path)
    }

    /// What a client that speaks a version is told, where it should speak another.
    fn deprecation(&self, version: &str) -> Option<String> {
        let _ = version;
        None
    }

    /// Whether an object as it is stored is right as it is for a version (but for `apiVersion`).
    fn stored_form_serves(&self, version: &str) -> bool {
        let _ = version;
        true
    }

    /// Changes an object from one version to another, where [`Strategy::stored_form_serves`] says no.
    fn convert(&self, object: &mut Object, from: &str, to: &str) {
        let _ = (object, from, to);
    }

    /// A change of its objects was stored.
    fn committed(&mut self, change: &Change) -> Vec<Effect> {
        let _ = change;
        Vec::new()
    }

    /// Answers a create of a resource that is not stored (reviews).
    ///
    /// # Errors
    /// What refuses the request.
    fn review(&self, context: &mut Context<'_>, object: Object) -> Result<Object, Status> {
        let _ = context;
        Ok(object)
    }
}

/// The rules of a kind without rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Strategy for Plain {}

/// What is wrong with metadata, for kinds of which kube-apiserver tells it once more than of others when they change.
fn metadata_again(strategy: &dyn Strategy, context: &Context<'_>, object: &Object) -> Vec<FieldError> {
    let check_name = |name: &str, prefix: bool| strategy.check_name(name, prefix);
    crate::object::validate::create(object, context.definition.scope, check_name)
}

/// Makes a member of `to` what it is in `from`, absent included.
pub fn copy_member(name: &str, from: &Object, to: &mut Object) {
    put_member(name, from.get(name).cloned(), to);
}

fn put_member(name: &str, value: Option<Value>, object: &mut Object) {
    match value {
        Some(value) => object.insert(name.to_owned(), value),
        None => object.remove(name),
    };
}
