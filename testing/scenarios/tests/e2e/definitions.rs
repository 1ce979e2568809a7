//! Tests of the CRDs of `deploy/crds` on a real API server.

use harness::control_plane::shared;
use harness::run;
use kube::Client;
use scenarios::definitions::upgrade;
use tokio::sync::OnceCell;

static UPGRADED: OnceCell<Client> = OnceCell::const_new();

async fn upgraded() -> anyhow::Result<Client> {
    let upgrade = || async {
        let client = shared().await?.admin();
        upgrade(&client).await?;
        anyhow::Ok(client)
    };
    UPGRADED.get_or_try_init(upgrade).await.cloned()
}

fn run_scenario<S>(scenario: impl FnOnce(Client) -> S) -> anyhow::Result<()>
where
    S: Future<Output = anyhow::Result<()>>,
{
    run(async { scenario(upgraded().await?).await })
}

scenarios::definition_tests!(run_scenario);
