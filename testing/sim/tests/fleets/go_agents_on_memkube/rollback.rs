//! Return to Go agents: after the changes of `fleetnet migrate to-go`, Go agents continue all exports, and nothing else
//! is left in the hub.

use super::taken::{STATES, Taken};
use super::{EXPORTER, IMPORTER, SETTLES};
use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use diagnosis::Snapshot;
use diagnosis::agents::AgentNamespaces;
use diagnosis::migrate::{self, Change, Refused, Rollback, is_go_form, of_hub, of_member, write};
use diagnosis::read::{Limits, Scope, Target, read};
use diagnosis::report::{Direction, Migration};
use fleetnet_api::crd::{
    AddressType, EndpointSliceExport, EndpointSliceImport, InternalServiceExport, InternalServiceImport, MemberAgent,
    MergedServiceImport, ServiceExport, ServiceImportType,
};
use fleetnet_api::names::annotations;
use fleetnet_core::member::McsApi;
use fleetnet_runtime::clock::to_jiff;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use scenarios::environment::Environment;
use scenarios::rich;
use serde::de::DeserializeOwned;
use serde_json::json;
use sim::fleet::Place;
use sim::{Fleet, Options, Server};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::sleep;

/// Time in which other agents write the Go form: they use an announcement for another 60 s.
const GO_FORM: Duration = Duration::from_secs(90);
/// Time after which a member that sends heartbeats no more would be withdrawn.
const SILENT_LONG_AGO: Duration = Duration::from_secs(1_800);

fn server(fleet: &Fleet, place: Place) -> &Server {
    match place {
        Place::Hub => &fleet.hub,
        Place::Member(index) => &fleet.members[index].server,
    }
}

/// Reads the fleet as `fleetnet migrate to-go` does.
async fn snapshot(fleet: &Fleet) -> Snapshot {
    let target = |server: &Server, name: &str| Target {
        context: Some(name.to_owned()),
        server_url: format!("https://{name}.example:6443"),
        authority: None,
        proxy: None,
        client: Ok(server.operator(fleet.clock())),
    };
    let members = fleet.members.iter().map(|member| (member.name.clone(), target(&member.server, &member.name)));
    let members: BTreeMap<String, Target> = members.collect();
    let agents = AgentNamespaces::default();
    read(Some(&target(&fleet.hub, "hub")), &members, &agents, &Scope::Migration, Limits::default()).await
}

fn rollback(snapshot: &Snapshot, fleet: &Fleet, place: Place) -> Result<Rollback, Refused> {
    match place {
        Place::Hub => of_hub(snapshot),
        Place::Member(index) => of_member(snapshot, &fleet.members[index].name),
    }
}

/// Sends a heartbeat as `fleetnet migrate to-go` does, until the member is not silent.
async fn trusted(fleet: &Fleet, place: Place) -> anyhow::Result<Rollback> {
    for _ in 0..60 {
        let rollback = rollback(&snapshot(fleet).await, fleet, place);
        let rollback = rollback.map_err(|refused| anyhow::anyhow!("{place:?}: {refused:?}"))?;
        if let Some(agent) = &rollback.agent {
            write::renew(&fleet.hub.admin(), agent, to_jiff(fleet.clock().now())).await?;
        }
        if !rollback.is_silent {
            return Ok(rollback);
        }
        sleep(Duration::from_secs(1)).await;
    }
    anyhow::bail!("{place:?} is silent after a minute of heartbeats")
}

/// Prepares a cluster whose agent has stopped for Go agents.
async fn prepares(fleet: &Fleet, place: Place) -> anyhow::Result<()> {
    let rollback = trusted(fleet, place).await?;
    for change in rollback.changes {
        let at = if matches!(change, Change::Annotate(_)) { place } else { Place::Hub };
        write::make(change, &server(fleet, at).admin()).await?;
    }
    if let Some(agent) = &rollback.agent {
        ensure!(write::forget(&fleet.hub.admin(), agent).await?, "the hub agent judged a member that sends heartbeats");
    }
    sleep(GO_FORM).await;
    Ok(())
}

