//! Allocation of node ports.

use super::super::Context;
use super::{list, needs_health_check_port, needs_node_ports, spec_mut};
use crate::object::{Object, at, meta_text, text_at};
use crate::registry::ResourceId;
use crate::status::FieldError;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const FIRST: i64 = 30_000;
const LAST: i64 = 32_767;

/// Node ports in use, each with its protocol.
type Taken = BTreeSet<(i64, String)>;

/// Allocates the node ports of a Service. If the Service requests node ports, allocates these ports.
pub(super) fn allocate(context: &mut Context<'_>, object: &mut Object, old: Option<&Object>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if needs_node_ports(object) || needs_health_check_port(object) {
        let mut taken = taken(context, object);
        if needs_node_ports(object) || asks(object) {
            errors.extend(ports(context, object, &mut taken));
        }
        if needs_health_check_port(object) {
            errors.extend(health_check(context, object, old, &taken));
        }
    }
    errors
}

fn asks(object: &Object) -> bool {
    list(object, "spec.ports").iter().any(|port| number(port) != 0)
}

fn number(port: &Value) -> i64 {
    port["nodePort"].as_i64().unwrap_or(0)
}

fn protocol(port: &Value) -> String {
    port["protocol"].as_str().unwrap_or_default().to_owned()
}

/// Node ports of all other Services.
fn taken(context: &Context<'_>, object: &Object) -> Taken {
    let own = (meta_text(object, "namespace"), meta_text(object, "name"));
    let mut taken = Taken::new();
    for stored in context.store.list(&ResourceId::new("", "services"), "") {
        let exposed = matches!(stored.header.fields.get("spec.type"), Some("NodePort" | "LoadBalancer"));
        if !exposed || (stored.key.namespace(), stored.key.name()) == own {
            continue;
        }
        let service = stored.decode();
        let ports = list(&service, "spec.ports").iter().filter(|port| number(port) != 0);
        taken.extend(ports.map(|port| (number(port), protocol(port))));
        let health = at(&service, "spec.healthCheckNodePort").and_then(Value::as_i64);
        taken.extend(health.map(|port| (port, "TCP".to_owned())));
    }
    taken
}

fn ports(context: &mut Context<'_>, object: &mut Object, taken: &mut Taken) -> Vec<FieldError> {
    let ports = list(object, "spec.ports").to_vec();
    let mut errors = Vec::new();
    for (index, port) in ports.iter().enumerate().filter(|(_, port)| number(port) != 0) {
        let wanted = number(port);
        let why = if !(FIRST..=LAST).contains(&wanted) {
            format!("provided port is not in the valid range. The range of valid ports is {FIRST}-{LAST}")
        } else if !taken.insert((wanted, protocol(port))) {
            "provided port is already allocated".to_owned()
        } else {
            continue;
        };
        errors.push(FieldError::invalid(format!("spec.ports[{index}].nodePort"), &json!(wanted), &why));
    }
    if !errors.is_empty() {
        return errors;
    }
    let mut filled: Vec<Value> = ports;
    for index in 0..filled.len() {
        if number(&filled[index]) != 0 || !needs_node_ports(object) {
            continue;
        }
        // If the ports of a Service have the same number with two protocols, these ports share one node port.
        let protocol = protocol(&filled[index]);
        let twin = filled.iter().find(|other| other["port"] == filled[index]["port"] && number(other) != 0);
        let shared = twin.map(number).filter(|shared| !taken.contains(&(*shared, protocol.clone())));
        let Some(free) = shared.or_else(|| any_free(context, taken)) else {
            let why = "failed to allocate a nodePort: range is full";
            return vec![FieldError::invalid(format!("spec.ports[{index}].nodePort"), &json!(0), why)];
        };
        taken.insert((free, protocol));
        filled[index]["nodePort"] = json!(free);
    }
    if !filled.is_empty() {
        spec_mut(object).insert("ports".to_owned(), Value::Array(filled));
    }
    Vec::new()
}

fn health_check(
    context: &mut Context<'_>,
    object: &mut Object,
    old: Option<&Object>,
    taken: &Taken,
) -> Option<FieldError> {
    const FIELD: &str = "spec.healthCheckNodePort";
    let own = at(object, FIELD).and_then(Value::as_i64).unwrap_or(0);
    if own == 0 {
        let free = any_free(context, taken)?;
        spec_mut(object).insert("healthCheckNodePort".to_owned(), json!(free));
        return None;
    }
    let had = old.and_then(|old| at(old, FIELD)).and_then(Value::as_i64).unwrap_or(0);
    let in_use = own != had && taken.contains(&(own, "TCP".to_owned()));
    let why = format!("failed to allocate requested HealthCheck NodePort {own}: provided port is already allocated");
    in_use.then(|| FieldError::invalid(FIELD, &json!(own), &why))
}

/// Returns a random port that is free in all protocols; `None` if there is none.
fn any_free(context: &mut Context<'_>, taken: &Taken) -> Option<i64> {
    let numbers: BTreeSet<i64> = taken.iter().map(|(number, _)| *number).collect();
    let count = LAST - FIRST + 1;
    let begin = i64::try_from(context.random.below(count.unsigned_abs())).unwrap_or_default();
    (0..count).map(|step| FIRST + (begin + step) % count).find(|port| !numbers.contains(port))
}

/// Restores node ports that an update omitted. The names of ports decide which old port belongs to which new port.
pub(super) fn keep(object: &mut Object, old: &Object) {
    if needs_node_ports(object) && needs_node_ports(old) {
        let old_ports = list(old, "spec.ports");
        let mut ports = list(object, "spec.ports").to_vec();
        let given: BTreeSet<i64> = ports.iter().map(number).collect();
        let mut used: BTreeSet<i64> = old_ports.iter().map(number).filter(|port| given.contains(port)).collect();
        for port in ports.iter_mut().filter(|port| number(port) == 0) {
            let name = |port: &Value| port["name"].as_str().unwrap_or_default().to_owned();
            let kept = old_ports.iter().rev().find(|old| name(old) == name(port)).map_or(0, number);
            if kept != 0 && used.insert(kept) {
                port["nodePort"] = json!(kept);
            }
        }
        if !ports.is_empty() {
            spec_mut(object).insert("ports".to_owned(), Value::Array(ports));
        }
    }
    if needs_health_check_port(object) && needs_health_check_port(old) {
        let had = at(old, "spec.healthCheckNodePort").cloned();
        if let Some(had) = had {
            spec_mut(object).entry("healthCheckNodePort").or_insert(had);
        }
    }
}

/// True if both states have the same node ports.
pub(super) fn same(object: &Object, old: &Object) -> bool {
    let numbers = |object: &Object| list(object, "spec.ports").iter().map(number).collect::<BTreeSet<i64>>();
    numbers(object) == numbers(old)
}

pub(super) fn clear(object: &mut Object) {
    let ports = spec_mut(object).get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if let Value::Object(port) = port {
            port.remove("nodePort");
        }
    }
}

/// True if the type of a Service allows node ports.
pub(super) fn belong_to(object: &Object) -> bool {
    matches!(text_at(object, "spec.type"), "NodePort" | "LoadBalancer")
}
