//! Tests of the standard API `multicluster.x-k8s.io`, on paused time and with the real engine.
//! `testing/scenarios/tests/e2e/mcs.rs` plays the main job with processes and real control planes.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use fleetnet_api::crd::{EndpointSliceExport, InternalServiceExport};
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::member::McsApi;
use fleetnet_core::names;
use fleetnet_types::ObjectName;
use harness::eventually;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, ResourceExt as _};
use memkube::faults::{Fault, Faults};
use memkube::{Call, Status, Verb};
use serde_json::json;
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Conditions of an export that is part of an import without conflicts.
const EXPORTED: [&str; 3] = ["Conflict=False NoConflicts", "Ready=True Exported", "Valid=True Valid"];

/// Conditions of an export whose cluster may not export the Service.
const DENIED: [&str; 2] = ["Ready=False Failed", "Valid=True Valid"];

/// Conditions of an export whose cluster has lost the right to export the Service.
const DENIED_LATER: [&str; 3] =
    ["Conflict=Unknown ServicePendingConflictResolution", "Ready=False Failed", "Valid=True Valid"];

/// Returns a fleet that uses the standard API, and the user of the namespace `work` in each member. The namespaces
/// import.
async fn fleet(members: usize) -> anyhow::Result<(Fleet, Vec<User>)> {
    fleet_with(Options::members(members)).await
}

async fn fleet_with(options: Options) -> anyhow::Result<(Fleet, Vec<User>)> {
    let mcs_api = McsApi::LabelledNamespaces;
    let mut fleet = Fleet::new(Options { mcs_api, ..options }).await?;
    let mut users = Vec::new();
    for member in &fleet.members {
        member.server.make_namespace("work").await?;
        let user = User::new(member.server.admin(), "work");
        user.label_namespace(Some("true")).await?;
        users.push(user);
    }
    fleet.start_agents().await?;
    Ok((fleet, users))
}

/// Returns how often agents wrote to each resource since there were `before` writes.
fn writes_since(fleet: &Fleet, before: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let mut counts = writes(fleet);
    for (write, number) in before {
        *counts.entry(write.clone()).or_default() -= number;
    }
    counts.retain(|_, number| *number > 0);
    counts
}

/// Returns how often agents wrote to each resource.
fn writes(fleet: &Fleet) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in fleet.agent_writes() {
        let target = &entry.call.target;
        let subresource = if target.subresource.is_empty() { "" } else { "/" };
        let shown = format!("{} {}{subresource}{}", entry.call.verb.name(), target.resource, target.subresource);
        *counts.entry(shown).or_default() += 1;
    }
    counts
}

fn counted(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(write, number)| ((*write).to_owned(), *number)).collect()
}

