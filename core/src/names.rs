//! Names of the objects that the agents create. Each name is a function of its source, so the same export always gets
//! the same name.

use crate::limits::{
    EXPORTED_ANNOTATION_BYTES_MAX, EXPORTED_LABELS_MAX, LABEL_CHARS_MAX, PORT_NAME_CHARS_MAX, PROPERTY_BYTES_MAX,
    SLICE_NAME_SEGMENT_CHARS, SUBDOMAIN_CHARS_MAX,
};
use crate::model::{ImportType, ServicePort};
use fleetnet_types::{ClusterId, MemberNamespace, ObjectName, Text};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Start of the names of the Leases that fleetnet's agents and Go agents have in common.
pub const AGENT_LEASE_PREFIX: &str = "2bf2b407.";
/// Lease of the EndpointSlice controller of the member agent. The Go agents do not use this Lease.
pub const ENDPOINT_SLICE_LEASE: &str = "fleetnet-endpointslices";
/// Namespace of Kubernetes' own components. Its UID identifies a cluster, because it exists as long as the cluster.
pub const KUBE_SYSTEM: &str = "kube-system";
/// Name of kube-controller-manager's Lease, in the namespace [`KUBE_SYSTEM`].
pub const CONTROLLER_MANAGER_LEASE: &str = "kube-controller-manager";

/// Namespace and name of the Service of a cluster's API server.
pub(crate) const API_SERVER: (&str, &str) = ("default", "kubernetes");

/// Prefix of the names of member namespaces in the hub. The cluster id follows the prefix.
const MEMBER_NAMESPACE_PREFIX: &str = "fleet-member-";

pub fn member_namespace(cluster: &str) -> MemberNamespace {
    format!("{MEMBER_NAMESPACE_PREFIX}{cluster}").into()
}

/// Returns the name of a member's MemberAgent.
pub fn member_agent(cluster: &ClusterId) -> ObjectName {
    ObjectName::new(member_namespace(cluster), cluster.clone())
}

/// Returns the member of a MemberAgent: the object has the name of its member namespace. Others do not count.
pub fn member_of_agent(name: &ObjectName) -> Option<ClusterId> {
    cluster_of(&name.namespace).filter(|cluster| **cluster == *name.name)
}

/// Returns the cluster id in the name of a member namespace. The hub agent trusts this id, but not the cluster id in an
/// object's reference, which a member can forge.
pub fn cluster_of(namespace: &str) -> Option<ClusterId> {
    namespace.strip_prefix(MEMBER_NAMESPACE_PREFIX).filter(|cluster| !cluster.is_empty()).map(ClusterId::from)
}

/// True if this text can be a cluster id: the name of its member namespace must be valid.
pub fn is_cluster_id(cluster: &str) -> bool {
    is_part_of_subdomain(cluster) && member_namespace(cluster).len() <= LABEL_CHARS_MAX
}

/// True if this namespace can be a member namespace.
pub(crate) fn is_member_namespace(namespace: &str) -> bool {
    cluster_of(namespace).is_some_and(|cluster| is_cluster_id(&cluster))
}

/// Property that every cluster has: its id in the fleet.
pub const CLUSTER_ID_PROPERTY: &str = "cluster.clusterset.k8s.io";

/// True if a cluster may have this property: a qualified name, or the name of a ClusterProperty.
pub fn is_property(name: &str, value: &str) -> bool {
    (is_qualified_name(name) || is_dns_1123_subdomain(name)) && value.len() <= PROPERTY_BYTES_MAX
}

/// Number of hex digits at the end of an exported slice's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuffixLength {
    /// 5 hex digits, as many as the random suffix of the Go agents has.
    Short,
    /// 10 hex digits, used if the export of another source slice already has the short name.
    Long,
}

/// Returns the name of an exported slice and of its distributed slices: `<cluster>-<namespace>-<slice>-<hex>`. Each
/// part is cut to 81 characters, so that the name is not longer than a DNS subdomain (253 characters). The hex digits
/// are the start of a SHA-256 hash of the UIDs of the slice and of its ServiceExport. So a new export gets a new name.
pub fn slice_export_name(
    cluster: &str,
    namespace: &str,
    slice: &str,
    slice_uid: &str,
    service_export_uid: &str,
    length: SuffixLength,
) -> Text {
    let digits = match length {
        SuffixLength::Short => 5,
        SuffixLength::Long => 10,
    };
    let suffix = hex_of(&[slice_uid.as_bytes(), service_export_uid.as_bytes()], digits);
    format!("{}{suffix}", slice_export_prefix(cluster, namespace, slice)).into()
}

