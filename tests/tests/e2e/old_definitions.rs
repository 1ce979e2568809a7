//! Agents on real API servers whose definitions are still, or again, those of the Go agents.

use anyhow::Context as _;
use fleetnet_api::crds::{self, Form};
use fleetnet_tests::eventually::{self, Deadline};
use fleetnet_tests::limits::POLL;
use fleetnet_tests::scenes::actions::Action;
use fleetnet_tests::scenes::carried::what_the_go_form_has_of_a_rich_service_arrives;
use fleetnet_tests::scenes::marker::Marker;
use fleetnet_tests::stage::{Cast, Ground as _, OnProcesses, Stage};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DeleteParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

const CAST: Cast = Cast::of(2).with_grace(Duration::from_millis(1));

/// Puts the Go form in the place of the definitions, as a rollback does, takes away those that it does not have, and waits
/// until the server heeds it.
async fn roll_back(client: &Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let member_agents = "memberagents.networking.fleet.azure.com";
    definitions.delete(member_agents, &DeleteParams::default()).await?;
    eventually::gone(&definitions, member_agents).await?;
    for definition in crds::all(Form::Go) {
        let name = definition.metadata.name.as_deref().context("a definition has a name")?;
        let path = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=fleetnet-tests&force=true"
        );
        let request = http::Request::patch(path).header(http::header::CONTENT_TYPE, "application/apply-patch+yaml");
        let applied = client.request::<Value>(request.body(serde_json::to_vec(&definition)?)?).await;
        applied.with_context(|| format!("the definition {name} is refused"))?;
        eventually::usable(client, name).await?;
    }
    let deadline = Deadline::start();
    while !forgets_the_type(client).await? {
        deadline.check().context("the server does not heed the definitions")?;
        sleep(POLL).await;
    }
    Ok(())
}

/// Whether a field that only the full form has is taken out.
async fn forgets_the_type(client: &Client) -> anyhow::Result<bool> {
    let object = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1",
        "kind": "MultiClusterService",
        "metadata": {"name": "probe"},
        "spec": {"serviceImport": {"name": "app"}, "type": "ClusterIP"},
    });
    let path = "/apis/networking.fleet.azure.com/v1alpha1/namespaces/default/multiclusterservices?dryRun=All";
    let request = http::Request::post(path).header(http::header::CONTENT_TYPE, "application/json");
    let made: Value = client.request(request.body(serde_json::to_vec(&object)?)?).await?;
    Ok(made["spec"].get("type").is_none())
}

#[test]
fn over_definitions_in_the_go_form_every_action_comes_true_and_to_rest_and_what_they_know_is_carried()
-> anyhow::Result<()> {
    fleetnet_tests::run(async {
        let ground = OnProcesses::set_apart(CAST).await?;
        roll_back(&ground.hub()).await?;
        for member in ground.members() {
            roll_back(&member.client).await?;
        }
        let mut stage = Stage::on(ground).await?;
        let mut marker = Marker::make(&stage).await?;
        for (play, action) in Action::ALL.into_iter().enumerate() {
            stage.namespace = stage.ground.namespace(&format!("play-{play}")).await?;
            action.prepare(&stage).await?;
            action.act(&stage).await?;
            action.came_true(&stage).await?;
            marker.at_peace(&stage).await.with_context(|| format!("{action:?}"))?;
        }
        stage.namespace = stage.ground.namespace("rich").await?;
        what_the_go_form_has_of_a_rich_service_arrives(&stage).await?;
        marker.at_peace(&stage).await
    })
}
