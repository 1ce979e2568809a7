//! Tests of malformed input and missing rights. Only a real server shows their effects.

use super::{ON, logs};
use anyhow::{Context as _, bail, ensure};
use harness::control_plane::ControlPlane;
use harness::endpoints::{Cluster, Kind, MANAGER, PodSketch, is_serving, serves};
use harness::eventually::{self, Deadline};
use harness::fleet::{MEMBER_AGENT, manifests};
use harness::limits::POLL;
use harness::run;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Addresses that the API accepts in a pod's status but not in an EndpointSlice.
const FORBIDDEN: [&str; 7] = ["127.0.0.1", "169.254.1.1", "0.0.0.0", "224.0.0.1", "::1", "fe80::1", "ff02::1"];

#[test]
fn a_pod_with_an_address_that_slices_may_not_have_does_not_block_the_others() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::take(Kind::WithoutItsController, "forbidden").await?;
        let workload = cluster.workload().await?;
        let _agent = cluster.serve(&[ON]).await?;
        let mark = cluster.mark().await?;
        workload.service_with("web", json!({"ipFamilyPolicy": "RequireDualStack"})).await?;
        for (index, address) in FORBIDDEN.into_iter().enumerate() {
            let create = workload.user.create::<EndpointSlice>(json!({
                "metadata": {"name": "by-hand"}, "endpoints": [{"addresses": [address]}], "ports": [],
                "addressType": if address.contains(':') { "IPv6" } else { "IPv4" },
            }));
            ensure!(create.await.is_err(), "the server has nothing against {address}: it is no case");
            workload.pod(&PodSketch::new(&format!("bad-{index}"), "web", &[address])).await?;
        }
        workload.pod(&PodSketch::new("good", "web", &["10.1.0.1", "2001:db8::1"])).await?;
        let published = ["IPv4 http 8080/TCP: 10.1.0.1 ready good", "IPv6 http 8080/TCP: 2001:db8::1 ready good"];
        workload.sees("web", &published).await?;

        // The agent leaves the bad address out of an existing slice, so the server accepts the write.
        workload.pod(&PodSketch::new("better", "web", &["10.1.0.2", "fe80::2"])).await?;
        workload.sees("web", &["IPv4 http 8080/TCP: 10.1.0.1 ready good, 10.1.0.2 ready better", published[1]]).await?;
        let written = cluster.written_by(MEMBER_AGENT, mark).await?;
        ensure!(written.0.iter().all(|write| write.status < 400), "{written}");
        Ok(())
    })
}

#[test]
fn edits_by_hand_in_a_slice_are_repaired() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::take(Kind::WithoutItsController, "edited").await?;
        let workload = cluster.workload().await?;
        let _agent = cluster.serve(&[ON]).await?;
        workload.labelled_service("web", json!({"tier": "front"}), json!({})).await?;
        workload.pods("web", &["10.1.0.1", "10.1.0.2"]).await?;
        let published = "IPv4 http 8080/TCP: 10.1.0.1 ready web-0, 10.1.0.2 ready web-1";
        workload.sees("web", &[published]).await?;
        let slice = workload.slice("web").await?.metadata;
        let name = slice.name.context("a name")?;
        let edit = async |patch: Value| workload.user.merge::<EndpointSlice>(&name, patch).await;

        for (what, patch) in [
            ("labels", json!({"metadata": {"labels": {"tier": "back", "of-nobody": "yes"}}})),
            ("endpoints", json!({"endpoints": [{"addresses": ["10.66.0.1"]}]})),
            ("ports", json!({"ports": [{"name": "http", "port": 6666, "protocol": "TCP"}]})),
        ] {
            edit(patch).await?;
            workload.sees("web", &[published]).await.context(what)?;
            workload.sees_labels("web", &[("tier", "front")]).await.context(what)?;
        }

        // A slice whose label names another manager belongs to that manager. If a slice of the agent gets such a label,
        // the agent creates a replacement.
        edit(json!({"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": "somebody-else"}}})).await?;
        workload.sees("web", &[published, published]).await?;
        edit(json!({"endpoints": [{"addresses": ["10.66.0.1"]}]})).await?;
        workload.settle("marker").await?;
        let theirs = "IPv4 http 8080/TCP: 10.66.0.1 (None, None, None)";
        workload.sees("web", &[published, theirs]).await?;
        edit(json!({"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": MANAGER}}})).await?;
        workload.sees("web", &[published]).await.context("given back, one slice is enough").map(drop)
    })
}

#[test]
fn under_auto_an_edit_by_hand_counts_as_another_controller_and_is_repaired_later() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::take(Kind::WithoutItsController, "by-hand").await?;
        cluster.controller_manager_is_gone().await?;
        let workload = cluster.workload().await?;
        let agent = cluster.serve(&[("--endpointslices-takeover-after", "2s")]).await?;
        workload.service("web").await?;
        let pod = PodSketch::new("web-0", "web", &["10.1.0.1"]);
        workload.pod(&pod).await?;
        let published = ["IPv4 http 8080/TCP: 10.1.0.1 ready web-0"];
        workload.sees("web", &published).await.context("kube-controller-manager has stopped")?;
        for _ in 0..10 {
            workload.report(&pod.clone().unready()).await?;
            workload.sees("web", &["IPv4 http 8080/TCP: 10.1.0.1 unready web-0"]).await?;
            workload.report(&pod).await?;
            workload.sees("web", &published).await?;
        }
        ensure!(is_serving(&agent).await?, "its own writes are no other's\n{}", agent.log().tail());

        let name = workload.slice("web").await?.metadata.name.context("a name")?;
        let edit = json!({"endpoints": [{"addresses": ["10.66.0.1"]}]});
        let edited = Instant::now();
        workload.user.merge::<EndpointSlice>(&name, edit).await?;
        logs(&agent, &["\"serves\":false", "another writer changed slices"]).await?;
        workload.sees("web", &published).await?;
        ensure!(edited.elapsed() >= Duration::from_secs(2), "after {:?} the other is not done", edited.elapsed());
        serves(&agent, true).await
    })
}

