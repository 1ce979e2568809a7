//! Faults in fleets of the standard API: in running fleets, and in the snapshot of a healthy one.

use crate::both::{self, refused, settled};
use crate::fault::{all_alter, all_give_exactly, altered, faults};
use crate::world::{
    ADDRESSES, EXPORTER, IMPORTER, LATER, SOON, THIRD, World, codes, denied, is_exactly, rejected, service, show,
};
use anyhow::ensure;
use diagnosis::Code::{self, *};
use diagnosis::explain::Filter;
use diagnosis::report::{Api, Explanation, ServiceRow, Verdict};
use diagnosis::services::Rows;
use diagnosis::snapshot::Listing;
use diagnosis::{Snapshot, explain, services};
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use fleetnet_api::crd::{AddressType, EndpointSliceExport};
use fleetnet_core::names::mcs_derived;
use harness::user::Consume;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kube::api::ListParams;
use memkube::Verb;
use serde_json::json;
use sim::Options;
use sim::fleet::Place;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tokio::time::sleep;

faults! {
    LIVE:
    FN302: the_exported_service_does_not_exist,
    FN304: a_service_of_type_external_name_is_exported,
    FN311: the_hub_agent_cannot_merge,
    FN313: the_export_cannot_be_deleted,
    FN319: the_hub_rejects_the_export,
    FN320: two_exporters_have_different_ports,
    FN409: the_namespace_does_not_import,
    FN410: the_hub_denies_the_merged_import,
    FN411: the_hub_denies_the_finalizer,
    FN605: another_slice_has_the_name_of_the_imported_slice,
    FN605: another_slice_has_the_name_of_the_routing_slice,
    FN612: the_import_cannot_be_deleted,
    FN613: the_importer_denies_the_service_import,
    FN613: the_importer_denies_the_status_of_the_service_import,
    FN614: another_implementation_made_the_service_import,
    FN614: another_writer_has_the_name_of_the_derived_service,
}

impl World {
    /// Returns a fleet whose agents use the standard API. Only the namespace of member-2 imports.
    async fn mcs(members: usize) -> anyhow::Result<Self> {
        Self::with_agents(Api::Mcs, members).await
    }

    /// Returns a fleet in which member-1 exports `app` by the standard API and member-2 imports it.
    async fn mcs_running(members: usize) -> anyhow::Result<Self> {
        Self::with_service(Api::Mcs, members).await
    }
}

async fn the_exported_service_does_not_exist() -> anyhow::Result<Explanation> {
    let world = World::mcs(2).await?;
    world.user(EXPORTER).export_mcs("app", json!({})).await?;
    settled(&world).await
}

async fn a_service_of_type_external_name_is_exported() -> anyhow::Result<Explanation> {
    let world = World::mcs(2).await?;
    let spec = json!({"type": "ExternalName", "externalName": "app.example"});
    world.user(EXPORTER).create::<Service>(json!({"metadata": {"name": "app"}, "spec": spec})).await?;
    world.user(EXPORTER).export_mcs("app", json!({})).await?;
    settled(&world).await
}

async fn the_hub_rejects_the_export() -> anyhow::Result<Explanation> {
    refused(Api::Mcs, Place::Hub, &[Verb::Create], "internalserviceexports", rejected()).await
}

async fn the_hub_agent_cannot_merge() -> anyhow::Result<Explanation> {
    refused(Api::Mcs, Place::Hub, &[Verb::Patch], "internalserviceexports/status", denied()).await
}

async fn the_export_cannot_be_deleted() -> anyhow::Result<Explanation> {
    let world = World::mcs_running(2).await?;
    world.refuse(Place::Hub, &[Verb::Delete], "internalserviceexports", denied());
    world.user(EXPORTER).delete::<ServiceExport>("app").await?;
    settled(&world).await
}