/// Stops the agent of a cluster, and prepares the cluster for Go agents.
async fn returns(fleet: &mut Fleet, place: Place) -> anyhow::Result<()> {
    let refused = rollback(&snapshot(fleet).await, fleet, place);
    ensure!(matches!(&refused, Err(Refused::First(why)) if why.contains("Lease")), "while it runs: {refused:?}");
    fleet.stop(place).await?;
    prepares(fleet, place).await
}

async fn all<K>(server: &Server) -> anyhow::Result<Vec<K>>
where
    K: Clone + Debug + DeserializeOwned + kube::Resource<DynamicType = ()>,
{
    Ok(Api::<K>::all(server.admin()).list(&ListParams::default()).await?.items)
}

/// Checks what Go agents of a member do when they start. They create an export for each exported slice that has no
/// annotation with its name. They delete each export whose source slice is gone, or has the name of another export.
async fn go_agents_continue(fleet: &Fleet, index: usize) -> anyhow::Result<()> {
    let member = &fleet.members[index];
    let of_member = ListParams::default();
    let exports: Api<EndpointSliceExport> = Api::namespaced(fleet.hub.admin(), &member.hub_namespace);
    let exports = exports.list(&of_member).await?.items;
    let sources: Vec<EndpointSlice> = all(&member.server).await?;
    let unique_name = |slice: &EndpointSlice| slice.annotations().get(annotations::FLEET_UNIQUE_NAME).cloned();
    for export in &exports {
        let (name, reference) = (export.name_any(), &export.spec.endpoint_slice_reference);
        let source = sources.iter().find(|slice| slice.uid().as_ref() == Some(&reference.uid));
        let source = source.with_context(|| format!("{name}: the source slice is gone"))?;
        ensure!(source.name_any() == reference.name, "{name}: the reference names {}", reference.name);
        ensure!(unique_name(source).as_ref() == Some(&name), "{name}: the slice has {:?}", unique_name(source));
        let since = reference.exported_since.as_ref().map(|time| time.0.as_second());
        let stored: jiff::Timestamp = source.annotations()[annotations::LAST_SEEN_TIMESTAMP].parse()?;
        ensure!(since == Some(stored.as_second()), "{name}: {stored} is not the time of the export");
        let generation = &source.annotations()[annotations::LAST_SEEN_GENERATION];
        ensure!(*generation == reference.generation.to_string(), "{name}: generation {generation}");
        // Go agents write an export again if the source slice has another resourceVersion. They write the Go form.
        let is_written = source.resource_version().as_ref() != Some(&reference.resource_version);
        ensure!(is_written || is_go_form(&export.spec), "{name}: {:?}", export.spec);
    }
    let service_exports: Vec<ServiceExport> = all(&member.server).await?;
    let services: Vec<Service> = all(&member.server).await?;
    let headless = |of: &ServiceExport| {
        let service = services.iter().find(|it| (it.name_any(), it.namespace()) == (of.name_any(), of.namespace()));
        service.is_some_and(|it| it.spec.as_ref().is_some_and(|spec| spec.cluster_ip.as_deref() == Some("None")))
    };
    let is = |export: &ServiceExport, type_: &str, status: &str| {
        let mut conditions = export.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|condition| condition.type_ == type_ && condition.status == status)
    };
    let mut weights_of_zero = BTreeSet::new();
    for slice in sources.iter().filter(|slice| slice.address_type == "IPv4") {
        let service = slice.labels().get("kubernetes.io/service-name");
        let export = service_exports
            .iter()
            .find(|export| Some(&export.name_any()) == service && export.namespace() == slice.namespace());
        if let Some(export) =
            export.filter(|export| is(export, "Valid", "True") && is(export, "Conflict", "False") && !headless(export))
        {
            if export.annotations().get(annotations::WEIGHT).is_some_and(|weight| weight == "0") {
                weights_of_zero.insert(export.name_any());
                continue;
            }
            let name = unique_name(slice).with_context(|| format!("{}: no unique name", slice.name_any()))?;
            ensure!(exports.iter().any(|export| export.name_any() == name), "{}: {name} is created", slice.name_any());
        }
    }
    // Go agents create exports of these slices. `migrate check` says so.
    let checked = migrate::check(&snapshot(fleet).await, Direction::ToGo);
    let item = checked.items.iter().find(|item| item.id == "weight-zero").context("the item")?;
    let listed = item.objects.iter().filter(|object| object.cluster == member.name);
    let listed: BTreeSet<String> = listed.map(|object| object.name.clone()).collect();
    ensure!(listed == weights_of_zero, "migrate check lists {listed:?}, not {weights_of_zero:?}");
    Ok(())
}

