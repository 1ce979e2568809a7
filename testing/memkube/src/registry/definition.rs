//! Definition of a resource.

use crate::auth::Verb;
use std::fmt;
use std::sync::Arc;

/// Definition of a resource: names, versions, verbs and subresources. The rules of the resource are in a [`Strategy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// API group. Empty for the core group.
    pub group: String,
    /// Kind, for example `EndpointSlice`.
    pub kind: String,
    /// Kind of lists, for example `EndpointSliceList`.
    pub list_kind: String,
    /// Plural name, for example `endpointslices`.
    pub plural: String,
    /// Singular name, for example `endpointslice`.
    pub singular: String,
    /// Short names, for example `svc`.
    pub short_names: Vec<String>,
    /// Categories, for example `all`.
    pub categories: Vec<String>,
    pub scope: Scope,
    /// Versions; the version that discovery prefers comes first. Exactly one is the storage version.
    pub versions: Vec<Version>,
    pub subresources: Vec<Subresource>,
    /// True for custom resources. Custom resources differ from built-in resources:
    ///
    /// - a request body must have `apiVersion` and `kind`;
    /// - the items of a list have `apiVersion` and `kind`;
    /// - strategic merge patches are rejected;
    /// - an update must have a resourceVersion.
    pub custom: bool,
    /// Supported verbs. A resource that supports only create, such as a SubjectAccessReview, is not stored.
    pub verbs: Vec<Verb>,
}

/// Scope of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Name of the version, for example `v1alpha1`.
    pub name: String,
    /// True if requests can use this version.
    pub served: bool,
    /// True for the storage version.
    pub storage: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    /// Subresource `/status`, with which clients get, replace and patch only the status.
    Status,
    /// Subresource `/token` of ServiceAccounts, which issues tokens.
    Token,
    /// Subresource `/scale` of workloads, with which clients read and change the number of replicas.
    Scale,
    /// Subresource `/binding` of Pods, with which a scheduler gives a pod its node.
    Binding,
}

impl Subresource {
    /// Last part of the subresource's path.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Token => "token",
            Self::Scale => "scale",
            Self::Binding => "binding",
        }
    }

    /// Verbs that the subresource supports.
    #[must_use]
    pub fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Status | Self::Scale => &[Verb::Get, Verb::Patch, Verb::Update],
            Self::Token | Self::Binding => &[Verb::Create],
        }
    }

    /// Returns the kind of the subresource's objects, with its group and version. `None` for the kind of the resource.
    pub(crate) fn own_kind(self) -> Option<[&'static str; 3]> {
        match self {
            Self::Status => None,
            Self::Token => Some(["authentication.k8s.io", "v1", "TokenRequest"]),
            Self::Scale => Some(["autoscaling", "v1", "Scale"]),
            Self::Binding => Some(["", "v1", "Binding"]),
        }
    }
}

impl Definition {
    /// Returns the definition of a stored built-in resource with one version, and without subresources, short names and
    /// categories.
    #[must_use]
    pub fn built_in(group: &str, version: &str, kind: &str, plural: &str, scope: Scope) -> Self {
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope,
            versions: vec![Version { name: version.to_owned(), served: true, storage: true }],
            subresources: Vec::new(),
            custom: false,
            verbs: Verb::ALL.to_vec(),
        }
    }

    #[must_use]
    pub fn short(mut self, names: &[&str]) -> Self {
        self.short_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    #[must_use]
    pub fn in_categories(mut self, names: &[&str]) -> Self {
        self.categories = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    #[must_use]
    pub fn with(mut self, subresources: &[Subresource]) -> Self {
        self.subresources = subresources.to_vec();
        self
    }

    #[must_use]
    pub fn only(mut self, verbs: &[Verb]) -> Self {
        self.verbs = verbs.to_vec();
        self
    }

    /// True if the server stores objects of this resource. False for example for reviews.
    #[must_use]
    pub fn stored(&self) -> bool {
        self.verbs.contains(&Verb::Get)
    }

    /// True if the resource has the subresource `/status`.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresources.contains(&Subresource::Status)
    }

    /// Value of `apiVersion` in objects of a version.
    #[must_use]
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// Name of the storage version.
    #[must_use]
    pub fn storage_version(&self) -> &str {
        let storage = self.versions.iter().find(|version| version.storage);
        storage.map_or("", |version| version.name.as_str())
    }

    /// Plural name and group, for example `services` or `leases.coordination.k8s.io`.
    #[must_use]
    pub fn qualified_plural(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn id(&self) -> ResourceId {
        ResourceId { group: self.group.as_str().into(), plural: self.plural.as_str().into() }
    }
}

/// Group and plural name of a resource, without a version.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceId {
    /// API group. Empty for the core group.
    pub group: Arc<str>,
    /// Plural name, for example `services`.
    pub plural: Arc<str>,
}

impl ResourceId {
    #[must_use]
    pub fn new(group: &str, plural: &str) -> Self {
        Self { group: group.into(), plural: plural.into() }
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.group, self.plural)
    }
}
