//! Tests of least privilege: the roles of `deploy/` are sufficient for the main job, and grant no other rights. Every
//! scenario and action runs with these roles. If no scenario uses a right, [`RESERVED`] must have the reason for the
//! right.

mod forbidden;
mod missing;
mod rbac;

use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use endpointslice_controller::{Mode, Settings};
use fleetnet_api::crd::mcs::{ServiceExport as McsServiceExport, ServiceImport as McsServiceImport};
use fleetnet_api::crd::{InternalServiceImport, MultiClusterService};
use fleetnet_core::member::McsApi;
use harness::endpoints::{Workload, create_old_lease};
use harness::eventually;
use harness::fleet::{FLEET_SYSTEM, manifests};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt as _};
use memkube::auth::{Call, Verb};
use memkube::faults::{Answer, Fault, Faults};
use memkube::status::Status;
use parking_lot::Mutex;
use rbac::{Rbac, Record};
use scenarios::actions::Action;
use scenarios::environment::{Environment, FleetSpec};
use scenarios::main_job;
use serde_json::json;
use sim::fleet::Place;
use sim::server::ADMIN;
use sim::{Fleet, Options};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Rights that the roles grant although no scenario uses them, each with its reason.
const RESERVED: [(&str, &str); 8] = [
    ("update multiclusterservices/finalizers.networking.fleet.azure.com", OWNERS),
    ("update services/finalizers", OWNERS),
    ("create endpointslices/restricted.discovery.k8s.io", OPENSHIFT),
    ("create serviceaccounts/token", TOKENS),
    ("get secrets", TOKENS),
    ("patch secrets", TOKENS),
    ("create tokenreviews.authentication.k8s.io", METRICS),
    ("create subjectaccessreviews.authorization.k8s.io", METRICS),
];
const OWNERS: &str =
    "asked for by the admission plugin OwnerReferencesPermissionEnforcement, which memkube does not have";

const OPENSHIFT: &str =
    "asked for by an admission plugin of OpenShift, for slices with addresses of the cluster's own network";

const TOKENS: &str =
    "used by the renewal of tokens, which memkube does not issue: testing/scenarios/tests/e2e/tokens.rs uses it";

const METRICS: &str = "used by --metrics-secure, and agents on memkube serve no metrics: testing/scenarios/tests/e2e/metrics_secure.rs uses it";

/// Denied requests that the test accepts. Without `deploy/endpointslices.yaml`, a member agent has no right to watch
/// the Lease of kube-controller-manager.
const NOT_GRANTED: [&str; 2] = ["list leases", "watch leases"];

/// Returns a fleet whose servers enforce the roles of the manifests.
async fn fleet(spec: FleetSpec, record: &Arc<Record>) -> anyhow::Result<Fleet> {
    let of_member = [("member-agent.yaml", manifests::MEMBER_AGENT)];
    fleet_with(spec, record, &of_member, endpointslices()).await
}

/// Returns the settings of a fleet whose EndpointSlice controller waits for another controller to end.
fn endpointslices() -> Options {
    Options { endpointslices: Some(Settings::with_mode(Mode::Auto)), ..Options::members(0) }
}

/// Returns a fleet that uses the standard API.
async fn fleet_with_mcs_api(spec: FleetSpec, record: &Arc<Record>) -> anyhow::Result<Fleet> {
    let of_member = [("member-agent.yaml", manifests::MEMBER_AGENT), ("multicluster-api.yaml", manifests::MCS_API)];
    let options = Options { mcs_api: McsApi::LabelledNamespaces, ..Options::members(0) };
    fleet_with(spec, record, &of_member, options).await
}

/// Returns a fleet whose servers enforce the roles. The member agent also has the rights to make EndpointSlices from
/// pods.
async fn fleet_with_slices_of_pods(record: &Arc<Record>) -> anyhow::Result<Fleet> {
    let of_member =
        [("member-agent.yaml", manifests::MEMBER_AGENT), ("endpointslices.yaml", manifests::ENDPOINT_SLICES)];
    let spec = FleetSpec::of(1);
    fleet_with(spec, record, &of_member, endpointslices()).await
}

