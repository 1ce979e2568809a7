//! Faults in the snapshot of a healthy fleet: memkube has no Deployments and no managedFields, and other faults take
//! two versions of the agents or a wrong agent.

use crate::fault::{Altered, all_alter, altered};
use crate::world::{EXPORTER, IMPORTER, World, codes, service, show};
use diagnosis::Code::{self, *};
use diagnosis::explain::Filter;
use diagnosis::latency::{Origin, Summary};
use diagnosis::snapshot::{Listing, Member, MissingRight};
use diagnosis::{Snapshot, explain};
use fleetnet_api::crd::{AddressType, ServiceImportType};
use k8s_openapi::api::core::v1::{ContainerState, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, FieldsV1, ManagedFieldsEntry, Time};
use serde_json::json;
use std::sync::LazyLock;

altered! {
    FAULTS:
    FN106: |it| it.hub.agent.definitions.objects_mut().expect(READ).retain(|it| it.spec.names.kind != "MemberAgent"),
    FN107: |it| {
        let agent = &mut exporter(it).agent;
        agent.deployments.objects_mut().expect(READ)[0].status = None;
        for pod in agent.pods.objects_mut().expect(READ) {
            let containers = pod.status.iter_mut().flat_map(|status| status.container_statuses.iter_mut().flatten());
            let waiting = json!({"waiting": {"reason": "ImagePullBackOff"}});
            containers.for_each(|it| it.state = serde_json::from_value::<ContainerState>(waiting.clone()).ok());
        }
    },
    FN108: |it| exporter(it).agent.deployments.objects_mut().expect(READ)[0].status = None,
    FN109: |it| {
        let lease = &mut exporter(it).agent.leases.objects_mut().expect(READ)[0];
        lease.spec.as_mut().expect(READ).holder_identity = Some("host_0f1e2d3c".to_owned());
    },
    FN110: |it| importer(it).agent.missing_rights = Listing::of(vec![right()]),
    FN111: |it| {
        let namespaces = it.hub.namespaces.objects_mut().expect(READ);
        let mut listed = namespaces[0].clone();
        listed.metadata.name = Some("listed".to_owned());
        let list = ("networking.fleet.azure.com/exporters".to_owned(), "nobody".to_owned());
        listed.metadata.annotations = Some([list].into());
        namespaces.push(listed);
    },
    FN112: |it| {
        let lease = json!({
            "metadata": {"name": "kube-controller-manager", "namespace": "kube-system"},
            "spec": {"holderIdentity": "gone", "renewTime": "2026-01-01T00:00:00.000000Z"},
        });
        exporter(it).controller_manager = Listing::of(vec![serde_json::from_value(lease).expect(READ)]);
    },
    FN202: |it| exporter(it).missing_hub_rights = Listing::of(vec![right()]),
    FN209: |it| {
        let agents = it.hub.member_agents.objects_mut().expect(READ);
        agents[IMPORTER].spec.cluster_uid = agents[EXPORTER].spec.cluster_uid.clone();
        it.members[IMPORTER].cluster_uid = it.members[EXPORTER].cluster_uid.clone();
    },
    FN210: |it| it.hub.member_agents.objects_mut().expect(READ)[EXPORTER].spec.version = "9.0.0".to_owned(),
    FN212: |it| {
        let agent = &mut it.hub.member_agents.objects_mut().expect(READ)[EXPORTER];
        let received = agent.spec.renew_time.0 - jiff::SignedDuration::from_secs(5);
        agent.metadata.managed_fields = Some(vec![ManagedFieldsEntry {
            time: Some(Time(received)),
            fields_v1: Some(FieldsV1(json!({"f:spec": {"f:renewTime": {}}}))),
            ..ManagedFieldsEntry::default()
        }]);
    },
    FN215: |it| {
        let node = json!({"metadata": {"name": "node"}, "spec": {"podCIDRs": ["10.244.0.0/24"]}});
        let nodes: Listing<Node> = Listing::of(vec![serde_json::from_value(node).expect(READ)]);
        (exporter(it).nodes, importer(it).nodes) = (nodes.clone(), nodes);
    },
    FN308: |it| {
        let export = &mut exporter(it).service_exports.objects_mut().expect(READ)[0];
        let status = export.status.as_mut().expect(READ);
        set(status.conditions.as_mut().expect(READ), "False", "NameHeldByAnother");
    },
    FN407: |it| {
        let import = &mut it.hub.service_imports.objects_mut().expect(READ)[0];
        import.status.as_mut().expect(READ).import.type_ = Some(ServiceImportType::Headless);
        let features = &mut it.hub.member_agents.objects_mut().expect(READ)[IMPORTER].spec.features;
        features.as_mut().expect(READ).retain(|feature| feature.0 != "Headless");
    },
    FN408: |it| {
        let namespaces = it.hub.namespaces.objects_mut().expect(READ);
        let namespace = namespaces.iter_mut().find(|it| it.metadata.name.as_deref() == Some("work")).expect(READ);
        let list = ("networking.fleet.azure.com/exporters".to_owned(), "nobody".to_owned());
        namespace.metadata.annotations = Some([list].into());
        let deployment = &mut it.hub.agent.deployments.objects_mut().expect(READ)[0];
        let pod = deployment.spec.template.spec.as_mut().expect(READ);
        pod.containers[0].args = Some(vec!["--namespace-policy=off".to_owned()]);
    },
    FN502: |it| {
        let exports = it.hub.slice_exports.objects_mut().expect(READ);
        let mut other = exports[0].clone();
        other.metadata.namespace = Some("fleet-member-other".to_owned());
        exports.push(other);
        nothing_is_distributed(it);
    },
    FN504: |it| {
        it.hub.slice_exports.objects_mut().expect(READ)[0].spec.address_type = AddressType::IPv6;
        exporter(it).slices.objects_mut().expect(READ)[0].address_type = "IPv6".to_owned();
        let features = &mut it.hub.member_agents.objects_mut().expect(READ)[IMPORTER].spec.features;
        features.as_mut().expect(READ).retain(|feature| feature.0 != "IPv6");
        nothing_is_distributed(it);
    },
    FN602: |it| {
        refuse_import(it, "NameHeldByAnother");
        nothing_is_derived(it);
    },
    FN603: |it| {
        refuse_import(it, "PortRefused");
        nothing_is_derived(it);
    },
    FN615: |it| {
        refuse_import(it, "TooManyLoadBalancers");
        nothing_is_derived(it);
    },
    FN616: |it| {
        refuse_import(it, "InternalLoadBalancerInvalid");
        nothing_is_derived(it);
    },
    FN609: |it| {
        let services = importer(it).services.objects_mut().expect(READ);
        let derived = services.iter_mut().find(|it| it.metadata.namespace.as_deref() == Some("fleet-system"));
        derived.expect(READ).spec.as_mut().expect(READ).ip_families = Some(vec!["IPv6".to_owned()]);
    },
    FN611: |it| {
        let slices = importer(it).slices.objects_mut().expect(READ);
        let labels = slices[0].metadata.labels.as_mut().expect(READ);
        labels.insert("endpointslice.kubernetes.io/managed-by".to_owned(), "other".to_owned());
    },
    FN618: |it| {
        let deployment = &mut importer(it).agent.deployments.objects_mut().expect(READ)[0];
        let pod = deployment.spec.template.spec.as_mut().expect(READ);
        pod.containers[0].args = Some(vec!["--max-imported-endpoints=1".to_owned()]);
        importer(it).slices.objects_mut().expect(READ)[0].endpoints.as_mut().expect(READ).truncate(1);
    },
    FN701: |it| {
        let slice = &mut importer(it).slices.objects_mut().expect(READ)[0];
        slice.endpoints.as_mut().expect(READ)[0].addresses = vec!["10.9.9.9".to_owned()];
    },
    FN702: |it| {
        exporter(it).service_exports = Listing::of(Vec::new());
        it.hub.internal_exports = Listing::of(Vec::new());
        it.hub.slice_exports = Listing::of(Vec::new());
        it.hub.service_imports.objects_mut().expect(READ)[0].status = None;
    },
    FN705: |it| {
        let origin = Origin { cluster: "member-1".to_owned(), count: 100, buckets: vec![90, 10], ..Origin::default() };
        let summary = Summary { bounds_milliseconds: vec![750.0], origins: vec![origin], ..Summary::default() };
        it.hub.latencies.insert("member-2".to_owned(), Ok(summary));
    },
    FN706: |it| it.hub.connection.throttled = true,
}

