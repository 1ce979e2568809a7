//! Tests of the values of the charts and of their schemas.

use super::Chart::{self, Crds, HubAgent, MemberAgent};
use super::{REGISTRY, with_helm};
use anyhow::{Context as _, ensure};
use fleetnet_core::names::is_cluster_id;
use harness::binaries;
use harness::helm::Helm;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use tempfile::TempDir;
use tokio::process::Command;

/// Keys that Helm adds to the values of a dependency. They are in no `values.yaml`.
const OF_DEPENDENCIES: [&str; 2] = ["global", "enabled"];

fn file(chart: Chart, name: &str) -> anyhow::Result<Value> {
    let path = programs::root().join("deploy/charts").join(chart.name()).join(name);
    Ok(serde_saphyr::from_str(&fs::read_to_string(path)?)?)
}

/// Compares the keys of `values.yaml` with those of the schema, at every depth at which the schema is closed.
fn compare(path: &str, schema: &Value, values: &Value) -> anyhow::Result<()> {
    let Some(properties) = schema["properties"].as_object() else { return Ok(()) };
    ensure!(schema["additionalProperties"] == false, "{path}: the schema accepts other keys");
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    // A required value has no default, so only its schema can be complete.
    let is_root = path.is_empty();
    let has_default = |key: &&str| if is_root { !OF_DEPENDENCIES.contains(key) } else { !required.contains(key) };
    let known: BTreeSet<&str> = properties.keys().map(String::as_str).filter(has_default).collect();
    let present: BTreeSet<&str> = values.as_object().context("an object")?.keys().map(String::as_str).collect();
    ensure!(known == present, "{path}: the schema has {known:?}, values.yaml has {present:?}");
    present.iter().try_for_each(|key| compare(&format!("{path}/{key}"), &properties[*key], &values[*key]))
}

#[test]
fn the_schemas_know_the_keys_of_values_yaml_and_no_others() -> anyhow::Result<()> {
    for chart in Chart::ALL {
        let (schema, values) = (file(chart, "values.schema.json")?, file(chart, "values.yaml")?);
        compare("", &schema, &values).with_context(|| chart.to_string())?;
    }
    Ok(())
}

/// Values that the charts require.
const ID: &str = "member.id=west";
const IMAGES: &str = "image.registry=registry.example.com";

/// Fails unless Helm refuses the values, and says this.
async fn fails(helm: &Helm, chart: Chart, values: &[&str], expected: &str) -> anyhow::Result<()> {
    let options: Vec<String> = values.iter().map(|value| format!("--set={value}")).collect();
    let words = ["template", "release", chart.name()].into_iter().chain(options.iter().map(String::as_str));
    let outcome = helm.run(&words.collect::<Vec<_>>()).await?;
    ensure!(outcome.code == 1 && outcome.err.contains(expected), "{chart} {values:?}: {}", outcome.err);
    Ok(())
}

#[test]
fn a_value_that_is_wrong_is_named_with_what_is_expected() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for (chart, values, expected) in [
            (MemberAgent, &[][..], "at '/member': missing property 'id'"),
            (MemberAgent, &["member.id="], "at '/member/id': '' does not match pattern"),
            (MemberAgent, &["member.id=West"], "at '/member/id': 'West' does not match pattern"),
            (MemberAgent, &["member.id=7"], "at '/member/id': got number, want string"),
            (MemberAgent, &[ID, "replica=3"], "additional properties 'replica' not allowed"),
            (MemberAgent, &[ID, "hub.token=abc"], "additional properties 'token' not allowed"),
            (MemberAgent, &[ID, "hub.url=hub.example.com"], "at '/hub/url': 'hub.example.com' does not match"),
            (MemberAgent, &[ID, "hub.caBundle=-----BEGIN"], "at '/hub/caBundle'"),
            (
                MemberAgent,
                &[ID, "endpointslices.mode=maybe"],
                "at '/endpointslices/mode': value must be one of '', 'auto', 'on', 'off'",
            ),
            (MemberAgent, &[ID, "sourceRanges.west=10.0.0.0/8"], "at '/sourceRanges/west': got string, want array"),
            (MemberAgent, &[ID, "sourceRanges.west={10.0.0.0}"], "at '/sourceRanges/west/0'"),
            (HubAgent, &["replicas=two"], "at '/replicas': got string, want integer"),
            (HubAgent, &["log.format=yaml"], "at '/log/format': value must be one of 'json', 'text'"),
            (HubAgent, &["leaderElection.retryPeriod=2"], "at '/leaderElection/retryPeriod'"),
            (HubAgent, &["members={west,west}"], "at '/members': items at 0 and 1 are equal"),
            (HubAgent, &["image.digest=latest"], "at '/image/digest': 'latest' does not match pattern"),
            (HubAgent, &["extraArgs={v=4}"], "at '/extraArgs/0': 'v=4' does not match pattern"),
            (Crds, &["crds.keep=maybe"], "at '/crds/keep': got string, want boolean"),
        ] {
            fails(&helm, chart, values, expected).await?;
        }
        Ok(())
    })
}

