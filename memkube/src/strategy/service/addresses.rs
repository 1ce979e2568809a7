//! IP families and cluster IPs of Services. Like a single-stack cluster, memkube allocates IPv4 addresses only.

use super::super::{Context, addresses};
use super::{HEADLESS, first_address, is_headless, list, needs_cluster_ip, spec_mut};
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

/// Checks addresses and families, and sets the families.
pub(super) fn set_families(object: &mut Object, old: Option<&Object>) -> Vec<FieldError> {
    if text_at(object, "spec.type") == "ExternalName" {
        return Vec::new();
    }
    if let Some(old) = old.filter(|old| needs_cluster_ip(old)) {
        keep_families(object, old);
    }
    let errors = errors(object);
    if !errors.is_empty() {
        return errors;
    }
    if is_headless(object) && at(object, "spec.selector").is_none() {
        cover_both_families(object);
        return Vec::new();
    }
    let errors = configuration_errors(object);
    if errors.is_empty() {
        let spec = spec_mut(object);
        spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
        spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    }
    errors
}

fn keep_families(object: &mut Object, old: &Object) {
    for name in ["ipFamilyPolicy", "ipFamilies"] {
        if let Some(kept) = at(old, &format!("spec.{name}")).cloned() {
            spec_mut(object).entry(name).or_insert(kept);
        }
    }
}

/// Sets both IP families for a headless Service without a selector, because its endpoints may have both families, even in an IPv4
/// cluster.
fn cover_both_families(object: &mut Object) {
    let spec = spec_mut(object);
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!("RequireDualStack"));
    let given = spec.get("ipFamilies").and_then(Value::as_array).cloned().unwrap_or_default();
    let first = given.first().and_then(Value::as_str).unwrap_or("IPv4").to_owned();
    let second = if first == "IPv4" { "IPv6" } else { "IPv4" };
    let families = match (spec["ipFamilyPolicy"] == "SingleStack", given.len()) {
        (_, 2) => json!(given),
        (true, _) => json!([first]),
        (false, _) => json!([first, second]),
    };
    spec.insert("ipFamilies".to_owned(), families);
}

/// Returns errors for families and policies that an IPv4 cluster does not support.
fn configuration_errors(object: &Object) -> Vec<FieldError> {
    let policy = at(object, "spec.ipFamilyPolicy").and_then(Value::as_str).unwrap_or("SingleStack");
    let families = list(object, "spec.ipFamilies");
    if policy == "SingleStack" {
        let counts = [(list(object, "spec.clusterIPs").len(), "cluster IPs"), (families.len(), "IP families")];
        let several = counts.into_iter().filter(|(count, _)| *count == 2).map(|(_, what)| {
            let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            FieldError::invalid("spec.ipFamilyPolicy", &json!(policy), &why)
        });
        let errors: Vec<FieldError> = several.collect();
        if !errors.is_empty() {
            return errors;
        }
    }
    let mut errors = Vec::new();
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", &json!(policy), why));
    }
    for (index, family) in families.iter().enumerate().filter(|(_, family)| **family != "IPv4") {
        let field = format!("spec.ipFamilies[{index}]");
        errors.push(FieldError::invalid(field, family, "not configured on this cluster"));
    }
    errors
}

/// Returns the errors of addresses and families that do not depend on the cluster's configuration.
pub(super) fn errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text_at(object, "spec.type") == "ExternalName" {
        for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            let field = format!("spec.{name}");
            if at(object, &field).is_some() {
                errors.push(FieldError::forbidden(field, "may not be set for ExternalName services"));
            }
        }
        return errors;
    }
    let all = list(object, "spec.clusterIPs");
    let shown = json!(all);
    let one = text_at(object, "spec.clusterIP");
    if !all.is_empty() && one.is_empty() {
        let why = "must be empty when `clusterIP` is not specified";
        errors.push(FieldError::invalid("spec.clusterIPs", &shown, why));
    } else if !all.is_empty() && all[0] != one {
        errors.push(FieldError::invalid("spec.clusterIPs", &shown, "first value must match `clusterIP`"));
    }
    errors.extend(family_errors(object));
    let address_errors = address_errors(all);
    let stops = !address_errors.is_empty();
    errors.extend(address_errors);
    if all.len() > 2 {
        errors.push(FieldError::invalid("spec.clusterIPs", &shown, "may only hold up to 2 values"));
    }
    if stops {
        return errors;
    }
    let parsed: Vec<Option<IpAddr>> = all.iter().map(|ip| addresses::parse(ip.as_str().unwrap_or_default())).collect();
    if all.len() > 1 && parsed.iter().flatten().all(IpAddr::is_ipv4) == parsed.iter().flatten().any(IpAddr::is_ipv4) {
        let why = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid("spec.clusterIPs", &shown, why));
    }
    if errors.is_empty() && !is_headless(object) {
        errors.extend(mismatches(list(object, "spec.ipFamilies"), all, &parsed));
    }
    errors
}

