//! Kubeconfigs that work outside of the namespaces: [`publish`].

use crate::sandbox::event::Event;
use crate::sandbox::event::HUB;
use crate::sandbox::kubeconfigs::{self, FLEET};
use crate::sandbox::page;
use crate::sandbox::view::Stage;
use crate::ui::source::Targets;
use ::packets::Fleet;
use ::packets::listeners::{self, Forwarding};
use anyhow::Context as _;
use harness::control_plane::{ADMIN, ControlPlane};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// Name in the certificate of each API server. The certificates do not have the address of the forwarded ports.
const SERVER_NAME: &str = "kubernetes.default.svc";

/// Cluster, as a kubeconfig names it.
struct Cluster {
    name: String,
    port: u16,
    /// Certificate authority in base64.
    authority: String,
    token: String,
}

/// Returns the control planes with the names of their clusters, the hub first.
fn control_planes(fleet: &Fleet) -> impl Iterator<Item = (&str, &ControlPlane)> {
    let members = fleet.servers.members.iter().map(|member| (&*member.cluster_id, &*member.control_plane));
    std::iter::once((HUB, &*fleet.servers.hub)).chain(members)
}

/// Writes a kubeconfig for each cluster and one for all, and forwards these listeners to the API servers.
pub(super) async fn publish(
    fleet: &Fleet,
    listeners: Vec<TcpListener>,
    folder: &Path,
    stage: &Stage,
) -> anyhow::Result<Vec<Forwarding>> {
    let mut listeners = listeners.into_iter();
    let (mut clusters, mut forwardings) = (Vec::new(), Vec::new());
    for (name, control_plane) in control_planes(fleet) {
        let access = control_plane.access(ADMIN).await?;
        let listener = listeners.next().with_context(|| format!("no port for {name}"))?;
        let (name, port) = (name.to_owned(), listener.local_addr()?.port());
        let address = access.server_url.strip_prefix("https://").context("an API server has an address")?.parse()?;
        forwardings.push(listeners::forward(listener, address)?);
        clusters.push(Cluster { name, port, authority: access.authority_base64(), token: access.token });
    }
    for cluster in &clusters {
        write(folder, &cluster.name, std::slice::from_ref(cluster), stage).await?;
    }
    write(folder, FLEET, &clusters, stage).await?;
    Ok(forwardings)
}

/// Returns the clusters as the page reads them, with the contexts of these kubeconfigs.
pub(super) fn targets(fleet: &Fleet) -> Targets {
    let target = |name: &str, control_plane: &ControlPlane| page::target(name.to_owned(), control_plane.admin());
    let members = control_planes(fleet).skip(1).map(|(name, it)| (name.to_owned(), target(name, it)));
    Targets { hub: target(HUB, &fleet.servers.hub), members: members.collect() }
}

/// Returns the path of a kubeconfig.
pub(super) fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.kubeconfig"))
}

async fn write(folder: &Path, name: &str, clusters: &[Cluster], stage: &Stage) -> anyhow::Result<()> {
    let path = path(folder, name);
    // JSON is valid YAML, the format of a kubeconfig.
    kubeconfigs::write(&path, &serde_json::to_string_pretty(&document(clusters))?)?;
    stage.emit(Event::Kubeconfig { cluster: name.to_owned(), path: path.display().to_string() }).await;
    Ok(())
}

/// Returns a kubeconfig with a context for each cluster. The first one is current.
fn document(clusters: &[Cluster]) -> Value {
    let list = |part: &str, body: &dyn Fn(&Cluster) -> Value| -> Value {
        clusters.iter().map(|cluster| json!({"name": cluster.name, part: body(cluster)})).collect()
    };
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": clusters.first().map(|cluster| &cluster.name),
        "contexts": list("context", &|cluster| json!({"cluster": cluster.name, "user": cluster.name})),
        "clusters": list("cluster", &|cluster| json!({
            "server": format!("https://{}:{}", Ipv4Addr::LOCALHOST, cluster.port),
            "tls-server-name": SERVER_NAME,
            "certificate-authority-data": cluster.authority,
        })),
        "users": list("user", &|cluster| json!({"token": cluster.token})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_has_a_context_for_each_cluster() {
        let cluster = |name: &str, port| Cluster {
            name: name.to_owned(),
            port,
            authority: "QQ==".to_owned(),
            token: format!("token-of-{name}"),
        };
        let document = document(&[cluster("hub", 8001), cluster("member-1", 8002)]);
        let kubeconfig: kube::config::Kubeconfig = serde_json::from_value(document).unwrap();
        assert_eq!(kubeconfig.current_context.as_deref(), Some("hub"));
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|context| &*context.name).collect();
        assert_eq!(names, ["hub", "member-1"]);
        let member = kubeconfig.clusters[1].cluster.clone().unwrap();
        assert_eq!(member.server.as_deref(), Some("https://127.0.0.1:8002"));
        assert_eq!(member.tls_server_name.as_deref(), Some("kubernetes.default.svc"));
    }
}
