//! Which resources there are.

use crate::auth::Verb;
use crate::strategy::Strategy;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What is known of a resource beside its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Empty for the core group.
    pub group: String,
    /// `EndpointSlice`.
    pub kind: String,
    /// `EndpointSliceList`.
    pub list_kind: String,
    /// `endpointslices`, as paths have it.
    pub plural: String,
    /// `endpointslice`.
    pub singular: String,
    /// `svc`.
    pub short_names: Vec<String>,
    /// `all`.
    pub categories: Vec<String>,
    /// Whether its objects are in namespaces.
    pub scope: Scope,
    /// Its versions, the one that discovery prefers first. Exactly one is the storage version.
    pub versions: Vec<Version>,
    /// What there is below an object's path.
    pub subresources: Vec<Subresource>,
    /// Custom resources differ from built-in ones in small things: their bodies must say their kind, items of their
    /// lists do, strategic merge patches are refused, and a version must be given in updates.
    pub custom: bool,
    /// What can be done with it. Those that can only be created are not stored: reviews.
    pub verbs: Vec<Verb>,
}

/// Whether objects are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// A version of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// `v1alpha1`.
    pub name: String,
    /// Whether there are paths for it.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
}

/// What there is below an object's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subresource {
    /// `/status`: get, replace and patch the status alone.
    Status,
    /// `/finalize` of namespaces: replace `spec.finalizers`.
    Finalize,
}

impl Subresource {
    /// As paths have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Finalize => "finalize",
        }
    }

    /// What can be done with it.
    #[must_use]
    pub fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Status => &[Verb::Get, Verb::Patch, Verb::Update],
            Self::Finalize => &[Verb::Update],
        }
    }
}

/// Every verb, for resources that are stored.
pub const ALL_VERBS: [Verb; 8] =
    [Verb::Create, Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch];

impl Definition {
    /// A stored built-in resource of one version, without subresources, short names and categories.
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
            verbs: ALL_VERBS.to_vec(),
        }
    }

    /// With these short names.
    #[must_use]
    pub fn short(mut self, names: &[&str]) -> Self {
        self.short_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// With these categories.
    #[must_use]
    pub fn in_categories(mut self, names: &[&str]) -> Self {
        self.categories = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// With these subresources.
    #[must_use]
    pub fn with(mut self, subresources: &[Subresource]) -> Self {
        self.subresources = subresources.to_vec();
        self
    }

    /// With these verbs alone.
    #[must_use]
    pub fn only(mut self, verbs: &[Verb]) -> Self {
        self.verbs = verbs.to_vec();
        self
    }

    /// Whether its objects are stored.
    #[must_use]
    pub fn stored(&self) -> bool {
        self.verbs.contains(&Verb::Get)
    }

    /// Whether it has `/status`.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresources.contains(&Subresource::Status)
    }

    /// `apiVersion` of its objects in a version.
    #[must_use]
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// The version that objects are stored in.
    #[must_use]
    pub fn storage_version(&self) -> &str {
        let storage = self.versions.iter().find(|version| version.storage);
        storage.map_or("", |version| version.name.as_str())
    }

    /// `services`, `leases.coordination.k8s.io`.
    #[must_use]
    pub fn qualified_plural(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn id(&self) -> ResourceId {
        ResourceId { group: self.group.as_str().into(), plural: self.plural.as_str().into() }
    }
}

/// A resource without a version.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceId {
    /// Empty for the core group.
    pub group: Arc<str>,
    /// `services`.
    pub plural: Arc<str>,
}

impl ResourceId {
    /// Of a group and a plural.
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

/// A resource that is registered.
pub(crate) struct Registered {
    pub(crate) definition: Arc<Definition>,
    pub(crate) strategy: Box<dyn Strategy>,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Registry {
    resources: BTreeMap<ResourceId, Registered>,
}

impl Registry {
    /// Adds one, or puts it in the place of another of the same group and plural.
    pub(crate) fn register(&mut self, definition: Definition, strategy: Box<dyn Strategy>) {
        let registered = Registered { definition: Arc::new(definition), strategy };
        self.resources.insert(registered.definition.id(), registered);
    }

    /// Puts other rules in the place of all; they are given the old ones.
    pub(crate) fn wrap(&mut self, wrap: impl Fn(&Definition, Box<dyn Strategy>) -> Box<dyn Strategy>) {
        for (id, Registered { definition, strategy }) in std::mem::take(&mut self.resources) {
            let strategy = wrap(&definition, strategy);
            self.resources.insert(id, Registered { definition, strategy });
        }
    }

    pub(crate) fn unregister(&mut self, id: &ResourceId) {
        self.resources.remove(id);
    }

    pub(crate) fn get(&self, id: &ResourceId) -> Option<&Registered> {
        self.resources.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Registered> {
        self.resources.get_mut(id)
    }

    /// What all of them are, by group and plural.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.resources.values().map(|registered| &registered.definition)
    }
}