/// Ending of the name of a routing slice. No distributed slice of an agent has it: its name ends in hex digits.
const ROUTING_SUFFIX: &str = "-routing";

/// Returns the name of the routing slice of a distributed slice.
pub fn routing_slice(distributed: &str) -> Text {
    format!("{distributed}{ROUTING_SUFFIX}").into()
}

/// Returns the name of the distributed slice of a routing slice; `None` if no routing slice can have this name.
pub fn routed_slice(name: &str) -> Option<&str> {
    name.strip_suffix(ROUTING_SUFFIX).filter(|distributed| !distributed.is_empty())
}

/// Returns the name of an exported slice without the hex digits at its end.
fn slice_export_prefix(cluster: &str, namespace: &str, slice: &str) -> String {
    let [cluster, namespace, slice] = [cluster, namespace, slice].map(|part| cut(part, SLICE_NAME_SEGMENT_CHARS));
    format!("{cluster}-{namespace}-{slice}-")
}

/// True if this name may be one that an agent of this cluster (fleetnet or Go) chose for an exported slice.
pub(crate) fn is_slice_export_name_of(name: &str, cluster: &str) -> bool {
    name.strip_prefix(cut(cluster, SLICE_NAME_SEGMENT_CHARS)).is_some_and(|rest| rest.starts_with('-'))
}

/// Returns the name `<namespace>-<name>`; `None` if this text is no DNS label (RFC 1035). A DNS label is a valid name
/// for every kind.
pub fn joined(namespace: &str, name: &str) -> Option<Text> {
    let joined = format!("{namespace}-{name}");
    is_dns_1035_label(&joined).then(|| joined.into())
}

/// Returns the name of the MergedServiceImport of a Service: `<namespace>-<name>-<hex>`. The hex digits are the start
/// of a hash of both names, so no two Services have the same name.
pub fn merged_import_name(service: &ObjectName) -> Text {
    let ObjectName { namespace, name } = service;
    format!("{namespace}-{name}-{}", hex_of(&[namespace.as_bytes(), name.as_bytes()], 10)).into()
}

/// Returns the name to use if the name from [`joined`] is in use or not valid (B3 in docs/contributors/behaviour.md).
/// The name is cut to the length of a DNS label and ends in 5 hex digits of the UID. Dots become dashes, and a name
/// that does not start with a letter gets the prefix `s`.
pub fn joined_with_uid(namespace: &str, name: &str, uid: &str) -> Text {
    let suffix: String = uid.chars().filter(char::is_ascii_hexdigit).take(5).collect::<String>().to_ascii_lowercase();
    let start = if namespace.starts_with(|first: char| first.is_ascii_lowercase()) { "" } else { "s" };
    let plain: String = format!("{start}{namespace}-{name}").chars().map(|c| if c == '.' { '-' } else { c }).collect();
    format!("{}-{suffix}", cut(&plain, LABEL_CHARS_MAX - 1 - suffix.len())).into()
}

/// True if a Service may have this name on every server (RFC 1035 label). From Kubernetes 1.36, it may also begin with
/// a digit (KEP-5311), but older servers reject such a name.
pub fn is_dns_1035_label(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= LABEL_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(inner)
}

/// True if a namespace can have this name (RFC 1123 label), and a Service from Kubernetes 1.36.
pub fn is_dns_1123_label(name: &str) -> bool {
    name.len() <= LABEL_CHARS_MAX && is_part_of_subdomain(name)
}

/// True if an object may have this name (RFC 1123 subdomain; Kubernetes limits only its total length).
pub(crate) fn is_dns_1123_subdomain(name: &str) -> bool {
    name.len() <= SUBDOMAIN_CHARS_MAX && name.split('.').all(is_part_of_subdomain)
}

fn is_part_of_subdomain(part: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}

