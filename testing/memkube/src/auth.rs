//! Users, requests and authorization.

use std::sync::Arc;

/// User that makes a request. Authentication determines the user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct User {
    /// Name of the user, for example `system:serviceaccount:fleet-system:member-agent` or `admin`.
    pub name: Arc<str>,
    /// Groups of the user, without `system:authenticated`.
    pub groups: Arc<[String]>,
}

impl User {
    /// Returns a user in no group.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), groups: Arc::default() }
    }

    /// Sets the groups of the user.
    #[must_use]
    pub fn with_groups(mut self, groups: Vec<String>) -> Self {
        self.groups = groups.into();
        self
    }
}

/// Audience of this server's tokens.
pub const AUDIENCE: &str = "https://kubernetes.default.svc";

/// User of a bearer token, and the audience that the token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub user: User,
    pub audience: String,
}

/// Verb of a request, as in RBAC rules and in the audit log.
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
    /// All verbs. A stored resource supports all of them by default.
    pub const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];

    /// Name of the verb in RBAC rules.
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

    /// Returns the verb with this name, or `None` if this type has no such verb.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// True if the verb can change objects.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// Resource or object that a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// API group. Empty for the core group.
    pub group: Arc<str>,
    /// API version, for example `v1`.
    pub version: Arc<str>,
    /// Plural name, for example `services`.
    pub resource: Arc<str>,
    /// Subresource, for example `status`. Empty for the object itself.
    pub subresource: Arc<str>,
    /// Namespace. Empty for cluster-scoped objects and for requests across all namespaces.
    pub namespace: Arc<str>,
    /// Name of the object. Empty if the request names no object, and for a create, because the path of a create has no
    /// name.
    pub name: Arc<str>,
}

/// Request to a resource, in the form that authorization, faults and the audit ledger read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub user: User,
    pub verb: Verb,
    pub target: Target,
}

impl Call {
    /// Resource and group as messages show them: `services`, `leases.coordination.k8s.io`.
    #[must_use]
    pub fn qualified_resource(&self) -> String {
        let Target { group, resource, .. } = &self.target;
        if group.is_empty() { resource.to_string() } else { format!("{resource}.{group}") }
    }
}

/// Request that is not about a resource: discovery, OpenAPI, version or health. Also a request to a resource with an
/// HTTP method that no resource supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCall {
    pub user: User,
    /// HTTP method in lower case, for example `get`.
    pub verb: Arc<str>,
    /// Path without the query, for example `/apis/discovery.k8s.io/v1`.
    pub path: Arc<str>,
}

/// Authorization: decides which user may make which request.
pub trait Policy: Send + Sync + 'static {
    /// True if the user may make this request.
    fn allows(&self, call: &Call) -> bool;

    /// True if the user may use a verb that is not in [`Verb`]: `use`, `impersonate`, or `*` for all verbs. No request
    /// has such a verb, but a SubjectAccessReview may contain one. By default, `*` is allowed if the policy allows
    /// every verb in [`Verb`].
    fn allows_other(&self, user: &User, verb: &str, target: &Target) -> bool {
        let call = |verb| Call { user: user.clone(), verb, target: target.clone() };
        verb == "*" && Verb::ALL.into_iter().all(|verb| self.allows(&call(verb)))
    }

    /// True if the user may request a path that is not a resource, for example `/metrics`. `verb` is the HTTP method in
    /// lower case.
    fn allows_path(&self, user: &User, verb: &str, path: &str) -> bool {
        let _ = (user, verb, path);
        true
    }
}

/// Policy that allows every request.
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
