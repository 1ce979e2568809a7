//! Tests of the charts on a real API server: what it accepts, and how CRDs of the previous release are upgraded.

use super::{Chart, difference};
use crate::install::{commands, kubeconfig};
use anyhow::{Context as _, bail, ensure};
use diagnosis::agents::AgentNamespaces;
use diagnosis::read::{Limits, Scope, Target, read};
use diagnosis::snapshot::Reached;
use fleetnet_api::crd::ServiceExport;
use fleetnet_api::crds;
use fleetnet_api::names::labels;
use fleetnet_types::ObjectName;
use harness::control_plane::{ControlPlane, Options};
use harness::eventually;
use harness::fleet::{FLEET_SYSTEM, manifests};
use harness::helm::Helm;
use harness::kubectl::Kubectl;
use harness::turn::Turn;
use harness::user::User;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, ResourceExt as _};
use std::fs;
use tempfile::TempDir;

/// CRDs of the Prometheus Operator, cut down to the fields that the charts set. The server rejects all other fields.
const MONITORING: &str = include_str!("monitoring.yaml");
/// Name of the test whose commands are in docs/how-to/install.md.
const TAKEOVER: &str = "on_servers::helm_takes_over_what_kubectl_applied_and_upgrades_the_previous_definitions";

/// Starts a control plane, and returns it with kubectl and Helm for it. The folder has the kubeconfig.
async fn cluster() -> anyhow::Result<(ControlPlane, Kubectl, TempDir)> {
    let cluster = ControlPlane::start(Options { name: "west".to_owned(), ..Options::default() }).await?;
    let folder = TempDir::with_prefix("fleetnet-charts-")?;
    fs::write(folder.path().join("kubeconfig"), kubeconfig(&[("west", &cluster)]).await?)?;
    let kubectl = Kubectl::with(folder.path().join("kubeconfig")).await?.and_helm(&Helm::find().await?);
    Ok((cluster, kubectl, folder))
}

#[test]
fn a_real_server_accepts_what_the_charts_render() -> anyhow::Result<()> {
    harness::run(async {
        let _turn = Turn::with_own_servers().await;
        let (cluster, kubectl, _folder) = cluster().await?;
        let helm = Helm::find().await?;
        let monitoring: Vec<String> = MONITORING.split("\n---\n").map(str::to_owned).collect();
        cluster.apply_definitions(&monitoring).await?;
        // A dry run creates no namespace for the objects in it.
        for namespace in [FLEET_SYSTEM, "monitoring", "fleet-member-north", "fleet-member-west"] {
            cluster.create_namespace(namespace).await?;
        }
        // Nor does it create a service account for the pods of `helm test`.
        for agent in ["hub-agent", "member-agent", "fleetnet-hub-agent", "fleetnet-member-agent"] {
            kubectl.script(&format!("kubectl create serviceaccount {agent}-test -n {FLEET_SYSTEM}")).await?;
        }
        for chart in Chart::ALL {
            for set in chart.sets() {
                let set: Vec<&str> = set.iter().map(String::as_str).collect();
                let objects = helm.template(chart.name(), &set).await?;
                let words = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
                let outcome = kubectl.run(&words, &objects).await?;
                ensure!(outcome.code == 0 && outcome.err.is_empty(), "{chart} {set:?}: {}", outcome.err);
                let number = manifests::objects(&objects)?.len();
                ensure!(outcome.out.lines().count() == number, "{number} objects: {}", outcome.out);
            }
        }
        Ok(())
    })
}

#[test]
fn a_viewer_of_fleetnet_reads_all_but_secrets_and_the_rights_of_others() -> anyhow::Result<()> {
    harness::run(async {
        let _turn = Turn::with_own_servers().await;
        let (cluster, kubectl, _folder) = cluster().await?;
        // One cluster is hub and member: so it has the objects of both.
        let charts = "kubectl apply --server-side -f deploy/multicluster
            helm install fleetnet-crds deploy/charts/fleetnet-crds -n fleet-system --create-namespace
            helm install fleetnet-hub-agent deploy/charts/fleetnet-hub-agent -n fleet-system --set 'members={west}' \\
              --set image.registry=registry.example.com
            helm install fleetnet-member-agent deploy/charts/fleetnet-member-agent -n fleet-system --set member.id=west \\
              --set image.registry=registry.example.com
            kubectl create serviceaccount viewer -n default
            kubectl create clusterrolebinding viewer --clusterrole=fleetnet-viewer --serviceaccount=default:viewer";
        kubectl.script(charts).await?;
        for kind in ["serviceexports", "serviceimports"] {
            eventually::usable(&cluster.admin(), &format!("{kind}.{}", fleetnet_api::names::MCS_GROUP)).await?;
        }
        let viewer = cluster.access("system:serviceaccount:default:viewer").await?;
        let target = Target {
            context: None,
            server_url: viewer.server_url.clone(),
            authority: None,
            proxy: None,
            client: Ok(viewer.client().await?),
        };
        let members = [("west".to_owned(), target.clone())].into();
        let service = Scope::Service(ObjectName::new("default", "app"));
        for scope in [Scope::Status, Scope::Services, Scope::Check, service] {
            let agents = AgentNamespaces::default();
            let snapshot = read(Some(&target), &members, &agents, &scope, Limits::default()).await;
            ensure!(snapshot.hub.connection.reached == Reached::Yes, "{:?}", snapshot.hub.connection);
            let shown = format!("{snapshot:?}");
            let denied = shown.split("Denied(\"").skip(1);
            let denied: Vec<&str> = denied.map(|text| text.split('"').next().unwrap_or_default()).collect();
            // The role `view` of Kubernetes has no right to list Nodes either.
            let others = ["secrets", "subjectaccessreviews", "nodes"];
            let is_expected = |text: &&str| !others.iter().any(|kind| text.contains(kind));
            let unexpected: Vec<&str> = denied.iter().copied().filter(is_expected).collect();
            ensure!(unexpected.is_empty() && !shown.contains("NotDefined"), "{scope:?}: {unexpected:?}");
            let asks_for_more = scope != Scope::Services;
            ensure!(denied.is_empty() != asks_for_more, "{scope:?}: {denied:?}");
        }
        Ok(())
    })
}

