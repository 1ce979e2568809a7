//! Command `fleetnet sandbox`: runs a whole fleet in one process and shows what happens in it.
//!
//! ```text
//! fleet (hub + members, agents) ──> watches ──> World ────────────────┐ (observed state; pure)
//!   ^                                                                 v
//!   └──── scene (Services, exports, imports, changes) <── scenario ── waits on the World
//!                     │
//!                     └── sends Events ──> view: terminal, lines or json ──> standard output
//!
//! fleet ──> page (clients of the user kubectl) ──> crate::ui ──> browser
//! ```

mod describe;
mod ending;
mod event;
mod fleet;
mod hub;
mod kubeconfigs;
mod measure;
mod observe;
mod packets;
mod page;
mod real;
mod scenario;
mod scene;
mod stop;
mod view;
mod watches;
mod workloads;

use ending::{Ending, prepared_or_explained};

use crate::args::Options;
use crate::limits::{SETTLES, WORKER_THREADS};
use anyhow::Context as _;
use event::{Ended, Event};
use fleet::Fleet;
use fleetnet_agent::flags::{USAGE_EXIT_CODE, exit_with_error};
use fleetnet_runtime::{clock::Clock, process::logging};
use kubeconfigs::Kubeconfigs;
use page::FleetPage;
use scene::Scene;
use std::net::TcpListener;
use std::process::ExitCode;
use std::time::Duration;
use stop::Stop;
use tokio::time::Instant;
use view::{Keys, Stage, with_view};
use watches::Watches;

