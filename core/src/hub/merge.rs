//! Merge of the exports of a Service by the standard API: a pure function.
//!
//! The oldest export decides each property ([`precedence`]). Other exports that disagree stay part of the
//! import, and all exports show the conflict. The ports are the union of all ports:
//!
//! | port of a younger export | result |
//! |---|---|
//! | has the name, protocol and number of a merged port | it is this port |
//! | has the name of a merged port, with another protocol or number | the cluster does not serve the merged port |
//! | has the protocol and number of a merged port, under another name | the cluster serves the merged port under its name |
//! | otherwise | it becomes a merged port |

pub(super) mod precedence;

pub use precedence::Exported;

use crate::admission;
use crate::limits::{MERGED_CLUSTERS_MAX, PORTS_MAX};
use crate::model::{
    ClusterSelector, ImportType, InternalServiceExport, IpFamily, McsProperties, MergedCluster, MergedImport, Place,
    ServedPort, ServicePort, SessionAffinity,
};
use crate::names;
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Property of which exports can disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    Ports,
    Type,
    SessionAffinity,
    SessionAffinityConfig,
    Labels,
    Annotations,
    InternalTrafficPolicy,
    TrafficDistribution,
    IpFamilies,
    ClusterSelectors,
}

impl Property {
    /// Returns the reason of the standard API for a conflict about this property, and the name for messages.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Ports => ("PortConflict", "ports"),
            Self::Type => ("TypeConflict", "type"),
            Self::SessionAffinity => ("SessionAffinityConflict", "sessionAffinity"),
            Self::SessionAffinityConfig => ("SessionAffinityConfigConflict", "sessionAffinityConfig"),
            Self::Labels => ("LabelsConflict", "exportedLabels"),
            Self::Annotations => ("AnnotationsConflict", "exportedAnnotations"),
            Self::InternalTrafficPolicy => ("InternalTrafficPolicyConflict", "internalTrafficPolicy"),
            Self::TrafficDistribution => ("TrafficDistributionConflict", "trafficDistribution"),
            Self::IpFamilies => ("IPFamilyConflict", "ipFamilies"),
            Self::ClusterSelectors => ("ClusterSelectorsConflict", "clusterSelectors"),
        }
    }

    /// Returns the reason of the standard API for a conflict about this property.
    pub fn reason(self) -> &'static str {
        self.texts().0
    }
}

/// Properties of which the exports of a Service disagree.
pub type Conflicts = BTreeSet<Property>;

/// Result of the merge of the exports of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Merge {
    pub(crate) import: Arc<MergedImport>,
    pub(crate) conflicts: Conflicts,
    /// Places of the exports, the oldest first.
    pub(crate) places: Vec<Place>,
    /// Cluster selectors of the oldest export.
    pub(crate) selectors: Vec<ClusterSelector>,
    /// Weights of the exports that are not 1.
    pub(crate) weights: BTreeMap<ClusterId, i64>,
}

impl Merge {
    /// True if the import has the cluster with this member namespace.
    pub(crate) fn has_member(&self, namespace: &MemberNamespace) -> bool {
        let cluster = names::cluster_of(namespace);
        self.import.clusters.iter().any(|part| Some(&part.cluster) == cluster.as_ref())
    }

    pub(super) fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        self.import.clusters.iter().map(|part| &part.cluster)
    }
}

/// Merges the exports of a Service. Also returns their conflicts and their places, the oldest first. `None` without an
/// export.
pub fn merge(exports: Vec<Exported<'_>>) -> Option<(MergedImport, Conflicts, Vec<Place>)> {
    let mut ordered = precedence::ordered(exports);
    ordered.truncate(MERGED_CLUSTERS_MAX);
    let (exports, places): (Vec<Exported<'_>>, Vec<Place>) = ordered.into_iter().unzip();
    let oldest = *exports.first()?;
    let import_type = oldest.export.import_type();
    let of_oldest = &oldest.mcs.properties;
    let properties = McsProperties {
        families: families(&exports, import_type),
        internal_traffic_policy: of_oldest.internal_traffic_policy.clone(),
        traffic_distribution: of_oldest.traffic_distribution.clone(),
        labels: names::exported_labels(&of_oldest.labels),
        annotations: names::exported_annotations(&of_oldest.annotations),
    };
    let conflicts = conflicts(oldest, &exports, &properties.families);
    let (ports, clusters) = merge_ports(&exports, import_type);
    let session_affinity = admission::fit_affinity(oldest.export.session_affinity);
    Some((MergedImport { import_type, ports, session_affinity, properties, clusters }, conflicts, places))
}

fn conflicts(oldest: Exported<'_>, exports: &[Exported<'_>], families: &[IpFamily]) -> Conflicts {
    let mut conflicts = Conflicts::new();
    let mut compare = |property, disagrees: &dyn Fn(&Exported<'_>) -> bool| {
        if exports.iter().any(disagrees) {
            conflicts.insert(property);
        }
    };
    let (export, properties) = (oldest.export, &oldest.mcs.properties);
    let affinity = export.session_affinity;
    let has_affinity = |affinity| matches!(affinity, SessionAffinity::ClientIp { .. });
    let same_affinity = |it: &Exported<'_>| has_affinity(it.export.session_affinity) == has_affinity(affinity);
    let ports = port_set(export);
    compare(Property::Ports, &|it| port_set(it.export) != ports);
    compare(Property::Type, &|it| it.export.headless != export.headless);
    compare(Property::SessionAffinity, &|it| !same_affinity(it));
    compare(Property::SessionAffinityConfig, &|it| same_affinity(it) && it.export.session_affinity != affinity);
    compare(Property::ClusterSelectors, &|it| it.mcs.cluster_selectors != oldest.mcs.cluster_selectors);
    let mut compare_properties = |property, disagrees: &dyn Fn(&McsProperties) -> bool| {
        compare(property, &|it| disagrees(&it.mcs.properties));
    };
    compare_properties(Property::Labels, &|own| own.labels != properties.labels);
    compare_properties(Property::Annotations, &|own| own.annotations != properties.annotations);
    compare_properties(Property::InternalTrafficPolicy, &|own| {
        own.internal_traffic_policy != properties.internal_traffic_policy
    });
    compare_properties(Property::TrafficDistribution, &|own| {
        own.traffic_distribution != properties.traffic_distribution
    });
    compare_properties(Property::IpFamilies, &|own| {
        !own.families.is_empty() && !own.families.iter().any(|family| families.contains(family))
    });
    conflicts
}