/// Returns all CRDs of fleetnet in a cluster.
async fn definitions(cluster: &ControlPlane) -> anyhow::Result<Vec<CustomResourceDefinition>> {
    let all = Api::<CustomResourceDefinition>::all(cluster.admin()).list(&Default::default()).await?;
    Ok(all.items.into_iter().filter(|it| it.spec.group == fleetnet_api::names::GROUP).collect())
}

/// Fails if a CRD does not have the present content, with the label of its revision.
async fn are_present(cluster: &ControlPlane) -> anyhow::Result<()> {
    let definitions = definitions(cluster).await?;
    ensure!(definitions.len() == crds::all(crds::Form::Full).len(), "{} definitions", definitions.len());
    for definition in definitions {
        let name = definition.name_any();
        let revision = definition.labels().get(labels::CRD_REVISION).cloned().unwrap_or_default();
        ensure!(revision == crds::REVISION.to_string(), "{name} has the revision {revision:?}");
        let expected = crds::all(crds::Form::Full).into_iter().find(|it| it.name_any() == name).context("ours")?;
        let schemas = |it: &CustomResourceDefinition| {
            it.spec.versions.iter().map(|version| version.schema.clone()).collect::<Vec<_>>()
        };
        ensure!(schemas(&definition) == schemas(&expected), "{name} has not the present schema");
    }
    Ok(())
}

#[test]
fn helm_takes_over_what_kubectl_applied_and_upgrades_the_previous_definitions() -> anyhow::Result<()> {
    harness::run(async {
        let _turn = Turn::with_own_servers().await;
        let (cluster, kubectl, folder) = cluster().await?;
        // The previous release, installed with plain manifests and in use.
        kubectl.script("kubectl apply --server-side -f testing/harness/src/fleet/previous").await?;
        for definition in definitions(&cluster).await? {
            eventually::usable(&cluster.admin(), &definition.name_any()).await?;
        }
        let applied = "sed 's# image: # image: registry.example.com/#' deploy/member-agent.yaml | kubectl apply -f -";
        kubectl.script(applied).await?;
        cluster.create_namespace("work").await?;
        let user = User::new(cluster.admin(), "work");
        let export = user.export("app").await?;
        let [takes_over] = &commands(TAKEOVER, "how-to/install.md", "console")?[..] else {
            bail!("one block of the guide")
        };
        kubectl.script(takes_over).await?;
        are_present(&cluster).await?;
        let deployments: Api<Deployment> = Api::namespaced(cluster.admin(), FLEET_SYSTEM);
        let agent = deployments.get("member-agent").await?;
        let takes_over = takes_over.replace("crds", "member-agent");
        let values = "--set member.id=member-1 --set image.registry=registry.example.com";
        kubectl.script(&format!("{} {values}", takes_over.trim_end())).await?;
        let taken_over = deployments.get("member-agent").await?;
        ensure!(taken_over.labels()["app.kubernetes.io/managed-by"] == "Helm", "{taken_over:?}");
        let spec =
            |deployment: &Deployment| anyhow::Ok([("spec".to_owned(), serde_json::to_value(&deployment.spec)?)].into());
        let differences = difference::of(&spec(&taken_over)?, &spec(&agent)?);
        ensure!(differences.is_empty(), "the pods would restart:\n{}", differences.join("\n"));

        // The previous release, installed with its chart.
        kubectl.script("helm uninstall fleetnet-crds -n fleet-system").await?;
        let previous = chart_with_previous_definitions(&folder)?;
        kubectl.script(&format!("helm install fleetnet-crds {previous} -n fleet-system")).await?;
        ensure!(are_present(&cluster).await.is_err(), "the definitions are not those of the previous release");
        kubectl.script("helm upgrade fleetnet-crds deploy/charts/fleetnet-crds -n fleet-system").await?;
        are_present(&cluster).await?;
        let kept = user.api::<ServiceExport>().get("app").await?;
        ensure!(kept.metadata.uid == export.metadata.uid, "the export of a user is lost");
        Ok(())
    })
}

/// Writes the chart `fleetnet-crds` with the CRDs of the previous release. Returns its path.
fn chart_with_previous_definitions(folder: &TempDir) -> anyhow::Result<String> {
    let chart = folder.path().join("fleetnet-crds");
    fs::create_dir_all(chart.join("templates"))?;
    let present = programs::root().join("deploy/charts/fleetnet-crds");
    for file in ["Chart.yaml", "values.yaml", "values.schema.json", "templates/_helpers.tpl"] {
        fs::copy(present.join(file), chart.join(file))?;
    }
    let metadata = "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n";
    for (number, definition) in manifests::previous_definitions()?.iter().enumerate() {
        let template = definition.replacen("metadata:\n", metadata, 1);
        fs::write(chart.join(format!("templates/{number}.yaml")), template)?;
    }
    Ok(chart.display().to_string())
}
