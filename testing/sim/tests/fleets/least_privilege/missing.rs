//! Rights to watch a kind: what stops without each of them, what goes on, and what says it. docs/reference/rights.md
//! has this table.

use super::rbac::{Rbac, Record};
use anyhow::{Context as _, ensure};
use endpointslice_controller::{Mode, Settings};
use fleetnet_api::crd::MemberAgent;
use fleetnet_api::names::labels;
use fleetnet_core::member::{McsApi, Membership, OnLeave};
use fleetnet_core::model::MembershipAgent;
use harness::fleet::{FLEET_SYSTEM, manifests};
use harness::user::{Consume, User, addresses_of};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use memkube::auth::{Call, Policy, Verb};
use serde_json::json;
use sim::fleet::{self, MEMBER_AGENT, Place, hub_user};
use sim::manager::Manager;
use sim::{Fleet, Options};
use std::sync::Arc;
use std::time::Duration;

/// Agent that lacks a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lacks {
    /// Member agents, in their own clusters.
    Member,
    /// Member agents, in the hub.
    MemberInHub,
    HubAgent,
}
use Lacks::{HubAgent, Member, MemberInHub};

/// Work that goes on without the right: `H` is the heartbeat, `F` the way of endpoints by the fleet's API, `S` that by
/// the standard API.
type GoesOn = &'static str;

/// Readiness of an agent that lacks the right from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    Ready,
    NotReady,
}
use Probe::{NotReady, Ready};

