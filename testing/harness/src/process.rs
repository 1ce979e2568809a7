//! Process that ends at the latest when the test that started it ends.

use crate::binaries;
use crate::limits::PROCESS;
use crate::log::Log;
use crate::watchdog;
use anyhow::{Context as _, bail};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, watch};

/// Command to start as a process.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Name of the process in messages.
    pub name: String,
    /// File to execute.
    pub file: PathBuf,
    pub arguments: Vec<OsString>,
    /// Whole environment of the process: it inherits only PATH.
    pub environment: Vec<(String, OsString)>,
    /// Folder to remove when the process has ended. `None` if there is no such folder.
    pub scratch: Option<PathBuf>,
}

/// Way in which a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The process ended by itself, with this code.
    Exited(i32),
    /// A signal with this number ended the process.
    Killed(i32),
}

/// Signal that tests send to a process.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// SIGTERM: asks for a graceful stop.
    Term,
    /// SIGKILL: ends the process at once.
    Kill,
    /// SIGSTOP: freezes the process, like a machine that hangs.
    Stop,
    /// SIGCONT: resumes the process after [`Signal::Stop`].
    Cont,
}

/// Process under a supervisor. The process is killed when this value is dropped, or when the test process ends in any
/// way.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: i32,
    supervisor_pid: i32,
    /// Standard input of the supervisor. The supervisor kills the process when this input is closed.
    orders: Mutex<ChildStdin>,
    log: Log,
    state: watch::Receiver<State>,
}

/// State of the process, as the supervisor has reported it. A reader that subscribes after the end still gets the last
/// state.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    pid: Option<i32>,
    ended: Option<Ended>,
    /// True if the supervisor itself has ended. Before that, the supervisor ends the process and removes its scratch
    /// folder.
    gone: bool,
}

impl Process {
    /// Starts a process.
    ///
    /// # Errors
    /// If the process cannot be started; the error shows the supervisor's message.
    pub async fn start(spec: Spec) -> anyhow::Result<Self> {
        let mut command = Command::new(binaries::find("fleetnet-supervisor").await?);
        if let Some(scratch) = &spec.scratch {
            command.arg("--scratch").arg(scratch);
        }
        command.arg("--").arg(&spec.file).args(&spec.arguments);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(spec.environment);
        // The supervisor has a separate process group: an interrupt from the keyboard goes only to the test, and the
        // supervisor ends the process when the test ends.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut supervisor =
            command.spawn().with_context(|| format!("cannot start the supervisor of {}", spec.name))?;
        let pipes = supervisor.stdin.take().zip(supervisor.stdout.take()).zip(supervisor.stderr.take());
        let ((orders, reports), output) = pipes.context("a pipe that was asked for is not there")?;
        let supervisor_pid = supervisor.id().and_then(|id| i32::try_from(id).ok()).context("no process id")?;
        let log = Log::collect(&spec.name, output);
        let (sender, mut state) = watch::channel(State::default());
        tokio::spawn(async move {
            follow(reports, &sender).await;
            let _ = supervisor.wait().await;
            sender.send_modify(|state| state.gone = true);
        });
        watchdog::waits_for(|| format!("{} to start", spec.name));
        let started = wait(&mut state, |state| state.pid.is_some() || state.gone).await;
        match started.map(|state| state.pid) {
            Ok(Some(pid)) => {
                let orders = Mutex::new(orders);
                Ok(Self { name: spec.name, pid, supervisor_pid, orders, log, state })
            }
            _ => bail!("{} did not start: {}\n{}", spec.name, spec.file.display(), log.tail()),
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns two process ids: of the process and of its supervisor.
    #[must_use]
    pub fn pids(&self) -> [i32; 2] {
        [self.pid, self.supervisor_pid]
    }

    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns how the process ended; `None` while the process runs.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        let state = *self.state.borrow();
        state.ended.or(state.gone.then_some(Ended::Killed(KILL)))
    }

    pub async fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let order = match signal {
            Signal::Term => "signal TERM\n",
            Signal::Kill => "signal KILL\n",
            Signal::Stop => "signal STOP\n",
            Signal::Cont => "signal CONT\n",
        };
        let sent = self.orders.lock().await.write_all(order.as_bytes()).await;
        sent.with_context(|| format!("the supervisor of {} is gone", self.name))
    }

    /// Waits until the process has ended and its log is complete.
    ///
    /// # Errors
    /// If the process has not ended within [`PROCESS`]. The error contains the last lines of its log.
    pub async fn wait(&self) -> anyhow::Result<Ended> {
        watchdog::waits_for(|| format!("{} to end", self.name));
        let mut state = self.state.clone();
        wait(&mut state, |state| state.ended.is_some() || state.gone)
            .await
            .with_context(|| format!("{} has not ended in {PROCESS:?}\n{}", self.name, self.log.tail()))?;
        self.ended().context("a process that has ended knows how")
    }

    /// Ends the process and its supervisor. Waits until both have ended and the scratch folder is removed.
    pub async fn end(self) -> anyhow::Result<()> {
        let Self { name, orders, mut state, .. } = self;
        drop(orders);
        watchdog::waits_for(|| format!("the supervisor of {name} to end"));
        wait(&mut state, |state| state.gone)
            .await
            .with_context(|| format!("the supervisor of {name} has not ended in {PROCESS:?}"))?;
        Ok(())
    }

    /// Waits until the process has ended, without a time limit.
    pub(crate) async fn until_ended(&self) {
        let mut state = self.state.clone();
        // An error means that the channel's sender was dropped, so the supervisor has ended.
        let _ = state.wait_for(|state| state.ended.is_some() || state.gone).await;
    }

    /// Returns a future that ends when the process and its supervisor have ended. The future does not borrow `self`.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + use<> {
        let mut state = self.state.clone();
        async move {
            // An error means that the channel's sender was dropped, so the supervisor has ended.
            let _ = state.wait_for(|state| state.gone).await;
        }
    }
}

/// Returns a free port, for a server that cannot choose one. Another process may take the port before the server opens
/// it.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("no port is free on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}

/// Number of the signal SIGKILL.
const KILL: i32 = 9;

/// Records the reports of the supervisor until it ends.
async fn follow(reports: ChildStdout, state: &watch::Sender<State>) {
    let mut lines = BufReader::new(reports).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some((word, Ok(number))) = line.split_once(' ').map(|(word, number)| (word, number.parse())) else {
            continue;
        };
        state.send_modify(|state| match word {
            "started" => state.pid = Some(number),
            "exited" => state.ended = Some(Ended::Exited(number)),
            "killed" => state.ended = Some(Ended::Killed(number)),
            _ => {}
        });
    }
}

async fn wait(state: &mut watch::Receiver<State>, until: impl FnMut(&State) -> bool) -> anyhow::Result<State> {
    let reached = tokio::time::timeout(PROCESS, state.wait_for(until)).await?;
    Ok(*reached?)
}
