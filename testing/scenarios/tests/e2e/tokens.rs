//! Tests of a member's token for the hub, on real API servers: its renewal, and its rotation by the CLI. The tests do
//! the work of the kubelet: they write the token of the Secret to the file that the agents read.

use crate::install::kubeconfig;
use anyhow::{Context as _, bail, ensure};
use fleetnet_api::crd::MemberAgent;
use fleetnet_runtime::io::token::claims::Claims;
use harness::binaries;
use harness::control_plane::{ADMIN, ControlPlane};
use harness::eventually::{self, Deadline};
use harness::fleet::{FLEET_SYSTEM, Fleet};
use harness::kubeconfig::Access;
use harness::limits::POLL;
use harness::process::Ended;
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

const SECRET: &str = "fleetnet-hub";
/// Life of the tokens that the agent requests.
const DAYS_30: Duration = Duration::from_hours(30 * 24);

fn token(secret: &Secret) -> Option<String> {
    let stored = secret.data.as_ref()?.get("token")?;
    String::from_utf8(stored.0.clone()).ok()
}

/// Writes a file that a reader never sees half written, as the kubelet does.
fn write(folder: &Path, token: &str) -> anyhow::Result<PathBuf> {
    let (path, unfinished) = (folder.join("token"), folder.join("unfinished"));
    fs::write(&unfinished, token)?;
    fs::rename(unfinished, &path)?;
    Ok(path)
}

/// True if a cluster accepts a token.
async fn is_accepted(cluster: &ControlPlane, token: &str) -> anyhow::Result<bool> {
    let access = Access { token: token.to_owned(), ..cluster.access(ADMIN).await? };
    let reviews: Api<SelfSubjectReview> = Api::all(access.client().await?);
    match reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 401 => Ok(false),
        Err(error) => bail!("{error}"),
    }
}

/// Also rule K17.
#[test]
fn after_a_rotation_only_the_new_token_works_and_the_agent_goes_on_with_it() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let (member, folder) = (&fleet.members[0], TempDir::with_prefix("fleetnet-rotation-")?);
        let secrets: Api<Secret> = Api::namespaced(member.control_plane.admin(), FLEET_SYSTEM);
        let first = fleet.hub.access(&member.hub_user).await?.token;
        let stolen = fleet.hub.access(&member.hub_user).await?.token;
        let path = write(folder.path(), &first)?;
        let mut secret = Secret::default();
        secret.metadata.name = Some(SECRET.to_owned());
        secret.data = Some([("token".to_owned(), ByteString(first.clone().into()))].into());
        secrets.create(&PostParams::default(), &secret).await?;
        let agent = fleet.member_agent(member).await?.variable("CONFIG_PATH", path).start_ready().await?;
        let agents: Api<MemberAgent> = Api::namespaced(fleet.hub.admin(), &member.hub_namespace);
        eventually::exists(&agents, &member.cluster_id).await?;
        for token in [&first, &stolen] {
            ensure!(is_accepted(&fleet.hub, token).await?, "the token is valid before the rotation");
        }

        let config = folder.path().join("kubeconfig");
        fs::write(&config, kubeconfig(&[("west", &member.control_plane), ("hub", &fleet.hub)]).await?)?;
        let mut rotate = Command::new(binaries::find("fleetnet").await?);
        rotate.args(["rotate", &member.cluster_id, "--hub-context", "hub", "--context", "west"]);
        let ended = rotate.env_clear().env("KUBECONFIG", config).kill_on_drop(true).output().await?;
        ensure!(ended.status.success(), "{ended:?}");
        let new = token(&secrets.get(SECRET).await?).context("a token")?;
        ensure!(is_accepted(&fleet.hub, &new).await?, "the new token is valid");
        // An API server uses its answer about a token for 10 seconds.
        let deadline = Deadline::start();
        while is_accepted(&fleet.hub, &first).await? || is_accepted(&fleet.hub, &stolen).await? {
            deadline.pause(|| "the hub still accepts an old token").await?;
        }
        write(folder.path(), &new)?;
        eventually::renewal(&agents, &member.cluster_id, POLL).await?;
        ensure!(agent.terminate().await? == Ended::Exited(0), "{}", agent.log().tail());
        secrets.delete(SECRET, &kube::api::DeleteParams::default()).await?;
        Ok(())
    })
}

/// Also rule K11.
#[test]
fn a_leading_agent_renews_its_token_and_a_replica_uses_it() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let (member, folder) = (&fleet.members[0], TempDir::with_prefix("fleetnet-tokens-")?);
        let secrets: Api<Secret> = Api::namespaced(member.control_plane.admin(), FLEET_SYSTEM);
        let first = fleet.hub.access(&member.hub_user).await?.token;
        let path = write(folder.path(), &first)?;
        let mut secret = Secret::default();
        secret.metadata.name = Some(SECRET.to_owned());
        let entries = [("token", first.as_str()), ("url", "https://hub.example.com")];
        secret.data = Some(entries.map(|(key, value)| (key.to_owned(), ByteString(value.into()))).into());
        secrets.create(&PostParams::default(), &secret).await?;

        let spec = fleet.member_agent(member).await?;
        let spec = spec.variable("CONFIG_PATH", path.clone());
        let spec = spec.flag("--hub-token-secret", format!("{FLEET_SYSTEM}/{SECRET}"));
        let leader = spec.start_ready().await?;
        let what = "the Secret has another token";
        let renewed = eventually::object(&secrets, SECRET, what, |it| token(it).is_some_and(|it| it != first)).await?;
        let renewed_token = token(&renewed).context("a token")?;
        ensure!(Claims::of(&renewed_token).and_then(|claims| claims.life()) == Some(DAYS_30));
        let url = renewed.data.as_ref().and_then(|data| data.get("url"));
        ensure!(url.is_some_and(|url| url.0 == b"https://hub.example.com"), "the other keys of the Secret stay");

        // A replica that starts with the renewed token works with it, although nobody can use the first token any more.
        write(folder.path(), &renewed_token)?;
        ensure!(leader.terminate().await? == Ended::Exited(0), "{}", leader.log().tail());
        let replica = spec.start_ready().await?;
        let next =
            eventually::object(&secrets, SECRET, what, |it| token(it).is_some_and(|it| it != renewed_token)).await?;
        ensure!(token(&next) != Some(first), "each renewal gives a new token");
        // The agent counts a renewal after the Secret has the new token.
        replica.metrics_have(r#"fleetnet_hub_token_renewals_total{result="done"} 1"#).await?;
        secrets.delete(SECRET, &kube::api::DeleteParams::default()).await?;
        Ok(())
    })
}
