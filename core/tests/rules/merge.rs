//! Tests of the merge of exports by the standard API: tables of two exports, and properties of random ones.

use crate::support::build::{
    Build, BuildInternalExport, BuildService, internal_export, mcs_part, port, seconds, service,
};
use crate::support::property::for_any;
use fleetnet_core::hub::merge::{Conflicts, Exported, Property, conflict_message, merge};
use fleetnet_core::limits::{MERGED_CLUSTERS_MAX, PORTS_MAX};
use fleetnet_core::model::{
    ImportType, InternalServiceExport, IpFamily, McsExport, McsProperties, MergedImport, ServedPort, ServicePort,
    SessionAffinity,
};
use fleetnet_core::names;
use fleetnet_types::{ClusterId, ObjectName, Text};
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof};
use std::collections::BTreeSet;

/// Export of one cluster. Clusters with a higher number have younger exports.
fn with_properties(properties: McsProperties) -> McsExport {
    McsExport { properties, ..mcs_part() }
}

fn export(number: i64, ports: &[ServicePort], part: McsExport) -> InternalServiceExport {
    let service = service("work/app").ports(ports);
    internal_export(&format!("member-{number}"), &service).created(seconds(number)).mcs(part)
}

fn merged(exports: &[InternalServiceExport]) -> (MergedImport, Conflicts) {
    let clusters: Vec<ClusterId> =
        exports.iter().map(|it| names::cluster_of(&it.meta.name.namespace).expect("a member")).collect();
    let exported = exports.iter().zip(&clusters).map(|(export, cluster)| Exported {
        cluster,
        export,
        mcs: export.mcs.as_deref().expect("the standard API exports it"),
    });
    let (import, conflicts, places) = merge(exported.collect()).expect("there is an export");
    let clusters = import.clusters.iter().map(|it| &it.cluster);
    assert!(clusters.eq(places.iter().map(|place| &place.cluster)), "{places:?}");
    (import, conflicts)
}

fn udp(name: &str, number: i32) -> ServicePort {
    ServicePort { protocol: "UDP".into(), ..port(name, number) }
}

/// Returns the ports as `name/protocol/number`.
fn shown(ports: &[ServicePort]) -> Vec<String> {
    ports.iter().map(|port| format!("{}/{}/{}", port.name, port.protocol, port.port.as_written())).collect()
}

/// Returns the ports that a cluster serves as `merged name=own name`; `all` if it serves all of its ports.
fn served(import: &MergedImport, cluster: usize) -> Vec<String> {
    let shown = |port: &ServedPort| format!("{}={}", port.name, port.own_name);
    import.clusters[cluster].ports.as_ref().map_or(vec!["all".to_owned()], |ports| ports.iter().map(shown).collect())
}

/// Rule MC7: Several clusters export a Service
/// Then: The first export in the order of rule MC13 decides each property. The ports are the union of all ports. The
/// families are those that all clusters have. All exports show the conflicts with their reasons, also the oldest one
#[test]
fn ports_are_merged_by_name_and_then_by_number() {
    let hinted = ServicePort { app_protocol: Some("h2c".into()), ..port("tcp", 42) };
    let first = [port("tcp", 42), udp("udp", 42)];
    type Row<'a> = (&'a str, Vec<ServicePort>, &'a [&'a str], &'a [&'a str], &'a [&'a str]);
    let (both, all) = (&["tcp/TCP/42", "udp/UDP/42"][..], &["all"][..]);
    let table: [Row<'_>; 8] = [
        ("equal, in another order", vec![udp("udp", 42), port("tcp", 42)], both, all, all),
        ("fewer", vec![port("tcp", 42)], both, all, all),
        ("one more", vec![port("tcp", 42), port("new", 43)], &["tcp/TCP/42", "udp/UDP/42", "new/TCP/43"], all, all),
        ("another number", vec![port("tcp", 43)], both, all, &[]),
        ("another number and one more", vec![port("tcp", 43), udp("udp", 42)], both, all, &["udp=udp"]),
        ("another name", vec![port("web", 42)], both, all, &["tcp=web"]),
        ("another appProtocol", vec![hinted], both, all, all),
        ("names exchanged", vec![port("udp", 42), udp("tcp", 42)], both, all, &[]),
    ];
    for (why, second, ports, of_first, of_second) in table {
        let (import, conflicts) = merged(&[export(1, &first, mcs_part()), export(2, &second, mcs_part())]);
        assert_eq!(shown(&import.ports), ports, "{why}");
        assert_eq!(served(&import, 0), of_first, "{why}");
        assert_eq!(served(&import, 1), of_second, "{why}");
        assert_eq!(conflicts.contains(&Property::Ports), !why.starts_with("equal"), "{why}");
        assert!(import.ports.iter().all(|port| port.target_port.is_none()), "each cluster has its own");
    }
}

