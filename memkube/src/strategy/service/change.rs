//! Updates of Services: fields that a client omitted, fields that only the old type of Service has, and immutable fields.

use super::{
    externally_accessible, first_address, list, needs_cluster_ip, needs_health_check_port, node_ports, spec, spec_mut,
    text,
};
use crate::object::{Object, at, text_at};
use crate::status::FieldError;
use serde_json::{Value, json};

/// Makes `clusterIP` and `clusterIPs` consistent if a client sets only one of them.
pub(super) fn normalize(object: &mut Object, old: Option<&Object>) {
    let one = text_at(object, "spec.clusterIP").to_owned();
    let all_are_old = |old: &Object| list(old, "spec.clusterIPs") == list(object, "spec.clusterIPs");
    match old {
        None => {
            if !one.is_empty() && list(object, "spec.clusterIPs").is_empty() {
                spec_mut(object).insert("clusterIPs".to_owned(), json!([one]));
            }
        }
        Some(old) if one != text_at(old, "spec.clusterIP") && all_are_old(old) => {
            if one.is_empty() {
                spec_mut(object).remove("clusterIPs");
            } else {
                spec_mut(object).insert("clusterIPs".to_owned(), json!([one]));
            }
        }
        Some(_) => {}
    }
}

/// Restores allocated addresses and ports that a client omitted.
pub(super) fn keep_allocated(object: &mut Object, old: &Object) {
    if needs_cluster_ip(object) && needs_cluster_ip(old) {
        let had = text_at(old, "spec.clusterIP").to_owned();
        let all = at(old, "spec.clusterIPs").cloned();
        let spec = spec_mut(object);
        if text(spec, "clusterIP").is_empty() && !had.is_empty() {
            spec.insert("clusterIP".to_owned(), json!(had));
        }
        if let (Some(all), true) = (all, text(spec, "clusterIP") == had) {
            spec.entry("clusterIPs").or_insert(all);
        }
    }
    node_ports::keep(object, old);
}

/// Drops fields that the new type of Service does not have, if the client did not change these fields.
pub(super) fn drop_by_type(object: &mut Object, old: &Object) {
    if needs_cluster_ip(old) && !needs_cluster_ip(object) {
        let untouched = list(old, "spec.clusterIPs") == list(object, "spec.clusterIPs");
        if untouched {
            remove(object, "clusterIP");
            remove(object, "clusterIPs");
        }
        for name in ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            remove_if_same(object, old, name);
        }
    }
    if node_ports::belong_to(old) && !node_ports::belong_to(object) && node_ports::same(object, old) {
        node_ports::clear(object);
    }
    if needs_health_check_port(old) && !needs_health_check_port(object) {
        remove_if_same(object, old, "healthCheckNodePort");
    }
    if externally_accessible(&spec(old)) && !externally_accessible(&spec(object)) {
        remove_if_same(object, old, "externalTrafficPolicy");
    }
    let is_balanced = |object: &Object| text_at(object, "spec.type") == "LoadBalancer";
    if is_balanced(old) && !is_balanced(object) {
        remove_if_same(object, old, "allocateLoadBalancerNodePorts");
        remove_if_same(object, old, "loadBalancerClass");
        if let Some(Value::Object(status)) = object.get_mut("status") {
            status.insert("loadBalancer".to_owned(), json!({}));
        }
    }
}

fn remove(object: &mut Object, name: &str) {
    spec_mut(object).remove(name);
}

fn remove_if_same(object: &mut Object, old: &Object, name: &str) {
    if at(object, &format!("spec.{name}")) == at(old, &format!("spec.{name}")) {
        remove(object, name);
    }
}

/// Errors for changed fields that are immutable.
pub(super) fn errors(object: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let why = "may not change once set";
    let both_addressed = needs_cluster_ip(object) && needs_cluster_ip(old);
    let (new_address, old_address) = (first_address(object), first_address(old));
    if both_addressed && !old_address.is_empty() && new_address != old_address {
        let shown = json!(list(object, "spec.clusterIPs"));
        errors.push(FieldError::invalid("spec.clusterIPs[0]", &shown, why));
    }
    let is_balanced = |object: &Object| text_at(object, "spec.type") == "LoadBalancer";
    let class = |object: &Object| at(object, "spec.loadBalancerClass").cloned().unwrap_or_default();
    if is_balanced(object) && is_balanced(old) && class(object) != class(old) {
        errors.push(FieldError::invalid("spec.loadBalancerClass", &class(object), why));
    }
    errors
}