#[test]
fn a_service_is_exported_and_imported_with_the_writes_of_the_ledger() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) = fleet(2).await?;
        users[1].label_namespace(None).await?;
        let before = writes(&fleet);
        users[0].serve("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({"exportedLabels": {"team": "blue"}})).await?;
        users[0].sees_conditions("app", &EXPORTED).await?;
        let import = users[0].sees_ready_import("app", &["member-1"]).await?;
        users[0].sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
        sleep(Duration::from_secs(30)).await;
        let expected = counted(&[
            // The exporter.
            ("create internalserviceexports", 1),
            ("patch serviceexports/status", 2),
            ("create endpointsliceexports", 1),
            // The hub: an outcome for the export, a MergedServiceImport for each member, a finalizer for the slice.
            ("patch internalserviceexports/status", 1),
            ("create mergedserviceimports", 2),
            ("patch endpointsliceexports", 1),
            ("create endpointsliceimports", 1),
            // The importer. It also has a finalizer on the MergedServiceImport and on the distributed slice.
            ("patch mergedserviceimports", 1),
            ("patch endpointsliceimports", 1),
            ("create services", 1),
            ("create serviceimports", 1),
            ("patch serviceimports/status", 1),
            ("create endpointslices", 1),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected);
        let services = users[0].api::<Service>();
        let derived = services.list(&Default::default()).await?.items.into_iter().find(|it| it.name_any() != "app");
        let derived = derived.context("a derived Service")?.spec.context("a spec")?;
        assert_eq!((import.spec.ips, import.spec.ip_families), (derived.cluster_ips, derived.ip_families));
        assert_eq!(import.metadata.labels.context("labels")?.get("team").map(String::as_str), Some("blue"));

        users[1].label_namespace(Some("true")).await?;
        users[1].sees_ready_import("app", &["member-1"]).await?;
        users[1].sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
        let before = writes(&fleet);
        users[0].set_endpoints("app-1", &["10.1.0.1", "10.1.0.2"]).await?;
        for user in &users {
            user.sees_mcs_slices("app", &["member-1 10.1.0.1", "member-1 10.1.0.2"]).await?;
        }
        sleep(Duration::from_secs(30)).await;
        // One write for the export, and two for each importer.
        let expected = counted(&[
            ("patch endpointsliceexports", 1),
            ("patch endpointsliceimports", 2),
            ("patch endpointslices", 2),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected);

        users[0].delete::<ServiceExport>("app").await?;
        for user in &users {
            eventually::gone(&user.api::<ServiceImport>(), "app").await?;
            user.sees_mcs_slices("app", &[]).await?;
        }
        sleep(Duration::from_secs(60)).await;
        for (user, left) in users.iter().zip([1, 0]) {
            assert_eq!(user.api::<Service>().list(&Default::default()).await?.items.len(), left);
            assert_eq!(user.api::<EndpointSlice>().list(&Default::default()).await?.items.len(), left);
        }
        Ok(())
    })
}

/// Also rules MI26, MI27.
#[test]
fn with_routing_slices_gateways_and_kube_proxy_find_an_import_for_one_more_write_a_change() -> anyhow::Result<()> {
    sim::paused(async {
        let options = Options { routing_slices: [1].into(), ..Options::members(2) };
        let (mut fleet, users) = fleet_with(options).await?;
        users[0].label_namespace(None).await?;
        let before = writes(&fleet);
        users[0].serve("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        users[1].sees_ready_import("app", &["member-1"]).await?;
        users[1].sees_gateway_endpoints("app", &["member-1 10.1.0.1"]).await?;
        users[1].sees_derived_endpoints(&["10.1.0.1"]).await?;
        sleep(Duration::from_secs(30)).await;
        let expected = counted(&[
            ("create internalserviceexports", 1),
            ("patch serviceexports/status", 2),
            ("create endpointsliceexports", 1),
            ("patch internalserviceexports/status", 1),
            ("create mergedserviceimports", 2),
            ("patch endpointsliceexports", 1),
            ("create endpointsliceimports", 1),
            ("patch mergedserviceimports", 1),
            ("patch endpointsliceimports", 1),
            ("create services", 1),
            ("create serviceimports", 1),
            ("patch serviceimports/status", 1),
            // The standard slice and the routing slice.
            ("create endpointslices", 2),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected);
        let before = writes(&fleet);
        users[0].set_endpoints("app-1", &["10.1.0.2"]).await?;
        users[1].sees_gateway_endpoints("app", &["member-1 10.1.0.2"]).await?;
        users[1].sees_derived_endpoints(&["10.1.0.2"]).await?;
        sleep(Duration::from_secs(30)).await;
        let expected = counted(&[
            ("patch endpointsliceexports", 1),
            ("patch endpointsliceimports", 1),
            ("patch endpointslices", 2),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected);

        let turned_off = [("patch endpointslices", 1), ("delete endpointslices", 1)];
        let turned_on = [("create endpointslices", 1), ("patch endpointslices", 1)];
        for (expected, seen_by_gateways) in [(turned_off, &[][..]), (turned_on, &["member-1 10.1.0.2"])] {
            let before = writes(&fleet);
            fleet.toggle_routing_slices(1);
            fleet.start(Place::Member(1))?;
            users[1].sees_gateway_endpoints("app", seen_by_gateways).await?;
            users[1].sees_derived_endpoints(&["10.1.0.2"]).await?;
            sleep(Duration::from_secs(30)).await;
            assert_eq!(writes_since(&fleet, &before), counted(&expected));
        }
        users[0].delete::<ServiceExport>("app").await?;
        eventually::gone(&users[1].api::<ServiceImport>(), "app").await?;
        sleep(Duration::from_secs(60)).await;
        assert_eq!(users[1].api::<EndpointSlice>().list(&Default::default()).await?.items.len(), 0);
        Ok(())
    })
}

/// Also rule T39.
#[test]
fn with_the_strict_policy_a_service_is_imported_while_the_hub_has_its_namespace() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) =
            fleet_with(Options { namespace_policy: NamespacePolicy::Strict, ..Options::members(2) }).await?;
        users[0].serve("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        users[0].sees_conditions("app", &DENIED).await?;
        fleet.hub.make_namespace("work").await?;
        for user in &users {
            user.sees_ready_import("app", &["member-1"]).await?;
            user.sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
        }
        let namespaces: Api<Namespace> = Api::all(fleet.hub.admin());
        namespaces.delete("work", &Default::default()).await?;
        for user in &users {
            eventually::gone(&user.api::<ServiceImport>(), "app").await?;
            user.sees_mcs_slices("app", &[]).await?;
        }
        users[0].sees_conditions("app", &DENIED_LATER).await?;
        Ok(())
    })
}

