//! Labels, annotations and values that the EndpointSlice controllers of Kubernetes share.
//!
//! The sources are `k8s.io/api/discovery/v1`, `k8s.io/api/core/v1` and the reference of well-known labels in
//! Kubernetes' docs.

/// Value of the managed-by label that the controller in kube-controller-manager sets, and the default of
/// [`crate::Config`].
pub const CONTROLLER_NAME: &str = "endpointslice-controller.k8s.io";

/// Label of a slice: the name of the slice's Service.
pub const LABEL_SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Label of a slice: the name of the controller that manages it.
pub const LABEL_MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// Label of a slice whose Service is headless; its value is empty.
pub const LABEL_HEADLESS: &str = "service.kubernetes.io/headless";

/// Annotation of a slice: time of the change that the latest write published (RFC 3339 with up to nanoseconds, UTC).
pub const ANNOTATION_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Annotation of a Service that asks for topology hints, under the name of Kubernetes 1.21 to 1.26. This name has
/// priority over the newer one.
pub const ANNOTATION_TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Annotation of a Service that asks for topology hints.
pub const ANNOTATION_TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

/// Label of a Node: the zone of the Node.
pub const LABEL_ZONE: &str = "topology.kubernetes.io/zone";

/// Labels of control-plane Nodes. For topology hints, the CPU of these Nodes does not count as CPU of their zone.
pub const LABELS_CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// Value of `clusterIP` of a headless Service.
pub const CLUSTER_IP_NONE: &str = "None";

/// True if only this library sets the label `key` on slices. A label of the Service with the same key is not copied to
/// its slices.
#[must_use]
pub fn is_reserved_label(key: &str) -> bool {
    matches!(key, LABEL_SERVICE_NAME | LABEL_MANAGED_BY | LABEL_HEADLESS)
}