async fn two_exporters_have_different_ports() -> anyhow::Result<Explanation> {
    let world = World::mcs_running(3).await?;
    let user = world.user(THIRD);
    let ports = json!([{"name": "http", "port": 80}, {"name": "metrics", "port": 81}]);
    user.create::<Service>(json!({"metadata": {"name": "app"}, "spec": {"ports": ports}})).await?;
    user.create_slice("app", "app-1", &["10.3.0.1"]).await?;
    let ports = json!([{"name": "http", "port": 8080}, {"name": "metrics", "port": 8081}]);
    user.merge::<EndpointSlice>("app-1", json!({"ports": ports})).await?;
    user.export_mcs("app", json!({})).await?;
    settled(&world).await
}

async fn the_namespace_does_not_import() -> anyhow::Result<Explanation> {
    let world = World::mcs_running(3).await?;
    world.explain(&Filter { to: Some("member-3".to_owned()), ..Filter::default() }).await
}

async fn the_hub_denies_the_merged_import() -> anyhow::Result<Explanation> {
    refused(Api::Mcs, Place::Hub, &[Verb::Create], "mergedserviceimports", denied()).await
}

async fn the_hub_denies_the_finalizer() -> anyhow::Result<Explanation> {
    refused(Api::Mcs, Place::Hub, &[Verb::Patch], "mergedserviceimports", denied()).await
}

async fn another_slice_has_the_name_of_the_imported_slice() -> anyhow::Result<Explanation> {
    another_slice_has_the_name(World::mcs(2).await?, "").await
}

async fn another_slice_has_the_name_of_the_routing_slice() -> anyhow::Result<Explanation> {
    let options = Options { routing_slices: [IMPORTER].into(), ..Options::members(2) };
    another_slice_has_the_name(World::with_options(Api::Mcs, options).await?, "-routing").await
}

async fn another_slice_has_the_name(world: World, ending: &str) -> anyhow::Result<Explanation> {
    world.user(IMPORTER).label_namespace(None).await?;
    world.exports().await?;
    sleep(SOON).await;
    let exported = world.in_hub(EXPORTER).api::<EndpointSliceExport>().list(&ListParams::default()).await?;
    let name = exported.items[0].name_any() + ending;
    let theirs = json!({"metadata": {"name": name}, "addressType": "IPv4", "endpoints": [], "ports": []});
    world.user(IMPORTER).create::<EndpointSlice>(theirs).await?;
    world.user(IMPORTER).label_namespace(Some("true")).await?;
    settled(&world).await
}

async fn the_import_cannot_be_deleted() -> anyhow::Result<Explanation> {
    let world = World::mcs_running(2).await?;
    world.refuse(Place::Member(IMPORTER), &[Verb::Delete], "serviceimports", denied());
    world.user(EXPORTER).delete::<ServiceExport>("app").await?;
    settled(&world).await
}

async fn the_importer_denies_the_service_import() -> anyhow::Result<Explanation> {
    refused(Api::Mcs, Place::Member(IMPORTER), &[Verb::Create], "serviceimports", denied()).await
}

async fn the_importer_denies_the_status_of_the_service_import() -> anyhow::Result<Explanation> {
    refused(Api::Mcs, Place::Member(IMPORTER), &[Verb::Patch], "serviceimports/status", denied()).await
}

async fn another_implementation_made_the_service_import() -> anyhow::Result<Explanation> {
    let world = World::mcs(2).await?;
    let theirs = json!({"metadata": {"name": "app"}, "spec": {"type": "ClusterSetIP", "ports": []}});
    world.user(IMPORTER).create::<ServiceImport>(theirs).await?;
    world.exports().await?;
    settled(&world).await
}

async fn another_writer_has_the_name_of_the_derived_service() -> anyhow::Result<Explanation> {
    let world = World::mcs(2).await?;
    world.user(IMPORTER).create_service(&mcs_derived(&service("app")).name).await?;
    world.exports().await?;
    settled(&world).await
}

