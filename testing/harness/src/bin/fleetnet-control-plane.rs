//! Command that starts a control plane. The control plane ends with the process of this command, even after SIGKILL.
//! Users run the command by hand, and a test checks that nothing is left over. Prints one line of JSON with the
//! server's address.

use harness::control_plane::{ControlPlane, Options};

fn main() -> anyhow::Result<()> {
    harness::run(async {
        let control_plane = ControlPlane::start(Options { name: "by hand".to_owned(), ..Options::default() }).await?;
        let printed = serde_json::json!({
            "kubeconfig": control_plane.admin_kubeconfig()?,
            "folder": control_plane.folder(),
            "pids": control_plane.pids(),
        });
        println!("{printed}");
        tokio::signal::ctrl_c().await?;
        control_plane.end().await
    })
}
