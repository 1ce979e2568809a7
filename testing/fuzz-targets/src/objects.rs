//! Targets for objects of all kinds that the agents watch.

use crate::message::check_message;
use diagnosis::latency::summary_of;
use fleetnet_agent::convert::observe;
use fleetnet_api::decode::decode;
use fleetnet_api::encode::{Body, encode};
use fleetnet_core::limits::{ADDRESSES_MAX, ENDPOINTS_MAX, PORTS_MAX};
use fleetnet_core::model::{
    Condition, EndpointSlice, HubSlice, InternalServiceExport, InternalServiceImport, Kind, MergedServiceImport,
    MultiClusterService, Object, Reference,
};
use fleetnet_core::plan::{Desired, ExportContent, ImportedSlice, Patch, Write};
use fleetnet_types::ObjectName;
use serde_json::{Value, json};
use std::sync::Arc;

/// Decodes the input as an object of each kind.
///
/// - A decoded object has a name, a UID and a resourceVersion, and no list over its limit.
/// - An undecodable object names the reason. Its identity is the same for each kind.
/// - An object that is being deleted is decodable if its metadata is decodable.
/// - An object that the agent writes from a decoded object decodes to the same content.
pub fn objects(bytes: &[u8]) {
    let mut identity = None;
    let mut is_deleting = false;
    let mut undecodable = Vec::new();
    for kind in Kind::ALL {
        match observe(kind, bytes) {
            Ok(observed) => {
                assert!(!observed.name.name.is_empty() && !observed.uid.is_empty(), "an object without identity");
                assert_ne!(observed.resource_version, 0, "an object without resourceVersion");
                assert_eq!(observed.object.kind(), kind);
                is_deleting |= observed.object.meta().deleting;
                let known = (observed.name, observed.uid, observed.resource_version);
                assert_eq!(identity.get_or_insert_with(|| known.clone()), &known, "two identities");
                check_limits(&observed.object);
                check_written(&observed.object);
            }
            Err(error) => {
                check_message(&error.why);
                undecodable.push(error);
            }
        }
    }
    for error in undecodable {
        if let Some(known) = &identity
            && !error.name.name.is_empty()
        {
            assert_eq!(known, &(error.name, error.uid, error.resource_version), "an undecodable object is another");
            assert!(!is_deleting, "an object that is being deleted is undecodable: {}", error.why);
        }
    }
}

fn check_limits(object: &Object) {
    let (Object::EndpointSliceExport(slice) | Object::EndpointSliceImport(slice)) = object else { return };
    let content = &slice.spec.content;
    assert!(content.endpoints.len() + content.draining.len() <= ENDPOINTS_MAX);
    assert!(content.ports.len() <= PORTS_MAX);
    let all = content.endpoints.iter().chain(&content.draining);
    assert!(all.into_iter().all(|endpoint| (1..=ADDRESSES_MAX).contains(&endpoint.addresses.len())));
}

fn check_written(object: &Object) {
    if object.meta().deleting {
        return;
    }
    match object {
        Object::EndpointSliceExport(slice) => same_hub_slice(slice, Desired::EndpointSliceExport(slice.spec.clone())),
        Object::EndpointSliceImport(slice) => same_hub_slice(slice, Desired::EndpointSliceImport(slice.spec.clone())),
        Object::InternalServiceExport(export) => same_export(export),
        Object::InternalServiceImport(claim) => same_claim(claim),
        Object::MergedServiceImport(merged) => same_merged_import(merged),
        Object::EndpointSlice(slice) => same_imported_slice(slice),
        Object::MultiClusterService(service) => same_status(service),
        // A new kind does not compile until it is listed here.
        Object::Service(_)
        | Object::ServiceExport(_)
        | Object::McsServiceExport(_)
        | Object::McsServiceImport(_)
        | Object::ServiceImport(_)
        | Object::Namespace(_)
        | Object::SystemNamespace(_)
        | Object::MemberAgent(_)
        | Object::InternalMemberCluster(_)
        | Object::ClusterProperty(_)
        | Object::Node(_)
        | Object::MemberCluster(_) => {}
    }
}

/// Returns the object that an API server stores after a create.
fn created(desired: Desired) -> Object {
    let kind = desired.kind();
    let Body::Create { mut body } = encode(&Write::create(ObjectName::new("work", "object"), desired)) else {
        unreachable!("the write is a create")
    };
    body["metadata"]["uid"] = "uid-1".into();
    body["metadata"]["resourceVersion"] = "1".into();
    stored(kind, &body)
}

/// Returns the object that an API server stores after a patch of an object that has nothing else.
pub(crate) fn patched(meta: &fleetnet_core::model::Meta, patch: Patch) -> Object {
    let kind = patch.kind();
    let Body::Patch { mut body, .. } = encode(&Write::patch(meta, patch)) else { unreachable!("the write is a patch") };
    body["metadata"]["name"] = "object".into();
    body["metadata"]["uid"] = "uid-1".into();
    body["metadata"]["resourceVersion"] = "1".into();
    let reference = json!({ "namespace": "work", "name": "app" });
    (body["spec"]["serviceReference"], body["spec"]["serviceImportReference"]) = (reference.clone(), reference);
    stored(kind, &body)
}

