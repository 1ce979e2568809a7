//! Who asks for what, and whether they may.

use crate::registry::ALL_VERBS;
use std::sync::Arc;

/// A user, as the API server's authentication knows them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// `system:serviceaccount:fleet-system:member-agent`, `admin`, …
    pub name: Arc<str>,
    /// The groups that they are in, `system:authenticated` left out.
    pub groups: Arc<[String]>,
}

impl User {
    /// A user in no group.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), groups: Arc::default() }
    }

    /// The same user in these groups.
    #[must_use]
    pub fn with_groups(mut self, groups: Vec<String>) -> Self {
        self.groups = groups.into();
        self
    }
}

/// What a request does to objects, as RBAC and the audit log name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// As RBAC writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// The verb of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        ALL_VERBS.into_iter().find(|verb| verb.name() == name)
    }

    /// Whether it changes objects.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Empty for the core group.
    pub group: Arc<str>,
    /// `v1`.
    pub version: Arc<str>,
    /// The plural: `services`.
    pub resource: Arc<str>,
    /// `status`; empty for the object itself.
    pub subresource: Arc<str>,
    /// Empty for cluster-scoped objects and for requests across all namespaces.
    pub namespace: Arc<str>,
    /// Empty where the request names no object. For a create by POST too, as the path does not have it.
    pub name: Arc<str>,
}

/// A request as authorization, faults and the audit ledger see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who asks.
    pub user: User,
    /// What they do.
    pub verb: Verb,
    /// To what.
    pub target: Target,
}

impl Call {
    /// The resource as messages name it: `services`, `leases.coordination.k8s.io`.
    #[must_use]
    pub fn qualified_resource(&self) -> String {
        let Target { group, resource, .. } = &self.target;
        if group.is_empty() { resource.to_string() } else { format!("{resource}.{group}") }
    }
}

/// A request that is about no resource, for discovery, OpenAPI, version or health, or that has a method that no resource
/// has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCall {
    /// Who asks.
    pub user: User,
    /// The method in lower case: `get`.
    pub verb: Arc<str>,
    /// `/apis/discovery.k8s.io/v1`, without the query.
    pub path: Arc<str>,
}

/// Who may do what.
pub trait Policy: Send + Sync + 'static {
    /// Whether the call is allowed.
    fn allows(&self, call: &Call) -> bool;

    /// Whether a verb that no request has is allowed (`use`, `impersonate`, and `*` for all verbs): reviews of access
    /// ask for it. A policy that knows of no others allows `*` where it allows every verb of requests.
    fn allows_other(&self, user: &User, verb: &str, target: &Target) -> bool {
        let call = |verb| Call { user: user.clone(), verb, target: target.clone() };
        verb == "*" && ALL_VERBS.into_iter().all(|verb| self.allows(&call(verb)))
    }

    /// Whether a path that is no resource (`/metrics`) may be asked for; `verb` is the method in lower case.
    fn allows_path(&self, user: &User, verb: &str, path: &str) -> bool {
        let _ = (user, verb, path);
        true
    }
}

/// Everyone may do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Policy for AllowAll {
    fn allows(&self, _: &Call) -> bool {
        true
    }

    fn allows_other(&self, _: &User, _: &str, _: &Target) -> bool {
        true
    }
}

impl<F: Fn(&Call) -> bool + Send + Sync + 'static> Policy for F {
    fn allows(&self, call: &Call) -> bool {
        self(call)
    }
}