altered! {
    ALTERED:
    FN214: |it| {
        let features = &mut it.hub.member_agents.objects_mut().expect(READ)[IMPORTER].spec.features;
        features.as_mut().expect(READ).retain(|feature| feature.0 != "MulticlusterApi");
    },
    FN214: |it| {
        let agent = &mut it.hub.member_agents.objects_mut().expect(READ)[EXPORTER];
        agent.spec.features = None;
        it.members[EXPORTER].mcs_exports.objects_mut().expect(READ)[0].status = None;
    },
    FN214: |it| {
        let status = it.hub.member_agents.objects_mut().expect(READ)[EXPORTER].status.as_mut().expect(READ);
        status.features.as_mut().expect(READ).retain(|feature| feature.0 != "MulticlusterApi");
    },
    FN214: |it| it.hub.merged_imports = Listing::NotDefined,
    FN214: |it| it.members[EXPORTER].mcs_exports = Listing::NotDefined,
    FN214: |it| it.members[IMPORTER].mcs_imports = Listing::NotDefined,
    FN301: |it| {
        it.members[EXPORTER].mcs_exports = Listing::of(Vec::new());
        it.hub.internal_exports = Listing::of(Vec::new());
        for merged in it.hub.merged_imports.objects_mut().expect(READ) {
            merged.spec.clusters = Vec::new();
        }
        it.members[IMPORTER].slices = Listing::of(Vec::new());
        it.hub.slice_exports = Listing::of(Vec::new());
        it.hub.distributed_slices = Listing::of(Vec::new());
    },
    FN303: |it| without_namespace(it, &["--namespace-policy=strict"]),
    FN303: |it| without_namespace(it, &["--namespace-policy", "strict"]),
    FN303: |it| without_namespace(it, &["--namespace-policy=listed"]),
    FN410: |it| {
        for merged in it.hub.merged_imports.objects_mut().expect(READ) {
            merged.spec.clusters = Vec::new();
        }
    },
    FN504: |it| {
        it.hub.slice_exports.objects_mut().expect(READ)[0].spec.address_type = AddressType::IPv6;
        it.members[EXPORTER].slices.objects_mut().expect(READ)[0].address_type = "IPv6".to_owned();
        let features = &mut it.hub.member_agents.objects_mut().expect(READ)[IMPORTER].spec.features;
        features.as_mut().expect(READ).retain(|feature| feature.0 != "IPv6");
        it.hub.distributed_slices = Listing::of(Vec::new());
        it.members[IMPORTER].slices = Listing::of(Vec::new());
    },
    FN609: |it| {
        let derived = &mut it.members[IMPORTER].services.objects_mut().expect(READ)[0];
        derived.spec.as_mut().expect(READ).ip_families = Some(vec!["IPv6".to_owned()]);
    },
    FN611: |it| {
        let slices = it.members[IMPORTER].slices.objects_mut().expect(READ);
        let labels = slices[0].metadata.labels.as_mut().expect(READ);
        labels.insert("endpointslice.kubernetes.io/managed-by".to_owned(), "other".to_owned());
    },
    FN613: |it| {
        let import = &mut it.members[IMPORTER].mcs_imports.objects_mut().expect(READ)[0];
        import.spec.ips = Some(vec!["10.250.0.1".to_owned()]);
    },
    FN701: |it| {
        let slice = &mut it.members[IMPORTER].slices.objects_mut().expect(READ)[0];
        slice.endpoints.as_mut().expect(READ)[0].addresses = vec!["10.9.9.9".to_owned()];
    },
    FN702: |it| {
        it.members[EXPORTER].mcs_exports = Listing::of(Vec::new());
        it.hub.internal_exports = Listing::of(Vec::new());
        it.hub.slice_exports = Listing::of(Vec::new());
        it.hub.merged_imports = Listing::of(Vec::new());
    },
}

/// The snapshot is of a fleet in which this was read.
const READ: &str = "the snapshot has it";

/// Snapshot of a fleet in which member-1 exports `app` by the standard API and member-2 imports it.
static HEALTHY: LazyLock<Snapshot> = LazyLock::new(|| {
    let snapshot = sim::paused(async { World::mcs_running(2).await?.snapshot().await });
    snapshot.expect("the fleet is healthy")
});

/// Returns the codes of all faults of this file.
pub(crate) fn codes_of_faults() -> impl Iterator<Item = Code> {
    LIVE.iter().map(|fault| fault.code).chain(ALTERED.iter().map(|fault| fault.code))
}