/// Returns a fleet whose servers enforce the roles of these manifests.
async fn fleet_with(
    spec: FleetSpec,
    record: &Arc<Record>,
    of_member: &[(&str, &str)],
    options: Options,
) -> anyhow::Result<Fleet> {
    let mut options = Options { members: spec.members, ..options };
    options.derived_service_grace = spec.derived_service_grace.unwrap_or(options.derived_service_grace);
    let fleet = Fleet::new(options).await?;
    let of_members: Vec<String> = fleet.members.iter().map(|member| manifests::of_member(&member.name)).collect();
    let metrics = ("metrics-auth.yaml", manifests::METRICS_AUTH);
    let mut of_hub = vec![("hub-agent.yaml", manifests::HUB_AGENT), metrics];
    of_hub.extend(of_members.iter().map(|manifest| ("hub-member.yaml", manifest.as_str())));
    fleet.hub.memkube().set_policy(Arc::new(Rbac::of(&of_hub, record)?));
    for member in &fleet.members {
        let policy = Rbac::of(&[of_member, &[metrics]].concat(), record)?;
        member.server.memkube().set_policy(Arc::new(policy));
    }
    Ok(fleet)
}

fn run_scenario<S>(
    record: &Arc<Record>,
    scene_name: &str,
    spec: FleetSpec,
    scenario: impl FnOnce(Environment<OnMemkube>) -> S,
) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    sim::paused(async { scenario(Environment::on(OnMemkube(fleet(spec, record).await?)).await?).await })
        .with_context(|| format!("{scene_name}, denied: {:#?}", record.denied()))
}

async fn completes(action: Action, env: Environment<OnMemkube>) -> anyhow::Result<()> {
    action.prepare(&env).await?;
    action.act(&env).await?;
    action.is_visible(&env).await
}

/// Scenario: an exclusive claim (LoadBalancer) becomes a shared claim (ClusterIP).
async fn an_import_changes_its_type(env: Environment<OnMemkube>) -> anyhow::Result<()> {
    env.export_and_import(&["10.1.0.1"]).await?;
    let among_many = json!({"spec": {"type": "ClusterIP"}});
    env.user(1).merge::<MultiClusterService>("app", among_many).await?;
    let derived: Api<Service> = Api::namespaced(env.members[1].client.clone(), FLEET_SYSTEM);
    let is_among_many =
        |service: &Service| service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("ClusterIP");
    let claims = env.hub::<InternalServiceImport>(&env.members[1].hub_namespace);
    let is_cluster_ip = |claim: &InternalServiceImport| {
        claim.annotations().get("networking.fleet.azure.com/service-type").is_some_and(|value| value == "ClusterIP")
    };
    let name = format!("{}-app", env.namespace);
    eventually::object(&derived, &name, "a Service of type ClusterIP", is_among_many).await?;
    eventually::object(&claims, &name, "a claim of type ClusterIP", is_cluster_ip).await.map(drop)
}

/// Scenario: the member agent creates, changes and removes the EndpointSlices of its own cluster.
async fn slices_are_made_of_pods(env: Environment<OnMemkube>) -> anyhow::Result<()> {
    create_old_lease(env.members[0].client.clone()).await?;
    let workload = Workload::begin(env.members[0].client.clone(), &env.namespace).await?;
    workload.service("pods").await?;
    // In mode `auto`, the controller watches the Lease for a while before it becomes active.
    tokio::time::sleep(Duration::from_secs(200)).await;
    workload.sees("pods", &["IPv4 no ports: nobody"]).await?;
    workload.pods("pods", &["10.1.0.1"]).await?;
    workload.sees("pods", &["IPv4 http 8080/TCP: 10.1.0.1 ready pods-0"]).await?;
    let slice = workload.slice("pods").await?;
    let mut twin = slice.clone();
    twin.metadata = ObjectMeta {
        name: Some("twin".to_owned()),
        labels: slice.metadata.labels,
        owner_references: slice.metadata.owner_references,
        ..ObjectMeta::default()
    };
    workload.user.api::<EndpointSlice>().create(&PostParams::default(), &twin).await?;
    // The test has created a slice. This foreign write makes the controller inactive, and it waits 3 minutes again.
    // Then the controller removes the duplicate slice.
    tokio::time::sleep(Duration::from_secs(200)).await;
    workload.sees("pods", &["IPv4 http 8080/TCP: 10.1.0.1 ready pods-0"]).await.map(drop)
}