/// Also rule MI15.
#[test]
fn both_apis_export_and_import_a_service_side_by_side() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) = fleet(2).await?;
        fleet.hub.make_namespace("work").await?;
        users[0].export_new("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        users[1].import("app", "app", Consume::ClusterIp).await?;
        users[1].sees("app", &["10.1.0.1"]).await?;
        users[1].sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
        users[0].sees_conditions("app", &EXPORTED).await?;
        sleep(Duration::from_secs(30)).await;
        let before = writes(&fleet);
        users[0].set_endpoints("app-1", &["10.1.0.9"]).await?;
        users[1].sees("app", &["10.1.0.9"]).await?;
        users[1].sees_mcs_slices("app", &["member-1 10.1.0.9"]).await?;
        sleep(Duration::from_secs(30)).await;
        let expected = counted(&[
            ("patch endpointsliceexports", 1),
            ("patch endpointsliceimports", 2),
            ("patch endpointslices", 3),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected, "the exporter imports too");

        users[0].delete::<ServiceExport>("app").await?;
        eventually::gone(&users[1].api::<ServiceImport>(), "app").await?;
        users[1].sees_mcs_slices("app", &[]).await?;
        users[1].sees("app", &["10.1.0.9"]).await?;
        sleep(Duration::from_secs(60)).await;
        users[1].sees("app", &["10.1.0.9"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        users[1].sees_mcs_slices("app", &["member-1 10.1.0.9"]).await?;
        users[0].delete::<fleetnet_api::crd::ServiceExport>("app").await?;
        sleep(Duration::from_secs(90)).await;
        users[1].sees_no_slice("app").await?;
        users[1].no_derived_service("app").await?;
        users[1].sees_mcs_slices("app", &["member-1 10.1.0.9"]).await.map(drop)
    })
}

/// Returns `status reason` of the condition `Ready` of a ServiceImport, and its message.
fn ready(import: &ServiceImport) -> Option<(String, &str)> {
    let mut conditions = import.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    Some((format!("{} {}", ready.status, ready.reason), &ready.message))
}

/// Writes to the hub what the agent of a member `v6` writes, whose Service has only the family IPv6. memkube has only
/// IPv4.
async fn export_from_ipv6_cluster(fleet: &Fleet) -> anyhow::Result<()> {
    fleet.hub.make_namespace("fleet-member-v6").await?;
    let hub = User::new(fleet.hub.admin(), "fleet-member-v6");
    let reference = |name: &str| {
        json!({
            "clusterId": "v6", "kind": "", "namespace": "work", "name": name, "namespacedName": format!("work/{name}"),
            "resourceVersion": "1", "generation": 1, "uid": format!("uid-{name}"),
            "exportedSince": "2026-01-01T00:00:00.000000Z",
        })
    };
    hub.create::<InternalServiceExport>(json!({
        "metadata": {"name": "work-app"},
        "spec": {
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}],
            "serviceReference": reference("app"),
            "multicluster": {"only": true, "ipFamilies": ["IPv6"]},
        },
    }))
    .await?;
    hub.create::<EndpointSliceExport>(json!({
        "metadata": {"name": "v6-work-app-1-abcde"},
        "spec": {
            "addressType": "IPv6",
            "endpoints": [{"addresses": ["fd00:6::1"]}],
            "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
            "endpointSliceReference": reference("app-1"),
            "ownerServiceReference": {"namespace": "work", "name": "app", "namespacedName": "work/app"},
        },
    }))
    .await?;
    Ok(())
}

