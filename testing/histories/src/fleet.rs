//! Objects of a fleet, as the oracle reads them.

use fleetnet_core::model::{Kind, Namespace, Object};
use fleetnet_core::names;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text};
use std::collections::{BTreeMap, BTreeSet};

/// Objects of one cluster, in the order of their kinds and names.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    objects: BTreeMap<(Kind, ObjectName), Object>,
    /// Namespaces that do not exist in this cluster.
    pub(crate) missing_namespaces: BTreeSet<String>,
}

impl Cluster {
    #[must_use]
    pub fn new(objects: impl IntoIterator<Item = Object>, missing_namespaces: BTreeSet<String>) -> Self {
        let named = |object: Object| ((object.kind(), object.meta().name.clone()), object);
        Self { objects: objects.into_iter().map(named).collect(), missing_namespaces }
    }

    pub(crate) fn get(&self, kind: Kind, name: &ObjectName) -> Option<&Object> {
        self.objects.get(&(kind, name.clone()))
    }

    pub(crate) fn list(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.values().filter(move |object| object.kind() == kind)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }
}

/// Objects of a fleet. The cluster ids of the members are `member-1`, `member-2`, ….
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    pub hub: Cluster,
    pub members: Vec<Cluster>,
}

impl Fleet {
    /// Returns the clusters with their names, the hub last.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = (String, &Cluster)> {
        let members = self.members.iter().enumerate().map(|(index, cluster)| (cluster_id(index), cluster));
        members.chain([("hub".to_owned(), &self.hub)])
    }

    /// True if the hub's namespace of a Service allows a member to export this Service.
    pub(crate) fn may_export(&self, service: &ObjectName, cluster: &str) -> bool {
        self.allows(service, cluster, |namespace| namespace.exporters.as_ref())
    }

    /// True if the hub's namespace of a Service allows a member to import this Service.
    pub(crate) fn may_import(&self, service: &ObjectName, cluster: &str) -> bool {
        self.allows(service, cluster, |namespace| namespace.importers.as_ref())
    }

    fn allows(
        &self,
        service: &ObjectName,
        cluster: &str,
        allowed: fn(&Namespace) -> Option<&BTreeSet<ClusterId>>,
    ) -> bool {
        let at = ObjectName::new(Text::default(), service.namespace.clone());
        match self.hub.get(Kind::Namespace, &at) {
            Some(Object::Namespace(namespace)) => {
                allowed(namespace).is_none_or(|clusters| clusters.contains(&ClusterId::from(cluster)))
            }
            _ => true,
        }
    }
}

/// Returns the cluster id of a member by its index.
pub(crate) fn cluster_id(index: usize) -> String {
    format!("member-{}", index + 1)
}

/// Returns the namespace of a member in the hub.
pub(crate) fn hub_namespace(index: usize) -> MemberNamespace {
    names::member_namespace(&cluster_id(index))
}
