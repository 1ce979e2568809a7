//! Resources by group and version, for discovery.

use crate::registry::{Definition, Subresource};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An API group with its served versions. The version that clients should prefer comes first.
pub(super) struct Group {
    /// Name of the group. Empty for the core group.
    pub(super) name: String,
    pub(super) versions: Vec<GroupVersion>,
}

pub(super) struct GroupVersion {
    pub(super) name: String,
    pub(super) resources: Vec<Arc<Definition>>,
}

impl Group {
    /// Value of `apiVersion` for a version of the group, for example `v1` or `discovery.k8s.io/v1`.
    pub(super) fn api_version(&self, version: &str) -> String {
        if self.name.is_empty() { version.to_owned() } else { format!("{}/{version}", self.name) }
    }

    /// URL path of a version of the group, for example `api/v1` or `apis/discovery.k8s.io/v1`.
    pub(super) fn path(&self, version: &str) -> String {
        if self.name.is_empty() { format!("api/{version}") } else { format!("apis/{}/{version}", self.name) }
    }
}

/// Returns all groups: the core group first, then the others by name.
pub(super) fn all(definitions: &[Arc<Definition>]) -> Vec<Group> {
    let mut groups = BTreeMap::<&str, BTreeMap<&str, Vec<Arc<Definition>>>>::new();
    for definition in definitions {
        for version in definition.versions.iter().filter(|version| version.served) {
            let versions = groups.entry(&definition.group).or_default();
            versions.entry(&version.name).or_default().push(Arc::clone(definition));
        }
    }
    let groups = groups.into_iter().map(|(name, versions)| {
        let versions = versions.into_iter().map(|(name, resources)| GroupVersion { name: name.to_owned(), resources });
        let mut versions: Vec<GroupVersion> = versions.collect();
        versions.sort_by_key(|version| Reverse(priority(&version.name)));
        Group { name: name.to_owned(), versions }
    });
    groups.collect()
}

/// Sort key of a version. A version with a greater key is preferred.
///
/// The order is that of apimachinery's `CompareKubeAwareVersionStrings`: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`.
/// Other names come last, in alphabetical order.
///
/// Parts of the key: stage (3 for a stable version, 2 for beta, 1 for alpha, 0 for other names), major version, minor
/// version, and the other name.
pub(crate) fn priority(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let parts = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at(digits);
        let (stage, minor) = match rest {
            "" => (3, "0"),
            _ => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
                (Some(minor), _) => (2, minor),
                (_, Some(minor)) => (1, minor),
                _ => return None,
            },
        };
        Some((stage, major.parse().ok()?, minor.parse().ok()?, Reverse(String::new())))
    };
    parts().unwrap_or_else(|| (0, 0, 0, Reverse(version.to_owned())))
}

/// Verbs of a resource in discovery. kube-apiserver has one order for the verbs of built-in resources and another for
/// custom resources.
pub(super) fn verbs(definition: &Definition) -> Vec<&'static str> {
    let mut verbs: Vec<&str> = definition.verbs.iter().map(|verb| verb.name()).collect();
    let order = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    if definition.custom {
        verbs.sort_by_key(|verb| order.iter().position(|known| known == verb));
    } else {
        verbs.sort_unstable();
    }
    verbs
}

/// Names of a subresource's verbs, for discovery.
pub(super) fn subresource_verbs(subresource: Subresource) -> Vec<&'static str> {
    subresource.verbs().iter().map(|verb| verb.name()).collect()
}

/// Subresources of a resource, sorted by name.
pub(super) fn subresources(definition: &Definition) -> Vec<Subresource> {
    let mut subresources = definition.subresources.clone();
    subresources.sort_by_key(|subresource| subresource.name());
    subresources
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn stable_versions_come_first_and_newer_ones_before_older_ones() {
        let mut versions = ["v1alpha1", "foo1", "v10", "v1beta2", "v1", "bar", "v11alpha2", "v2beta1"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v1", "v2beta1", "v1beta2", "v11alpha2", "v1alpha1", "bar", "foo1"]);
    }
}