#[test]
fn each_fault_in_a_snapshot_of_the_mcs_api_gives_exactly_its_code() -> anyhow::Result<()> {
    all_alter(&HEALTHY, ALTERED)
}

/// Plays every second fault, from this one: two tests run in parallel.
fn play_from(first: usize) -> anyhow::Result<()> {
    let own = LIVE.iter().map(|fault| (fault.code, (fault.play)()));
    let of_both = both::FAULTS.iter().map(|fault| (fault.code, (fault.play)(Api::Mcs)));
    all_give_exactly(own.chain(of_both).skip(first).step_by(2).map(|(code, played)| {
        let played = sim::paused(played).and_then(|explanation| {
            let is_mcs = explanation.pairs.iter().all(|pair| pair.api == Api::Mcs);
            ensure!(is_mcs, "there are pairs of the fleet's API: {}", show(&explanation));
            Ok(explanation)
        });
        (code, played)
    }))
}

#[test]
fn each_first_fault_in_a_running_fleet_of_the_mcs_api_gives_exactly_its_code() -> anyhow::Result<()> {
    play_from(0)
}

#[test]
fn each_second_fault_in_a_running_fleet_of_the_mcs_api_gives_exactly_its_code() -> anyhow::Result<()> {
    play_from(1)
}

/// Makes each listing of the standard API unknown, one at a time.
const NOT_READ: &[fn(&mut Snapshot)] = &[
    |it| it.hub.internal_exports = Listing::Unknown(String::new()),
    |it| it.hub.merged_imports = Listing::Unknown(String::new()),
    |it| it.hub.slice_exports = Listing::Unknown(String::new()),
    |it| it.hub.distributed_slices = Listing::Unknown(String::new()),
    |it| it.hub.member_agents = Listing::Unknown(String::new()),
    |it| it.hub.namespaces = Listing::Unknown(String::new()),
    |it| it.members[EXPORTER].mcs_exports = Listing::Unknown(String::new()),
    |it| it.members[EXPORTER].mcs_exports = Listing::Denied(String::new()),
    |it| it.members[EXPORTER].slices = Listing::Unknown(String::new()),
    |it| it.members[IMPORTER].mcs_imports = Listing::Unknown(String::new()),
    |it| it.members[IMPORTER].namespaces = Listing::Unknown(String::new()),
    |it| it.members[IMPORTER].services = Listing::Unknown(String::new()),
    |it| it.members[IMPORTER].slices = Listing::Unknown(String::new()),
];

#[test]
fn listings_of_the_mcs_api_that_were_not_read_are_never_a_fault() {
    for first in NOT_READ {
        for second in NOT_READ {
            let mut snapshot = HEALTHY.clone();
            first(&mut snapshot);
            second(&mut snapshot);
            let explanation = explain(&snapshot, &service("app"), &Filter::default());
            // FN104 says which kind this user may not read.
            let faults: Vec<Code> = codes(&explanation).into_iter().filter(|code| *code != FN104).collect();
            assert_eq!(faults, [], "{}", show(&explanation));
            assert_eq!(explanation.verdict, Verdict::NotKnown, "{}", show(&explanation));
        }
    }
}

/// Removes all that shows that the standard API exports the Service, apart from the ServiceExport.
fn not_in_hub(snapshot: &mut Snapshot) {
    snapshot.hub.internal_exports = Listing::of(Vec::new());
    snapshot.hub.merged_imports = Listing::of(Vec::new());
    snapshot.hub.slice_exports = Listing::of(Vec::new());
    snapshot.hub.distributed_slices = Listing::of(Vec::new());
    snapshot.members[IMPORTER].slices = Listing::of(Vec::new());
    snapshot.members[IMPORTER].mcs_imports = Listing::of(Vec::new());
}

/// Removes the namespace of the Service in the hub, whose agent runs with these arguments.
fn without_namespace(snapshot: &mut Snapshot, arguments: &[&str]) {
    let namespaces = snapshot.hub.namespaces.objects_mut().expect(READ);
    namespaces.retain(|namespace| namespace.name_any() != "work");
    let deployment = &mut snapshot.hub.agent.deployments.objects_mut().expect(READ)[0];
    let pod = deployment.spec.template.spec.as_mut().expect(READ);
    pod.containers[0].args = Some(arguments.iter().map(|it| (*it).to_owned()).collect());
}

