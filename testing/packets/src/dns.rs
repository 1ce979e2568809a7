//! CoreDNS as a pod behind the Service kube-dns: [`start`].

use crate::network::DNS;
use harness::control_plane::ControlPlane;
use harness::coredns::CLUSTERSET;
use harness::eventually;
use harness::user::User;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use programs::coredns;
use serde_json::json;
use std::fs;
use std::path::Path;

/// Starts CoreDNS in a cluster, and waits until it is ready.
pub(crate) async fn start(control_plane: &ControlPlane, folder: &Path) -> anyhow::Result<()> {
    let program = tokio::task::spawn_blocking(coredns::locate).await??;
    let file = folder.join(format!("Corefile-{}", control_plane.name()));
    let kubeconfig = control_plane.admin_kubeconfig()?;
    let configuration = format!(
        ".:53 {{\n  errors\n  kubernetes cluster.local {CLUSTERSET} in-addr.arpa ip6.arpa {{\n    kubeconfig {}\n    \
         multicluster {CLUSTERSET}\n  }}\n}}\n",
        kubeconfig.display()
    );
    fs::write(&file, configuration)?;
    let user = User::new(control_plane.admin(), "kube-system");
    let labels = json!({"k8s-app": "kube-dns"});
    let container = json!({
        "name": "coredns", "image": "coredns",
        "command": [program, "-conf", file],
        "readinessProbe": {"tcpSocket": {"port": 53}, "periodSeconds": 1},
    });
    user.create::<Deployment>(json!({
        "metadata": {"name": "coredns"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"dnsPolicy": "Default", "containers": [container]},
        }},
    }))
    .await?;
    user.create::<Service>(json!({
        "metadata": {"name": "kube-dns"},
        "spec": {"clusterIP": DNS, "selector": labels, "ports": [
            {"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
        ]},
    }))
    .await?;
    let is_ready =
        |deployment: &Deployment| deployment.status.as_ref().and_then(|status| status.ready_replicas) == Some(1);
    eventually::object(&user.api::<Deployment>(), "coredns", "CoreDNS to be ready", is_ready).await.map(drop)
}