/// Checks that the hub has nothing that Go agents do not have. What is being deleted waits for them.
async fn hub_has_the_go_form(fleet: &Fleet) -> anyhow::Result<()> {
    for slice in all::<EndpointSliceImport>(&fleet.hub).await? {
        let is_going = slice.metadata.deletion_timestamp.is_some();
        ensure!(is_going || is_go_form(&slice.spec.slice), "{}: {:?}", slice.name_any(), slice.spec);
    }
    for export in all::<InternalServiceExport>(&fleet.hub).await? {
        ensure!(export.spec.headless.is_none(), "{} is headless", export.name_any());
    }
    for claim in all::<InternalServiceImport>(&fleet.hub).await? {
        let type_ = claim.status.as_ref().and_then(|status| status.type_);
        ensure!(type_ != Some(ServiceImportType::Headless), "{} is headless", claim.name_any());
    }
    let agents: Vec<MemberAgent> = all(&fleet.hub).await?;
    ensure!(agents.is_empty(), "{agents:?}");
    Ok(())
}

/// Checks that each export and claim has the name that Go agents use.
async fn names_are_those_of_go_agents(fleet: &Fleet) -> anyhow::Result<()> {
    for export in all::<InternalServiceExport>(&fleet.hub).await? {
        let (reference, name) = (&export.spec.service_reference, export.name_any());
        ensure!(name == format!("{}-{}", reference.namespace, reference.name), "{name}");
    }
    for claim in all::<InternalServiceImport>(&fleet.hub).await? {
        let (reference, name) = (&claim.spec.service_import_reference, claim.name_any());
        ensure!(name == format!("{}-{}", reference.namespace, reference.name), "{name}");
    }
    Ok(())
}

/// Takes a state over, works on, returns to Go agents in this order, and takes over again.
async fn goes_there_and_back(state: &str, order: [Place; 3]) -> anyhow::Result<()> {
    let mut taken = Taken::new(state).await?;
    taken.fleet.start_agents().await?;
    sleep(SETTLES).await;
    // Slices that Go agents have never seen, and a later generation of one that they have seen.
    let user = User::new(taken.fleet.members[0].server.admin(), "work");
    user.export_new("new", &["10.1.9.1"]).await?;
    user.merge::<EndpointSlice>("svc0-1", json!({"metadata": {"labels": {"a": "b"}}})).await?;
    let importer = User::new(taken.fleet.members[1].server.admin(), "work");
    importer.import("new", "new", Consume::LoadBalancer).await?;
    importer.sees("new", &["10.1.9.1"]).await?;
    sleep(SETTLES).await;
    taken.adds_names().await?;

    for place in order {
        returns(&mut taken.fleet, place).await?;
        sleep(SILENT_LONG_AGO).await;
        taken.nothing_was_lost().await?;
    }
    for member in 0..2 {
        go_agents_continue(&taken.fleet, member).await?;
    }
    hub_has_the_go_form(&taken.fleet).await?;
    names_are_those_of_go_agents(&taken.fleet).await?;

    let writes = taken.writes().len();
    taken.fleet.start_agents().await?;
    sleep(SETTLES).await;
    taken.nothing_was_lost().await?;
    let again = &taken.writes()[writes..];
    ensure!(again.is_empty(), "a second takeover writes {again:#?}");
    Ok(())
}

/// Rule U18: The agents of a cluster return to Go agents with `fleetnet migrate to-go`, in any order of the clusters
/// Then: Go agents continue each export under its name, with its time. The hub has nothing that Go agents do not write.
/// No endpoint that Go agents can have is lost, also after hours. If fleetnet's agents start again, they write nothing
/// but their MemberAgents
#[test]
fn go_agents_continue_each_export_after_a_return_in_any_order() -> anyhow::Result<()> {
    let orders = [
        [IMPORTER, EXPORTER, Place::Hub],
        [EXPORTER, IMPORTER, Place::Hub],
        [Place::Hub, EXPORTER, IMPORTER],
        [EXPORTER, Place::Hub, IMPORTER],
        [IMPORTER, Place::Hub, EXPORTER],
    ];
    for (state, order) in STATES.into_iter().zip(orders) {
        let result = sim::paused(async { goes_there_and_back(state, order).await });
        result.with_context(|| format!("{state} {order:?}"))?;
    }
    Ok(())
}