fn without_feature(snapshot: &mut Snapshot) {
    for agent in snapshot.hub.member_agents.objects_mut().expect(READ) {
        agent.spec.features.as_mut().expect(READ).retain(|feature| feature.0 != "MulticlusterApi");
    }
}

#[test]
fn a_service_export_of_another_implementation_has_no_pair_if_the_fleets_api_exports_the_service() -> anyhow::Result<()>
{
    sim::paused(async {
        let world = World::mcs_running(2).await?;
        world.user(EXPORTER).export("app").await?;
        world.user(IMPORTER).import("app", "app", Consume::ClusterIp).await?;
        world.user(IMPORTER).sees("app", &ADDRESSES).await?;
        sleep(SOON).await;
        let mut snapshot = world.snapshot().await?;
        without_feature(&mut snapshot);
        snapshot.hub.merged_imports = Listing::of(Vec::new());
        for export in snapshot.hub.internal_exports.objects_mut().expect(READ) {
            export.spec.multicluster = None;
        }
        for slices in snapshot.members.iter_mut().filter_map(|member| member.slices.objects_mut()) {
            slices.retain(|slice| !slice.labels().contains_key("multicluster.kubernetes.io/source-cluster"));
        }
        let pairs = healthy_pairs(&explain(&snapshot, &service("app"), &Filter::default()))?;
        ensure!(pairs == ["fleet member-1-member-2"], "{pairs:?}");
        Ok(())
    })?;
    // If nothing else exports the Service, the user learns that the API is not on.
    let mut snapshot = HEALTHY.clone();
    not_in_hub(&mut snapshot);
    without_feature(&mut snapshot);
    snapshot.members[EXPORTER].mcs_exports.objects_mut().expect(READ)[0].status = None;
    is_exactly(&explain(&snapshot, &service("app"), &Filter::default()), FN214)
}

#[test]
fn a_service_whose_exports_by_the_mcs_api_were_not_read_is_not_known() {
    let mut snapshot = HEALTHY.clone();
    not_in_hub(&mut snapshot);
    for unread in [Listing::Denied(String::new()), Listing::Unknown(String::new()), Listing::NotAsked] {
        snapshot.members[EXPORTER].mcs_exports = unread;
        let explanation = explain(&snapshot, &service("app"), &Filter::default());
        assert_eq!((codes(&explanation), explanation.verdict), (BTreeSet::new(), Verdict::NotKnown));
    }
    without_feature(&mut snapshot);
    let explanation = explain(&snapshot, &service("app"), &Filter::default());
    assert_eq!(codes(&explanation), [FN301].into(), "no agent uses the standard API");
}

