//! Rules of Services: defaults, allocation of cluster IPs, and validation. memkube allocates no node ports.

mod addresses;
mod check;
mod spec;

use spec::{HEADLESS, is_external_name, is_headless, list, spec_mut};

use super::typed::{self, default};
use super::{Context, Findings, Strategy, Undecodable, copy_member, fields_at};
use crate::columns::{AGE, Column, NAME};
use crate::object::{Object, meta_text, names, text_at};
use crate::status::{FieldError, Named, Status};
use crate::store::Fields;
use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

/// Default of `sessionAffinityConfig.clientIP.timeoutSeconds`: 3 hours.
const AFFINITY_SECONDS: i64 = 10_800;

const SELECTABLE: [&str; 2] = ["spec.clusterIP", "spec.type"];

#[derive(Clone, Copy, Debug)]
pub(super) struct Service;

impl Strategy for Service {
    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::decode::<v1::Service>(object, findings)?;
        default(object, "status", json!({"loadBalancer": {}}));
        // An empty address, list or map counts as absent.
        spec_mut(object).retain(|_, value| ![json!(""), json!([]), json!({})].contains(value));
        Ok(())
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        set_defaults(spec_mut(object));
    }

    fn prepare_for_create(&self, context: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        object.insert("status".to_owned(), json!({"loadBalancer": {}}));
        addresses::complete(object, None);
        allocate(context, object, None)
    }

    fn prepare_for_update(&self, context: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        copy_member("status", old, object);
        addresses::complete(object, Some(old));
        allocate(context, object, Some(old))
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        check::errors(object)
    }

    fn validate_update(&self, _: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = check::errors(object);
        errors.extend(addresses::change_error(object, old));
        errors
    }

    fn validate_status_update(&self, _: &mut Context<'_>, object: &Object, _: &Object) -> Vec<FieldError> {
        let balanced = text_at(object, "spec.type") == "LoadBalancer";
        let field = "status.loadBalancer.ingress";
        let wrong = !balanced && !list(object, field).is_empty();
        let error = wrong.then(|| FieldError::forbidden(field, "may only be used when `spec.type` is 'LoadBalancer'"));
        error.into_iter().collect()
    }

    fn check_name(&self, name: &str, prefix: bool) -> Option<&'static str> {
        names::label(name, prefix)
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        vec![
            Column::text(NAME.0, NAME.1),
            Column::text("Type", "spec.type"),
            Column::text("Cluster-IP", "spec.clusterIP"),
            Column::text("Port(s)", "spec.ports[*].port"),
            Column::age(AGE.0, AGE.1),
        ]
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        SELECTABLE.map(str::to_owned).to_vec()
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        fields_at(object, &SELECTABLE)
    }
}

/// Sets the IP families of a Service, and allocates its cluster IP.
fn allocate(context: &mut Context<'_>, object: &mut Object, old: Option<&Object>) -> Result<(), Status> {
    let mut errors = addresses::errors(object);
    if errors.is_empty() {
        errors = addresses::set_families(object);
    }
    if errors.is_empty() {
        errors.extend(addresses::allocate(context, object, old));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(Named { group: "", kind: "Service", name: meta_text(object, "name") }, &errors))
}

fn set_defaults(spec: &mut Object) {
    default(spec, "type", json!("ClusterIP"));
    default(spec, "sessionAffinity", json!("None"));
    if spec["sessionAffinity"] == "ClientIP" {
        default(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}));
    } else {
        spec.remove("sessionAffinityConfig");
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Value::Object(port) = port else { continue };
        default(port, "protocol", json!("TCP"));
        port.retain(|name, value| name != "targetPort" || (*value != 0 && *value != ""));
        let number = port.get("port").cloned().unwrap_or_default();
        default(port, "targetPort", number);
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") || spec.contains_key("externalIPs") {
        default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if kind != "ExternalName" {
        default(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
}