fn ids(migration: &Migration) -> Vec<&'static str> {
    migration.items.iter().filter(|item| !item.objects.is_empty()).map(|item| item.id).collect()
}

/// Exports a Service with one endpoint from a namespace.
async fn exports(fleet: &Fleet, namespace: &str, service: &str, address: &str) -> anyhow::Result<()> {
    fleet.make_namespace(namespace).await?;
    let user = User::new(fleet.members[0].server.admin(), namespace);
    user.export_new(service, &[address]).await
}

/// Creates a fleet that uses what Go agents do not have. It has each field of slices, a headless Service, and two
/// Services with one joined name. It also has an import of type ClusterIP, and the standard API.
async fn with_every_feature() -> anyhow::Result<Environment<OnMemkube>> {
    let mcs_api = McsApi::LabelledNamespaces;
    let options = Options { mcs_api, ..Options::members(2) };
    let env = Environment::on(OnMemkube(Fleet::new(options).await?)).await?;
    rich::export_and_import(&env).await?;
    let user = env.user(0);
    user.create::<Service>(rich::headless_service("head")).await?;
    user.create_slice("head", "head-1", &["10.1.0.9"]).await?;
    user.export("head").await?;
    user.merge::<ServiceExport>("head", rich::export_headless()).await?;
    exports(&env.backend.0, "a-b", "c", "10.1.5.1").await?;
    exports(&env.backend.0, "a", "b-c", "10.1.5.2").await?;
    user.serve("standard", &["10.1.0.8"]).await?;
    for service in ["standard", "app"] {
        user.export_mcs(service, json!({})).await?;
    }
    env.user(1).label_namespace(Some("true")).await?;
    env.user(1).sees_mcs_slices("standard", &["member-1 10.1.0.8"]).await?;
    sleep(SETTLES).await;
    Ok(env)
}

/// Ends the imports of a member by the standard API. A return is refused before.
async fn imports_by_mcs_api_end_first(fleet: &mut Fleet, user: User) -> anyhow::Result<()> {
    for place in [IMPORTER, Place::Hub] {
        fleet.stop(place).await?;
        let refused = rollback(&snapshot(fleet).await, fleet, place);
        ensure!(matches!(&refused, Err(Refused::First(why)) if why.contains("standard API")), "{refused:?}");
        fleet.start(place)?;
        fleet.ready().await?;
    }
    user.label_namespace(None).await?;
    user.sees_mcs_slices("standard", &[]).await?;
    sleep(SETTLES).await;
    Ok(())
}

/// Also rule U18.
#[test]
fn what_go_agents_do_not_have_is_listed_before_a_return_and_gone_after_it() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = with_every_feature().await?;
        let routes = env.user(1).routes("app");
        let checked = migrate::check(&snapshot(&env.backend.0).await, Direction::ToGo);
        let expected = ["headless", "ipv6", "name", "cluster-ip", "standard-api", "details"];
        ensure!(ids(&checked) == expected, "{:?}", ids(&checked));
        let importer = env.user(1);
        imports_by_mcs_api_end_first(&mut env.backend.0, importer).await?;
        for place in [EXPORTER, IMPORTER, Place::Hub] {
            returns(&mut env.backend.0, place).await?;
        }
        hub_has_the_go_form(&env.backend.0).await?;
        go_agents_continue(&env.backend.0, 0).await?;
        for slice in all::<EndpointSliceExport>(&env.backend.0.hub).await? {
            let service = &slice.spec.owner_service_reference.name;
            let is_continued = service != "head" && service != "standard";
            ensure!(is_continued && slice.spec.address_type == AddressType::IPv4, "{slice:?}");
        }
        for export in all::<InternalServiceExport>(&env.backend.0.hub).await? {
            let is_of_fleet = export.spec.multicluster.is_none_or(|part| part.only != Some(true));
            ensure!(is_of_fleet, "{} is of the standard API", export.spec.service_reference.namespaced_name);
        }
        let merged: Vec<MergedServiceImport> = all(&env.backend.0.hub).await?;
        ensure!(merged.is_empty(), "{merged:?}");
        routes.always_had(&["10.1.0.1:8080"])
    })
}