#[test]
fn a_cluster_that_the_hub_denies_and_that_nobody_labelled_is_no_importer() {
    let mut snapshot = HEALTHY.clone();
    let namespaces = snapshot.hub.namespaces.objects_mut().expect(READ);
    let namespace = namespaces.iter_mut().find(|it| it.name_any() == "work").expect(READ);
    namespace.annotations_mut().insert("networking.fleet.azure.com/importers".to_owned(), "nobody".to_owned());
    snapshot.hub.merged_imports.objects_mut().expect(READ).clear();
    let member = &mut snapshot.members[IMPORTER];
    (member.slices, member.mcs_imports) = (Listing::of(Vec::new()), Listing::of(Vec::new()));
    let labelled = explain(&snapshot, &service("app"), &Filter::default());
    assert_eq!(codes(&labelled), [FN404].into());
    let member = &mut snapshot.members[IMPORTER];
    member.namespaces.objects_mut().expect(READ)[0].metadata.labels = None;
    for arguments in [&["--multicluster-api-import=all"][..], &["--multicluster-api-import", "all"]] {
        let deployment = &mut snapshot.members[IMPORTER].agent.deployments.objects_mut().expect(READ)[0];
        let pod = deployment.spec.template.spec.as_mut().expect(READ);
        pod.containers[0].args = Some(arguments.iter().map(|it| (*it).to_owned()).collect());
        let all = explain(&snapshot, &service("app"), &Filter::default());
        assert_eq!((codes(&all), all.pairs[0].importer.as_deref()), (BTreeSet::new(), None));
        let to = Filter { to: Some("member-2".to_owned()), ..Filter::default() };
        assert_eq!(codes(&explain(&snapshot, &service("app"), &to)), [FN404].into());
    }
    let importer =
        |snapshot: &Snapshot| explain(snapshot, &service("app"), &Filter::default()).pairs[0].importer.clone();
    without_namespace(&mut snapshot, &["--namespace-policy=strict"]);
    assert_eq!(importer(&snapshot), None, "a strict hub agent denies the import");
    without_namespace(&mut snapshot, &["--namespace-policy=strict", "--namespace-policy=enforce"]);
    assert_eq!(importer(&snapshot).as_deref(), Some("member-2"), "the last value counts");
    without_namespace(&mut snapshot, &["--namespace-policy=strict"]);
    snapshot.hub.namespaces = Listing::Unknown("the answer was cut off".to_owned());
    assert_eq!(importer(&snapshot).as_deref(), Some("member-2"), "perhaps the hub has the namespace");
}

#[test]
fn by_default_the_mcs_api_needs_no_namespace_in_the_hub() {
    let mut snapshot = HEALTHY.clone();
    without_namespace(&mut snapshot, &[]);
    assert_eq!(codes(&explain(&snapshot, &service("app"), &Filter::default())), BTreeSet::new());
}

#[test]
fn a_label_that_is_younger_than_30_s_is_waited_for() -> anyhow::Result<()> {
    sim::paused(async {
        let world = World::mcs(3).await?;
        world.exports().await?;
        sleep(SOON).await;
        world.refuse(Place::Hub, &[Verb::Patch], "mergedserviceimports", denied());
        world.user(THIRD).label_namespace(Some("true")).await?;
        sleep(std::time::Duration::from_secs(5)).await;
        let third = Filter { to: Some("member-3".to_owned()), ..Filter::default() };
        let mut snapshot = world.snapshot().await?;
        // memkube has no managedFields.
        let now = snapshot.members[THIRD].connection.now;
        let namespace = &mut snapshot.members[THIRD].namespaces.objects_mut().expect(READ)[0];
        namespace.metadata.creation_timestamp = now.map(Time);
        let new = explain(&snapshot, &service("app"), &third);
        ensure!(codes(&new).is_empty(), "a new label: {}", show(&new));
        sleep(SOON).await;
        is_exactly(&explain(&world.snapshot().await?, &service("app"), &third), FN411)
    })
}

/// Returns the rows of `services` as text.
fn rows(snapshot: &Snapshot) -> (Verdict, Vec<String>) {
    let found = services(snapshot, &Rows::default());
    let row = |it: &ServiceRow| {
        let type_ = it.type_.as_deref().unwrap_or_default();
        let [exporters, importers, conflicts] = [&it.exporters, &it.importers, &it.conflicts].map(|ids| ids.join(","));
        format!("{:?} {type_} {exporters} to {importers}: {} {conflicts} {:?}", it.api, it.endpoints, it.state)
    };
    (found.verdict, found.services.iter().map(row).collect())
}

#[test]
fn services_have_a_row_for_each_api_and_a_cluster_that_no_client_reaches_is_a_fault() -> anyhow::Result<()> {
    let healthy = "Mcs ClusterSetIP member-1 to member-2: 2  Ready".to_owned();
    ensure!(rows(&HEALTHY) == (Verdict::Healthy, vec![healthy]), "{:?}", rows(&HEALTHY));
    let mut snapshot = HEALTHY.clone();
    snapshot.hub.merged_imports = Listing::Unknown("Timeout".to_owned());
    let unknown = "Mcs  member-1 to : 2  Unknown".to_owned();
    ensure!(rows(&snapshot) == (Verdict::NotKnown, vec![unknown]), "{:?}", rows(&snapshot));
    sim::paused(async {
        let world = World::mcs_running(3).await?;
        world.user(EXPORTER).export("app").await?;
        let user = world.user(THIRD);
        user.create_service_with_port("app", 81).await?;
        user.create_slice("app", "app-1", &["10.3.0.1"]).await?;
        user.export_mcs("app", json!({})).await?;
        sleep(SOON).await;
        let expected = [
            "Fleet ClusterSetIP member-1 to : 2  Ready",
            "Mcs ClusterSetIP member-1,member-3 to member-2: 3 member-1,member-3 NotReady",
        ];
        let found = rows(&world.snapshot().await?);
        ensure!(found == (Verdict::Fault, expected.map(str::to_owned).into()), "{found:?}");
        Ok(())
    })
}

