//! Tests of `check`.

use super::*;
use crate::fixture::{at, built_in, controller_manager, healthy, set};
use crate::snapshot::{Connection, Listing};
use serde_json::json;

fn row<'a>(check: &'a Check, cluster: &str, code: Code) -> &'a CheckRow {
    let categories = check.categories.iter().filter(|category| category.cluster == cluster);
    let mut rows = categories.flat_map(|category| &category.checks).filter(|row| row.code == code);
    rows.next().expect("the check is there")
}

#[test]
fn a_healthy_fleet_passes_all_checks_of_access_and_membership() {
    let check = check(&healthy(), Stage::Installed);
    assert_eq!(check.verdict, Verdict::Healthy);
    let rows: Vec<&CheckRow> = check.categories.iter().flat_map(|category| &category.checks).collect();
    assert!(rows.iter().all(|row| row.result <= CheckResult::Skipped), "{rows:#?}");
    let clusters: Vec<(Group, &str)> = check.categories.iter().map(|it| (it.group, it.cluster.as_str())).collect();
    let [access, membership] = [Group::Access, Group::Membership];
    assert_eq!(
        clusters,
        [(access, "hub"), (access, "east"), (membership, "east"), (access, "west"), (membership, "west")]
    );
    assert_eq!(row(&check, "west", Code::FN206).result, CheckResult::Ok);
}

#[test]
fn a_fault_is_an_error_with_a_hint_and_a_notice_is_a_warning() {
    let mut snapshot = healthy();
    snapshot.hub.connection.now = Some(at("2027-01-15T12:30:00Z"));
    snapshot.members[1].connection.throttled = true;
    let check = check(&snapshot, Stage::Installed);
    assert_eq!(check.verdict, Verdict::Fault);
    let silent = row(&check, "west", Code::FN206);
    assert_eq!(
        (silent.result, &*silent.hint),
        (CheckResult::Error, &*Code::FN206.entry().remedy.replace("<member>", "west"))
    );
    assert_eq!(silent.detail, "hub: MemberAgent fleet-member-west/west spec.renewTime: 2027-01-15T12:09:55Z");
    assert_eq!(row(&check, "west", Code::FN706).result, CheckResult::Warning);
}