#[test]
fn a_pod_whose_node_is_missing_is_reported_and_published_when_the_node_exists() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::take(Kind::WithoutItsController, "no-node").await?;
        let workload = cluster.workload().await?;
        let _agent = cluster.serve(&[ON]).await?;
        workload.service("web").await?;
        let late = format!("late-{}", cluster.namespace);
        workload.pod(&PodSketch::new("lost", "web", &["10.1.0.2"]).on(&late)).await?;
        workload.pod(&PodSketch::new("good", "web", &["10.1.0.1"])).await?;
        workload.sees("web", &["IPv4 http 8080/TCP: 10.1.0.1 ready good"]).await?;
        let namespace = &cluster.namespace;
        let message = format!(
            "Error updating Endpoint Slices for Service {namespace}/web: \
             skipping Pod lost for Service {namespace}/web: Node {late} Not Found"
        );
        // There may be another Event before, because the agent's watch may show the node of the other pod later than
        // the pod.
        let is_expected = |event: &Event| event.message.as_deref() == Some(&*message);
        let has_expected = |events: &BTreeMap<String, Event>| events.values().any(is_expected);
        let events = workload.user.api::<Event>();
        let events = eventually::objects(&events, &Default::default(), "an Event", has_expected).await?;
        let events: Vec<Event> = events.into_values().filter(is_expected).collect();
        let [event] = &events[..] else { bail!("there is more than one Event: {events:#?}") };
        let about = &event.involved_object;
        assert_eq!((about.kind.as_deref(), about.name.as_deref()), (Some("Service"), Some("web")));
        assert_eq!(event.reason.as_deref(), Some("FailedToUpdateEndpointSlices"));
        let source = event.source.as_ref().and_then(|source| source.component.as_deref());
        assert_eq!(source, Some("endpoint-slice-controller"));

        workload.create_node(&late).await?;
        workload.sees("web", &["IPv4 http 8080/TCP: 10.1.0.1 ready good, 10.1.0.2 ready lost"]).await.map(drop)
    })
}

/// Revokes the rights of `deploy/endpointslices.yaml`. The next test that uses the cluster grants them again.
async fn take_rights_away(control_plane: &ControlPlane) -> anyhow::Result<()> {
    let (name, how) = ("fleetnet-endpointslices", DeleteParams::default());
    Api::<ClusterRoleBinding>::all(control_plane.admin()).delete(name, &how).await?;
    Api::<RoleBinding>::namespaced(control_plane.admin(), "kube-system").delete(name, &how).await?;
    let may = Api::<SubjectAccessReview>::all(control_plane.admin());
    let deadline = Deadline::start();
    for (group, resource, namespace) in
        [("", "pods", ""), ("", "nodes", ""), ("coordination.k8s.io", "leases", "kube-system")]
    {
        let review: SubjectAccessReview = serde_json::from_value(json!({
            "metadata": {},
            "spec": {"user": MEMBER_AGENT, "resourceAttributes": {
                "verb": "list", "group": group, "resource": resource, "namespace": namespace,
                "name": if resource == "leases" { "kube-controller-manager" } else { "" },
            }},
        }))?;
        // The server enforces the revocation a moment later, so wait for it.
        while may.create(&PostParams::default(), &review).await?.status.context("an answer")?.allowed {
            deadline.check().with_context(|| format!("{resource} may still be read"))?;
            sleep(POLL).await;
        }
    }
    Ok(())
}

#[test]
fn without_its_rights_auto_stays_off_and_reports_why_and_is_ready() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::take(Kind::WithoutItsController, "no-rights-auto").await?;
        let workload = cluster.workload().await?;
        take_rights_away(cluster.control_plane).await?;
        let mark = cluster.mark().await?;
        let agent = cluster.serve(&[("--endpointslices-takeover-after", "1ms")]).await?;
        logs(&agent, &["the agent may not read kube-controller-manager's Lease", "deploy/endpointslices.yaml"]).await?;
        workload.service("web").await?;
        ensure!(!is_serving(&agent).await?, "{}", agent.log().tail());
        agent.ready().await?;
        ensure!(agent.terminate().await? == harness::process::Ended::Exited(0), "{}", agent.log().tail());
        cluster.agent_wrote(mark, &[]).await
    })
}

#[test]
fn without_its_rights_on_is_not_ready_and_reports_which_are_missing_and_serves_once_it_has_them() -> anyhow::Result<()>
{
    run(async {
        let cluster = Cluster::take(Kind::WithoutItsController, "no-rights-on").await?;
        let workload = cluster.workload().await?;
        workload.service("web").await?;
        workload.pods("web", &["10.1.0.1"]).await?;
        take_rights_away(cluster.control_plane).await?;
        let mark = cluster.mark().await?;
        let agent = cluster.agent(&[ON]).await?.start().await?;
        for kind in ["pods", "nodes"] {
            logs(&agent, &["WARN", "cannot watch", &format!("{kind} is forbidden"), "grant"]).await?;
            let (status, readiness) = agent.get("/readyz").await?;
            ensure!(status == 503 && readiness.contains(&format!("[-]member/{kind}: ")), "{status} {readiness}");
        }
        cluster.agent_wrote(mark, &[]).await?;

        manifests::apply(cluster.control_plane, manifests::ENDPOINT_SLICES).await?;
        workload.sees("web", &["IPv4 http 8080/TCP: 10.1.0.1 ready web-0"]).await?;
        agent.ready().await
    })
}
