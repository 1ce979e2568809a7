//! Tests of agents that reach the hub through an HTTP proxy (CONNECT). The proxy of these tests resolves a name that nothing else
//! resolves, so an agent that connects directly fails.

use anyhow::Context as _;
use fleetnet_api::crd::ServiceExport;
use harness::agent::AgentSpec;
use harness::eventually;
use harness::fleet::{Fleet, HUB_AGENT, Member};
use harness::user::User;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Name in the certificate of every kube-apiserver, which DNS does not know outside of pods.
const NAME: &str = "kubernetes.default.svc";
/// `Proxy-Authorization` of the user `jane` with the password `swordfish`.
const AUTHORIZATION: &str = "Proxy-Authorization: Basic amFuZTpzd29yZGZpc2g=";

/// HTTP proxy on a free port. It connects every tunnel to this machine, at the port of the request.
struct HttpProxy {
    url: String,
    tunnels: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl HttpProxy {
    async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://jane:swordfish@{}", listener.local_addr()?);
        let tunnels = Arc::new(AtomicUsize::new(0));
        let opened = Arc::clone(&tunnels);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let opened = Arc::clone(&opened);
                tokio::spawn(async move { tunnel(client, &opened).await });
            }
        });
        Ok(Self { url, tunnels, task })
    }

    fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::Relaxed)
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn tunnel(client: TcpStream, opened: &AtomicUsize) -> anyhow::Result<()> {
    let mut client = BufReader::new(client);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        client.read_until(b'\n', &mut head).await?;
    }
    let head = String::from_utf8(head)?;
    let target = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()).context("CONNECT")?;
    if !head.lines().any(|line| line.eq_ignore_ascii_case(AUTHORIZATION)) {
        client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await?;
        return Ok(());
    }
    let port: u16 = target.rsplit(':').next().context("a port")?.parse()?;
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    opened.fetch_add(1, Ordering::Relaxed);
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Returns the settings of a member agent that knows the hub under a name that only the proxy resolves.
async fn member_agent(fleet: &Fleet, member: &Member, proxy: &HttpProxy) -> anyhow::Result<AgentSpec> {
    let hub = fleet.hub.access(&member.hub_user).await?;
    let port = hub.server_url.rsplit(':').next().context("a port")?;
    let spec = fleet.member_agent(member).await?;
    Ok(spec.variable("HUB_SERVER_URL", format!("https://{NAME}:{port}")).variable("HTTPS_PROXY", &proxy.url))
}

#[test]
fn agents_use_the_proxy_of_the_environment_and_of_the_kubeconfig() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let (member, of_member, of_hub) = (&fleet.members[0], HttpProxy::start().await?, HttpProxy::start().await?);

        let kubeconfig = fleet.hub.kubeconfig(HUB_AGENT).await?;
        let mut config: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&kubeconfig)?)?;
        config["clusters"][0]["cluster"]["proxy-url"] = of_hub.url.as_str().into();
        let with_proxy = kubeconfig.with_extension("with-proxy");
        std::fs::write(&with_proxy, config.to_string())?;
        let hub_agent = fleet.hub_agent().await?.flag("--kubeconfig", with_proxy).start_ready().await?;
        let member_agent = member_agent(&fleet, member, &of_member).await?.start_ready().await?;

        let namespace = fleet.namespace("proxies").await?;
        let user = User::new(member.control_plane.admin(), &namespace);
        user.create_service("app").await?;
        user.create_slice("app", "app-1", &["10.1.0.1"]).await?;
        user.export("app").await?;
        user.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
        assert!(of_member.tunnels() > 0 && of_hub.tunnels() > 0, "{} {}", of_member.tunnels(), of_hub.tunnels());
        for agent in [&hub_agent, &member_agent] {
            let log = agent.log().tail();
            assert!(log.contains("go through a proxy") && !log.contains("swordfish"), "{log}");
        }
        user.delete::<ServiceExport>("app").await?;
        eventually::gone(&user.api::<ServiceExport>(), "app").await
    })
}

#[test]
fn an_agent_goes_around_the_proxy_where_no_proxy_says_so() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let proxy = HttpProxy::start().await?;
        let spec = member_agent(&fleet, &fleet.members[0], &proxy).await?.variable("NO_PROXY", "10.0.0.0/8,.svc");
        let agent = spec.start_ready().await?;
        let direct = |line: &str| (line.contains("a watch failed") && line.contains("dns error")).then_some(());
        agent.log().find("a failure to reach the hub, whose name only the proxy resolves", direct).await?;
        assert_eq!(proxy.tunnels(), 0);
        Ok(())
    })
}