fn stored(kind: Kind, object: &Value) -> Object {
    let json = object.to_string();
    decode(kind, json.as_bytes()).unwrap_or_else(|error| panic!("{kind:?} is undecodable: {}: {json}", error.why))
}

/// Returns the reference as an API server stores it: without what RFC 3339 cannot express.
fn expressible(reference: &Reference) -> Reference {
    Reference { exported_since: None, ..reference.clone() }
}

fn same_hub_slice(slice: &HubSlice, desired: Desired) {
    let (Object::EndpointSliceExport(written) | Object::EndpointSliceImport(written)) = created(desired) else {
        unreachable!("a slice of the hub")
    };
    assert_eq!(written.spec.content, slice.spec.content);
    assert_eq!(written.spec.owner, slice.spec.owner);
    assert_eq!(expressible(&written.spec.reference), expressible(&slice.spec.reference));
}

fn same_export(export: &InternalServiceExport) {
    let content = ExportContent {
        ports: export.ports.clone(),
        headless: export.headless,
        session_affinity: export.session_affinity,
        mcs: export.mcs.clone(),
        weight: export.weight,
    };
    let desired = Desired::InternalServiceExport { reference: export.reference.clone(), content };
    let Object::InternalServiceExport(written) = created(desired) else { unreachable!("an export") };
    assert_eq!(expressible(&written.reference), expressible(&export.reference));
    assert_eq!(
        (written.ports, written.headless, written.session_affinity, written.mcs, written.weight),
        (export.ports.clone(), export.headless, export.session_affinity, export.mcs.clone(), export.weight)
    );
    let Some(stamp) = &export.stamp else { return };
    let stamped = |stamp| {
        let patch = Patch::InternalServiceExportStamp { finalizers: export.meta.finalizers.clone(), stamp };
        let Object::InternalServiceExport(written) = patched(&export.meta, patch) else { unreachable!("an export") };
        written.stamp.expect("a stamp that was written is a stamp")
    };
    let written = stamped(stamp.clone());
    assert_eq!(written.ports, stamp.ports);
    assert_eq!(stamped(written.clone()), written, "a stamp changes each time it is written");
}

fn same_merged_import(merged: &MergedServiceImport) {
    let (service, import, selection) = (merged.service.clone(), Arc::clone(&merged.import), merged.selection.clone());
    let desired = Desired::MergedServiceImport { service, import, selection };
    let Object::MergedServiceImport(written) = created(desired) else { unreachable!("a merged import") };
    assert_eq!((&written.service, &written.import), (&merged.service, &merged.import));
    let weights = |of: &MergedServiceImport| of.selection.weights.clone();
    assert_eq!((&written.selection.results, weights(&written)), (&merged.selection.results, weights(merged)));
}

fn same_claim(claim: &InternalServiceImport) {
    let desired =
        Desired::InternalServiceImport { reference: claim.reference.clone(), consumer_type: claim.consumer_type };
    let Object::InternalServiceImport(written) = created(desired) else { unreachable!("a claim") };
    assert_eq!(expressible(&written.reference), expressible(&claim.reference));
    assert_eq!(written.consumer_type, claim.consumer_type);
    let Object::InternalServiceImport(written) = patched(&claim.meta, Patch::ClaimSelection(claim.selection.clone()))
    else {
        unreachable!("a claim")
    };
    assert_eq!(written.selection, claim.selection);
    let Object::InternalServiceImport(written) = patched(&claim.meta, Patch::ClaimSelectors(claim.selectors.clone()))
    else {
        unreachable!("a claim")
    };
    assert_eq!(written.selectors, claim.selectors);
}

fn same_imported_slice(slice: &EndpointSlice) {
    let imported = ImportedSlice {
        service: Some(slice.service.clone().unwrap_or_default()),
        mcs: slice.mcs.as_deref().cloned(),
        content: slice.content.clone(),
        observed_generation: slice.observed_generation.unwrap_or_default(),
    };
    let Object::EndpointSlice(written) = created(Desired::EndpointSlice(imported)) else { unreachable!("a slice") };
    assert_eq!(written.content, slice.content);
    assert_eq!(written.service.unwrap_or_default(), slice.service.clone().unwrap_or_default());
    assert_eq!(written.observed_generation, Some(slice.observed_generation.unwrap_or_default()));
    assert!(written.imported && written.excess == 0, "a slice that the agent wrote has an excess");
}

fn same_status(service: &MultiClusterService) {
    let conditions: Vec<Condition> = service.conditions.clone();
    let write = |conditions, load_balancer| {
        let patch = Patch::MultiClusterServiceStatus { conditions, load_balancer };
        let Object::MultiClusterService(written) = patched(&service.meta, patch) else { unreachable!("an import") };
        written
    };
    let written = write(conditions, service.load_balancer.clone());
    assert_eq!(written.load_balancer, service.load_balancer);
    assert_eq!(written.conditions.len(), service.conditions.len());
    let again = write(written.conditions.clone(), written.load_balancer.clone());
    assert_eq!(again.conditions, written.conditions, "a condition changes each time it is written");
}

/// Reads the latency summary of a MemberAgent, as the command line does.
pub fn latency_summary(bytes: &[u8]) {
    let Ok(object) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Some(Err(why)) = summary_of(&object) {
        check_message(&why);
    }
}