/// Runs the sandbox and returns its exit code. If the sandbox cannot run with these options, it prints one line with
/// the reason, and the exit code is 2.
pub(crate) fn run(options: &Options) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build();
    let ended = match runtime.context("cannot start the timers and tasks of this process") {
        Ok(runtime) => {
            let ended = runtime.block_on(perform(options));
            // Do not wait for background tasks: one of them may still be building the control plane, which is no longer
            // needed.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(error),
    };
    match ended {
        Ok(Ending::UsageError) => ExitCode::from(USAGE_EXIT_CODE),
        Ok(Ending::Passed) => ExitCode::SUCCESS,
        Ok(Ending::Failed) => ExitCode::FAILURE,
        Ok(Ending::Stopped(code)) => ExitCode::from(code),
        Err(error) => {
            exit_with_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Prepares signals, files and output, runs the sandbox, and waits until all output is written. When this function
/// returns, the terminal is restored.
async fn perform(options: &Options) -> anyhow::Result<Ending> {
    show_logs_if_requested()?;
    // Install signal handlers before anything is created. From here on, a signal stops the sandbox only after its
    // cleanup.
    let stop = Stop::on_signals().context("signal handlers cannot be installed")?;
    if options.packets {
        return Box::pin(packets::run(options, &stop)).await;
    }
    let Some(kubeconfigs) = prepared_or_explained(Kubeconfigs::prepare(options)) else {
        return Ok(Ending::UsageError);
    };
    // Its note must come before the view draws a picture.
    let listener = page::listen(options);
    with_view(options, &stop, async |stage| play(options, kubeconfigs, listener, stage, &stop).await).await
}

async fn play(
    options: &Options,
    kubeconfigs: Kubeconfigs,
    listener: Option<TcpListener>,
    stage: &Stage,
    stop: &Stop,
) -> anyhow::Result<Ending> {
    let begun = Instant::now();
    stage.emit(Event::starting(options)).await;
    let mut ended = Ended { interrupted: options.scenario.map(|scenario| scenario.name()), ..Ended::default() };
    let page = FleetPage::open(listener, stage).await;
    let started = stop.unless_requested(Box::pin(Fleet::start(options, stage))).await.transpose()?;
    let shown = match started {
        None => Ok(Ending::stopped(options, None)),
        Some(fleet) => {
            page.iter().for_each(|page| page.show(page::targets(&fleet)));
            ended.clusters = fleet.servers().map(|(name, _)| name.to_owned()).collect();
            let shown = Box::pin(show(options, &fleet, kubeconfigs, stage, stop, &mut ended)).await;
            drop(page);
            stop.unless_insisted(fleet.end()).await.unwrap_or(Ok(()))?;
            shown
        }
    };
    if matches!(shown, Ok(Ending::Stopped(_))) {
        ended.seconds = begun.elapsed().as_secs();
        stage.emit(Event::Ended(ended)).await;
    }
    shown
}

/// Runs the scenario or the changes that the options request, on a fleet that has started, and sends the summary at the
/// end. Without `--once`, this function continues to change endpoints until the user stops the sandbox.
async fn show(
    options: &Options,
    fleet: &Fleet,
    kubeconfigs: Kubeconfigs,
    stage: &Stage,
    stop: &Stop,
    ended: &mut Ended,
) -> anyhow::Result<Ending> {
    let Some(published) = stop.unless_requested(kubeconfigs.publish(fleet, stage)).await.transpose()? else {
        return Ok(Ending::stopped(options, None));
    };
    ended.kubeconfigs = published.files;
    let watches = Watches::open(fleet, stage);
    let mut scene = Scene::new(options, fleet, &watches, stage);
    let mut keys = stage.keys();
    if let Some(ending) = stop.unless_requested(Box::pin(run_scene(options, fleet, &mut scene, &mut keys))).await {
        return ending;
    }
    scene.figures().await;
    (ended.compared, ended.differences) = stop.unless_insisted(scene.last_look()).await.unwrap_or_default();
    if scene.verdict.is_some() {
        ended.interrupted = None;
    }
    Ok(Ending::stopped(options, scene.verdict))
}

/// Runs the scenario or the changes that the options request, and sends the verdict. Without `--once`, it never ends
/// then.
async fn run_scene(options: &Options, fleet: &Fleet, scene: &mut Scene<'_>, keys: &mut Keys) -> anyhow::Result<Ending> {
    let wrong = {
        let played = Box::pin(play_to_the_end(options, scene));
        tokio::select! {
            biased;
            // With `--once` no user repairs a failed agent, so stop waiting at the first failure.
            () = fleet.failures().any(), if options.once => Vec::new(),
            played = played => played?,
        }
    };
    let wrong = [fleet.failures().all(), wrong].concat();
    if options.once || options.scenario.is_some() {
        scene.summarise(&wrong, options).await;
    }
    if !options.once {
        scene.change_for_ever(keys).await;
    }
    Ok(if wrong.is_empty() { Ending::Passed } else { Ending::Failed })
}

/// Runs the scenario or the changes that the options request, and compares the clusters with the expected state.
/// Returns each difference as a sentence.
async fn play_to_the_end(options: &Options, scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    let mut wrong = scene.set().await?;
    if !wrong.is_empty() {
        return Ok(wrong);
    }
    match options.scenario {
        Some(scenario) => wrong = scenario::play(scenario, scene).await?,
        None if options.once => wrong = scene.make_changes(options.changes).await?,
        None => return Ok(wrong),
    }
    if wrong.is_empty() {
        wrong = scene.all_as_expected(SETTLES).await;
        let patience = if wrong.is_empty() { SETTLES } else { Duration::ZERO };
        wrong.extend(scene.hub_differences(patience).await?);
    } else {
        let more: Vec<String> = scene.differences().into_iter().filter(|line| !wrong.contains(line)).collect();
        wrong.extend(more);
    }
    Ok(wrong)
}

/// Writes the agents' logs to standard error if `RUST_LOG` is set. By default there are no logs, because they disturb
/// the terminal view.
fn show_logs_if_requested() -> anyhow::Result<()> {
    if std::env::var_os("RUST_LOG").is_none_or(|levels| levels.is_empty()) {
        return Ok(());
    }
    let settings = logging::LogSettings { format: logging::LogFormat::Text, verbosity: 1, own_crates: &[] };
    Ok(logging::init(settings, &Clock::system())?)
}
