//! Targets for annotations and labels. Their values are texts that users and other agents choose.

use crate::objects::patched;
use fleetnet_agent::convert::observe;
use fleetnet_api::names::{annotations as keys, labels};
use fleetnet_core::model::{Kind, Object, ServiceImport};
use fleetnet_core::plan::Patch;
use fleetnet_core::ranges::SourceRanges;
use serde_json::json;

/// Annotations that the agents read.
const ANNOTATIONS: [&str; 12] = [
    keys::AZURE_LOAD_BALANCER_INTERNAL,
    keys::CLUSTER_PROPERTIES,
    keys::EXPORTERS,
    keys::EXPORT_HEADLESS,
    keys::IMPORTERS,
    keys::LAST_OBSERVED_GENERATION,
    keys::PORTS_OFFERED_SINCE,
    keys::SERVICE_AZURE_LOAD_BALANCER_INTERNAL,
    keys::SERVICE_IN_USE_BY,
    keys::SERVICE_TYPE,
    keys::SOURCE_RANGES,
    keys::WEIGHT,
];

/// Labels that the agents read.
const LABELS: [&str; 6] = [
    labels::DERIVED_SERVICE,
    labels::MANAGED_BY,
    labels::MULTI_CLUSTER_SERVICE_NAME,
    labels::MULTI_CLUSTER_SERVICE_NAMESPACE,
    labels::SERVICE_IMPORT,
    labels::SERVICE_NAME,
];

/// Decodes objects of all kinds in which each annotation and each label has the input as its value. No value makes an
/// object undecodable, because users can write any text.
pub fn annotations(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let with =
        |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), json!(text))).collect::<serde_json::Map<_, _>>();
    let reference = json!({ "clusterId": "member-1", "namespace": "work", "name": "app", "uid": "u" });
    let object = json!({
        "metadata": {
            "namespace": "fleet-member-1", "name": "object", "uid": "uid-1", "resourceVersion": "1",
            "annotations": with(&ANNOTATIONS), "labels": with(&LABELS),
        },
        "spec": {
            "serviceReference": reference, "serviceImportReference": reference, "endpointSliceReference": reference,
            "ownerServiceReference": { "namespace": "work", "name": "app" }, "type": "ClusterSetIP",
            "value": text,
        },
    });
    let json = object.to_string();
    for kind in Kind::ALL {
        let observed = observe(kind, json.as_bytes());
        let observed = observed.unwrap_or_else(|error| panic!("{kind:?} with {text:?}: {}", error.why));
        if let Object::Namespace(namespace) = observed.object {
            assert_ne!(
                namespace.source_ranges,
                SourceRanges::Any,
                "an annotation that exists declares or is malformed"
            );
            let lists = [namespace.exporters, namespace.importers];
            assert!(lists.iter().all(Option::is_some), "an annotation that exists is a list");
            assert!(lists.into_iter().flatten().flatten().all(|cluster| cluster.trim() == &*cluster), "{text:?}");
        }
    }
}

/// Decodes the record of granted claims, an annotation of a ServiceImport. A record that exists counts as present, and
/// a record that the agent writes is the same record.
pub fn claims(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let object = json!({ "metadata": {
        "namespace": "work", "name": "app", "uid": "uid-1", "resourceVersion": "1",
        "annotations": { keys::SERVICE_IN_USE_BY: text },
    }});
    let import =
        service_import(observe(Kind::ServiceImport, object.to_string().as_bytes()).expect("it is decodable").object);
    assert!(import.claims.present, "a record is ignored: {text:?}");
    if import.claims.importers.is_empty() {
        return;
    }
    let patch = Patch::Claims {
        importers: import.claims.importers.clone(),
        load_balancer: import.claims.load_balancer.clone(),
        finalizers: import.meta.finalizers.clone(),
    };
    assert_eq!(
        service_import(patched(&import.meta, patch)).claims,
        import.claims,
        "a record changes when it is written"
    );
}

fn service_import(object: Object) -> ServiceImport {
    let Object::ServiceImport(import) = object else { unreachable!("the kind is ServiceImport") };
    import
}