/// Also rule MC7.
#[test]
fn a_port_without_a_name_gets_one_beside_others() {
    let unnamed = [port("", 80)];
    let (import, conflicts) = merged(&[export(1, &unnamed, mcs_part())]);
    assert_eq!((shown(&import.ports), served(&import, 0)), (vec!["/TCP/80".into()], vec!["all".into()]));
    assert_eq!(conflicts, Conflicts::new());
    let others = [port("tcp-80", 81), udp("dns", 53)];
    let (import, _) = merged(&[export(1, &unnamed, mcs_part()), export(2, &others, mcs_part())]);
    assert_eq!(shown(&import.ports), ["tcp-80-2/TCP/80", "tcp-80/TCP/81", "dns/UDP/53"]);
    assert_eq!(served(&import, 0), ["tcp-80-2="]);
    assert_eq!(served(&import, 1), ["all"]);
}

/// Also rule MC7.
#[test]
fn malformed_ports_and_names_of_kubernetes_are_left_out() {
    let ports =
        [port("tcp", 42), port("No Name", 43), port("zero", 0), ServicePort { protocol: "X".into(), ..port("x", 1) }];
    let pairs = |names: &[&str]| names.iter().map(|name| (Text::from(*name), Text::from("v"))).collect();
    let names = [
        "team",
        "example.com/team",
        "kubernetes.io/x",
        "a.k8s.io/x",
        "networking.fleet.azure.com/x",
        "fleetnet/x",
        "a b",
    ];
    let part = with_properties(McsProperties {
        labels: pairs(&names),
        annotations: [("note".into(), "any value".into())].into(),
        ..mcs_part().properties
    });
    let (import, _) = merged(&[export(1, &ports, part)]);
    assert_eq!((shown(&import.ports), served(&import, 0)), (vec!["tcp/TCP/42".into()], vec!["tcp=tcp".into()]));
    assert_eq!(import.properties.labels, pairs(&["team", "example.com/team"]));
    assert_eq!(&*import.properties.annotations["note"], "any value");
}

