//! Announcements of member and hub in a MemberAgent, and their effects.

#![allow(missing_docs, clippy::missing_errors_doc, reason = "the name of a scene says what must hold")]

use crate::eventually;
use crate::scenes::ledger::{changes, counts};
use crate::scenes::rich;
use crate::stage::{Ground, Place, Stage};
use crate::user::{Consume, User};
use anyhow::Context as _;
use fleetnet_api::crd::endpoint_slice_export::AddressType;
use fleetnet_api::crd::{EndpointSliceExport, InternalServiceExport, InternalServiceImport, MemberAgent};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

const IMPORTER: Place = Place::Member(1);
/// Version of the agents and of this crate.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const ALL: [&str; 5] = ["IPv6", "DrainingEndpoints", "EndpointDetails", "Headless", "SessionAffinity"];

/// Services, slices and endpoints that a member exports, then Services and slices that it imports.
pub type Shares = [i64; 5];

pub fn member_agents<G: Ground>(stage: &Stage<G>, member: usize) -> Api<MemberAgent> {
    stage.hub(&stage.members[member].hub_namespace)
}

/// Counts of the hub for a member.
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

/// Waits until the member announces that it runs, and the hub announces these counts.
pub async fn sees_shares(stage: &Stage<impl Ground>, member: usize, expected: Shares) -> anyhow::Result<MemberAgent> {
    let says = |agent: &MemberAgent| agent.spec.planned_stop_time.is_none() && shares(agent) == Some(expected);
    let name = &stage.members[member].cluster_id;
    eventually::object(&member_agents(stage, member), name, &format!("{name} to share {expected:?}"), says).await
}

pub async fn a_member_says_who_it_is_and_when_it_stops_and_the_hub_what_it_shares(
    mut stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    for member in [0, 1] {
        let agent = sees_shares(&stage, member, [0; 5]).await?;
        assert_eq!((agent.spec.version.as_str(), json!(agent.spec.features)), (VERSION, json!(ALL)));
        let hub = agent.status.context("the hub has answered")?;
        assert_eq!((hub.version.as_deref(), json!(hub.features)), (Some(VERSION), json!(ALL)));
    }
    stage.export_and_import(&["10.1.0.1", "10.1.0.2"]).await?;

    let mark = stage.ground.mark().await?;
    stage.user(0).set_endpoints("app-1", &["10.1.0.3", "10.1.0.2"]).await?;
    stage.ground.stop_agents().await?;
    let told = stage.ground.since(&mark).await?;
    for member in &stage.members {
        let user = format!("system:serviceaccount:{}:member-agent", member.hub_namespace);
        let last = told.hub.of_user(&user).0.last().cloned().context("it has written something")?;
        assert_eq!((last.verb.as_str(), last.resource.as_str()), ("patch", "memberagents"), "the last word of {user}");
    }
    for member in [0, 1] {
        let agent = member_agents(&stage, member).get(&stage.members[member].cluster_id).await?;
        let stopped = agent.spec.planned_stop_time.context("it was stopped as planned")?;
        assert!(stopped.0 >= agent.spec.renew_time.0, "{stopped:?} is before {:?}", agent.spec.renew_time);
    }

    stage.ground.start_agents().await?;
    sees_shares(&stage, 0, [1, 1, 2, 0, 0]).await?;
    sees_shares(&stage, 1, [0, 0, 0, 1, 1]).await?;
    stage.user(1).sees("app", &["10.1.0.3", "10.1.0.2"]).await.map(drop)
}

pub async fn what_the_hub_announces_no_more_is_taken_back_and_comes_again_with_its_word(
    mut stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    let (exporter, from) = (stage.user(0), stage.members[0].hub_namespace.clone());
    rich::create(&exporter).await?;
    exporter.export("app").await?;
    exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    rich::is_exported(&stage, &rich::in_hub()).await?;
    offers_affinity(&stage, true).await?;

    // As a hub agent that supports nothing beyond the Go form.
    stage.ground.stop_agent(Place::Hub).await?;
    let mark = stage.ground.mark().await?;
    let in_hub = User::new(stage.ground.hub(), &from);
    let nothing = json!({"version": "0.0.1", "features": []});
    in_hub.merge_status::<MemberAgent>(&stage.members[0].cluster_id, nothing).await?;
    rich::is_exported(&stage, &rich::in_go_form()).await?;
    offers_affinity(&stage, false).await?;
    let of_hub = counts(&[
        (1, format!("patch endpointsliceexports in {from} by member-agent")),
        (1, format!("delete endpointsliceexports in {from} by member-agent")),
        (1, format!("patch internalserviceexports in {from} by member-agent")),
    ]);
    assert_eq!(stage.ledger(&mark).await?, [of_hub, counts(&[]), counts(&[])]);

    stage.ground.start_agent(Place::Hub).await?;
    rich::is_exported(&stage, &rich::in_hub()).await?;
    offers_affinity(&stage, true).await
}

