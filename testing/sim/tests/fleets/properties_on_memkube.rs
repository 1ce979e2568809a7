//! Tests of the properties that members announce, on memkube.

use anyhow::Context as _;
use fleetnet_api::crd::MemberAgent;
use fleetnet_api::resources::resource;
use fleetnet_core::member::ClusterSelection;
use fleetnet_core::model::Kind;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use sim::fleet::Place;
use sim::{Fleet, Options};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

type Properties = BTreeMap<String, String>;

async fn announced(fleet: &Fleet) -> anyhow::Result<Properties> {
    let agents: Api<MemberAgent> = Api::namespaced(fleet.hub.admin(), "fleet-member-member-1");
    let properties = agents.get("member-1").await?.spec.properties.unwrap_or_default();
    Ok(properties.into_iter().map(|(name, value)| (name, value.0)).collect())
}

fn properties(pairs: &[(&str, &str)]) -> Properties {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Installs a small definition of ClusterProperty.
async fn define_cluster_properties(member: &Client) -> anyhow::Result<Api<DynamicObject>> {
    let resource = resource(Kind::ClusterProperty);
    let free = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": free } } });
    let version = json!({ "name": resource.version, "served": true, "storage": true, "schema": schema });
    let names = json!({ "kind": resource.kind, "plural": resource.plural, "singular": "clusterproperty" });
    let definition = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "clusterproperties.about.k8s.io" },
        "spec": { "group": resource.group, "names": names, "scope": "Cluster", "versions": [version] },
    }))?;
    let definitions: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
        Api::all(member.clone());
    definitions.create(&PostParams::default(), &definition).await?;
    let kind = GroupVersionKind::gvk(resource.group, resource.version, resource.kind);
    Ok(Api::all_with(member.clone(), &ApiResource::from_gvk_with_plural(&kind, resource.plural)))
}

/// Also rules CS3, CS4, CS5.
#[test]
fn properties_of_all_sources_arrive_and_a_restart_keeps_them() -> anyhow::Result<()> {
    sim::paused(async {
        let of_flags = [("tier".into(), "flag".into()), ("cost".into(), "flag".into())].into();
        let cluster_selection = Some(ClusterSelection { properties: of_flags, ..ClusterSelection::default() });
        let mut fleet = Fleet::new(Options { cluster_selection, ..Options::members(1) }).await?;
        let member = fleet.members.first().context("a member")?.server.admin();
        let cluster_properties = define_cluster_properties(&member).await?;
        let nodes: Api<Node> = Api::all(member);
        let node = json!({ "metadata": { "name": "one", "labels": { "topology.kubernetes.io/zone": "north-1" } } });
        nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
        let tier = json!({
            "apiVersion": "about.k8s.io/v1alpha1",
            "kind": "ClusterProperty",
            "metadata": { "name": "tier" },
            "spec": { "value": "object" },
        });
        cluster_properties.create(&PostParams::default(), &serde_json::from_value(tier)?).await?;
        fleet.start_agents().await?;
        sleep(Duration::from_secs(15)).await;
        let (id, zone) = (("cluster.clusterset.k8s.io", "member-1"), ("topology.kubernetes.io/zone", "north-1"));
        assert_eq!(announced(&fleet).await?, properties(&[id, ("cost", "flag"), ("tier", "object"), zone]));

        let change = Patch::Merge(json!({ "spec": { "value": "changed" } }));
        cluster_properties.patch("tier", &PatchParams::default(), &change).await?;
        sleep(Duration::from_secs(2)).await;
        let changed = properties(&[id, ("cost", "flag"), ("tier", "changed"), zone]);
        assert_eq!(announced(&fleet).await?, changed, "at once, not with the next heartbeat");

        fleet.start(Place::Member(0))?;
        for _ in 0..30 {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(announced(&fleet).await?, changed, "a restart");
        }
        cluster_properties.delete("tier", &Default::default()).await?;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(announced(&fleet).await?, properties(&[id, ("cost", "flag"), ("tier", "flag"), zone]));
        Ok(())
    })
}
