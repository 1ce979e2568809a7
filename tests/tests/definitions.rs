//! The CustomResourceDefinitions of `deploy/crds` on a real API server.

use fleetnet_tests::control_plane::{ControlPlane, Options};
use fleetnet_tests::run;
use fleetnet_tests::scenes::definitions::upgrade;
use kube::Client;
use tokio::sync::OnceCell;

static UPGRADED: OnceCell<ControlPlane> = OnceCell::const_new();

async fn upgraded() -> anyhow::Result<&'static ControlPlane> {
    UPGRADED
        .get_or_try_init(|| async {
            let control_plane = ControlPlane::start(Options { name: "crds".to_owned(), ..Options::default() }).await?;
            upgrade(&control_plane.admin()).await?;
            anyhow::Ok(control_plane)
        })
        .await
}

fn play<S>(scene: impl FnOnce(Client) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    run(async { scene(upgraded().await?.admin()).await })
}

fleetnet_tests::play_the_definitions!(play);
