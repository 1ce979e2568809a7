//! Scenarios of the announcements that member agents and the hub agent write to a MemberAgent, and of the effects of
//! these announcements.

use crate::environment::{AgentPlace, Backend, Environment};
use crate::ledger::{changes, counts};
use crate::rich;
use anyhow::Context as _;
use fleetnet_api::crd::endpoint_slice_export::AddressType;
use fleetnet_api::crd::{EndpointSliceExport, InternalServiceExport, InternalServiceImport, MemberAgent};
use harness::eventually;
use harness::user::User;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

const IMPORTER: AgentPlace = AgentPlace::Member(1);
/// Version that the agents announce. All crates of the workspace have the same version.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Features of a member agent without the standard API.
const OF_MEMBER: [&str; 6] =
    ["IPv6", "DrainingEndpoints", "EndpointDetails", "Headless", "SessionAffinity", "SilentMembers"];
/// Feature that only the hub agent announces in these fleets.
const OF_HUB: &str = "MulticlusterApi";

/// Counts in a MemberAgent: Services, slices and endpoints that the member exports, then Services and slices that it
/// imports.
pub type Shares = [i64; 5];

pub fn member_agents<B: Backend>(env: &Environment<B>, member: usize) -> Api<MemberAgent> {
    env.hub(&env.members[member].hub_namespace)
}

/// Returns the hub agent's counts in a MemberAgent; `None` before the hub agent has written all counts.
#[must_use]
pub fn shares(agent: &MemberAgent) -> Option<Shares> {
    let status = agent.status.as_ref()?;
    Some([
        status.exported_services?,
        status.exported_slices?,
        status.exported_endpoints?,
        status.imported_services?,
        status.imported_slices?,
    ])
}

/// Waits until the member agent announces that it runs, and the hub agent announces these counts.
pub async fn sees_shares(
    env: &Environment<impl Backend>,
    member: usize,
    expected: Shares,
) -> anyhow::Result<MemberAgent> {
    let is_announced = |agent: &MemberAgent| agent.spec.planned_stop_time.is_none() && shares(agent) == Some(expected);
    let name = &env.members[member].cluster_id;
    eventually::object(&member_agents(env, member), name, &format!("{name} to share {expected:?}"), is_announced).await
}

/// Also rules U3, U4.
pub async fn a_member_announces_its_version_and_its_stop_and_the_hub_answers_with_counts(
    mut env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    for member in [0, 1] {
        let agent = sees_shares(&env, member, [0; 5]).await?;
        assert_eq!((agent.spec.version.as_str(), json!(agent.spec.features)), (VERSION, json!(OF_MEMBER)));
        let of_hub: Vec<&str> = OF_MEMBER.into_iter().chain([OF_HUB]).collect();
        let hub = agent.status.context("the hub has answered")?;
        assert_eq!((hub.version.as_deref(), json!(hub.features)), (Some(VERSION), json!(of_hub)));
    }
    env.export_and_import(&["10.1.0.1", "10.1.0.2"]).await?;

    let mark = env.backend.mark().await?;
    env.user(0).set_endpoints("app-1", &["10.1.0.3", "10.1.0.2"]).await?;
    env.backend.stop_agents().await?;
    let ledger = env.backend.since(&mark).await?;
    for member in &env.members {
        let user = format!("system:serviceaccount:{}:member-agent", member.hub_namespace);
        let last = ledger.hub.of_user(&user).0.last().cloned().context("it has written something")?;
        assert_eq!((last.verb.as_str(), last.resource.as_str()), ("patch", "memberagents"), "the last word of {user}");
    }
    for member in [0, 1] {
        let agent = member_agents(&env, member).get(&env.members[member].cluster_id).await?;
        let stopped = agent.spec.planned_stop_time.context("it was stopped as planned")?;
        assert!(stopped.0 >= agent.spec.renew_time.0, "{stopped:?} is before {:?}", agent.spec.renew_time);
    }

    env.backend.start_agents().await?;
    sees_shares(&env, 0, [1, 1, 2, 0, 0]).await?;
    sees_shares(&env, 1, [0, 0, 0, 1, 1]).await?;
    env.user(1).sees("app", &["10.1.0.3", "10.1.0.2"]).await.map(drop)
}

/// Also rule U5.
pub async fn fields_that_the_hub_no_longer_supports_are_withdrawn_and_return_with_its_announcement(
    mut env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (exporter, from) = (env.user(0), env.members[0].hub_namespace.clone());
    rich::create(&exporter).await?;
    exporter.export("app").await?;
    exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    rich::is_exported(&env, &rich::in_hub()).await?;
    exports_affinity(&env, true).await?;

    // Simulate a hub agent that announces no features: stop the real hub agent and write its status.
    env.backend.stop_agent(AgentPlace::Hub).await?;
    let mark = env.backend.mark().await?;
    let in_hub = User::new(env.backend.hub(), &from);
    let nothing = json!({"version": "0.0.1", "features": []});
    in_hub.merge_status::<MemberAgent>(&env.members[0].cluster_id, nothing).await?;
    rich::is_exported(&env, &rich::in_go_form()).await?;
    exports_affinity(&env, false).await?;
    let of_hub = counts(&[
        (1, format!("patch endpointsliceexports in {from} by member-agent")),
        (1, format!("delete endpointsliceexports in {from} by member-agent")),
        (1, format!("patch internalserviceexports in {from} by member-agent")),
    ]);
    assert_eq!(env.ledger(&mark).await?, [of_hub, counts(&[]), counts(&[])]);

    env.backend.start_agent(AgentPlace::Hub).await?;
    rich::is_exported(&env, &rich::in_hub()).await?;
    exports_affinity(&env, true).await
}