fn family_errors(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let families = list(object, "spec.ipFamilies");
    for (index, family) in families.iter().enumerate() {
        let field = format!("spec.ipFamilies[{index}]");
        if !FAMILIES.iter().any(|known| family == known) {
            errors.push(FieldError::not_supported(field.clone(), family, &FAMILIES));
        }
        if families[..index].contains(family) {
            errors.push(FieldError::duplicate(field, family));
        }
    }
    let policy = at(object, "spec.ipFamilyPolicy");
    if let Some(policy) = policy.filter(|policy| !POLICIES.iter().any(|known| *policy == known)) {
        errors.push(FieldError::not_supported("spec.ipFamilyPolicy", policy, &POLICIES));
    }
    errors
}

fn address_errors(all: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, address) in all.iter().enumerate() {
        let text = address.as_str().unwrap_or_default();
        if index == 0 && text == HEADLESS {
            if all.len() > 1 {
                let why = "'None' must be the first and only value";
                errors.push(FieldError::invalid("spec.clusterIPs", &json!(all), why));
            }
        } else if addresses::parse(text).is_none() {
            errors.push(addresses::no_address(&format!("spec.clusterIPs[{index}]"), text));
        }
    }
    errors
}

fn mismatches(families: &[Value], all: &[Value], parsed: &[Option<IpAddr>]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, ((family, address), parsed)) in families.iter().zip(all).zip(parsed).enumerate() {
        let is_v4 = parsed.is_some_and(|parsed| parsed.is_ipv4());
        if is_v4 != (family == "IPv4") {
            let family = family.as_str().unwrap_or_default();
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.push(FieldError::invalid(format!("spec.clusterIPs[{index}]"), address, &why));
        }
    }
    errors
}

/// Allocates a cluster IP. If the Service requests an address, allocates that address.
pub(super) fn allocate(context: &mut Context<'_>, object: &mut Object, old: Option<&Object>) -> Vec<FieldError> {
    if !needs_cluster_ip(object) || is_headless(object) {
        return Vec::new();
    }
    let had = old.filter(|old| needs_cluster_ip(old)).map(first_address).unwrap_or_default().to_owned();
    let wanted = first_address(object).to_owned();
    if !had.is_empty() && had != HEADLESS {
        // The Service keeps its address. [`super::change::errors`] rejects a change of the address.
        return Vec::new();
    }
    let used = used(context);
    if wanted.is_empty() {
        let Some(free) = any_free(context, &used) else {
            let why = "failed to allocate IP from pool: range is full";
            return vec![FieldError::invalid("spec.clusterIPs", &Value::Null, why)];
        };
        spec_mut(object).insert("clusterIP".to_owned(), json!(free));
        spec_mut(object).insert("clusterIPs".to_owned(), json!([free]));
        return Vec::new();
    }
    let why = if !in_range(&wanted) {
        "the provided network does not match the current range"
    } else if used.contains(&wanted) || wanted == RESERVED.to_string() {
        "provided IP is already allocated"
    } else {
        return Vec::new();
    };
    let shown = json!(list(object, "spec.clusterIPs"));
    let why = format!("failed to allocate IP {wanted}: {why}");
    vec![FieldError::invalid("spec.clusterIPs", &shown, &why)]
}

fn used(context: &Context<'_>) -> BTreeSet<String> {
    let services = context.store.list(&ResourceId::new("", "services"), "");
    services.filter_map(|service| service.header.fields.get("spec.clusterIP")).map(str::to_owned).collect()
}

fn in_range(text: &str) -> bool {
    let Some(IpAddr::V4(address)) = addresses::parse(text) else { return false };
    let host = address.to_bits().wrapping_sub(NETWORK.to_bits());
    (1..(1 << HOST_BITS) - 1).contains(&host)
}

/// Returns a random free address; `None` if all addresses are in use.
fn any_free(context: &mut Context<'_>, used: &BTreeSet<String>) -> Option<String> {
    let hosts = (1_u32 << HOST_BITS) - 2;
    let begin = u32::try_from(context.random.below(u64::from(hosts))).unwrap_or_default();
    let candidates = (0..hosts).map(|step| Ipv4Addr::from_bits(NETWORK.to_bits() + 1 + (begin + step) % hosts));
    candidates
        .filter(|address| *address != RESERVED)
        .map(|address| address.to_string())
        .find(|text| !used.contains(text))
}

#[cfg(test)]
mod tests {
    use super::in_range;

    #[test]
    fn the_range_is_without_its_first_and_its_last_address() {
        assert!(in_range("10.0.0.1") && in_range("10.0.255.254"));
        for outside in ["10.0.0.0", "10.0.255.255", "10.1.0.1", "9.255.255.255", "fd00::1", "x"] {
            assert!(!in_range(outside), "{outside}");
        }
    }
}
