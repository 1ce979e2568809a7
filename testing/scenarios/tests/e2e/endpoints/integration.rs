//! Tests of the requirements in upstream's integration tests
//! (`test/integration/{endpointslice,dualstack,service,endpoints}`).

use super::ON;
use anyhow::Context as _;
use harness::endpoints::{Cluster, Kind, MANAGER, MIRRORING, PodSketch, Workload, describe};
use harness::run;
use k8s_openapi::api::core::v1::{Endpoints, Service};
use serde_json::{Value, json};

/// Label of a Node with its zone, which topology-aware routing uses.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Label of slices of headless Services.
const HEADLESS: &str = "service.kubernetes.io/headless";

async fn take(namespace: &str) -> anyhow::Result<(Cluster, Workload)> {
    let cluster = Cluster::take(Kind::WithoutItsController, namespace).await?;
    let workload = cluster.workload().await?;
    Ok((cluster, workload))
}

#[test]
fn the_labels_of_a_service_are_those_of_its_one_slice_and_stay_so_when_they_change() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("labels").await?;
        let _agent = cluster.serve(&[ON]).await?;
        let mark = cluster.mark().await?;
        workload.labelled_service("web", json!({"tier": "front"}), json!({"clusterIP": "None"})).await?;
        workload.sees_labels("web", &[("tier", "front"), (HEADLESS, "")]).await?;

        let labels = json!({"metadata": {"labels": {"tier": null, "new-label": "value"}}});
        workload.user.merge::<Service>("web", labels).await?;
        workload.sees_labels("web", &[("new-label", "value"), (HEADLESS, "")]).await?;
        cluster.agent_wrote(mark, &[(1, "create endpointslices"), (1, "update endpointslices")]).await
    })
}

#[test]
fn a_slice_is_labelled_headless_exactly_if_its_service_is_whatever_labels_that_has() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("headless").await?;
        let _agent = cluster.serve(&[ON]).await?;
        for (name, headless, labelled) in [
            ("headless-labelled", true, true),
            ("headless-plain", true, false),
            ("addressed-labelled", false, true),
            ("addressed-plain", false, false),
        ] {
            let labels = if labelled { json!({HEADLESS: ""}) } else { json!({}) };
            let spec = if headless { json!({"clusterIP": "None"}) } else { json!({}) };
            workload.labelled_service(name, labels, spec).await?;
            let expected: &[(&str, &str)] = if headless { &[(HEADLESS, "")] } else { &[] };
            workload.sees_labels(name, expected).await?;
        }
        Ok(())
    })
}

#[test]
fn a_pod_that_ends_is_shown_as_terminating_and_as_serving_only_if_it_is_ready() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("terminating").await?;
        let _agent = cluster.serve(&[ON, ("--endpointslice-updates-batch-period", "1s")]).await?;
        workload.service("good").await?;
        workload.service("bad").await?;
        workload.pod(&PodSketch::new("good-0", "good", &["10.1.0.1"])).await?;
        workload.pod(&PodSketch::new("bad-0", "bad", &["10.1.0.2"]).unready()).await?;
        workload.sees("good", &["IPv4 http 8080/TCP: 10.1.0.1 ready good-0"]).await?;
        workload.sees("bad", &["IPv4 http 8080/TCP: 10.1.0.2 unready bad-0"]).await?;

        workload.terminate_pod("good-0").await?;
        workload.terminate_pod("bad-0").await?;
        workload.sees("good", &["IPv4 http 8080/TCP: 10.1.0.1 terminating-serving good-0"]).await?;
        workload.sees("bad", &["IPv4 http 8080/TCP: 10.1.0.2 terminating bad-0"]).await?;

        workload.remove_pod("good-0").await?;
        workload.sees("good", &["IPv4 no ports: nobody"]).await.map(drop)
    })
}

async fn endpoints(workload: &Workload, name: &str, labels: Value) -> anyhow::Result<()> {
    let made = workload.user.create::<Endpoints>(json!({
        "metadata": {"name": name, "labels": labels},
        "subsets": [{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"name": "http", "port": 8080}]}],
    }));
    made.await.map(drop)
}