/// The snapshot is of a fleet in which this was read.
const READ: &str = "the snapshot has it";

/// Snapshot of a fleet in which member-1 exports `app` and member-2 imports it.
static HEALTHY: LazyLock<Snapshot> = LazyLock::new(|| {
    let snapshot = sim::paused(async { World::running(2).await?.snapshot().await });
    snapshot.expect("the fleet is healthy")
});

fn exporter(snapshot: &mut Snapshot) -> &mut Member {
    &mut snapshot.members[EXPORTER]
}

fn importer(snapshot: &mut Snapshot) -> &mut Member {
    &mut snapshot.members[IMPORTER]
}

fn right() -> MissingRight {
    let [user, verb, group, resource, namespace] =
        ["system:serviceaccount:a:b", "patch", "", "services", ""].map(str::to_owned);
    MissingRight { user, verb, group, resource, namespace }
}

fn set(conditions: &mut [Condition], status: &str, reason: &str) {
    let valid = conditions.iter_mut().find(|condition| condition.type_ == "Valid").expect(READ);
    (valid.status, valid.reason) = (status.to_owned(), reason.to_owned());
}

fn refuse_import(snapshot: &mut Snapshot, reason: &str) {
    let request = &mut importer(snapshot).multi_cluster_services.objects_mut().expect(READ)[0];
    set(request.status.as_mut().expect(READ).conditions.as_mut().expect(READ), "False", reason);
}