/// True if a port of a container may have this name (RFC 6335 service name), which a target port can refer to.
pub(crate) fn is_port_name(name: &str) -> bool {
    name.len() <= PORT_NAME_CHARS_MAX
        && is_part_of_subdomain(name)
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !name.contains("--")
}

/// True if a Service can have this namespace and name.
pub(crate) fn can_be_service(name: &ObjectName) -> bool {
    is_dns_1123_label(&name.namespace) && is_dns_1123_label(&name.name)
}

/// True if a label may have this value: empty, or letters, digits, dashes, underscores and dots between letters or
/// digits.
pub(crate) fn is_label_value(value: &str) -> bool {
    let bytes = value.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    bytes.len() <= LABEL_CHARS_MAX
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        && ends(bytes.first())
        && ends(bytes.last())
}

/// True if this is a qualified name of Kubernetes, with or without a domain, such as `kubernetes.io/h2c` or `h2c`.
pub(crate) fn is_qualified_name(name: &str) -> bool {
    let (domain, name) = name.split_once('/').map_or((None, name), |(domain, name)| (Some(domain), name));
    !name.is_empty() && is_label_value(name) && domain.is_none_or(is_dns_1123_subdomain)
}

/// True if an export may give a label or annotation with this name to ServiceImports. Names of Kubernetes and of
/// fleetnet steer controllers of the importing cluster.
pub fn is_exported_name(name: &str) -> bool {
    let domain = name.split_once('/').map_or("", |(domain, _)| domain);
    let is_reserved = |of: &str| domain.strip_suffix(of).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_qualified_name(name) && !RESERVED_DOMAINS.iter().any(|of| is_reserved(of))
}

const MCS_DERIVED_PREFIX: &str = "derived-";
// no limit: the length of a hash in names that are already in use
const MCS_DERIVED_DIGITS: usize = 10;

/// Returns the name of the Service that a member derives for an imported Service of the standard API, in the namespace
/// of that Service.
pub fn mcs_derived(service: &ObjectName) -> ObjectName {
    let name = format!("{MCS_DERIVED_PREFIX}{}", hex_of(&[service.name.as_bytes()], MCS_DERIVED_DIGITS));
    ObjectName::new(service.namespace.clone(), name)
}