#[test]
fn pod_ranges_and_node_addresses_that_two_clusters_have_are_a_warning_in_both() {
    let nodes = |objects: &[(&str, &str)]| {
        let node = |(range, address): &(&str, &str)| {
            let addresses = json!([{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": "n"}]);
            built_in(
                json!({"metadata": {"name": "n"}, "spec": {"podCIDRs": [range]}, "status": {"addresses": addresses}}),
            )
        };
        Listing::of(objects.iter().map(node).collect())
    };
    let found = |east: &[(&str, &str)], west: &[(&str, &str)]| {
        let mut snapshot = healthy();
        (snapshot.members[0].nodes, snapshot.members[1].nodes) = (nodes(east), nodes(west));
        let check = check(&snapshot, Stage::Installed);
        ["east", "west"].map(|cluster| {
            let row = row(&check, cluster, Code::FN215);
            (row.result, row.detail.clone())
        })
    };
    let same = found(&[("10.244.0.0/24", "192.168.1.1")], &[("10.244.1.0/24", "192.168.1.2")]);
    assert_eq!(same, [(CheckResult::Ok, String::new()), (CheckResult::Ok, String::new())]);
    let [east, west] = found(
        &[("10.243.0.0/24", "192.168.1.1"), ("10.244.0.0/24", "192.168.1.2")],
        &[("10.244.0.0/25", "192.168.1.3"), ("10.244.0.128/25", "192.168.1.4")],
    );
    assert_eq!((east.0, west.0), (CheckResult::Warning, CheckResult::Warning));
    assert_eq!(east.1, "east: Node n spec.podCIDRs: 10.244.0.0/24, and 10.244.0.0/24 is in cluster west");
    assert_eq!(west.1, "west: Node n spec.podCIDRs: 10.244.0.0/25, and 10.244.0.0/24 is in cluster east");
    let [east, _] = found(&[("fd00::/64", "10.1.0.7")], &[("10.1.0.0/16", "fd01::1")]);
    assert_eq!(east.1, "east: Node n status.addresses: 10.1.0.7/32, and 10.1.0.0/16 is in cluster west");
    let unread = row(&check(&healthy(), Stage::Installed), "west", Code::FN215).result;
    assert_eq!(unread, CheckResult::Skipped, "who may not read Nodes gets no answer");
}

#[test]
fn before_the_installation_only_the_access_is_checked() {
    let mut snapshot = healthy();
    snapshot.hub.agent.deployments = Listing::of(Vec::new());
    let check = check(&snapshot, Stage::BeforeInstallation);
    assert_eq!(check.verdict, Verdict::Healthy);
    let codes: Vec<Code> = check.categories[0].checks.iter().map(|row| row.code).collect();
    assert_eq!(codes, [Code::FN101, Code::FN102, Code::FN103]);
    assert!(check.categories.iter().all(|category| category.group == Group::Access));
}

/// Also rule T40.
#[test]
fn only_namespaces_without_lists_beside_listed_ones_are_named() {
    let mut snapshot = healthy();
    assert_eq!(row(&check(&snapshot, Stage::Installed), "hub", Code::FN111).result, CheckResult::Skipped);
    let namespaces = snapshot.hub.namespaces.objects_mut().expect("it was read");
    for name in ["kube-system", "fleet-system", "lab", "listed"] {
        let mut more = namespaces[0].clone();
        more.metadata.name = Some(name.to_owned());
        namespaces.push(more);
    }
    let list = ("networking.fleet.azure.com/importers".to_owned(), "east".to_owned());
    namespaces.last_mut().expect("a namespace").metadata.annotations = Some([list].into());
    let found = check(&snapshot, Stage::Installed);
    let open = row(&found, "hub", Code::FN111);
    assert_eq!((open.result, found.verdict), (CheckResult::Warning, Verdict::Healthy));
    assert_eq!(open.detail, "hub: Namespace shop metadata.annotations: no list in shop, lab");
    for (argument, result) in [
        ("--namespace-policy=listed", CheckResult::Ok),
        ("--namespace-policy=off", CheckResult::Skipped),
        ("--namespace-policy=strict", CheckResult::Warning),
    ] {
        let deployment = &mut snapshot.hub.agent.deployments.objects_mut().expect("it was read")[0];
        let container = serde_json::json!({"containers": [{"name": "hub-agent", "args": [argument]}]});
        deployment.spec.template.spec = Some(built_in(container));
        assert_eq!(row(&check(&snapshot, Stage::Installed), "hub", Code::FN111).result, result, "{argument}");
    }
}

#[test]
fn the_program_that_makes_the_slices_is_named_and_its_absence_is_a_warning() {
    let mut snapshot = healthy();
    let found = check(&snapshot, Stage::Installed);
    let of_west = row(&found, "west", Code::FN112);
    assert_eq!((of_west.result, of_west.detail.as_str()), (CheckResult::Ok, "by kube-controller-manager"));
    snapshot.members[1].controller_manager = controller_manager("2027-01-15T11:10:00Z");
    let found = check(&snapshot, Stage::Installed);
    let of_west = row(&found, "west", Code::FN112);
    assert_eq!((of_west.result, found.verdict), (CheckResult::Warning, Verdict::Healthy));
    assert_eq!(of_west.detail, "west: Lease kube-system/kube-controller-manager spec.renewTime: 2027-01-15T11:10:00Z");
    let on = json!({"containers": [{"name": "agent", "args": ["--endpointslices=on"]}]});
    set(&mut snapshot.members[1].agent.deployments, "/spec/template/spec", on);
    let found = check(&snapshot, Stage::Installed);
    assert_eq!(row(&found, "west", Code::FN112).detail, "west: Lease fleet-system/fleetnet-endpointslices: not found");
    snapshot.members[1].agent.deployments = healthy().members[1].agent.deployments.clone();
    snapshot.members[1].controller_manager = Listing::of(Vec::new());
    assert_eq!(row(&check(&snapshot, Stage::Installed), "west", Code::FN112).result, CheckResult::Skipped);
}

#[test]
fn a_member_without_a_context_is_unknown_and_no_error() {
    let mut snapshot = healthy();
    snapshot.members[1] = Member { id: "west".to_owned(), connection: Connection::default(), ..Member::default() };
    let check = check(&snapshot, Stage::Installed);
    assert_eq!(check.verdict, Verdict::NotKnown);
    assert_eq!(row(&check, "west", Code::FN102).result, CheckResult::Unknown);
    assert_eq!(row(&check, "west", Code::FN201).result, CheckResult::Ok);
}
