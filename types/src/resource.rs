//! Names and URL paths of a kind in the Kubernetes API.

use std::fmt::{self, Display};

/// Kind of the Kubernetes API, with all its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// API group; empty for core/v1.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    /// Plural in lower case, such as `endpointslices`.
    pub plural: &'static str,
}

impl Resource {
    /// Returns `group/version`, or the bare version for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the URL path of all objects of one namespace.
    ///
    /// `None` or an empty namespace gives the path of all namespaces, or of a cluster-scoped kind.
    #[must_use]
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let api_version = self.api_version();
        match namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{api_version}/{}", self.plural),
        }
    }

    #[must_use]
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection_path(Some(namespace)))
    }
}

impl Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.plural, self.api_version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICES: Resource =
        Resource { group: "discovery.k8s.io", version: "v1", kind: "EndpointSlice", plural: "endpointslices" };
    const NAMESPACES: Resource = Resource { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };

    #[test]
    fn paths_are_those_of_the_api_server() {
        assert_eq!(SLICES.collection_path(None), "/apis/discovery.k8s.io/v1/endpointslices");
        assert_eq!(SLICES.collection_path(Some("ns")), "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices");
        assert_eq!(SLICES.object_path("ns", "a"), "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/a");
        assert_eq!(NAMESPACES.collection_path(Some("")), "/api/v1/namespaces");
        assert_eq!(NAMESPACES.object_path("", "ns"), "/api/v1/namespaces/ns");
    }

    #[test]
    fn the_core_group_has_no_name() {
        assert_eq!(
            (SLICES.api_version(), NAMESPACES.api_version()),
            ("discovery.k8s.io/v1".to_owned(), "v1".to_owned())
        );
        assert_eq!(SLICES.to_string(), "endpointslices.discovery.k8s.io/v1");
    }
}