/// True if [`mcs_derived`] can return this name.
pub(crate) fn is_mcs_derived(name: &str) -> bool {
    let digits = name.strip_prefix(MCS_DERIVED_PREFIX).unwrap_or_default();
    digits.len() == MCS_DERIVED_DIGITS && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the labels that an export may give to ServiceImports.
pub(crate) fn exported_labels(labels: &BTreeMap<Text, Text>) -> BTreeMap<Text, Text> {
    exported(labels, is_label_value)
}

/// Returns the annotations that an export may give to ServiceImports.
pub(crate) fn exported_annotations(annotations: &BTreeMap<Text, Text>) -> BTreeMap<Text, Text> {
    exported(annotations, |value| value.len() <= EXPORTED_ANNOTATION_BYTES_MAX)
}

fn exported(pairs: &BTreeMap<Text, Text>, is_value: impl Fn(&str) -> bool) -> BTreeMap<Text, Text> {
    let is_fit = |(name, value): &(&Text, &Text)| is_exported_name(name) && is_value(value);
    let fit = pairs.iter().filter(is_fit).take(EXPORTED_LABELS_MAX);
    fit.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Domains of names that no export gives to ServiceImports, with their subdomains.
const RESERVED_DOMAINS: [&str; 5] = ["kubernetes.io", "k8s.io", "x-k8s.io", "fleet.azure.com", "fleetnet"];

/// Returns a fingerprint of an export's ports and type (headless or not). All accepted exports of a Service have the
/// same fingerprint.
pub fn export_fingerprint(ports: &[ServicePort], import_type: ImportType) -> Text {
    let ports = ports_fingerprint(ports);
    match import_type {
        ImportType::Headless => format!("{ports}-headless").into(),
        ImportType::ClusterSetIp => ports,
    }
}

/// Returns a fingerprint of a set of ports: name, protocol, port and appProtocol, in any order. Target ports do not
/// count, because they may differ between exporters.
pub fn ports_fingerprint(ports: &[ServicePort]) -> Text {
    let mut lines: Vec<String> = ports
        .iter()
        .map(|port| {
            let app_protocol = port.app_protocol.as_deref().unwrap_or_default();
            format!("{}\u{0}{}\u{0}{}\u{0}{}\n", port.name, port.protocol, port.port, app_protocol)
        })
        .collect();
    lines.sort_unstable();
    lines.dedup();
    hex_of(&lines.iter().map(String::as_bytes).collect::<Vec<_>>(), 10).into()
}

/// Returns the first hex digits of the SHA-256 hash of these parts. A zero byte ends each part, so that the parts `ab`
/// and `c` have another hash than `a` and `bc`.
fn hex_of(parts: &[&[u8]], digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(digits);
    hex
}

/// Returns a number that these parts determine, evenly distributed from 0 up to a limit.
pub(crate) fn spread(parts: &[&[u8]], limit: i64) -> i64 {
    let number = u32::from_str_radix(&hex_of(parts, 8), 16).unwrap_or_default();
    i64::from(number) % limit.max(1)
}

/// Cuts a part of a name to this many characters, and removes dashes and dots at the end of the part.
fn cut(part: &str, chars: usize) -> &str {
    let end = part.char_indices().nth(chars).map_or(part.len(), |(at, _)| at);
    part[..end].trim_end_matches(['-', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(cluster: &str, slice: &str, uid: &str, length: SuffixLength) -> String {
        slice_export_name(cluster, "work", slice, uid, "export-uid", length).to_string()
    }

    /// Rule E3: The member agent chooses the name of a new EndpointSliceExport
    /// Then: The name is `<cluster>-<namespace>-<slice>-<5 hex digits>`, each part cut to 81 characters. The 5 hex
    /// digits are a hash of the UIDs of the slice and the ServiceExport. The same UIDs give the same name. If the slice
    /// or the ServiceExport is created again, its UID is new, so the name is new too
    #[test]
    fn the_same_export_always_gets_the_same_name_and_a_new_export_a_new_one() {
        let first = name("member-1", "app-x7k2p", "uid-1", SuffixLength::Short);
        assert_eq!(first, "member-1-work-app-x7k2p-2e6cd");
        assert_eq!(first, name("member-1", "app-x7k2p", "uid-1", SuffixLength::Short));
        assert_ne!(first, name("member-1", "app-x7k2p", "uid-2", SuffixLength::Short));
        let next = slice_export_name("member-1", "work", "app-x7k2p", "uid-1", "other", SuffixLength::Short);
        assert_ne!(first, &*next);
        assert!(name("member-1", "app-x7k2p", "uid-1", SuffixLength::Long).starts_with(&first));
    }

    /// Also rule E3.
    #[test]
    fn long_parts_are_cut_to_81_and_stay_a_valid_subdomain() {
        let slice = format!("{}.{}", "a".repeat(80), "b".repeat(150));
        let long = name(&"c".repeat(200), &slice, "uid-1", SuffixLength::Short);
        assert_eq!(long.len(), 81 + 1 + 4 + 1 + 80 + 1 + 5, "the dot at the cut is trimmed");
        assert!(!long.contains(".-") && !long.contains("--"));
    }

    /// Also rule MI26.
    #[test]
    fn a_routing_slice_and_its_distributed_slice_have_names_of_each_other() {
        assert_eq!(&*routing_slice("member-1-work-app-x7k2p-2e6cd"), "member-1-work-app-x7k2p-2e6cd-routing");
        for (name, expected) in [("a-routing", Some("a")), ("a-routing-routing", Some("a-routing")), ("a", None)] {
            assert_eq!(routed_slice(name), expected);
        }
        assert_eq!(["-routing", "routing"].map(routed_slice), [None, None]);
        let derived = mcs_derived(&ObjectName::new("work", "app")).name;
        assert!(is_mcs_derived(&derived));
        assert!(
            ![&derived[1..], &derived[..17], "derived-012345678g", "derived-01234567890"]
                .into_iter()
                .any(is_mcs_derived)
        );
    }

    /// Also rule N2.
    #[test]
    fn joined_names_stay_plain_unless_they_are_no_label() {
        assert_eq!(joined("work", "app").as_deref(), Some("work-app"));
        assert_eq!(joined("1work", "app"), None);
        assert_eq!(joined(&"w".repeat(60), "app"), None);
        assert_eq!(&*joined_with_uid("1work", "app", "0F1e2d3c-4b"), "s1work-app-0f1e2");
        assert_eq!(&*joined_with_uid("work", "app.v1", "0f1e2d3c"), "work-app-v1-0f1e2");
        let long = joined_with_uid(&"w".repeat(63), "app", "0f1e2d3c");
        assert_eq!(long.len(), 63);
        assert!(is_dns_1035_label(&long));
    }

    /// Rule MC4: Two Services have the same joined name
    /// Then: Their MergedServiceImports have different names, because each name ends in a hash of namespace and name
    #[test]
    fn merged_imports_of_services_with_equal_joined_names_have_different_names() {
        let name = |namespace, name| merged_import_name(&ObjectName::new(namespace, name));
        assert_eq!(&*name("work", "app"), "work-app-9529755fdb");
        assert_ne!(name("a-b", "c"), name("a", "b-c"));
        let longest = name(&"n".repeat(63), &"s".repeat(63));
        assert!(is_dns_1123_subdomain(&longest));
    }

    #[test]
    fn labels_of_kubernetes_and_fleetnet_are_not_exported() {
        for (name, is_exported) in [
            ("team", true),
            ("example.com/team", true),
            ("notkubernetes.io/team", true),
            ("kubernetes.io/team", false),
            ("service.kubernetes.io/topology-mode", false),
            ("multicluster.x-k8s.io/team", false),
            ("x.fleet.azure.com/weight", false),
            ("fleetnet/import", false),
            ("not a name", false),
            ("", false),
        ] {
            assert_eq!(is_exported_name(name), is_exported, "{name:?}");
        }
    }

    #[test]
    fn a_cluster_id_is_the_end_of_a_namespace() {
        for (id, is_one) in [("member-1", true), ("1", true), ("", false), ("-1", false), ("a.b", false), ("A", false)]
        {
            assert_eq!(is_cluster_id(id), is_one, "{id:?}");
        }
        assert!(is_cluster_id(&"c".repeat(50)) && !is_cluster_id(&"c".repeat(51)));
        assert_eq!(cluster_of("fleet-member-1"), Some("1".into()));
        assert_eq!([cluster_of("fleet-member-"), cluster_of("work")], [None, None]);
    }

    #[test]
    fn the_name_of_an_exported_slice_begins_with_its_whole_cluster_id() {
        for (name, expected) in [("member-1-work-app-2e6cd", true), ("member-10-work-app-2e6cd", false), ("x-1", false)]
        {
            assert_eq!(is_slice_export_name_of(name, "member-1"), expected, "{name}");
        }
    }

    #[test]
    fn names_of_ports_are_service_names() {
        let table = [
            ("http", true),
            ("1-a", true),
            ("ppppppppppppppp", true),
            ("pppppppppppppppp", false),
            ("80", false),
            ("a--b", false),
            ("a-", false),
            ("a.b", false),
            ("", false),
        ];
        for (name, expected) in table {
            assert_eq!(is_port_name(name), expected, "{name}");
        }
    }

    #[test]
    fn labels_and_annotations_are_exported_if_their_values_fit() {
        let pairs = |values: [&str; 2]| -> BTreeMap<Text, Text> {
            ["a", "b"].into_iter().zip(values).map(|(name, value)| (name.into(), value.into())).collect()
        };
        let exported = |pairs: BTreeMap<Text, Text>| pairs.into_keys().collect::<Vec<_>>();
        assert_eq!(exported(exported_labels(&pairs(["blue", "not a value"]))), ["a".into()]);
        let [most, more] = [0, 1].map(|further| "v".repeat(EXPORTED_ANNOTATION_BYTES_MAX + further));
        assert_eq!(exported(exported_annotations(&pairs([&most, &more]))), ["a".into()]);
    }

    #[test]
    fn spread_numbers_are_evenly_distributed_up_to_the_limit() {
        let mut counts = [0; 10];
        for part in 0..1_000_u32 {
            counts[usize::try_from(spread(&[&part.to_be_bytes()], 10)).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (60..140).contains(count)), "{counts:?}");
        assert_eq!(spread(&[b"a"], 0), 0);
    }

    /// Also rule T26.
    #[test]
    fn names_and_label_values_are_those_of_kubernetes() {
        let (label, subdomain) = ("l".repeat(63), "s".repeat(253));
        let table = [
            ("app", [true, true, true, true, true]),
            ("1-app", [false, true, true, true, true]),
            (&*label, [true, true, true, true, true]),
            (&*subdomain, [false, false, true, false, false]),
            (&*"s".repeat(254), [false, false, false, false, false]),
            ("a.b-c", [false, false, true, true, true]),
            ("App_1", [false, false, false, true, true]),
            ("kubernetes.io/h2c", [false, false, false, false, true]),
            ("a/b/c", [false, false, false, false, false]),
            ("/h2c", [false, false, false, false, false]),
            ("a/", [false, false, false, false, false]),
            ("-app", [false, false, false, false, false]),
            ("app-", [false, false, false, false, false]),
            ("a..b", [false, false, false, true, true]),
            ("a b", [false, false, false, false, false]),
            ("\u{e4}", [false, false, false, false, false]),
            ("", [false, false, false, true, false]),
        ];
        for (name, expected) in table {
            let found = [
                is_dns_1035_label(name),
                is_dns_1123_label(name),
                is_dns_1123_subdomain(name),
                is_label_value(name),
                is_qualified_name(name),
            ];
            assert_eq!(found, expected, "{name:?}");
        }
    }

    fn port(name: &str, number: i32) -> ServicePort {
        ServicePort {
            name: name.into(),
            protocol: "TCP".into(),
            app_protocol: None,
            port: number.into(),
            target_port: None,
        }
    }

    /// The hub agent stores a fingerprint of an export's ports with their start time. If an upgrade changed the
    /// fingerprints, no stored one would match. The hub agent would then give every export a new start time, and other
    /// exports could win conflicts.
    #[test]
    fn fingerprints_and_names_that_are_stored_never_change() {
        let (http, admin) = (port("http", 80), port("admin", 81));
        let mut http2 = port("http", 80);
        http2.app_protocol = Some("h2c".into());
        let mut dns = port("", 53);
        dns.protocol = "UDP".into();
        for (ports, fingerprint) in [
            (vec![http, admin], "d4d98a9ff6"),
            (vec![http2], "c81f54f166"),
            (vec![dns], "484bb95ee2"),
            (vec![], "e3b0c44298"),
        ] {
            assert_eq!(&*export_fingerprint(&ports, ImportType::ClusterSetIp), fingerprint);
            assert_eq!(&*export_fingerprint(&ports, ImportType::Headless), format!("{fingerprint}-headless"));
        }
        assert_eq!(name("member-1", "app-x7k2p", "uid-1", SuffixLength::Short), "member-1-work-app-x7k2p-2e6cd");
        assert_eq!(name("member-1", "app-x7k2p", "uid-1", SuffixLength::Long), "member-1-work-app-x7k2p-2e6cd637eb");
        assert_eq!(&*member_namespace("member-1"), "fleet-member-member-1");
        let long = "w".repeat(63);
        assert_eq!(&*joined_with_uid(&long, "app", "0F1e2d3c-4b"), format!("{}-0f1e2", "w".repeat(57)));
    }

    /// Also rule H4.
    #[test]
    fn ports_are_the_same_in_any_order_and_whatever_their_target() {
        let one = ports_fingerprint(&[port("http", 80), port("admin", 81)]);
        assert_eq!(one, ports_fingerprint(&[port("admin", 81), port("http", 80)]));
        assert_eq!(one, ports_fingerprint(&[port("http", 80), port("admin", 81), port("http", 80)]), "it is a set");
        assert_ne!(one, ports_fingerprint(&[port("http", 80), port("admin", 82)]));
        let mut targeted = port("http", 80);
        targeted.target_port = Some(crate::model::TargetPort::Number(8080.into()));
        assert_eq!(ports_fingerprint(&[targeted]), ports_fingerprint(&[port("http", 80)]));
        let mut hinted = port("http", 80);
        hinted.app_protocol = Some("h2c".into());
        assert_ne!(ports_fingerprint(&[hinted]), ports_fingerprint(&[port("http", 80)]));
    }
}