/// Also rule MC7.
#[test]
fn the_oldest_export_decides_and_each_disagreement_has_its_reason() {
    let properties = || McsProperties { internal_traffic_policy: Some("Cluster".into()), ..mcs_part().properties };
    let base = || with_properties(properties());
    let ports = [port("tcp", 42)];
    let of = |number, part| export(number, &ports, part);
    let headless = InternalServiceExport { headless: true, ..of(2, base()) };
    let sticky = |number, seconds| InternalServiceExport {
        session_affinity: SessionAffinity::ClientIp { timeout_seconds: seconds },
        ..of(number, base())
    };
    let local = with_properties(McsProperties { internal_traffic_policy: Some("Local".into()), ..properties() });
    let close = with_properties(McsProperties { traffic_distribution: Some("PreferClose".into()), ..properties() });
    let labelled = with_properties(McsProperties { labels: [("team".into(), "a".into())].into(), ..properties() });
    let annotated =
        with_properties(McsProperties { annotations: [("team".into(), "a".into())].into(), ..properties() });
    let six = with_properties(McsProperties { families: vec![IpFamily::IPv6], ..properties() });
    let of_none = with_properties(McsProperties { families: Vec::new(), ..properties() });
    let table = [
        (of(1, base()), of(2, base()), None),
        (of(1, base()), of(2, of_none), None),
        (of(1, base()), headless, Some("TypeConflict")),
        (of(1, base()), sticky(2, 10), Some("SessionAffinityConflict")),
        (sticky(1, 20), sticky(2, 10), Some("SessionAffinityConfigConflict")),
        (of(1, base()), of(2, local), Some("InternalTrafficPolicyConflict")),
        (of(1, base()), of(2, close), Some("TrafficDistributionConflict")),
        (of(1, base()), of(2, labelled), Some("LabelsConflict")),
        (of(1, base()), of(2, annotated), Some("AnnotationsConflict")),
        (of(1, base()), of(2, six), Some("IPFamilyConflict")),
        (of(1, base()), export(2, &[port("tcp", 43)], base()), Some("PortConflict")),
    ];
    for (first, second, reason) in table {
        let (alone, _) = merged(std::slice::from_ref(&first));
        let (import, conflicts) = merged(&[second, first]);
        let reasons: Vec<&str> = conflicts.iter().map(|property| property.reason()).collect();
        assert_eq!(reasons, reason.into_iter().collect::<Vec<_>>());
        assert_eq!(MergedImport { clusters: alone.clusters.clone(), ..import.clone() }, alone, "{reason:?}");
        assert_eq!(&*import.clusters[0].cluster, "member-1");
        let message = conflict_message(&ObjectName::new("work", "app"), &import, &conflicts);
        let is_named = message.contains("service work/app") && message.contains("cluster member-1 decides");
        assert!(is_named, "{message}");
    }
}

/// Also rule MC7.
#[test]
fn exports_of_one_second_are_in_the_order_of_their_clusters() {
    let of = |cluster: i64| export(cluster, &[port("tcp", 40 + i32::try_from(cluster).expect("small"))], mcs_part());
    let same = |export: InternalServiceExport| export.created(seconds(7));
    let (import, _) = merged(&[same(of(3)), same(of(2))]);
    assert_eq!(shown(&import.ports), ["tcp/TCP/42"]);
    let (import, _) = merged(&[same(of(3)), of(1).created(seconds(9)), same(of(2))]);
    let clusters: Vec<&str> = import.clusters.iter().map(|it| &*it.cluster).collect();
    assert_eq!(clusters, ["member-2", "member-3", "member-1"], "the youngest comes last");
}

