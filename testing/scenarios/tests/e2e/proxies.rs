//! Tests of agents and of the command line that reach the hub through an HTTP proxy (CONNECT). Behind Tinyproxy is a
//! proxy that knows a name which nothing else resolves, so a program that connects directly fails.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::ServiceExport;
use harness::agent::AgentSpec;
use harness::binaries;
use harness::eventually::{self, Deadline};
use harness::fleet::{Fleet, HUB_AGENT, Member};
use harness::tinyproxy::{PASSWORD, Tinyproxy};
use harness::user::User;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinHandle;

/// Name in the certificate of every kube-apiserver, which DNS does not know outside of pods.
const NAME: &str = "kubernetes.default.svc";

/// Proxy that connects every tunnel to this machine, at the port of the request.
struct Resolver {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Resolver {
    async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(tunnel(client));
            }
        });
        Ok(Self { address, task })
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn tunnel(client: TcpStream) -> anyhow::Result<()> {
    let mut client = BufReader::new(client);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(client.read_until(b'\n', &mut head).await? > 0, "the request ends");
    }
    let head = String::from_utf8(head)?;
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).context("CONNECT")?;
    let port: u16 = target.rsplit(':').next().context("a port")?.parse()?;
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Returns the URL of a server on this machine, under the name that only [`Resolver`] knows.
fn renamed(server_url: &str) -> anyhow::Result<String> {
    let port = server_url.rsplit(':').next().context("a port")?;
    Ok(format!("https://{NAME}:{port}"))
}

/// Writes a copy of a kubeconfig of the hub, with the proxy, and with the name that only [`Resolver`] knows.
fn through(proxy: &Tinyproxy, kubeconfig: &Path) -> anyhow::Result<PathBuf> {
    let path = proxy.kubeconfig(kubeconfig)?;
    let mut config: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    let server = &mut config["clusters"][0]["cluster"]["server"];
    *server = renamed(server.as_str().context("a server")?)?.into();
    std::fs::write(&path, config.to_string())?;
    Ok(path)
}

/// Returns the settings of a member agent that knows the hub under the name that only [`Resolver`] knows.
async fn member_agent(fleet: &Fleet, member: &Member, proxy: &Tinyproxy) -> anyhow::Result<AgentSpec> {
    let hub = fleet.hub.access(&member.hub_user).await?;
    let spec = fleet.member_agent(member).await?;
    Ok(spec.variable("HUB_SERVER_URL", renamed(&hub.server_url)?).variable("HTTPS_PROXY", &proxy.url))
}

/// Waits until `fleetnet status`, which reaches the hub through the proxy, shows that a member is ready.
async fn status_shows(kubeconfig: &Path, member: &str) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    loop {
        let mut command = Command::new(binaries::find("fleetnet").await?);
        command.args(["status", "-o", "json"]).env_clear().env("KUBECONFIG", kubeconfig);
        let output = command.kill_on_drop(true).output().await?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(!out.contains(PASSWORD) && !err.contains(PASSWORD), "{out}{err}");
        let status: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
        let members = status["members"].as_array().context("it has members")?;
        if members.iter().any(|row| row["member"] == member && row["state"] == "Ready") {
            return Ok(());
        }
        deadline.pause(|| format!("{member} is not ready: {out}{err}")).await?;
    }
}

/// Also rule K13.
#[test]
fn agents_and_the_command_line_use_the_proxy_of_the_environment_and_of_the_kubeconfig() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let (member, resolver) = (&fleet.members[0], Resolver::start().await?);
        let proxy = Tinyproxy::start(Some((NAME, resolver.address))).await?;

        let kubeconfig = through(&proxy, &fleet.hub.kubeconfig(HUB_AGENT).await?)?;
        let hub_agent = fleet.hub_agent().await?.flag("--kubeconfig", kubeconfig).start_ready().await?;
        let member_agent = member_agent(&fleet, member, &proxy).await?.start_ready().await?;

        let namespace = fleet.namespace("proxies").await?;
        let user = User::new(member.control_plane.admin(), &namespace);
        user.export_new("app", &["10.1.0.1"]).await?;
        user.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
        for agent in [&hub_agent, &member_agent] {
            let log = agent.log().tail();
            ensure!(log.contains("go through a proxy") && !log.contains(PASSWORD), "{log}");
        }
        status_shows(&through(&proxy, &fleet.hub.admin_kubeconfig()?)?, &member.cluster_id).await?;
        user.delete::<ServiceExport>("app").await?;
        eventually::gone(&user.api::<ServiceExport>(), "app").await
    })
}

/// Also rule K13.
#[test]
fn a_proxy_that_rejects_the_password_is_named() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let mut proxy = Tinyproxy::start(None).await?;
        proxy.url = proxy.url.replace(PASSWORD, "wrong");
        let agent = member_agent(&fleet, &fleet.members[0], &proxy).await?.start_ready().await?;
        let address = proxy.url.rsplit('@').next().context("an address")?;
        let expected = format!("the proxy {address} opens no tunnel to {NAME}: check its address, its user");
        let rejected = |line: &str| (line.contains("a watch failed") && line.contains(&expected)).then_some(());
        agent.log().find("which proxy opens no tunnel", rejected).await
    })
}

/// Also rule K13.
#[test]
fn an_agent_goes_around_the_proxy_where_no_proxy_says_so() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let resolver = Resolver::start().await?;
        let proxy = Tinyproxy::start(Some((NAME, resolver.address))).await?;
        let spec = member_agent(&fleet, &fleet.members[0], &proxy).await?.variable("NO_PROXY", "10.0.0.0/8,.svc");
        let agent = spec.start_ready().await?;
        let direct = |line: &str| (line.contains("a watch failed") && line.contains("dns error")).then_some(());
        agent.log().find("a failure to reach the hub, whose name only the proxy resolves", direct).await
    })
}
