//! Rules of Services: defaults, allocation of cluster IPs and node ports, and validation.

mod addresses;
mod change;
mod check;
mod node_ports;
mod shape;
mod status;
use super::{Context, Findings, Strategy, Undecodable, copy_member, metadata_again};
use crate::object::{Object, at, names, text_at};
use crate::status::{FieldError, Named, Status};
use crate::store::Fields;
use serde_json::{Value, json};

/// Default of `sessionAffinityConfig.clientIP.timeoutSeconds`: 3 hours.
const AFFINITY_SECONDS: i64 = 10_800;

/// Value of `clusterIP` in a headless Service.
const HEADLESS: &str = "None";

#[derive(Clone, Copy, Debug)]
pub(super) struct Service;

impl Strategy for Service {
    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        super::shape::read(&shape::SERVICE, object, findings)
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        set_defaults(object);
        status::set_defaults(object);
    }

    fn prepare_for_create(&self, context: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        object.insert("status".to_owned(), json!({"loadBalancer": {}}));
        change::normalize(object, None);
        allocate(context, object, None)
    }

    fn prepare_for_update(&self, context: &mut Context<'_>, object: &mut Object, old: &Object) -> Result<(), Status> {
        copy_member("status", old, object);
        change::normalize(object, Some(old));
        change::keep_allocated(object, old);
        allocate(context, object, Some(old))?;
        change::drop_by_type(object, old);
        Ok(())
    }

    fn validate(&self, context: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let errors = check::errors(object);
        if errors.is_empty() {
            warn(context, object);
        }
        errors
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = metadata_again(self, context, object);
        errors.extend(change::errors(object, old));
        errors.extend(check::errors(object));
        if errors.is_empty() {
            warn(context, object);
        }
        errors
    }

    fn validate_status_update(&self, _: &mut Context<'_>, object: &Object, _: &Object) -> Vec<FieldError> {
        status::errors(object)
    }

    fn check_name(&self, name: &str, prefix: bool) -> Vec<String> {
        names::label_1035(name, prefix)
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn selectable_names(&self, _: &str) -> Vec<String> {
        ["spec.clusterIP", "spec.type"].map(str::to_owned).to_vec()
    }

    fn selectable_fields(&self, object: &Object) -> Fields {
        let fields = ["spec.clusterIP", "spec.type"];
        fields.map(|name| (name.to_owned(), text_at(object, name).to_owned())).into()
    }
}

/// Allocates the cluster IPs and node ports of a Service.
fn allocate(context: &mut Context<'_>, object: &mut Object, old: Option<&Object>) -> Result<(), Status> {
    let mut errors = addresses::set_families(object, old);
    if errors.is_empty() {
        errors = addresses::allocate(context, object, old);
    }
    if errors.is_empty() {
        errors = node_ports::allocate(context, object, old);
    }
    if errors.is_empty() {
        return Ok(());
    }
    let name = crate::object::meta_text(object, "name");
    Err(Status::invalid(Named { group: "", kind: "Service", name }, &errors))
}

fn set_defaults(object: &mut Object) {
    let spec = spec_mut(object);
    default_text(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => drop(spec.remove("sessionAffinityConfig")),
        "ClientIP" => {
            let config = spec.entry("sessionAffinityConfig").or_insert_with(|| json!({}));
            if config["clientIP"]["timeoutSeconds"].is_null() {
                *config = json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}});
            }
        }
        _ => {}
    }
    default_text(spec, "type", "ClusterIP");
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let Value::Object(port) = port else { continue };
        default_text(port, "protocol", "TCP");
        if matches!(port.get("targetPort"), None | Some(Value::Null)) || is_unset(&port["targetPort"]) {
            copy_within(port, "port", "targetPort");
        }
    }
    if externally_accessible(spec) {
        default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    let kind = text(spec, "type").to_owned();
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        spec.entry("internalTrafficPolicy").or_insert_with(|| json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        spec.entry("allocateLoadBalancerNodePorts").or_insert_with(|| json!(true));
    }
}

fn is_unset(port: &Value) -> bool {
    *port == 0 || *port == ""
}

fn copy_within(object: &mut Object, from: &str, to: &str) {
    let value = object.get(from).cloned().unwrap_or_else(|| json!(0));
    object.insert(to.to_owned(), value);
}

fn default_text(object: &mut Object, name: &str, default: &str) {
    if text(object, name).is_empty() {
        object.insert(name.to_owned(), json!(default));
    }
}

fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn spec_mut(object: &mut Object) -> &mut Object {
    let spec = object.entry("spec").or_insert_with(|| json!({}));
    if !spec.is_object() {
        *spec = json!({});
    }
    match spec {
        Value::Object(spec) => spec,
        _ => unreachable!("it was made an object"),
    }
}

fn spec(object: &Object) -> Object {
    object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default()
}

fn list<'a>(object: &'a Object, path: &str) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// First address of `spec.clusterIPs`; empty if there is no address.
fn first_address(object: &Object) -> &str {
    list(object, "spec.clusterIPs").first().and_then(Value::as_str).unwrap_or_default()
}

fn is_headless(object: &Object) -> bool {
    first_address(object) == HEADLESS
}

fn needs_cluster_ip(object: &Object) -> bool {
    matches!(text_at(object, "spec.type"), "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn needs_node_ports(object: &Object) -> bool {
    let allocates = || at(object, "spec.allocateLoadBalancerNodePorts").is_none_or(|flag| *flag == true);
    match text_at(object, "spec.type") {
        "NodePort" => true,
        "LoadBalancer" => allocates(),
        _ => false,
    }
}

fn needs_health_check_port(object: &Object) -> bool {
    text_at(object, "spec.type") == "LoadBalancer" && text_at(object, "spec.externalTrafficPolicy") == "Local"
}

fn externally_accessible(spec: &Object) -> bool {
    let has_external_addresses = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    match text(spec, "type") {
        "NodePort" | "LoadBalancer" => true,
        "ClusterIP" => has_external_addresses,
        _ => false,
    }
}

fn warn(context: &mut Context<'_>, object: &Object) {
    if text_at(object, "spec.type") != "ExternalName" && !text_at(object, "spec.externalName").is_empty() {
        let warning = "spec.externalName is ignored when spec.type is not \"ExternalName\"";
        context.warnings.push(warning.to_owned());
    }
    if text_at(object, "spec.trafficDistribution") == "PreferClose" {
        let warning = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"";
        context.warnings.push(warning.to_owned());
    }
    for field in ["clusterIPs", "externalIPs"] {
        for (index, address) in list(object, &format!("spec.{field}")).iter().enumerate() {
            let place = || format!("spec.{field}[{index}]");
            context.warnings.extend(super::addresses::warning(&place, address.as_str().unwrap_or_default()));
        }
    }
}
