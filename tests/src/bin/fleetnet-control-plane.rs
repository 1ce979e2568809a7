//! Starts a control plane and keeps it until this process ends, however that ends: to look around in by hand, and to
//! prove that nothing stays behind. Says in one line of JSON where it is.

use fleetnet_tests::control_plane::{ControlPlane, Options};

fn main() -> anyhow::Result<()> {
    fleetnet_tests::run(async {
        let control_plane = ControlPlane::start(Options { name: "by hand".to_owned(), ..Options::default() }).await?;
        let told = serde_json::json!({
            "kubeconfig": control_plane.admin_kubeconfig()?,
            "folder": control_plane.folder(),
            "pids": control_plane.pids(),
        });
        println!("{told}");
        tokio::signal::ctrl_c().await?;
        control_plane.end().await
    })
}
