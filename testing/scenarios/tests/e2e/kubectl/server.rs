//! Tests of kubectl's requests about the server, such as versions, and of requests that the server rejects.

use super::cluster::Cluster;
use anyhow::ensure;
use harness::run;

const CONF: &str = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}}"#;

#[test]
fn the_server_shows_its_version_its_health_and_its_kinds() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        let version = cluster.print("version").await?;
        ensure!(version.contains("Server Version: v1.35.4+memkube."), "{version}");
        cluster
            .walk(&[
                ("get --raw /readyz", "", 0, "ok"),
                ("get --raw /healthz", "", 0, "ok"),
                (
                    "get --raw /nothing",
                    "",
                    1,
                    "Error from server (NotFound): the server could not find the requested resource\n",
                ),
                ("get nothing", "", 1, "error: the server doesn't have a resource type \"nothing\"\n"),
            ])
            .await?;
        let table = cluster.print("api-resources --no-headers").await?;
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        for expected in [
            ["services", "svc", "v1", "true", "Service"],
            ["namespaces", "ns", "v1", "false", "Namespace"],
            ["customresourcedefinitions", "crd,crds", "apiextensions.k8s.io/v1", "false", "CustomResourceDefinition"],
        ] {
            ensure!(lines.iter().any(|line| line == &expected), "{expected:?} is not in\n{table}");
        }
        let versions = cluster.print("api-versions").await?;
        ensure!(versions.lines().any(|line| line == "discovery.k8s.io/v1"), "{versions}");
        Ok(())
    })
}

#[test]
fn built_in_kinds_are_explained() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        let port = cluster.print("explain service.spec.ports.port").await?;
        let expected = "KIND:       Service
VERSION:    v1

FIELD: port <integer>


DESCRIPTION:
    The port that will be exposed by this service.
   \x20

";
        ensure!(port == expected, "{port}");
        let config_map = cluster.print("explain cm").await?;
        ensure!(config_map.contains("  data\t<map[string]string>\n"), "{config_map}");
        ensure!(config_map.contains("  metadata\t<ObjectMeta>"), "{config_map}");
        Ok(())
    })
}

#[test]
fn server_side_apply_is_rejected_with_a_clear_message() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        let outcome = cluster.run("apply --server-side -f -", CONF).await?;
        let expected =
            "error: Server-side apply not available on the server: (server-side apply is not offered by this server";
        ensure!(outcome.code == 1 && outcome.err.starts_with(expected), "{outcome:?}");
        Ok(())
    })
}