/// Returns the message about conflicts between exports of a Service, for the users of all exporting clusters. It has no
/// number of clusters, so that the export of one more cluster does not change the conditions of all others.
pub fn conflict_message(service: &ObjectName, import: &MergedImport, conflicts: &Conflicts) -> String {
    let oldest = import.clusters.first().map_or("", |oldest| &oldest.cluster);
    let properties: Vec<&str> = conflicts.iter().map(|property| property.texts().1).collect();
    format!(
        "the exports of service {service} disagree about {}. The export of cluster {oldest} decides: its ServiceExport is the oldest, or \
         the hub knew it before the others. Export the same in all clusters, or export under another name",
        properties.join(", ")
    )
}

/// Returns the ports of an export as a set, without target ports, which may differ between clusters.
fn port_set(export: &InternalServiceExport) -> BTreeSet<ServicePort> {
    export.ports.iter().map(|port| ServicePort { target_port: None, ..port.clone() }).collect()
}

/// Returns the families of the merged import, in the order of the oldest export. Clients use all addresses of a
/// headless Service. Otherwise a client uses a family only if all clusters can serve it. An export that has no family
/// in common with the older ones is left out.
fn families(exports: &[Exported<'_>], import_type: ImportType) -> Vec<IpFamily> {
    let mut merged: Vec<IpFamily> = Vec::new();
    for own in exports.iter().map(|it| &it.mcs.properties.families) {
        let common: Vec<IpFamily> = merged.iter().copied().filter(|family| own.contains(family)).collect();
        if merged.is_empty() {
            merged = distinct(own.iter().copied());
        } else if import_type == ImportType::Headless {
            merged = distinct(merged.iter().chain(own).copied());
        } else if !common.is_empty() {
            merged = common;
        }
    }
    merged
}

/// Returns the families without repetitions.
fn distinct(families: impl Iterator<Item = IpFamily>) -> Vec<IpFamily> {
    let mut distinct = Vec::new();
    for family in families {
        if !distinct.contains(&family) {
            distinct.push(family);
        }
    }
    distinct
}

/// Union of ports. No two have the same name, and no two the same protocol and number.
#[derive(Default)]
struct Union {
    ports: Vec<ServicePort>,
    by_name: BTreeMap<Text, usize>,
    by_number: BTreeMap<(Text, i32), usize>,
}

impl Union {
    /// Adds a port of a cluster. Returns the number of the merged port that the cluster serves with it; `None` if it
    /// serves none.
    fn add(&mut self, port: &ServicePort) -> Option<usize> {
        let number = (port.protocol.clone(), port.port.as_written());
        let of_number = self.by_number.get(&number).copied();
        if let Some(of_name) = self.by_name.get(&port.name) {
            return of_number.filter(|of_number| of_number == of_name);
        }
        if of_number.is_some() || self.ports.len() == PORTS_MAX || !admission::is_fit_service_port(port) {
            return of_number;
        }
        let index = self.ports.len();
        self.by_name.insert(port.name.clone(), index);
        self.by_number.insert(number, index);
        self.ports.push(ServicePort { target_port: None, ..port.clone() });
        Some(index)
    }

    /// Names the port without a name, if there are other ports. Each port of a Service with several ports needs a name.
    fn name_unnamed(&mut self) {
        let unnamed = self.by_name.get("").copied().filter(|_| self.ports.len() > 1);
        let Some(port) = unnamed.and_then(|index| self.ports.get_mut(index)) else { return };
        let plain = format!("{}-{}", port.protocol.to_ascii_lowercase(), port.port.as_written());
        let longer = (2..).map(|number| format!("{plain}-{number}"));
        let free = std::iter::once(plain.clone()).chain(longer).find(|name| !self.by_name.contains_key(&**name));
        port.name = free.unwrap_or(plain).into();
    }
}

/// Returns the union of the ports, and the clusters with the ports that they serve.
fn merge_ports(exports: &[Exported<'_>], import_type: ImportType) -> (Vec<ServicePort>, Vec<MergedCluster>) {
    let mut union = Union::default();
    let served: Vec<Vec<Option<usize>>> =
        exports.iter().map(|it| it.export.ports.iter().map(|port| union.add(port)).collect()).collect();
    union.name_unnamed();
    let clusters = exports.iter().zip(served).map(|(it, served)| {
        let own = it.export.ports.iter().zip(served);
        let served: Vec<ServedPort> = own
            .filter_map(|(port, index)| {
                let merged = union.ports.get(index?)?;
                Some(ServedPort { name: merged.name.clone(), own_name: port.name.clone() })
            })
            .collect();
        let is_whole = served.len() == it.export.ports.len() && served.iter().all(|port| port.name == port.own_name);
        // A headless Service has no port that kube-proxy routes, so its slices are imported as they are.
        let ports = (import_type == ImportType::ClusterSetIp && !is_whole).then_some(served);
        MergedCluster { cluster: it.cluster.clone(), ports }
    });
    let clusters = clusters.collect();
    (union.ports, clusters)
}
