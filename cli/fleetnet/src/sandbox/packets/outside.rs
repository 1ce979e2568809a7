//! First process of `--packets`: [`run`]. It starts this program again in namespaces of its own, and waits.

use super::bed;
use crate::args::Options;
use crate::sandbox::ending::{Ending, INTERRUPTED, prepared_or_explained};
use crate::sandbox::kubeconfigs::Kubeconfigs;
use crate::sandbox::page;
use crate::sandbox::stop::Stop;
use crate::sandbox::view::with_view;
use ::packets::{again, is_inside, listeners, obstacle};
use anyhow::{Context as _, anyhow};
use std::process::ExitStatus;
use tokio::process::Command;
use tokio::task::spawn_blocking;

/// Runs the sandbox with real traffic, in the first and in the second process.
pub(in crate::sandbox) async fn run(options: &Options, stop: &Stop) -> anyhow::Result<Ending> {
    if is_inside() {
        return with_view(options, stop, async |stage| bed::play(options, stage, stop).await).await;
    }
    let possible = obstacle(&[]).map_or(Ok(()), |why| Err(anyhow!("this machine cannot run --packets: {why}")));
    let Some(kubeconfigs) = prepared_or_explained(possible.and_then(|()| Kubeconfigs::prepare(options))) else {
        return Ok(Ending::UsageError);
    };
    // The first time, it builds programs for minutes.
    let Some(command) = stop.unless_requested(spawn_blocking(again)).await else {
        return Ok(Ending::stopped(options, None));
    };
    let mut command = command??;
    let page = page::listen(options);
    listeners::pass(&mut command, kubeconfigs.listeners().iter().chain(&page))?;
    // In a process group of its own, it gets no Ctrl-C, and cannot end before this process removes the kubeconfigs.
    let mut child =
        Command::from(command).process_group(0).kill_on_drop(true).spawn().context("cannot start setpriv")?;
    match stop.unless_requested(child.wait()).await {
        Some(status) => ending(status?),
        None => {
            child.kill().await.context("the fleet cannot be ended")?;
            Ok(Ending::stopped(options, None))
        }
    }
}

/// Returns how the second process has ended. It has printed the reason itself.
fn ending(status: ExitStatus) -> anyhow::Result<Ending> {
    match status.code() {
        Some(0) => Ok(Ending::Passed),
        Some(code) if code == i32::from(INTERRUPTED) => Ok(Ending::Stopped(INTERRUPTED)),
        Some(_) => Ok(Ending::Failed),
        None => Err(anyhow!("the process with the fleet was ended from outside ({status})")),
    }
}
