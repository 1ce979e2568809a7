//! Content of a source slice that clients of an importer reach when every agent has done its work.
//!
//! The agents leave out some content on purpose. The diagnosis subtracts it by the same functions, so it never reports
//! it as missing.

use crate::admission::{self, Source};
use crate::features::{self, Features};
use crate::member::served;
use crate::model::{MergedCluster, SliceContent};

/// Returns the content of a slice that an importer serves, under the names of the ports in the import. `exporter` is
/// the exporter's part of the merged import; `None` by the fleet's API. Returns `None` if no agent exports slices of
/// this address type.
///
/// Ranges that an importer declares, and its own addresses, are not known here: FN607 reports what they leave out.
#[must_use]
pub fn carried(source: &SliceContent, exporter: Option<&MergedCluster>) -> Option<SliceContent> {
    let exported = features::slice_for(Features::ALL, source)?;
    let admitted = admission::admit(&exported, Source::default()).content;
    Some(match exporter {
        Some(exporter) => served(admitted, exporter).into_owned(),
        None => admitted.into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AddressType, Endpoint, EndpointPort, PortNumber, ServedPort};

    fn slice(address_type: AddressType, addresses: &[&str], ports: &[&str]) -> SliceContent {
        let endpoint = |address: &&str| Endpoint { addresses: vec![(*address).into()], ..Endpoint::default() };
        let port = |name: &&str| EndpointPort {
            name: (*name).into(),
            protocol: "TCP".into(),
            port: Some(PortNumber::from(8080)),
            app_protocol: None,
        };
        SliceContent {
            address_type,
            endpoints: addresses.iter().map(endpoint).collect(),
            draining: Vec::new(),
            ports: ports.iter().map(port).collect(),
        }
    }

    #[test]
    fn only_what_the_agents_carry_is_reached() {
        let part = |served: &[(&str, &str)]| MergedCluster {
            cluster: "west".into(),
            ports: Some(
                served.iter().map(|(name, own)| ServedPort { name: (*name).into(), own_name: (*own).into() }).collect(),
            ),
        };
        let whole = slice(AddressType::IPv4, &["10.1.0.1", "10.1.0.2"], &["http", "admin"]);
        let six = slice(AddressType::IPv6, &["fd00::1"], &["http"]);
        let named = slice(AddressType::Other("FQDN".into()), &["db.example"], &["http"]);
        let special = slice(AddressType::IPv4, &["10.1.0.1", "127.0.0.1", "169.254.169.254"], &["http"]);
        let cases = [
            ("everything", &whole, None, Some(whole.clone())),
            ("IPv6", &six, None, Some(six.clone())),
            ("names of hosts are no endpoints of other clusters", &named, None, None),
            ("special addresses stay out", &special, None, Some(slice(AddressType::IPv4, &["10.1.0.1"], &["http"]))),
            (
                "a port that lost a conflict has no endpoints, and the other one has the name in the import",
                &whole,
                Some(part(&[("web", "http")])),
                Some(slice(AddressType::IPv4, &["10.1.0.1", "10.1.0.2"], &["web"])),
            ),
            ("no port is left", &whole, Some(part(&[])), Some(slice(AddressType::IPv4, &[], &[]))),
        ];
        for (case, source, exporter, expected) in cases {
            assert_eq!(carried(source, exporter.as_ref()), expected, "{case}");
        }
    }
}