/// Waits until the InternalServiceExport of `app` has session affinity (`expected` is true) or has none (false).
async fn exports_affinity(env: &Environment<impl Backend>, expected: bool) -> anyhow::Result<()> {
    let exports = env.hub::<InternalServiceExport>(&env.members[0].hub_namespace);
    let has_affinity = |export: &InternalServiceExport| {
        (export.spec.session_affinity.is_some(), export.spec.session_affinity_config.is_some()) == (expected, expected)
    };
    let what = format!("session affinity to be exported: {expected}");
    eventually::object(&exports, &format!("{}-app", env.namespace), &what, has_affinity).await.map(drop)
}

/// Also rule U6.
pub async fn fields_that_an_importer_no_longer_supports_are_withdrawn_and_return_with_its_announcement(
    mut env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (importer, to) = (env.user(1), env.members[1].hub_namespace.clone());
    rich::export_and_import(&env).await?;
    importer.sees_derived("app", "to have session affinity", rich::is_sticky).await?;
    importer.sees_import("app", "True").await?;
    let mut routes = importer.routes("app");
    routes.are(&["10.1.0.1:8080", "fd00:1::1:8080"]).await?;

    // Simulate an importing agent that announces no features: stop the real agent and write its announcement.
    env.backend.stop_agent(IMPORTER).await?;
    let mark = env.backend.mark().await?;
    let in_hub = User::new(env.backend.hub(), &to);
    let nothing = json!({"spec": {"version": "0.0.1", "features": []}});
    in_hub.merge::<MemberAgent>(&env.members[1].cluster_id, nothing).await?;
    rich::is_distributed(&env, &rich::in_go_form()).await?;
    rich::is_exported(&env, &rich::in_hub()).await?;
    let claims = in_hub.api::<InternalServiceImport>();
    let has_no_affinity =
        |claim: &InternalServiceImport| claim.status.as_ref().is_some_and(|status| status.session_affinity.is_none());
    let claim = format!("{}-app", env.namespace);
    eventually::object(&claims, &claim, "the answer to have no session affinity", has_no_affinity).await?;
    let exports = env.hub::<EndpointSliceExport>(&env.members[0].hub_namespace);
    let all = exports.list(&Default::default()).await?;
    let sixes = all.items.iter().find(|export| export.spec.address_type == AddressType::IPv6);
    eventually::without_finalizers(&exports, &sixes.context("one slice is of IPv6")?.name_any()).await?;
    let of_hub = counts(&[
        (1, format!("patch endpointsliceimports in {to} by hub-agent")),
        (1, format!("delete endpointsliceimports in {to} by hub-agent")),
        (1, format!("patch internalserviceimports/status in {to} by hub-agent")),
        (1, format!("patch endpointsliceexports in {} by hub-agent", env.members[0].hub_namespace)),
    ]);
    assert_eq!(env.ledger(&mark).await?, [of_hub, counts(&[]), counts(&[])]);

    env.backend.start_agent(IMPORTER).await?;
    rich::is_distributed(&env, &rich::in_hub()).await?;
    rich::arrives(&importer, &rich::imported()).await?;
    importer.sees_derived("app", "to have session affinity", rich::is_sticky).await?;
    routes.always_had(&["10.1.0.1:8080"])?;
    Ok(())
}

/// Also rule U7.
pub async fn a_deleted_member_agent_object_is_created_again_and_nothing_is_withdrawn(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (exporter, importer) = (env.user(0), env.user(1));
    rich::export_and_import(&env).await?;
    importer.sees_derived("app", "to have session affinity", rich::is_sticky).await?;
    importer.sees_import("app", "True").await?;
    let mark = env.backend.mark().await?;
    for member in [0, 1] {
        let (agents, name) = (member_agents(&env, member), &env.members[member].cluster_id);
        let uid = agents.get(name).await?.metadata.uid;
        agents.delete(name, &DeleteParams::default()).await?;
        let is_new = |agent: &MemberAgent| agent.metadata.uid != uid && agent.status.is_some();
        eventually::object(&agents, name, "it to be created again, and answered", is_new).await?;
    }
    let sixes = json!([{"addresses": ["fd00:1::2"], "zone": "zone-2"}]);
    exporter.merge::<EndpointSlice>(rich::SIXES, json!({"endpoints": sixes})).await?;
    rich::arrives(&importer, &[rich::imported().swap_remove(0), rich::slice("IPv6", sixes)]).await?;
    assert_eq!(env.ledger(&mark).await?, changes(&env, 1));
    Ok(())
}
