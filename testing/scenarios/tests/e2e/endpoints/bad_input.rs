//! Tests of malformed input and missing rights. Only a real server shows their effects.

use super::{ON, logs};
use anyhow::{Context as _, ensure};
use harness::control_plane::ControlPlane;
use harness::endpoints::{Cluster, Kind, PodSketch, is_serving, serves};
use harness::eventually::Deadline;
use harness::fleet::{MEMBER_AGENT, manifests};
use harness::run;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

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
            deadline.pause(|| format!("{resource} may still be read")).await?;
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
