//! Tests of the settings with which an installation chooses how an agent connects to its API servers.

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fleetnet_runtime::io::client::{Cluster, Pod};
use harness::agent::AgentSpec;
use harness::in_memory::{Server, knows_all, member_agent};
use harness::limits::PROCESS;
use harness::run;
use kube::client::Body;

/// Returns settings for an agent that trusts a certificate authority that did not sign the hub's certificate.
fn with_a_wrong_authority(own: &Server, hub: &Server) -> AgentSpec {
    member_agent(own)
        .variable("HUB_SERVER_URL", hub.url())
        .variable("HUB_CERTIFICATE_AUTHORITY", STANDARD.encode(own.authority_pem()))
        .variable("CONFIG_PATH", hub.file("token"))
}

#[test]
fn a_certificate_of_another_authority_is_accepted_with_tls_insecure_only() -> anyhow::Result<()> {
    run(async {
        let (own, hub) = (Server::start("member").await?, Server::start("hub").await?);
        let strict = with_a_wrong_authority(&own, &hub).start().await?;
        // Below, the agent connects to the same server with the right authority. So here the wrong certificate is the
        // only obstacle.
        let refused =
            |line: &str| (line.contains(r#""side":"hub""#) && line.contains("client error (Connect)")).then_some(());
        strict.log().find("that it cannot connect", refused).await?;
        strict.kill().await?;

        let insecure = with_a_wrong_authority(&own, &hub).flag("--tls-insecure", "true").start().await?;
        let warned = |line: &str| {
            (line.contains(r#""level":"WARN""#) && line.contains("the certificate of the API server is not verified"))
                .then_some(())
        };
        insecure.log().find("that any certificate is accepted", warned).await?;
        knows_all(&insecure).await
    })
}

#[test]
fn a_pod_reaches_its_api_server_by_its_service_account() -> anyhow::Result<()> {
    run(async {
        let server = Server::start("own").await?;
        let (host, port) = server.url().trim_start_matches("https://").rsplit_once(':').context("a port")?;
        let pod = Pod { service_account: server.folder(), host: Some(host.to_owned()), port: Some(port.to_owned()) };
        let cluster = Cluster::from_pod("member", &pod, "test")?;
        for client in [&cluster.watches, &cluster.requests] {
            let request = http::Request::get("/api/v1/namespaces").body(Body::empty())?;
            let answer = tokio::time::timeout(PROCESS, client.send(request)).await.context("no answer")??;
            assert_eq!(answer.status(), 200);
        }
        Ok(())
    })
}
