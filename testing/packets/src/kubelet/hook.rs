//! preStop hooks: [`run`].

use super::place::Place;
use super::probe::port_number;
use super::process::Target;
use crate::http;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use std::time::Duration;

/// Time limit of a hook. The caller ends it earlier, with the grace period.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Runs a hook until it ends. A hook that fails ends too.
pub(super) async fn run(place: &Place, container: &Container, target: &Target, hook: &LifecycleHandler) {
    let outcome = attempt(place, container, target, hook).await;
    if let Err(error) = outcome {
        eprintln!("a hook of {} failed: {error:#}", place.name());
    }
}

async fn attempt(place: &Place, container: &Container, target: &Target, hook: &LifecycleHandler) -> anyhow::Result<()> {
    if let Some(sleep) = &hook.sleep {
        tokio::time::sleep(Duration::from_secs(sleep.seconds.try_into()?)).await;
    }
    if let Some(exec) = &hook.exec {
        target.execute(exec.command.as_deref().unwrap_or_default(), LONGEST).await?;
    }
    if let Some(get) = &hook.http_get {
        let port = port_number(container, &get.port)?;
        let path = get.path.as_deref().unwrap_or("/");
        http::call("GET", (place.address(), port).into(), path, LONGEST).await?;
    }
    Ok(())
}