/// Scenario: a Service is exported and imported by the standard API. Users edit and delete what the agents write.
async fn a_service_is_imported_by_the_mcs_api(env: Environment<OnMemkube>) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    exporter.serve("app", &["10.1.0.1"]).await?;
    exporter.export_mcs("app", json!({})).await?;
    importer.label_namespace(Some("true")).await?;
    let imported = [format!("{} 10.1.0.1", env.members[0].cluster_id)];
    let imported = imported.each_ref().map(String::as_str);
    let slices = importer.sees_mcs_slices("app", &imported).await?;
    importer.sees_ready_import("app", &[&env.members[0].cluster_id]).await?;
    let slice = slices.into_values().next().context("a slice")?.name_any();
    importer.set_endpoints(&slice, &["10.9.9.9"]).await?;
    importer.sees_mcs_slices("app", &imported).await?;
    importer.merge::<McsServiceImport>("app", json!({"spec": {"ports": []}})).await?;
    let has_ports = |import: &McsServiceImport| !import.spec.ports.is_empty();
    importer.sees_service_import("app", "to have its ports", has_ports).await?;
    let derived = importer.sees_derived_by_mcs_api("app", "to exist", |_| true).await?.name_any();
    importer.merge::<Service>(&derived, json!({"spec": {"internalTrafficPolicy": "Local"}})).await?;
    let is_repaired = |service: &Service| {
        service.spec.as_ref().and_then(|spec| spec.internal_traffic_policy.as_deref()) == Some("Cluster")
    };
    importer.sees_derived_by_mcs_api("app", "to be repaired", is_repaired).await?;
    let ports = json!([{"name": "http", "port": 81, "targetPort": 8080}]);
    exporter.merge::<Service>("app", json!({"spec": {"ports": ports}})).await?;
    let has_port = |import: &McsServiceImport| import.spec.ports.iter().map(|port| port.port).eq([81]);
    importer.sees_service_import("app", "to have the port 81", has_port).await?;
    exporter.delete::<McsServiceExport>("app").await?;
    eventually::gone(&importer.api::<McsServiceImport>(), "app").await?;
    importer.sees_mcs_slices("app", &[]).await?;
    eventually::gone(&importer.api::<Service>(), &derived).await
}

/// Scenario: a second replica of each agent takes over when the first replica stops.
async fn replicas_take_over(spec: FleetSpec, record: &Arc<Record>) -> anyhow::Result<()> {
    let mut fleet = fleet(spec, record).await?;
    fleet.start_agents().await?;
    let places: Vec<Place> = fleet.places().collect();
    for place in &places {
        fleet.start_replica(*place, 1)?;
    }
    fleet.ready().await?;
    for place in places {
        fleet.stop_replica(place, 0).await?;
    }
    // A replica that reads the Leases again only after its wait takes over later.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for server in fleet.servers().map(|(_, server)| server) {
        let leases: Api<Lease> = Api::namespaced(server.admin(), FLEET_SYSTEM);
        for lease in leases.list(&ListParams::default()).await? {
            let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            ensure!(!holder.is_empty(), "nobody holds the Lease {:?}", lease.metadata.name);
        }
    }
    Ok(())
}

/// Fault: writes are executed without a response, so that only a GET shows the result. Streaming lists are rejected, as
/// on servers before Kubernetes 1.32.
#[derive(Default)]
struct LostAnswers {
    /// Number of rejected streaming lists by user and resource. The agent then sends a plain list and a watch, which
    /// must work.
    rejected: Mutex<BTreeMap<(String, String), usize>>,
}

impl Faults for LostAnswers {
    fn request(&self, call: &Call) -> Fault {
        if &*call.user.name == ADMIN {
            return Fault::default();
        }
        let of = (call.user.name.to_string(), call.qualified_resource());
        // With the standard API, an agent watches the namespace kube-system and all namespaces.
        let watches = if &*of.1 == "namespaces" { 2 } else { 1 };
        let is_rejected = call.verb == Verb::Watch && {
            let mut rejected = self.rejected.lock();
            let count = rejected.entry(of).or_default();
            *count += 1;
            *count <= watches
        };
        if is_rejected {
            let refuse = Status::plain(422, "Invalid", "sendInitialEvents is forbidden for watch");
            return Fault { refuse: Some(refuse), ..Fault::default() };
        }
        let is_of_objects = !["leases", "events"].contains(&&*call.target.resource);
        let answer = if call.verb.writes() && is_of_objects { Answer::Cut } else { Answer::Whole };
        Fault { answer, ..Fault::default() }
    }
}

