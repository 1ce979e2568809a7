//! IP families and cluster IPs of Services. Like a single-stack cluster, memkube allocates IPv4 addresses only.

use super::super::{Context, addresses};
use super::{HEADLESS, default, is_external_name, is_headless, list, spec_mut};
use crate::object::{Object, at, text_at};
use crate::registry::ResourceId;
use crate::status::FieldError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

/// Range of cluster IPs: `NETWORK/16`.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
const HOST_BITS: u32 = 16;
/// Cluster IP of the Service `kubernetes` of an API server: the first address of the range.
const RESERVED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/// Types of Services that have a field.
const TYPES_WITH: [(&str, &[&str]); 8] = [
    ("clusterIP", &INTERNAL),
    ("clusterIPs", &INTERNAL),
    ("ipFamilies", &INTERNAL),
    ("ipFamilyPolicy", &INTERNAL),
    ("internalTrafficPolicy", &INTERNAL),
    ("externalTrafficPolicy", &["LoadBalancer", "NodePort"]),
    ("allocateLoadBalancerNodePorts", &["LoadBalancer"]),
    ("loadBalancerClass", &["LoadBalancer"]),
];
const INTERNAL: [&str; 3] = ["ClusterIP", "LoadBalancer", "NodePort"];

/// Restores addresses and families that an update omitted, and drops unchanged fields that the new type of the Service
/// does not have. Makes `clusterIP` and `clusterIPs` consistent if a client sets only one of them.
pub(super) fn complete(object: &mut Object, old: Option<&Object>) {
    let kind = text_at(object, "spec.type").to_owned();
    for (name, types) in TYPES_WITH {
        let before = old.and_then(|old| at(old, &format!("spec.{name}"))).cloned();
        let spec = spec_mut(object);
        match before {
            Some(before) if !types.contains(&kind.as_str()) && spec.get(name) == Some(&before) => {
                drop(spec.remove(name));
            }
            Some(before) if types == INTERNAL && kind != "ExternalName" => default(spec, name, before),
            _ => {}
        }
    }
    let one = text_at(object, "spec.clusterIP").to_owned();
    let changed = old.is_some_and(|old| {
        text_at(old, "spec.clusterIP") != one && list(old, "spec.clusterIPs") == list(object, "spec.clusterIPs")
    });
    if !one.is_empty() && (changed || list(object, "spec.clusterIPs").is_empty()) {
        spec_mut(object).insert("clusterIPs".to_owned(), json!([one]));
    }
}

/// Sets the IP families. Returns errors for families and policies that an IPv4 cluster does not support.
pub(super) fn set_families(object: &mut Object) -> Vec<FieldError> {
    if is_external_name(object) {
        return Vec::new();
    }
    // The endpoints of a headless Service without a selector may have both families, even in an IPv4 cluster.
    let both = is_headless(object) && at(object, "spec.selector").is_none();
    let (policy, families) =
        if both { ("RequireDualStack", json!(FAMILIES)) } else { ("SingleStack", json!(["IPv4"])) };
    let spec = spec_mut(object);
    default(spec, "ipFamilyPolicy", json!(policy));
    let single = spec["ipFamilyPolicy"] == "SingleStack";
    let given = spec.get("ipFamilies").and_then(Value::as_array).cloned().unwrap_or_default();
    if both && !single && given.len() < 2 {
        let first = given.first().cloned().unwrap_or_else(|| json!("IPv4"));
        let second = if first == "IPv4" { "IPv6" } else { "IPv4" };
        spec.insert("ipFamilies".to_owned(), json!([first, second]));
    }
    default(spec, "ipFamilies", if single { json!(["IPv4"]) } else { families });
    let mut errors = Vec::new();
    let count = list(object, "spec.ipFamilies").len().max(list(object, "spec.clusterIPs").len());
    if !both && single && count > 1 {
        let why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified";
        return vec![FieldError::invalid("spec.ipFamilyPolicy", &json!("SingleStack"), why)];
    }
    if !both && text_at(object, "spec.ipFamilyPolicy") == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", &json!("RequireDualStack"), why));
    }
    for (index, family) in list(object, "spec.ipFamilies").iter().enumerate().filter(|(_, it)| !both && **it != "IPv4")
    {
        let field = format!("spec.ipFamilies[{index}]");
        errors.push(FieldError::invalid(field, family, "not configured on this cluster"));
    }
    errors
}

