//! Rules of EndpointSlices.

mod shape;
use super::{Context, Findings, Generation, Strategy, Undecodable, addresses, metadata_again};
use crate::object::{Object, at, names, text_at};
use crate::status::{FieldError, Status};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct EndpointSlice;

impl Strategy for EndpointSlice {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        super::shape::read(&shape::ENDPOINT_SLICE, object, findings)
    }

    fn set_defaults(&self, _: &str, object: &mut Object) {
        let ports = object.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            let Value::Object(port) = port else { continue };
            port.entry("name").or_insert_with(|| json!(""));
            port.entry("protocol").or_insert_with(|| json!("TCP"));
        }
    }

    fn prepare_for_create(&self, _: &mut Context<'_>, object: &mut Object) -> Result<(), Status> {
        drop_topology(object);
        Ok(())
    }

    fn prepare_for_update(&self, _: &mut Context<'_>, object: &mut Object, _: &Object) -> Result<(), Status> {
        drop_topology(object);
        Ok(())
    }

    fn validate(&self, context: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let wrong_type = type_error(object);
        let known_type = wrong_type.is_none();
        let mut errors: Vec<FieldError> = wrong_type.into_iter().collect();
        errors.extend(ports_errors(object));
        if known_type {
            errors.extend(endpoints_errors(object));
        }
        if errors.is_empty() {
            warn(context, object);
        }
        errors
    }

    fn validate_update(&self, context: &mut Context<'_>, object: &Object, old: &Object) -> Vec<FieldError> {
        let mut errors = metadata_again(self, context, object);
        if object.get("addressType") == old.get("addressType") {
            errors.extend(self.validate(context, object));
            return errors;
        }
        let shown = object.get("addressType").cloned().unwrap_or_default();
        errors.extend(ports_errors(object));
        errors.push(FieldError::invalid("addressType", &shown, "field is immutable"));
        errors
    }

    fn generation(&self) -> Generation {
        Generation::ContentAndLabels
    }
}

/// Drops `deprecatedTopology`, which clients of `v1` may not write.
fn drop_topology(object: &mut Object) {
    let endpoints = object.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten() {
        if let Value::Object(endpoint) = endpoint {
            endpoint.remove("deprecatedTopology");
        }
    }
}

fn warn(context: &mut Context<'_>, object: &Object) {
    if text_at(object, "addressType") == "FQDN" {
        context.warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        return;
    }
    for (index, endpoint) in list(object, "endpoints").iter().enumerate() {
        for (at, address) in items(endpoint, "addresses").iter().enumerate() {
            let place = || format!("endpoints[{index}].addresses[{at}]");
            context.warnings.extend(addresses::warning(&place, address.as_str().unwrap_or_default()));
        }
    }
}

fn list<'a>(object: &'a Object, name: &str) -> &'a [Value] {
    at(object, name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn type_error(object: &Object) -> Option<FieldError> {
    let address_type = text_at(object, "addressType");
    if address_type.is_empty() {
        return Some(FieldError::required("addressType", ""));
    }
    let known = ADDRESS_TYPES.contains(&address_type);
    (!known).then(|| FieldError::not_supported("addressType", &json!(address_type), &ADDRESS_TYPES))
}

fn endpoints_errors(object: &Object) -> Vec<FieldError> {
    let endpoints = list(object, "endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        return vec![FieldError::too_many("endpoints", endpoints.len(), ENDPOINTS_MAX)];
    }
    let address_type = text_at(object, "addressType");
    let all = endpoints.iter().enumerate();
    all.flat_map(|(index, endpoint)| endpoint_errors(endpoint, address_type, index)).collect()
}

fn endpoint_errors(endpoint: &Value, address_type: &str, index: usize) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let place = || format!("endpoints[{index}]");
    let all = items(endpoint, "addresses");
    if all.is_empty() {
        let field = format!("{}.addresses", place());
        errors.push(FieldError::required(field, "must contain at least 1 address"));
    } else if all.len() > ADDRESSES_MAX {
        let field = format!("{}.addresses", place());
        errors.push(FieldError::too_many(field, all.len(), ADDRESSES_MAX));
    }
    for (at, address) in all.iter().enumerate().take(ADDRESSES_MAX) {
        errors.extend(address_errors(address.as_str().unwrap_or_default(), address_type, &place, at));
    }
    let text = |name: &str| endpoint[name].as_str();
    if let Some(name) = text("nodeName") {
        let wrong = names::subdomain(name, false).into_iter();
        let field = format!("{}.nodeName", place());
        errors.extend(wrong.map(|why| FieldError::invalid(field.clone(), &json!(name), &why)));
    }
    if let Some(name) = text("hostname") {
        let wrong = names::label(name, false).into_iter();
        let field = format!("{}.hostname", place());
        errors.extend(wrong.map(|why| FieldError::invalid(field.clone(), &json!(name), &why)));
    }
    for kind in ["forZones", "forNodes"] {
        errors.extend(hint_errors(items(&endpoint["hints"], kind), &format!("{}.hints.{kind}", place())));
    }
    errors
}

/// Returns the errors of an address. `place` is called only for an error, because a slice can have up to 100,000 addresses.
fn address_errors(text: &str, address_type: &str, place: &dyn Fn() -> String, at: usize) -> Vec<FieldError> {
    let field = || format!("{}.addresses[{at}]", place());
    if address_type == "FQDN" {
        let mut wrong = names::subdomain(text, false);
        if wrong.is_empty() && !text.contains('.') {
            wrong.push("should be a domain with at least two segments separated by dots".to_owned());
        }
        return wrong.iter().map(|why| FieldError::invalid(field(), &json!(text), why)).collect();
    }
    let Some(address) = addresses::parse(text) else { return vec![addresses::no_address(&field(), text)] };
    let mut errors = Vec::new();
    if address.is_ipv4() != (address_type == "IPv4") {
        // In this message of kube-apiserver, the field has no index.
        let place = format!("{}.addresses", place());
        errors.push(FieldError::invalid(place, &json!(text), &format!("must be an {address_type} address")));
    }
    errors.extend(addresses::special("", text).map(|error| FieldError { field: field(), ..error }));
    errors
}

fn hint_errors(hints: &[Value], field: &str) -> Vec<FieldError> {
    if hints.len() > HINTS_MAX {
        return vec![FieldError::too_many(field, hints.len(), HINTS_MAX)];
    }
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, hint) in hints.iter().enumerate() {
        let field = format!("{field}[{index}].name");
        let name = hint["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.push(FieldError::required(field, ""));
            continue;
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(field.clone(), &json!(name)));
        }
        let wrong = names::label_value(name).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(field.clone(), &json!(name), &why)));
    }
    errors
}

fn ports_errors(object: &Object) -> Vec<FieldError> {
    let ports = list(object, "ports");
    if ports.len() > PORTS_MAX {
        return vec![FieldError::too_many("ports", ports.len(), PORTS_MAX)];
    }
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let name = port["name"].as_str().unwrap_or_default();
        let field = format!("ports[{index}].name");
        if !name.is_empty() {
            let wrong = names::label(name, false).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(field.clone(), &json!(name), &why)));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(field, &json!(name)));
        }
        if !PROTOCOLS.iter().any(|known| port["protocol"] == *known) {
            let field = format!("ports[{index}].protocol");
            errors.push(FieldError::not_supported(field, &port["protocol"], &PROTOCOLS));
        }
        if let Some(protocol) = port["appProtocol"].as_str() {
            errors.extend(addresses::qualified(&format!("ports[{index}].appProtocol"), protocol));
        }
    }
    errors
}