fn main_job_is_done(record: &Arc<Record>) -> anyhow::Result<()> {
    run_scenario(
        record,
        "the_first_export_and_import_cost_what_the_ledger_lists",
        FleetSpec::of(2),
        main_job::the_first_export_and_import_cost_what_the_ledger_lists,
    )?;
    run_scenario(
        record,
        "a_hundred_changes_cost_one_write_in_the_hub_and_two_for_each_of_two_importers",
        FleetSpec::of(3),
        main_job::a_hundred_changes_cost_one_write_in_the_hub_and_two_for_each_of_two_importers,
    )?;
    run_scenario(
        record,
        "a_settled_fleet_a_restart_and_changes_that_importers_cannot_see_cost_nothing",
        FleetSpec::of(2),
        main_job::a_settled_fleet_a_restart_and_changes_that_importers_cannot_see_cost_nothing,
    )?;
    run_scenario(
        record,
        "b1b_a_slice_recycled_on_the_way_to_zero_and_back_keeps_its_export",
        FleetSpec::of(2),
        main_job::b1b_a_slice_recycled_on_the_way_to_zero_and_back_keeps_its_export,
    )?;
    run_scenario(
        record,
        "b1_a_deleted_slice_is_withdrawn_by_its_event",
        FleetSpec::of(2),
        main_job::b1_a_deleted_slice_is_withdrawn_by_its_event,
    )?;
    run_scenario(
        record,
        "an_imported_slice_deleted_by_hand_is_created_again_and_not_measured_again",
        FleetSpec::of(2),
        main_job::an_imported_slice_deleted_by_hand_is_created_again_and_not_measured_again,
    )?;
    run_scenario(
        record,
        "an_unexported_service_leaves_nothing_in_the_hub_and_its_derived_service_goes_after_the_grace",
        FleetSpec::WITHOUT_GRACE,
        main_job::an_unexported_service_leaves_nothing_in_the_hub_and_its_derived_service_goes_after_the_grace,
    )?;
    run_scenario(
        record,
        "a_deleted_multi_cluster_service_leaves_nothing_in_its_cluster_and_in_the_hub",
        FleetSpec::of(2),
        main_job::a_deleted_multi_cluster_service_leaves_nothing_in_its_cluster_and_in_the_hub,
    )?;
    run_scenario(
        record,
        "a_service_deleted_and_created_again_is_exported_again",
        FleetSpec::of(2),
        main_job::a_service_deleted_and_created_again_is_exported_again,
    )?;
    Ok(())
}

#[test]
fn the_roles_of_the_manifests_are_enough_for_the_main_job_and_grant_nothing_else() -> anyhow::Result<()> {
    let record = Arc::new(Record::default());
    main_job_is_done(&record)?;
    let spec = FleetSpec::of(2).with_grace(Duration::from_secs(1));
    for action in Action::ALL {
        run_scenario(&record, &format!("{action:?}"), spec, |env| completes(action, env))?;
    }
    run_scenario(&record, "an_import_changes_its_type", spec, an_import_changes_its_type)?;
    sim::paused(replicas_take_over(spec, &record))?;
    for is_hard in [false, true] {
        sim::paused(async {
            let fleet = fleet_with_slices_of_pods(&record).await?;
            for (_, server) in fleet.servers().filter(|_| is_hard) {
                server.memkube().set_faults(Some(Arc::new(LostAnswers::default())));
            }
            slices_are_made_of_pods(Environment::on(OnMemkube(fleet)).await?).await
        })
        .with_context(|| format!("slices_are_made_of_pods, denied: {:#?}", record.denied()))?;
    }
    for is_hard in [false, true] {
        sim::paused(async {
            let fleet = fleet_with_mcs_api(spec, &record).await?;
            for (_, server) in fleet.servers().filter(|_| is_hard) {
                server.memkube().set_faults(Some(Arc::new(LostAnswers::default())));
            }
            a_service_is_imported_by_the_mcs_api(Environment::on(OnMemkube(fleet)).await?).await
        })
        .with_context(|| format!("a_service_is_imported_by_the_mcs_api, denied: {:#?}", record.denied()))?;
    }
    for action in Action::ALL {
        sim::paused(async {
            let fleet = fleet(spec, &record).await?;
            for (_, server) in fleet.servers() {
                server.memkube().set_faults(Some(Arc::new(LostAnswers::default())));
            }
            completes(action, Environment::on(OnMemkube(fleet)).await?).await
        })
        .with_context(|| format!("{action:?} under hardship"))?;
    }
    let is_granted = |denied: &String| !NOT_GRANTED.iter().any(|what| denied.contains(what));
    let denied: Vec<String> = record.denied().into_iter().filter(is_granted).collect();
    ensure!(denied.is_empty(), "denied: {denied:#?}");
    let unused: Vec<String> = record.unused().iter().map(ToString::to_string).collect();
    let is_reserved = |privilege: &&String| RESERVED.iter().any(|(what, _)| privilege.ends_with(what));
    let superfluous: Vec<&String> = unused.iter().filter(|privilege| !is_reserved(privilege)).collect();
    ensure!(superfluous.is_empty(), "granted, and nobody uses it: {superfluous:#?}");
    for (what, reason) in RESERVED {
        ensure!(unused.iter().any(|privilege| privilege.ends_with(what)), "{what} is used: no need to say {reason}");
    }
    Ok(())
}