#[test]
fn a_value_that_is_missing_or_does_not_fit_others_is_named_with_what_to_do() -> anyhow::Result<()> {
    const RUNBOOK: &str = "prometheusRule.enabled=true,prometheusRule.runbookURL=https://example.com";
    with_helm(async |helm| {
        for (chart, values, expected) in [
            (HubAgent, &["nameOverride=Agent"][..], "at '/nameOverride': 'Agent' does not match pattern"),
            (
                HubAgent,
                &["livenessProbe.httpGet=x"],
                "at '/livenessProbe': additional properties 'httpGet' not allowed",
            ),
            (HubAgent, &["dnsPolicy=Cluster"], "at '/dnsPolicy': value must be one of"),
            (HubAgent, &["prometheusRule.alerts.Watch.for=1m"], "'Watch' does not match pattern '^Fleetnet"),
            (HubAgent, &["global.imagePullSecrets=x"], "at '/global/imagePullSecrets': got string"),
            (HubAgent, &[], "image.registry is missing: set it to the registry to which you pushed the images"),
            (MemberAgent, &[ID], "For images that you loaded into the nodes, as with `kind load`"),
            (
                HubAgent,
                &[IMAGES, "prometheusRule.enabled=true"],
                "prometheusRule.enabled needs prometheusRule.runbookURL, the address of the folder docs/runbook",
            ),
            (HubAgent, &[IMAGES, "dashboards.enabled=true"], "dashboards.enabled needs prometheusRule.runbookURL"),
            (
                MemberAgent,
                &[ID, IMAGES, RUNBOOK, "prometheusRule.alerts.FleetnetMemberSilent.enabled=false"],
                "prometheusRule.alerts.FleetnetMemberSilent: there is no such alert in this chart. Its alerts: Fleetnet",
            ),
            (
                MemberAgent,
                &[ID, IMAGES, RUNBOOK, "prometheusRule.alerts.FleetnetChangeBudgetBurn.expr=vector(1)"],
                "prometheusRule.alerts.FleetnetChangeBudgetBurn.expr: the alert has a rule for each window",
            ),
            (
                MemberAgent,
                &[ID, IMAGES, "podMonitor.enabled=true,serviceMonitor.enabled=true"],
                "Prometheus would read the metrics of each pod twice",
            ),
        ] {
            fails(&helm, chart, values, expected).await?;
        }
        Ok(())
    })
}

#[test]
fn the_schema_accepts_the_cluster_ids_that_the_agents_accept() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let (long, too_long) = ("a".repeat(50), "a".repeat(51));
        for (id, is_valid) in [
            ("west", true),
            ("west-1", true),
            ("1a", true),
            (&long, true),
            (&too_long, false),
            ("West", false),
            ("-west", false),
            ("west-", false),
            ("west.eu", false),
            ("west_eu", false),
            ("west eu", false),
        ] {
            ensure!(is_cluster_id(id) == is_valid, "{id}");
            let set = format!("--set-string=member.id={id}");
            let outcome = helm.run(&["template", "release", MemberAgent.name(), REGISTRY, &set]).await?;
            ensure!((outcome.code == 0) == is_valid, "{id}: {}", outcome.err);
        }
        Ok(())
    })
}

#[test]
fn each_namespace_policy_that_reads_namespaces_has_the_right_to_do_so() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for (policy, reads) in [("enforce", true), ("strict", true), ("listed", true), ("off", false)] {
            let text =
                helm.template(HubAgent.name(), &[REGISTRY, &format!("--set-string=namespacePolicy={policy}")]).await?;
            ensure!(text.contains(&format!("--namespace-policy={policy}")), "{policy}: {text}");
            ensure!(text.contains("resources: [namespaces]") == reads, "{policy}: {text}");
        }
        Ok(())
    })
}

#[test]
fn on_and_off_need_no_quotes_in_a_file_of_values() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for (chart, values, expected) in [
            (MemberAgent, "--set=member.id=west,endpointslices.mode=true", "--endpointslices=on"),
            (MemberAgent, "--set=member.id=west,endpointslices.mode=false", "--endpointslices=off"),
            (HubAgent, "--set=namespacePolicy=false", "--namespace-policy=off"),
        ] {
            let text = helm.template(chart.name(), &[REGISTRY, values]).await?;
            ensure!(text.contains(expected), "{chart} {values}: {text}");
        }
        Ok(())
    })
}

#[test]
fn the_values_that_fleetnet_join_prints_are_those_of_the_chart() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let fleetnet = binaries::find("fleetnet").await?;
        let printed = Command::new(fleetnet).args(["join", "west", "--print", "values"]).output().await?;
        ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let folder = TempDir::with_prefix("fleetnet-values-")?;
        let file = folder.path().join("values.yaml");
        fs::write(&file, printed.stdout)?;
        let from_file = [REGISTRY, &format!("--values={}", file.display())];
        let from_file = helm.template("fleetnet-member-agent", &from_file).await?;
        let from_option = helm.template("fleetnet-member-agent", &[REGISTRY, "--set=member.id=west"]).await?;
        ensure!(from_file == from_option, "{from_file}");
        Ok(())
    })
}

#[test]
fn an_image_has_the_registry_of_the_first_value_that_names_one() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for (values, expected) in [
            ("image.registry=docker.io/library", "docker.io/library/hub-agent:0.1.0"),
            ("image.registry=registry.example.com/fleetnet/", "registry.example.com/fleetnet/hub-agent:0.1.0"),
            ("image.repository=registry.example.com/hub-agent,image.tag=v1", "registry.example.com/hub-agent:v1"),
            ("image.repository=localhost:5000/hub-agent", "localhost:5000/hub-agent:0.1.0"),
            ("global.imageRegistry=mirror.example.com,image.registry=other", "mirror.example.com/hub-agent:0.1.0"),
        ] {
            let text = helm.template(HubAgent.name(), &[&format!("--set={values}")]).await?;
            ensure!(text.contains(&format!("image: {expected}\n")), "{values}: {text}");
        }
        Ok(())
    })
}
