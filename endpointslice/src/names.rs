//! Labels, annotations and values that the EndpointSlice controllers of Kubernetes share.
//!
//! Source: `k8s.io/api/discovery/v1` and `k8s.io/api/core/v1`, and the reference of well-known labels in Kubernetes' docs.

/// Managed-by value of the controller in kube-controller-manager, and the default of [`crate::Config`].
pub const CONTROLLER_NAME: &str = "endpointslice-controller.k8s.io";

/// Label of a slice: the Service of the slice.
pub const LABEL_SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Label of a slice: the controller that manages it.
pub const LABEL_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// Label of a slice whose Service has no cluster IP; its value is empty.
pub const LABEL_HEADLESS: &str = "service.kubernetes.io/headless";

/// Annotation of a slice: time of the change that the latest write published (RFC 3339 with up to nanoseconds, UTC).
pub const ANNOTATION_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Annotation of a Service: topology-aware hints, under the name of Kubernetes 1.21 to 1.26. This name has priority over the
/// newer one.
pub const ANNOTATION_TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Annotation of a Service: topology-aware hints.
pub const ANNOTATION_TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

/// Label of a Node: its zone.
pub const LABEL_ZONE: &str = "topology.kubernetes.io/zone";

/// Labels of Nodes whose CPU does not count for a zone.
pub const LABELS_CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// Value of `clusterIP` of a headless Service.
pub const CLUSTER_IP_NONE: &str = "None";

/// True if this library alone sets the label `key` on slices, and a Service cannot override it.
#[must_use]
pub fn is_reserved_label(key: &str) -> bool {
    matches!(key, LABEL_SERVICE_NAME | LABEL_MANAGED_BY | LABEL_HEADLESS)
}