/// Also rule MI20.
#[test]
fn an_ipv4_cluster_says_that_it_cannot_use_ipv6_exporters_and_uses_the_others() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) = fleet(2).await?;
        export_from_ipv6_cluster(&fleet).await?;
        for user in &users {
            let unsupported = |import: &ServiceImport| {
                import.spec.ips.is_none()
                    && ready(import).is_some_and(|(shown, _)| shown == "False IPFamilyNotSupported")
            };
            user.sees_service_import("app", "to say that the cluster has no IPv6", unsupported).await?;
        }
        sleep(Duration::from_secs(30)).await;
        let before = writes(&fleet);
        sleep(Duration::from_secs(1200)).await;
        ensure!(!writes_since(&fleet, &before).keys().any(|write| write.contains("services")), "nothing is rejected");
        users[0].serve("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        for user in &users {
            let import = user.sees_ready_import("app", &["member-1", "v6"]).await?;
            ensure!(import.spec.ip_families == Some(vec!["IPv4".to_owned()]), "{:?}", import.spec);
            ensure!(import.spec.ips.iter().flatten().count() == 1, "{:?}", import.spec);
            user.sees_mcs_slices("app", &["member-1 10.1.0.1", "v6 fd00:6::1"]).await?;
        }
        Ok(())
    })
}

/// Quota of a namespace: the server denies the agents each further Service.
struct Quota;

impl Faults for Quota {
    fn request(&self, call: &Call) -> Fault {
        let is_over = call.verb == Verb::Create && call.user.name.contains("agent");
        let is_over = is_over && &*call.target.resource == "services";
        let refuse = Status::plain(403, "Forbidden", "exceeded quota: services=5");
        Fault { refuse: is_over.then_some(refuse), ..Fault::default() }
    }
}

/// Also rule MI19.
#[test]
fn a_quota_of_the_users_namespace_is_shown_in_the_service_import() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) = fleet(2).await?;
        fleet.members[1].server.memkube().set_faults(Some(Arc::new(Quota)));
        users[0].serve("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        let is_shown = |import: &ServiceImport| {
            let is_cause =
                |(shown, message): (String, &str)| shown == "False Pending" && message.contains("exceeded quota");
            import.spec.ips.is_none() && ready(import).is_some_and(is_cause)
        };
        users[1].sees_service_import("app", "to show the quota", is_shown).await?;
        fleet.members[1].server.memkube().set_faults(None);
        let import = users[1].sees_ready_import("app", &["member-1"]).await?;
        ensure!(import.spec.ips.iter().flatten().count() == 1, "{:?}", import.spec);
        users[1].sees_mcs_slices("app", &["member-1 10.1.0.1"]).await.map(drop)
    })
}