/// Returns the managers of a Service's slices, from the label `endpointslice.kubernetes.io/managed-by`.
async fn managers(workload: &Workload, service: &str) -> anyhow::Result<Vec<String>> {
    let slices = workload.slices(service).await?.into_iter();
    let labels = slices.map(|slice| slice.metadata.labels.unwrap_or_default());
    Ok(labels.map(|labels| labels["endpointslice.kubernetes.io/managed-by"].clone()).collect())
}

#[test]
fn mirrored_slices_and_services_without_selector_are_left_alone() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("mirrored").await?;
        let _agent = cluster.serve(&[ON]).await?;
        let mark = cluster.mark().await?;
        let (plain, headless) = (json!({"selector": null}), json!({"selector": null, "clusterIP": "None"}));
        workload.service("selecting").await?;
        for (name, spec) in [("by-hand", &plain), ("by-hand-headless", &headless), ("skipped", &plain)] {
            workload.service_with(name, spec.clone()).await?;
        }
        workload.service_with("empty", plain).await?;
        endpoints(&workload, "by-hand", json!({})).await?;
        endpoints(&workload, "by-hand-headless", json!({})).await?;
        endpoints(&workload, "skipped", json!({"endpointslice.kubernetes.io/skip-mirror": "true"})).await?;
        endpoints(&workload, "of-no-service", json!({})).await?;
        let ours = "of-a-service-without-selector";
        workload.service_with(ours, json!({"selector": null})).await?;
        workload.user.create_slice(ours, ours, &["10.9.0.2"]).await?;
        let take_over = json!({"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": MANAGER}}});
        workload.user.merge::<k8s_openapi::api::discovery::v1::EndpointSlice>(ours, take_over).await?;

        let there = |slices: &std::collections::BTreeMap<_, _>| slices.len() == 1;
        workload.sees_all("selecting", "a slice", there).await?;
        workload.sees_all("by-hand", "a mirrored slice", there).await?;
        workload.sees_all("by-hand-headless", "a mirrored slice", there).await?;
        workload.settle("marker").await?;
        for (service, expected) in [
            ("selecting", &[MANAGER][..]),
            ("by-hand", &[MIRRORING]),
            ("by-hand-headless", &[MIRRORING]),
            ("skipped", &[]),
            ("empty", &[]),
            ("of-no-service", &[]),
            (ours, &[MANAGER]),
        ] {
            assert_eq!(managers(&workload, service).await?, expected, "{service}");
        }
        cluster.agent_wrote(mark, &[(2, "create endpointslices")]).await
    })
}

#[test]
fn a_service_of_two_families_has_a_slice_for_each_with_that_family_s_addresses() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("families").await?;
        let _agent = cluster.serve(&[ON]).await?;
        let (ipv4, ipv6) = ("IPv4 http 8080/TCP: 10.1.0.1 unready", "IPv6 http 8080/TCP: 2001:db8::1 unready");
        for (name, families, expected) in [
            ("v4", json!(["IPv4"]), vec![ipv4]),
            ("v6", json!(["IPv6"]), vec![ipv6]),
            ("v6-v4", json!(["IPv6", "IPv4"]), vec![ipv4, ipv6]),
            ("v4-v6", json!(["IPv4", "IPv6"]), vec![ipv4, ipv6]),
        ] {
            let policy = if expected.len() == 2 { "RequireDualStack" } else { "SingleStack" };
            workload.service_with(name, json!({"ipFamilies": families, "ipFamilyPolicy": policy})).await?;
            let pod = format!("{name}-0");
            workload.pod(&PodSketch::new(&pod, name, &["10.1.0.1", "2001:db8::1"]).unready()).await?;
            let expected: Vec<String> = expected.into_iter().map(|line| format!("{line} {pod}")).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            workload.sees(name, &expected).await?;
        }
        Ok(())
    })
}