/// Says which pairs an explanation has, and that none of them is faulty.
fn healthy_pairs(explanation: &Explanation) -> anyhow::Result<Vec<String>> {
    let is_healthy = codes(explanation).is_empty() && explanation.verdict == Verdict::Healthy;
    ensure!(is_healthy, "{}", show(explanation));
    let end = |end: &Option<String>| end.clone().unwrap_or_default();
    let pair = |api: Api| if api == Api::Fleet { "fleet" } else { "mcs" };
    let pairs = explanation.pairs.iter();
    Ok(pairs.map(|it| format!("{} {}-{}", pair(it.api), end(&it.exporter), end(&it.importer))).collect())
}

#[test]
fn a_service_that_both_apis_export_has_pairs_of_both() -> anyhow::Result<()> {
    sim::paused(async {
        let world = World::mcs_running(3).await?;
        world.user(EXPORTER).export("app").await?;
        world.user(IMPORTER).import("app", "app", Consume::ClusterIp).await?;
        world.user(IMPORTER).sees("app", &ADDRESSES).await?;
        // Another cluster exports by the standard API only, and imports too.
        let user = world.user(THIRD);
        user.serve("app", &["10.3.0.1"]).await?;
        user.export_mcs("app", json!({})).await?;
        user.label_namespace(Some("true")).await?;
        sleep(SOON).await;
        let pairs = healthy_pairs(&world.explain(&Filter::default()).await?)?;
        let expected = [
            "fleet member-1-member-2",
            "mcs member-1-member-2",
            "mcs member-1-member-3",
            "mcs member-3-member-2",
            "mcs member-3-member-3",
        ];
        ensure!(pairs == expected, "{pairs:?}");
        // A cluster that takes part by one API is not missing in the other one.
        let (none, third) = (None, Some("member-3".to_owned()));
        for (from, to, expected) in [
            (&third, &none, &["mcs member-3-member-2", "mcs member-3-member-3"][..]),
            (&none, &third, &["mcs member-1-member-3", "mcs member-3-member-3"]),
        ] {
            let filter = Filter { from: from.clone(), to: to.clone() };
            let pairs = healthy_pairs(&world.explain(&filter).await?)?;
            ensure!(pairs == expected, "{pairs:?}");
        }
        Ok(())
    })
}

#[test]
fn a_headless_service_and_one_that_nobody_imports_are_healthy() -> anyhow::Result<()> {
    sim::paused(async {
        let world = World::mcs(2).await?;
        let ports = json!([{"name": "http", "port": 80}]);
        let headless = json!({"metadata": {"name": "app"}, "spec": {"clusterIP": "None", "ports": ports}});
        world.user(EXPORTER).create::<Service>(headless).await?;
        world.user(EXPORTER).create_slice("app", "app-1", &ADDRESSES).await?;
        world.user(EXPORTER).export_mcs("app", json!({})).await?;
        sleep(SOON).await;
        let pairs = healthy_pairs(&world.explain(&Filter::default()).await?)?;
        ensure!(pairs == ["mcs member-1-member-2"], "{pairs:?}");
        world.user(IMPORTER).label_namespace(None).await?;
        sleep(LATER).await;
        let pairs = healthy_pairs(&world.explain(&Filter::default()).await?)?;
        ensure!(pairs == ["mcs member-1-"], "{pairs:?}");
        Ok(())
    })
}