/// Also rule ME9.
#[test]
fn an_export_that_somebody_deletes_in_the_hub_costs_importers_nothing() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) = fleet(2).await?;
        users[0].serve("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        for user in &users {
            user.sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
            user.sees_ready_import("app", &["member-1"]).await?;
        }
        users[0].sees_conditions("app", &EXPORTED).await?;
        sleep(Duration::from_secs(30)).await;
        let before = writes(&fleet);
        internal_exports(&fleet, 1).delete("work-app", &Default::default()).await?;
        sleep(Duration::from_secs(30)).await;
        // The slices, the MergedServiceImports and all objects of the importers stay.
        let expected = counted(&[
            ("create internalserviceexports", 1),
            ("patch internalserviceexports/status", 1),
            ("patch serviceexports/status", 2),
        ]);
        assert_eq!(writes_since(&fleet, &before), expected);
        users[0].sees_conditions("app", &EXPORTED).await.map(drop)
    })
}

/// Returns the exports of a member in the hub.
fn internal_exports(fleet: &Fleet, member: usize) -> Api<InternalServiceExport> {
    Api::namespaced(fleet.hub.admin(), &format!("fleet-member-member-{member}"))
}

/// Waits until the export of a member decides, after the hub agent has restarted too. Its port is its number and 80.
async fn decides(fleet: &mut Fleet, users: &[User], member: usize) -> anyhow::Result<()> {
    sleep(Duration::from_secs(30)).await;
    for _ in 0..2 {
        for user in users {
            let import = user.sees_ready_import("app", &["member-1", "member-2"]).await?;
            let ports: Vec<i32> = import.spec.ports.iter().map(|port| port.port).collect();
            ensure!(ports == [80 + i32::try_from(member)?], "{ports:?}");
            let export: ServiceExport = user.api().get("app").await?;
            let message = format!("The export of cluster member-{member} decides");
            let conditions = export.status.and_then(|status| status.conditions).unwrap_or_default();
            ensure!(conditions.iter().any(|it| it.message.contains(&message)), "{conditions:?}");
        }
        fleet.kill(Place::Hub).await;
        fleet.start(Place::Hub)?;
        fleet.ready().await?;
        sleep(Duration::from_secs(30)).await;
    }
    Ok(())
}

/// Exports a Service with the port of the member.
async fn export_own_port(user: &User, member: u16) -> anyhow::Result<()> {
    user.create_service_with_port("app", 80 + member).await?;
    user.export_mcs("app", json!({})).await?;
    sleep(Duration::from_secs(5)).await;
    Ok(())
}

/// Also rule MC14.
#[test]
fn the_oldest_service_export_decides_after_its_service_was_created_again() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, users) = fleet(2).await?;
        export_own_port(&users[1], 2).await?;
        export_own_port(&users[0], 1).await?;
        decides(&mut fleet, &users, 2).await?;
        users[1].delete::<Service>("app").await?;
        users[1].create_service_with_port("app", 82).await?;
        decides(&mut fleet, &users, 2).await?;
        users[1].delete::<Service>("app").await?;
        sleep(Duration::from_secs(60)).await;
        users[1].create_service_with_port("app", 82).await?;
        decides(&mut fleet, &users, 2).await?;
        users[1].delete::<ServiceExport>("app").await?;
        sleep(Duration::from_secs(5)).await;
        users[1].export_mcs("app", json!({})).await?;
        decides(&mut fleet, &users, 1).await
    })
}

/// Also rule MC13.
#[test]
fn the_oldest_service_export_decides_after_the_hub_has_lost_all_exports() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, users) = fleet(2).await?;
        export_own_port(&users[1], 2).await?;
        export_own_port(&users[0], 1).await?;
        decides(&mut fleet, &users, 2).await?;
        for member in [1, 2] {
            internal_exports(&fleet, member).delete("work-app", &Default::default()).await?;
            sleep(Duration::from_secs(5)).await; // so that the agent of member-1 creates its export first
        }
        decides(&mut fleet, &users, 2).await?;
        let places = fleet.places().filter(|place| *place != Place::Hub).collect::<Vec<_>>();
        for place in &places {
            fleet.kill(*place).await;
        }
        for member in [1, 2] {
            internal_exports(&fleet, member).delete("work-app", &Default::default()).await?;
        }
        for place in places {
            fleet.start(place)?;
            sleep(Duration::from_secs(10)).await;
        }
        decides(&mut fleet, &users, 2).await
    })
}