fn nothing_is_distributed(snapshot: &mut Snapshot) {
    snapshot.hub.distributed_slices = Listing::of(Vec::new());
    importer(snapshot).slices = Listing::of(Vec::new());
}

fn nothing_is_derived(snapshot: &mut Snapshot) {
    importer(snapshot).slices = Listing::of(Vec::new());
    let services = importer(snapshot).services.objects_mut().expect(READ);
    services.retain(|it| it.metadata.namespace.as_deref() != Some("fleet-system"));
}

#[test]
fn each_fault_in_a_snapshot_gives_exactly_its_code() -> anyhow::Result<()> {
    all_alter(&HEALTHY, FAULTS)
}

#[test]
fn of_two_faults_the_first_is_the_cause() -> anyhow::Result<()> {
    let causes: Vec<&Altered> = FAULTS.iter().filter(|fault| !fault.code.entry().is_notice()).collect();
    let (mut pairs, mut failures) = (0, Vec::new());
    for (index, first) in causes.iter().enumerate() {
        for second in &causes[index + 1..] {
            // FN702 is about an exporter that exports no more: then nothing is wrong with its export and its
            // distribution. FN108 turns into FN107 if no pod runs, and the two faults of an import exclude each other.
            let excluded = [(FN107, FN108), (FN502, FN504), (FN602, FN603)];
            if second.code == FN702
                || excluded.contains(&(first.code, second.code))
                || !is_shown(first.code, second.code)
            {
                continue;
            }
            let mut snapshot = HEALTHY.clone();
            (second.alter)(&mut snapshot);
            (first.alter)(&mut snapshot);
            let explanation = explain(&snapshot, &service("app"), &Filter::default());
            let found = explanation.pairs[0].cause.as_ref().map(|cause| cause.code);
            if found != Some(first.code) {
                let all = codes(&explanation);
                failures.push(format!(
                    "{} and {}: {found:?} of {all:?}\n{}",
                    first.code,
                    second.code,
                    show(&explanation)
                ));
            }
            pairs += 1;
        }
    }
    println!("{} of {pairs} pairs of faults give the first", pairs - failures.len());
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    anyhow::ensure!(pairs >= 30, "only {pairs} pairs");
    Ok(())
}

/// True if the second fault leaves the objects that show the first fault.
fn is_shown(first: Code, second: Code) -> bool {
    let needs_derived_service = [FN609, FN701].contains(&first);
    let removes_derived_service = [FN602, FN603].contains(&second);
    !(needs_derived_service && removes_derived_service)
}
