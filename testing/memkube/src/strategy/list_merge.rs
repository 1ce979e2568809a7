//! Merge of lists in strategic merge patches.

/// Way in which a strategic merge patch merges a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMerge {
    /// The list of the patch replaces the old list.
    Replace,
    /// Items are objects. The value of this member identifies an item.
    ByKey(&'static str),
    /// Items are simple values. The merge adds new values to the list.
    Set,
}

/// Way in which strategic merge patches merge the lists of built-in kinds, by path.
pub(crate) fn list_merge(path: &str) -> ListMerge {
    // The template of a workload has the fields of a Pod.
    match path.strip_prefix("spec.template.").unwrap_or(path) {
        "metadata.finalizers" | "spec.podCIDRs" => ListMerge::Set,
        "metadata.ownerReferences" => ListMerge::ByKey("uid"),
        "spec.ports" => ListMerge::ByKey("port"),
        "status.conditions" | "status.addresses" => ListMerge::ByKey("type"),
        "status.podIPs" | "status.hostIPs" | "spec.hostAliases" => ListMerge::ByKey("ip"),
        "spec.containers.ports" | "spec.initContainers.ports" => ListMerge::ByKey("containerPort"),
        "spec.containers.volumeMounts" | "spec.initContainers.volumeMounts" => ListMerge::ByKey("mountPath"),
        "spec.topologySpreadConstraints" => ListMerge::ByKey("topologyKey"),
        "spec.containers"
        | "spec.initContainers"
        | "spec.ephemeralContainers"
        | "spec.volumes"
        | "spec.imagePullSecrets"
        | "spec.schedulingGates"
        | "spec.containers.env"
        | "spec.initContainers.env"
        | "secrets"
        | "imagePullSecrets" => ListMerge::ByKey("name"),
        _ => ListMerge::Replace,
    }
}