/// Also rule MC13.
#[test]
fn an_earlier_export_by_the_fleets_api_does_not_count_for_the_mcs_api() -> anyhow::Result<()> {
    sim::paused(async {
        let (mut fleet, users) = fleet(2).await?;
        fleet.hub.make_namespace("work").await?;
        users[0].create_service_with_port("app", 81).await?;
        users[0].export("app").await?;
        sleep(Duration::from_secs(10)).await;
        export_own_port(&users[1], 2).await?;
        users[0].export_mcs("app", json!({})).await?;
        decides(&mut fleet, &users, 2).await?;
        users[0].delete::<fleetnet_api::crd::ServiceExport>("app").await?;
        decides(&mut fleet, &users, 2).await
    })
}

/// Also rules ME7, S26.
#[test]
fn a_derived_service_is_not_exported_by_either_api() -> anyhow::Result<()> {
    sim::paused(async {
        let (fleet, users) = fleet(2).await?;
        fleet.hub.make_namespace("work").await?;
        users[0].export_new("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        users[1].import("app", "app", Consume::ClusterIp).await?;
        users[1].sees("app", &["10.1.0.1"]).await?;
        users[1].sees_mcs_slices("app", &["member-1 10.1.0.1"]).await?;
        let by_mcs_api = names::mcs_derived(&ObjectName::new("work", "app")).name;
        let by_fleet_api = users[1].derived_service("app").await?.name_any();
        let system = User::new(fleet.members[1].server.admin(), "fleet-system");
        sleep(Duration::from_secs(30)).await;
        let before = writes(&fleet);
        for (user, derived) in [(&users[1], &*by_mcs_api), (&system, &*by_fleet_api)] {
            user.export(derived).await?;
            user.export_mcs(derived, json!({})).await?;
            user.sees_export(derived, "Valid", "False", "ServiceImported").await?;
            user.sees_conditions(derived, &["Ready=False Failed", "Valid=False ServiceImported"]).await?;
            user.sees_event("ServiceExport", "ServiceImported", "derived Service").await?;
        }
        sleep(Duration::from_secs(30)).await;
        assert_eq!(writes_since(&fleet, &before), counted(&[("patch serviceexports/status", 4)]));
        Ok(())
    })
}

/// Also rule MI18.
#[test]
fn what_somebody_edits_of_a_derived_service_is_repaired() -> anyhow::Result<()> {
    sim::paused(async {
        let (_fleet, users) = fleet(2).await?;
        users[0].serve("app", &["10.1.0.1"]).await?;
        users[0].export_mcs("app", json!({})).await?;
        let import = users[1].sees_ready_import("app", &["member-1"]).await?;
        let derived = users[1].sees_derived_by_mcs_api("app", "to exist", |_| true).await?;
        let annotation = "multicluster.kubernetes.io/derived-service";
        ensure!(import.annotations().get(annotation) == Some(&derived.name_any()), "{:?}", import.annotations());
        let edit = json!({"spec": {"selector": {"app": "other"}, "externalIPs": ["192.0.2.1"], "internalTrafficPolicy": "Local"}});
        users[1].merge::<Service>(&derived.name_any(), edit).await?;
        let is_repaired = |service: &Service| {
            let spec = service.spec.clone().unwrap_or_default();
            spec.selector.is_none()
                && spec.external_ips.is_none()
                && spec.internal_traffic_policy.as_deref() == Some("Cluster")
                && spec.cluster_ips == import.spec.ips
        };
        users[1].sees_derived_by_mcs_api("app", "to be repaired", is_repaired).await.map(drop)
    })
}