/// Also rule MC7.
#[test]
fn families_are_those_of_all_and_of_a_headless_service_those_of_any() {
    use IpFamily::{IPv4, IPv6};
    type Families<'a> = &'a [IpFamily];
    let table: [(&[Families<'_>], Families<'_>, Families<'_>); 7] = [
        (&[&[IPv4, IPv4], &[IPv6, IPv6]], &[IPv4], &[IPv4, IPv6]),
        (&[&[IPv4]], &[IPv4], &[IPv4]),
        (&[&[IPv6, IPv4], &[IPv4, IPv6]], &[IPv6, IPv4], &[IPv6, IPv4]),
        (&[&[IPv6, IPv4], &[IPv4]], &[IPv4], &[IPv6, IPv4]),
        (&[&[IPv4], &[IPv6]], &[IPv4], &[IPv4, IPv6]),
        (&[&[], &[IPv6]], &[IPv6], &[IPv6]),
        (&[&[IPv4, IPv6], &[IPv4], &[IPv6]], &[IPv4], &[IPv4, IPv6]),
    ];
    for (families, of_all, of_any) in table {
        for (headless, expected) in [(false, of_all), (true, of_any)] {
            let exports = families.iter().zip(1..).map(|(families, number)| {
                let properties = McsProperties { families: families.to_vec(), ..McsProperties::default() };
                InternalServiceExport { headless, ..export(number, &[port("tcp", 42)], with_properties(properties)) }
            });
            let (import, _) = merged(&exports.collect::<Vec<_>>());
            assert_eq!(import.properties.families, expected, "{families:?}");
        }
    }
}

/// Also rule MC7.
#[test]
fn a_merged_import_has_no_more_ports_and_clusters_than_a_server_accepts() {
    let own = |from: i32| -> Vec<ServicePort> { (from..from + 600).map(|it| port(&format!("p-{it}"), it)).collect() };
    let (import, _) = merged(&[export(1, &own(1), mcs_part()), export(2, &own(601), mcs_part())]);
    assert_eq!(import.ports.len(), PORTS_MAX);
    let number = i64::try_from(MERGED_CLUSTERS_MAX).expect("small") + 1;
    let exports: Vec<_> = (1..=number).map(|number| export(number, &[port("tcp", 42)], mcs_part())).collect();
    let (import, _) = merged(&exports);
    let youngest = format!("member-{number}");
    assert_eq!(import.clusters.len(), MERGED_CLUSTERS_MAX);
    assert!(import.clusters.iter().all(|it| *it.cluster != *youngest), "the youngest has no place");
}

#[test]
fn slices_of_a_headless_import_are_imported_as_they_are() {
    let headless = InternalServiceExport { headless: true, ..export(1, &[port("tcp", 42)], mcs_part()) };
    let (import, _) = merged(&[headless, export(2, &[port("tcp", 43)], mcs_part())]);
    assert_eq!(import.import_type, ImportType::Headless);
    assert_eq!((served(&import, 0), served(&import, 1)), (vec!["all".into()], vec!["all".into()]));
}

fn a_port() -> impl Strategy<Value = ServicePort> {
    let name = prop_oneof![Just(""), Just("a"), Just("b"), Just("tcp-1"), Just("tcp-1-2"), Just("Bad Name")];
    (name, prop_oneof![Just("TCP"), Just("UDP")], 0..4_i32)
        .prop_map(|(name, protocol, number)| ServicePort { protocol: protocol.into(), ..port(name, number) })
}

/// Also rule MC7.
#[test]
fn merged_ports_fit_a_service_and_each_cluster_serves_only_what_it_has() {
    let exports = prop::collection::vec((prop::collection::vec(a_port(), 0..4), any::<bool>()), 1..5);
    let classes = (&["renamed", "dropped", "named", "several"][..], 20);
    for_any(600, &exports, classes, |exports| {
        let exports: Vec<InternalServiceExport> =
            exports.iter().zip(1..).map(|((ports, _), number)| export(number, ports, mcs_part())).collect();
        let (import, conflicts) = merged(&exports);
        let backwards: Vec<InternalServiceExport> = exports.iter().rev().cloned().collect();
        assert_eq!(merged(&backwards), (import.clone(), conflicts), "the order of exports does not matter");
        let names: BTreeSet<&str> = import.ports.iter().map(|port| &*port.name).collect();
        let numbers: BTreeSet<_> = import.ports.iter().map(|port| (port.protocol.clone(), port.port)).collect();
        assert_eq!((names.len(), numbers.len()), (import.ports.len(), import.ports.len()));
        assert!(import.ports.len() < 2 || !names.contains(""), "each of several ports has a name");
        let mut seen = vec![];
        for (export, part) in exports.iter().zip(&import.clusters) {
            let find = |ports: &[ServicePort], name: &str| ports.iter().find(|port| *port.name == *name).cloned();
            for port in part.ports.iter().flatten() {
                let merged = find(&import.ports, &port.name).expect("a merged port");
                let has = |own: &&ServicePort| {
                    own.name == port.own_name && own.protocol == merged.protocol && own.port == merged.port
                };
                assert!(export.ports.iter().any(|own| has(&own)), "{port:?} of {export:?}");
                seen.extend((port.name != port.own_name && !port.own_name.is_empty()).then_some("renamed"));
                seen.extend(port.own_name.is_empty().then_some("named"));
            }
            if part.ports.is_none() {
                for own in &export.ports {
                    let merged = find(&import.ports, &own.name).expect("it keeps its name");
                    assert_eq!((merged.protocol, merged.port), (own.protocol.clone(), own.port));
                }
            }
            seen.extend(part.ports.as_ref().is_some_and(|ports| ports.len() < export.ports.len()).then_some("dropped"));
        }
        seen.extend((exports.len() > 1).then_some("several"));
        seen
    });
}