/// Also rule U19.
#[test]
fn a_check_before_a_takeover_lists_what_the_go_agents_left() -> anyhow::Result<()> {
    let expected: [&[&str]; 5] =
        [&["duplicate-slice"], &["duplicate-slice"], &["duplicate-slice"], &[], &["weight-zero"]];
    for (state, expected) in STATES.into_iter().zip(expected) {
        sim::paused(async {
            let taken = Taken::new(state).await?;
            let checked = migrate::check(&snapshot(&taken.fleet).await, Direction::ToFleetnet);
            ensure!(ids(&checked) == expected, "{state}: {:?}", ids(&checked));
            Ok(())
        })?;
    }
    Ok(())
}

/// Deletes all objects of a kind in the hub, also those with finalizers.
async fn delete_all<K>(server: &Server) -> anyhow::Result<()>
where
    K: Clone + Debug + DeserializeOwned + kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    for object in all::<K>(server).await? {
        let api: Api<K> = Api::namespaced(server.admin(), &object.namespace().context("a namespace")?);
        let without = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        api.patch(&object.name_any(), &PatchParams::default(), &without).await?;
        api.delete(&object.name_any(), &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Also rule U19.
#[test]
fn a_check_before_a_takeover_lists_invalid_weights_whose_slices_are_exported_again() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::on(OnMemkube(Fleet::new(Options::members(2)).await?)).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        let (user, fleet) = (env.user(0), &mut env.backend.0);
        fleet.stop_agents().await?;
        // Go agents withdraw the slices of an export with an invalid weight, and keep the export.
        let annotations = json!({"networking.fleet.azure.com/weight": "much"});
        user.merge::<ServiceExport>("app", json!({"metadata": {"annotations": annotations}})).await?;
        let valid = json!({
            "type": "Valid", "status": "False", "reason": "ServiceExportInvalidWeightAnnotation", "message": "",
            "lastTransitionTime": "2027-01-15T12:00:00Z",
        });
        let conflict = json!({
            "type": "Conflict", "status": "False", "reason": "NoConflictFound", "message": "",
            "lastTransitionTime": "2027-01-15T12:00:00Z",
        });
        user.merge_status::<ServiceExport>("app", json!({"conditions": [valid, conflict]})).await?;
        delete_all::<EndpointSliceExport>(&fleet.hub).await?;
        delete_all::<EndpointSliceImport>(&fleet.hub).await?;
        let checked = migrate::check(&snapshot(fleet).await, Direction::ToFleetnet);
        ensure!(ids(&checked) == ["invalid-weight"], "{:?}", ids(&checked));
        fleet.start_agents().await?;
        sleep(SETTLES).await;
        let exported = all::<EndpointSliceExport>(&fleet.hub).await?.len();
        ensure!(exported == 1, "{exported} slices are exported");
        Ok(())
    })
}

/// Also rule U18.
#[test]
fn a_member_whose_agent_was_killed_an_hour_ago_returns_and_is_never_silent_again() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::on(OnMemkube(Fleet::new(Options::members(3)).await?)).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        // Another member exports the Service too, so that importers can do without the endpoints of a silent one.
        let other = env.user(2);
        other.create_service("app").await?;
        other.create_slice("app", "app-3", &["10.3.0.1"]).await?;
        other.export("app").await?;
        env.user(1).sees("app", &["10.1.0.1", "10.3.0.1"]).await?;
        let fleet = &mut env.backend.0;
        fleet.kill(EXPORTER).await;
        sleep(Duration::from_secs(3_600)).await;
        prepares(fleet, EXPORTER).await?;
        go_agents_continue(fleet, 0).await?;
        let mut routes = env.user(1).routes("app");
        routes.are(&["10.1.0.1:8080", "10.3.0.1:8080"]).await?;
        sleep(SILENT_LONG_AGO).await;
        routes.are(&["10.1.0.1:8080", "10.3.0.1:8080"]).await?;
        routes.always_had(&["10.1.0.1:8080", "10.3.0.1:8080"])
    })
}