/// Returns the errors of addresses and families that do not depend on the cluster's configuration.
pub(super) fn errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_external_name(object) {
        let given = ["spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy"].into_iter();
        let given = given.filter(|field| at(object, field).is_some());
        return given.map(|field| FieldError::forbidden(field, "may not be set for ExternalName services")).collect();
    }
    for (index, family) in list(object, "spec.ipFamilies").iter().enumerate() {
        errors.extend(addresses::unsupported(format!("spec.ipFamilies[{index}]"), family, &FAMILIES));
    }
    if let Some(policy) = at(object, "spec.ipFamilyPolicy") {
        errors.extend(addresses::unsupported("spec.ipFamilyPolicy", policy, &POLICIES));
    }
    let all = list(object, "spec.clusterIPs");
    let mut invalid = |why: &str| errors.push(FieldError::invalid("spec.clusterIPs", &json!(all), why));
    if all.first().is_some_and(|first| *first != text_at(object, "spec.clusterIP")) {
        invalid("first value must match `clusterIP`");
    }
    if all.len() > 1 && all.iter().any(|address| address == HEADLESS) {
        invalid("'None' must be the first and only value");
    } else if all.len() > 2 {
        invalid("may only hold up to 2 values");
    }
    for (index, address) in all.iter().enumerate().filter(|(_, address)| **address != HEADLESS) {
        let field = || format!("spec.clusterIPs[{index}]");
        errors.extend(addresses::parse(field, address.as_str().unwrap_or_default()).err());
    }
    errors
}

/// Allocates a cluster IP. If the Service requests an address, allocates that address.
pub(super) fn allocate(context: &mut Context<'_>, object: &mut Object, old: Option<&Object>) -> Option<FieldError> {
    let had = old.map_or("", |old| text_at(old, "spec.clusterIP"));
    if is_external_name(object) || is_headless(object) || !matches!(had, "" | HEADLESS) {
        // A Service keeps its address. [`change_error`] rejects a change of the address.
        return None;
    }
    let wanted = text_at(object, "spec.clusterIP").to_owned();
    let used = used(context);
    if wanted.is_empty() {
        let Some(free) = any_free(context, &used) else {
            let why = "failed to allocate IP from pool: range is full";
            return Some(FieldError::invalid("spec.clusterIPs", &Value::Null, why));
        };
        spec_mut(object).extend([("clusterIP".to_owned(), json!(free)), ("clusterIPs".to_owned(), json!([free]))]);
        return None;
    }
    let in_range = wanted.parse().is_ok_and(|address: Ipv4Addr| {
        (1..(1 << HOST_BITS) - 1).contains(&address.to_bits().wrapping_sub(NETWORK.to_bits()))
    });
    let free = in_range && !used.contains(&wanted) && wanted != RESERVED.to_string();
    let why = format!("failed to allocate IP {wanted}: it is not in the range or already allocated");
    (!free).then(|| FieldError::invalid("spec.clusterIPs", &json!([wanted]), &why))
}

fn used(context: &Context<'_>) -> BTreeSet<String> {
    let services = context.store.list(&ResourceId::new("", "services"), "");
    services.filter_map(|service| service.header.fields.get("spec.clusterIP")).map(str::to_owned).collect()
}

/// Returns a random free address; `None` if all addresses are in use.
fn any_free(context: &mut Context<'_>, used: &BTreeSet<String>) -> Option<String> {
    let hosts = (1_u32 << HOST_BITS) - 2;
    let begin = u32::try_from(context.random.below(u64::from(hosts))).unwrap_or_default();
    let candidates = (0..hosts).map(|step| Ipv4Addr::from_bits(NETWORK.to_bits() + 1 + (begin + step) % hosts));
    let mut texts = candidates.filter(|address| *address != RESERVED).map(|address| IpAddr::V4(address).to_string());
    texts.find(|text| !used.contains(text))
}

/// Error for a changed cluster IP, which is immutable.
pub(super) fn change_error(object: &Object, old: &Object) -> Option<FieldError> {
    let (new, old_address) = (text_at(object, "spec.clusterIP"), text_at(old, "spec.clusterIP"));
    let changed = !is_external_name(object) && !old_address.is_empty() && new != old_address;
    let shown = json!(list(object, "spec.clusterIPs"));
    changed.then(|| FieldError::invalid("spec.clusterIPs[0]", &shown, "may not change once set"))
}
