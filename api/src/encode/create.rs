//! Bodies of creates: the fields of a patch, and the fields that only a whole object has, such as apiVersion, kind and
//! name.

use super::{mcs, parts, patch};
use crate::crd::endpoint_slice_export::OrIpv4;
use crate::crd::shared::RawReference;
use crate::resources::resource;
use crate::wire::{Rule, Wire};
use fleetnet_core::model::{Finalizers, Kind, McsProperties};
use fleetnet_core::plan::Desired;
use fleetnet_types::ObjectName;
use serde_json::{Value, json};

pub(super) fn body(at: &ObjectName, desired: &Desired) -> Value {
    let kind = desired.kind();
    let mut object = match desired {
        Desired::InternalServiceExport { reference, content } => {
            with_kind(patch::internal_service_export(reference, content), "serviceReference")
        }
        Desired::EndpointSliceExport(spec) | Desired::EndpointSliceImport(spec) => {
            with_kind(patch::hub_slice(spec), "endpointSliceReference")
        }
        Desired::InternalServiceImport { reference, consumer_type } => {
            let spec = json!({ "serviceImportReference": RawReference::json(reference) });
            let annotations = patch::consumer_annotation(*consumer_type);
            with_kind(json!({ "metadata": { "annotations": annotations }, "spec": spec }), "serviceImportReference")
        }
        Desired::ServiceImport { controller, finalizer } => {
            let finalizers = parts::finalizers(kind, &Finalizers { ours: *finalizer, others: Vec::new() });
            let owners = parts::owners(&[], controller.as_ref());
            json!({ "metadata": { "ownerReferences": owners, "finalizers": finalizers } })
        }
        Desired::Service(service) => {
            let mut object = patch::derived_service(service);
            if service.headless {
                object["spec"]["clusterIP"] = "None".into(); // immutable, so no patch contains this field
            }
            object
        }
        Desired::McsService(service) => mcs::derived_service(service),
        Desired::McsServiceImport(spec) => mcs::service_import(spec, &McsProperties::default()),
        Desired::MemberAgent(renewal) => patch::member_agent(renewal),
        Desired::MergedServiceImport { service, import, selection } => {
            patch::merged_service_import(service, import, selection)
        }
        Desired::EndpointSlice(slice) => {
            let mut object = patch::imported_slice(slice);
            object["addressType"] = OrIpv4::write(&slice.content.address_type);
            object
        }
    };
    let resource = resource(kind);
    object["apiVersion"] = resource.api_version().into();
    object["kind"] = resource.kind.into();
    // The server takes the namespace from the URL. Without it, all importers get the same body.
    if !matches!(kind, Kind::EndpointSliceImport | Kind::MergedServiceImport) {
        object["metadata"]["namespace"] = (*at.namespace).into();
    }
    object["metadata"]["name"] = (*at.name).into();
    leave_out_nulls(&mut object);
    leave_out_empty(&mut object["metadata"]);
    object
}

/// Sets an empty `kind` in a reference, because the schema requires the field. The Go agents write an empty `kind` too.
fn with_kind(mut object: Value, reference: &str) -> Value {
    object["spec"][reference]["kind"] = "".into();
    object
}

/// Removes nulls. In a patch, a null removes a field. In a whole object, a null would count as an empty value.
fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

fn leave_out_empty(metadata: &mut Value) {
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|_, value| *value != json!({}) && *value != json!([]));
    }
}