/// Step of a test: settings of the Service, and the text with which the description of its only slice must end.
struct Step {
    distribution: Option<&'static str>,
    mode: Option<&'static str>,
    expected: &'static str,
}

#[test]
fn hints_follow_the_traffic_distribution_of_a_service_through_all_transitions() -> anyhow::Result<()> {
    run(async {
        let (cluster, workload) = take("distribution").await?;
        let _agent = cluster.serve(&[ON, ("--endpointslice-updates-batch-period", "1s")]).await?;
        workload.label_node(json!({ZONE: "zone-1"})).await?;
        workload.service("web").await?;
        workload.pods("web", &["10.1.0.1"]).await?;
        let step = |distribution, mode, expected| Step { distribution, mode, expected };
        let steps = [
            step(None, None, "in zone-1"),
            step(Some("PreferClose"), None, "in zone-1 for zones zone-1"),
            // The annotation `topology-mode` takes precedence over the field `trafficDistribution`. With the value
            // `Auto` the slice has no hints, because one pod is not enough for them.
            step(Some("PreferClose"), Some("Auto"), "in zone-1"),
            step(Some("PreferClose"), Some("Disabled"), "in zone-1 for zones zone-1"),
            step(None, None, "in zone-1"),
            step(Some("PreferSameZone"), None, "in zone-1 for zones zone-1"),
            step(Some("PreferSameNode"), None, "in zone-1 for zones zone-1 for nodes NODE"),
            step(None, None, "in zone-1"),
            step(Some("PreferSameNode"), None, "for nodes NODE"),
        ];
        for (index, Step { distribution, mode, expected }) in steps.into_iter().enumerate() {
            if index == 8 {
                workload.label_node(json!({ZONE: null})).await?;
            }
            let index = index.to_string();
            let change = json!({
                "metadata": {"labels": {"step": index}, "annotations": {"service.kubernetes.io/topology-mode": mode}},
                "spec": {"trafficDistribution": distribution},
            });
            workload.user.merge::<Service>("web", change).await?;
            let expected =
                format!("IPv4 http 8080/TCP: 10.1.0.1 ready web-0 {expected}").replace("NODE", &workload.node);
            let what = format!("after step {index}: {expected}");
            // The controller writes the label in the same write as the other changes. So a slice with the label of this
            // step has all changes of this step.
            let made = workload.sees_all("web", &what, |objects| {
                let of_this_step = |labels: &std::collections::BTreeMap<_, _>| labels.get("step") == Some(&index);
                objects.values().all(|slice| slice.metadata.labels.as_ref().is_some_and(of_this_step))
                    && describe::slices(objects.values()) == [&*expected]
            });
            made.await?;
        }
        Ok(())
    })
}

#[test]
fn a_service_gets_endpoints_once_it_is_no_external_name_any_more_and_keeps_them_when_it_is_again() -> anyhow::Result<()>
{
    run(async {
        let (cluster, workload) = take("external").await?;
        let _agent = cluster.serve(&[ON]).await?;
        let mark = cluster.mark().await?;
        let external = json!({"type": "ExternalName", "externalName": "example.com"});
        workload.service_with("web", external.clone()).await?;
        workload.pods("web", &["10.1.0.1"]).await?;
        workload.settle("marker-1").await?;
        assert!(workload.slices("web").await?.is_empty());

        let internal = json!({"spec": {"type": "ClusterIP", "externalName": null}});
        workload.user.merge::<Service>("web", internal).await?;
        let published = ["IPv4 http 8080/TCP: 10.1.0.1 ready web-0"];
        workload.sees("web", &published).await?;

        workload.user.merge::<Service>("web", json!({"spec": external})).await?;
        workload.report(&PodSketch::new("web-0", "web", &["10.1.0.1"]).unready()).await?;
        workload.settle("marker-2").await?;
        workload.sees("web", &published).await.context("whose slices nobody cares for")?;
        cluster.agent_wrote(mark, &[(3, "create endpointslices")]).await
    })
}
