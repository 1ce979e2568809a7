//! Validation of the status of Services: addresses of load balancers.

use super::super::addresses;
use super::list;
use crate::object::{Object, names, text_at};
use crate::status::FieldError;
use serde_json::{Value, json};

const MODES: [&str; 2] = ["Proxy", "VIP"];

pub(super) fn set_defaults(object: &mut Object) {
    let ingress = object.get_mut("status").and_then(|status| status.get_mut("loadBalancer")?.get_mut("ingress"));
    for point in ingress.and_then(Value::as_array_mut).into_iter().flatten() {
        if point["ip"].is_string() && point["ipMode"].is_null() {
            point["ipMode"] = json!("VIP");
        }
    }
}

pub(super) fn errors(object: &Object) -> Vec<FieldError> {
    let ingress = list(object, "status.loadBalancer.ingress");
    if text_at(object, "spec.type") != "LoadBalancer" {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        let wrong = (!ingress.is_empty()).then(|| FieldError::forbidden("status.loadBalancer.ingress", why));
        return wrong.into_iter().collect();
    }
    let points = ingress.iter().enumerate();
    points.flat_map(|(index, point)| point_errors(point, &format!("status.loadBalancer.ingress[{index}]"))).collect()
}

fn point_errors(point: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |name: &str| point[name].as_str().filter(|text| !text.is_empty());
    if let Some(ip) = text("ip").filter(|ip| addresses::parse(ip).is_none()) {
        errors.push(addresses::no_address(&format!("{at}.ip"), ip));
    }
    match (text("ip"), point.get("ipMode")) {
        (None, Some(_)) => {
            errors.push(FieldError::forbidden(format!("{at}.ipMode"), "may not be specified when `ip` is not set"));
        }
        (Some(_), Some(mode)) if !MODES.iter().any(|known| mode == known) => {
            errors.push(FieldError::not_supported(format!("{at}.ipMode"), mode, &MODES));
        }
        _ => {}
    }
    if let Some(hostname) = text("hostname") {
        let field = format!("{at}.hostname");
        let wrong = names::subdomain(hostname, false).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(field.clone(), &json!(hostname), &why)));
        if addresses::parse(hostname).is_some() {
            let why = "must be a DNS name, not an IP address";
            errors.push(FieldError::invalid(field, &json!(hostname), why));
        }
    }
    errors
}