/// Agent and kind without the right to list and watch, work that goes on, label `kind` of the watch in metrics with its
/// state, readiness.
type Row = (Lacks, &'static str, GoesOn, (&'static str, &'static str), Probe);

const TABLE: [Row; 28] = [
    (Member, "services", "H", ("Service", "incomplete"), NotReady),
    (Member, "endpointslices.discovery.k8s.io", "", ("EndpointSlice", "incomplete"), NotReady),
    (Member, "serviceexports.networking.fleet.azure.com", "H", ("ServiceExport", "incomplete"), NotReady),
    (Member, "serviceimports.networking.fleet.azure.com", "HS", ("ServiceImport", "incomplete"), NotReady),
    (Member, "multiclusterservices.networking.fleet.azure.com", "HS", ("MultiClusterService", "incomplete"), NotReady),
    (Member, "namespaces/kube-system", "HFS", ("Namespace/kube-system", "absent"), Ready),
    (Member, "namespaces", "HF", ("Namespace", "incomplete"), NotReady),
    (Member, "serviceexports.multicluster.x-k8s.io", "HF", ("ServiceExport.multicluster.x-k8s.io", "absent"), Ready),
    (Member, "serviceimports.multicluster.x-k8s.io", "HF", ("ServiceImport.multicluster.x-k8s.io", "absent"), Ready),
    (Member, "pods", "HFS", ("Pod", "incomplete"), NotReady),
    (Member, "nodes", "HFS", ("Node", "incomplete"), NotReady),
    (Member, "leases.coordination.k8s.io/kube-controller-manager", "HFS", ("Lease", "absent"), Ready),
    (MemberInHub, "memberagents.networking.fleet.azure.com", "F", ("MemberAgent", "absent"), Ready),
    (
        MemberInHub,
        "internalserviceexports.networking.fleet.azure.com",
        "H",
        ("InternalServiceExport", "incomplete"),
        Ready,
    ),
    (
        MemberInHub,
        "internalserviceimports.networking.fleet.azure.com",
        "HS",
        ("InternalServiceImport", "incomplete"),
        Ready,
    ),
    (MemberInHub, "endpointsliceexports.networking.fleet.azure.com", "H", ("EndpointSliceExport", "incomplete"), Ready),
    (MemberInHub, "endpointsliceimports.networking.fleet.azure.com", "H", ("EndpointSliceImport", "incomplete"), Ready),
    (MemberInHub, "mergedserviceimports.networking.fleet.azure.com", "HF", ("MergedServiceImport", "absent"), Ready),
    (
        MemberInHub,
        "internalmemberclusters.cluster.kubernetes-fleet.io",
        "HFS",
        ("InternalMemberCluster", "absent"),
        Ready,
    ),
    (HubAgent, "memberclusters.cluster.kubernetes-fleet.io", "HFS", ("MemberCluster", "absent"), Ready),
    (
        HubAgent,
        "internalserviceexports.networking.fleet.azure.com",
        "H",
        ("InternalServiceExport", "incomplete"),
        NotReady,
    ),
    (
        HubAgent,
        "internalserviceimports.networking.fleet.azure.com",
        "H",
        ("InternalServiceImport", "incomplete"),
        NotReady,
    ),
    (HubAgent, "serviceimports.networking.fleet.azure.com", "H", ("ServiceImport", "incomplete"), NotReady),
    (HubAgent, "endpointsliceexports.networking.fleet.azure.com", "H", ("EndpointSliceExport", "incomplete"), NotReady),
    (HubAgent, "endpointsliceimports.networking.fleet.azure.com", "H", ("EndpointSliceImport", "incomplete"), NotReady),
    (HubAgent, "memberagents.networking.fleet.azure.com", "HF", ("MemberAgent", "absent"), Ready),
    (HubAgent, "namespaces", "H", ("Namespace", "incomplete"), NotReady),
    (HubAgent, "mergedserviceimports.networking.fleet.azure.com", "HF", ("MergedServiceImport", "absent"), Ready),
];

/// Roles of the manifests, without the right to list and watch one resource.
#[derive(Debug)]
struct Without {
    roles: Rbac,
    users: Vec<String>,
    resource: &'static str,
}

impl Without {
    /// True if the call is to the watch of this resource. A resource with a name is the watch of one object.
    fn concerns(&self, call: &Call) -> bool {
        let (resource, name) = self.resource.split_once('/').unwrap_or((self.resource, ""));
        self.users.iter().any(|user| **user == *call.user.name)
            && matches!(call.verb, Verb::List | Verb::Watch)
            && call.qualified_resource() == resource
            && *call.target.name == *name
    }
}

impl Policy for Without {
    fn allows(&self, call: &Call) -> bool {
        !self.concerns(call) && self.roles.allows(call)
    }
}

/// Returns a fleet that uses all features, whose agents lack a right. The kinds of a fleet manager are installed only
/// if the right is about them.
async fn fleet_without(lacks: Lacks, resource: &'static str, mode: Mode) -> anyhow::Result<Fleet> {
    let membership = Membership { agents: MembershipAgent::ALL.to_vec(), on_leave: OnLeave::Delete };
    let fleet = Fleet::new(Options {
        mcs_api: McsApi::LabelledNamespaces,
        endpointslices: Some(Settings::with_mode(mode)),
        membership,
        force_delete: Some(Duration::from_mins(1)),
        ..Options::members(2)
    })
    .await?;
    if resource.ends_with(".cluster.kubernetes-fleet.io") {
        Manager::new(fleet.hub.admin()).install().await?;
    }
    let record = Arc::new(Record::default());
    let of_members: Vec<String> = fleet.members.iter().map(|member| manifests::of_member(&member.name)).collect();
    let mut of_hub = vec![("hub-agent.yaml", manifests::HUB_AGENT)];
    of_hub.extend(of_members.iter().map(|manifest| ("hub-member.yaml", manifest.as_str())));
    let of_member = [
        ("member-agent.yaml", manifests::MEMBER_AGENT),
        ("multicluster-api.yaml", manifests::MCS_API),
        ("endpointslices.yaml", manifests::ENDPOINT_SLICES),
    ];
    let users = match lacks {
        Member => vec![MEMBER_AGENT.to_owned()],
        MemberInHub => fleet.members.iter().map(|member| hub_user(&member.hub_namespace)).collect(),
        HubAgent => vec![fleet::HUB_AGENT.to_owned()],
    };
    let without = |roles, users| Arc::new(Without { roles, users, resource });
    let (in_hub, in_members) = if lacks == Member { (Vec::new(), users) } else { (users, Vec::new()) };
    fleet.hub.memkube().set_policy(without(Rbac::of(&of_hub, &record)?, in_hub));
    for member in &fleet.members {
        member.server.memkube().set_policy(without(Rbac::of(&of_member, &record)?, in_members.clone()));
    }
    fleet.make_namespace("work").await?;
    Ok(fleet)
}

/// Returns the addresses that member-2 has imported, by the fleet's API or by the standard API.
async fn imported(fleet: &Fleet, namespace: &str) -> anyhow::Result<Vec<String>> {
    let slices: Api<EndpointSlice> = Api::namespaced(fleet.members[1].server.admin(), namespace);
    let of_mcs_api = ListParams::default().labels(labels::MCS_SERVICE_NAME);
    let list = if namespace == FLEET_SYSTEM { ListParams::default() } else { of_mcs_api };
    Ok(slices.list(&list).await?.iter().flat_map(addresses_of).map(str::to_owned).collect())
}

/// Returns what goes on in a fleet whose agents lack a right.
async fn goes_on(fleet: &Fleet) -> anyhow::Result<String> {
    let [exporter, importer] = [0, 1].map(|index: usize| User::new(fleet.members[index].server.admin(), "work"));
    for service in ["app", "std"] {
        exporter.create_service(service).await?;
    }
    exporter.create_slice("app", "app-1", &["10.1.0.1"]).await?;
    exporter.create_slice("std", "std-1", &["10.1.0.2"]).await?;
    exporter.export("app").await?;
    exporter.export_mcs("std", json!({})).await?;
    importer.import("app", "app", Consume::ClusterIp).await?;
    importer.label_namespace(Some("true")).await?;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let agents: Api<MemberAgent> = Api::all(fleet.hub.admin());
    let since = fleet.clock().now().plus_micros(-12_000_000);
    let is_renewed = |agent: &&MemberAgent| agent.spec.renew_time.0.as_microsecond() > since.0;
    let mut goes_on = String::new();
    if agents.list(&ListParams::default()).await?.iter().filter(is_renewed).count() == 2 {
        goes_on.push('H');
    }
    if imported(fleet, FLEET_SYSTEM).await? == ["10.1.0.1"] {
        goes_on.push('F');
    }
    if imported(fleet, "work").await? == ["10.1.0.2"] {
        goes_on.push('S');
    }
    Ok(goes_on)
}

async fn check((lacks, resource, expected, (label, state), probe): Row) -> anyhow::Result<()> {
    // While the EndpointSlice controller waits for another one to end, it watches neither pods nor Nodes.
    let mode = if ["Pod", "Node"].contains(&label) { Mode::On } else { Mode::Auto };
    let mut fleet = fleet_without(lacks, resource, mode).await?;
    for place in fleet.places() {
        fleet.start(place)?;
    }
    let goes_on = goes_on(&fleet).await?;
    ensure!(goes_on == expected, "{goes_on:?} goes on, not {expected:?}");
    let place = if lacks == HubAgent { Place::Hub } else { Place::Member(0) };
    let side = if lacks == Member { "member" } else { "hub" };
    let controller = if ["Pod", "Node", "Lease"].contains(&label) { "endpointslice" } else { "fleet" };
    let series = format!(
        "fleetnet_watch_state{{controller=\"{controller}\",kind=\"{label}\",side=\"{side}\",state=\"{state}\"}}"
    );
    ensure!(fleet.metric(place, &series)? > 0.5, "{series} is not 1");
    let missing = fleet.agent(place).context("it runs")?.missing();
    ensure!(missing.is_empty() == (probe == Ready), "not ready for lack of {missing:?}");
    Ok(())
}

/// Also rules MI25, U20.
#[test]
fn without_a_right_to_watch_only_what_needs_it_stops_and_something_says_so() -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for row in TABLE {
        if let Err(error) = sim::paused(check(row)) {
            wrong.push(format!("{:?} without the right to watch {}: {error:#}", row.0, row.1));
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