/// Waits until the export of `app` in the hub has session affinity, or has none.
async fn offers_affinity(stage: &Stage<impl Ground>, offers: bool) -> anyhow::Result<()> {
    let exports = stage.hub::<InternalServiceExport>(&stage.members[0].hub_namespace);
    let says = |export: &InternalServiceExport| {
        (export.spec.session_affinity.is_some(), export.spec.session_affinity_config.is_some()) == (offers, offers)
    };
    let what = format!("session affinity to be offered: {offers}");
    eventually::object(&exports, &format!("{}-app", stage.namespace), &what, says).await.map(drop)
}

pub async fn what_an_importer_announces_no_more_is_taken_back_and_comes_again_with_its_word(
    mut stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    let (exporter, importer, to) = (stage.user(0), stage.user(1), stage.members[1].hub_namespace.clone());
    rich::create(&exporter).await?;
    exporter.export("app").await?;
    importer.import("app", "app", Consume::ClusterIp).await?;
    rich::arrives(&importer, &rich::imported()).await?;
    importer.sees_derived("app", "to have session affinity", rich::is_sticky).await?;
    importer.sees_import("app", "True").await?;
    let mut routes = importer.routes("app");
    routes.are(&["10.1.0.1:8080", "fd00:1::1:8080"]).await?;

    // As an importer's agent that supports nothing beyond the Go form.
    stage.ground.stop_agent(IMPORTER).await?;
    let mark = stage.ground.mark().await?;
    let in_hub = User::new(stage.ground.hub(), &to);
    let nothing = json!({"spec": {"version": "0.0.1", "features": []}});
    in_hub.merge::<MemberAgent>(&stage.members[1].cluster_id, nothing).await?;
    rich::is_given(&stage, &rich::in_go_form()).await?;
    rich::is_exported(&stage, &rich::in_hub()).await?;
    let claims = in_hub.api::<InternalServiceImport>();
    let has_no_affinity =
        |claim: &InternalServiceImport| claim.status.as_ref().is_some_and(|status| status.session_affinity.is_none());
    let claim = format!("{}-app", stage.namespace);
    eventually::object(&claims, &claim, "the answer to have no session affinity", has_no_affinity).await?;
    let exports = stage.hub::<EndpointSliceExport>(&stage.members[0].hub_namespace);
    let all = exports.list(&Default::default()).await?;
    let sixes = all.items.iter().find(|export| export.spec.address_type == AddressType::IPv6);
    eventually::unmarked(&exports, &sixes.context("one slice is of IPv6")?.name_any()).await?;
    let of_hub = counts(&[
        (1, format!("patch endpointsliceimports in {to} by hub-agent")),
        (1, format!("delete endpointsliceimports in {to} by hub-agent")),
        (1, format!("patch internalserviceimports/status in {to} by hub-agent")),
        (1, format!("patch endpointsliceexports in {} by hub-agent", stage.members[0].hub_namespace)),
    ]);
    assert_eq!(stage.ledger(&mark).await?, [of_hub, counts(&[]), counts(&[])]);

    stage.ground.start_agent(IMPORTER).await?;
    rich::is_given(&stage, &rich::in_hub()).await?;
    rich::arrives(&importer, &rich::imported()).await?;
    importer.sees_derived("app", "to have session affinity", rich::is_sticky).await?;
    routes.always_led_to(&["10.1.0.1:8080"])?;
    Ok(())
}

pub async fn a_member_agent_that_somebody_deletes_is_made_anew_and_nothing_is_taken_back(
    stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    let (exporter, importer) = (stage.user(0), stage.user(1));
    rich::create(&exporter).await?;
    exporter.export("app").await?;
    importer.import("app", "app", Consume::ClusterIp).await?;
    rich::arrives(&importer, &rich::imported()).await?;
    importer.sees_derived("app", "to have session affinity", rich::is_sticky).await?;
    importer.sees_import("app", "True").await?;
    let mark = stage.ground.mark().await?;
    for member in [0, 1] {
        let (agents, name) = (member_agents(&stage, member), &stage.members[member].cluster_id);
        let uid = agents.get(name).await?.metadata.uid;
        agents.delete(name, &DeleteParams::default()).await?;
        let is_anew = |agent: &MemberAgent| agent.metadata.uid != uid && agent.status.is_some();
        eventually::object(&agents, name, "it to be made anew, and answered", is_anew).await?;
    }
    let sixes = json!([{"addresses": ["fd00:1::2"], "zone": "zone-2"}]);
    exporter.merge::<EndpointSlice>(rich::SIXES, json!({"endpoints": sixes})).await?;
    rich::arrives(&importer, &[rich::imported().swap_remove(0), rich::slice("IPv6", sixes)]).await?;
    assert_eq!(stage.ledger(&mark).await?, changes(&stage, 1));
    Ok(())
}
