//! Tests of kubectl's verbs that wait until something happens.

use super::cluster::Cluster;
use anyhow::ensure;
use harness::eventually::Deadline;
use harness::run;
use serde_json::json;

const WITH_FINALIZER: &str =
    r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["ex.io/hold"]}}"#;
const EVENTS: &str = r#"--output-watch-events -o jsonpath={.type}:{.object.metadata.name}:{.object.data.a}{"\n"}"#;

async fn create(cluster: &Cluster, name: &str, value: &str) -> anyhow::Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}});
    let created = cluster.run("create -f -", &object.to_string()).await?;
    ensure!(created.code == 0, "{created:?}");
    Ok(())
}

/// Waits until kubectl has started its watch. kubectl's output does not show the start.
async fn until_watched(cluster: &Cluster) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    while cluster.server.open_watches() == 0 {
        deadline.pause(|| "kubectl does not watch").await?;
    }
    Ok(())
}

#[test]
fn a_watch_shows_the_existing_objects_and_then_each_change() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        create(&cluster, "one", "1").await?;
        let mut watch = cluster.follow(&format!("get cm --watch {EVENTS}"))?;
        ensure!(watch.line().await? == "ADDED:one:1");
        create(&cluster, "two", "2").await?;
        ensure!(watch.line().await? == "ADDED:two:2");
        cluster.print(r#"patch cm one -p {"data":{"a":"7"}}"#).await?;
        ensure!(watch.line().await? == "MODIFIED:one:7");
        cluster.print("delete cm two").await?;
        ensure!(watch.line().await? == "DELETED:two:2");
        // The server shuts down gracefully: kubectl sees the end of its watch and ends too.
        cluster.end().await;
        let (code, rest) = watch.end().await?;
        ensure!((code, rest.is_empty()) == (0, true), "{code} {rest:?}");
        Ok(())
    })
}

#[test]
fn a_watch_of_one_object_shows_no_other() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        create(&cluster, "one", "1").await?;
        let mut watch = cluster.follow(&format!("get cm one --watch-only {EVENTS}"))?;
        until_watched(&cluster).await?;
        create(&cluster, "two", "2").await?;
        cluster.print("delete cm one").await?;
        ensure!(watch.line().await? == "DELETED:one:1");
        Ok(())
    })
}

#[test]
fn wait_ends_when_the_object_is_as_it_should_be() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        let created = cluster.follow("wait --for=create cm/one --timeout=30s")?;
        create(&cluster, "one", "1").await?;
        ensure!(created.end().await? == (0, vec!["configmap/one condition met".to_owned()]));
        let changed = cluster.follow("wait --for=jsonpath={.data.a}=7 cm/one --timeout=30s")?;
        cluster.print(r#"patch cm one -p {"data":{"a":"7"}}"#).await?;
        ensure!(changed.end().await? == (0, vec!["configmap/one condition met".to_owned()]));
        let deleted = cluster.follow("wait --for=delete cm/one --timeout=30s")?;
        cluster.print("delete cm one").await?;
        let (code, _) = deleted.end().await?;
        ensure!(code == 0, "{code}");
        create(&cluster, "one", "1").await?;
        cluster
            .walk(&[
                (
                    "wait --for=jsonpath={.data.a}=7 cm/one --timeout=1s",
                    "",
                    1,
                    "error: timed out waiting for the condition on configmaps/one\n",
                ),
                ("wait --for=delete cm/none --timeout=1s", "", 0, ""),
            ])
            .await
    })
}

#[test]
fn delete_waits_for_the_finalizers() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        cluster
            .walk(&[
                ("create -f -", WITH_FINALIZER, 0, "configmap/held created\n"),
                ("delete cm held --wait=false", "", 0, "configmap \"held\" deleted from default namespace\n"),
                ("get cm -o name", "", 0, "configmap/held\n"),
            ])
            .await?;
        let deletion = cluster.follow("delete cm held")?;
        until_watched(&cluster).await?;
        cluster.print(r#"patch cm held --type merge -p {"metadata":{"finalizers":null}}"#).await?;
        let (code, lines) = deletion.end().await?;
        ensure!(
            (code, lines.as_slice()) == (0, &["configmap \"held\" deleted from default namespace".to_owned()][..]),
            "{lines:?}"
        );
        ensure!(cluster.print("get cm -o name").await?.is_empty());
        Ok(())
    })
}
