//! A process that ends no later than the test that started it.

use crate::limits::PROCESS;
use crate::log::Log;
use crate::binaries;
use anyhow::{Context as _, bail};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, watch};

/// What to start.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What it is called in messages.
    pub name: String,
    /// The file to execute.
    pub file: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its environment, whole: nothing is inherited but PATH.
    pub environment: Vec<(String, OsString)>,
    /// A folder to remove when the process is no longer wanted.
    pub scratch: Option<PathBuf>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// A signal that tests send.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// Asks for a graceful stop.
    Term,
    /// Ends at once.
    Kill,
    /// Freezes, as a machine that hangs does.
    Stop,
    /// Goes on after [`Signal::Stop`].
    Cont,
}

/// A process under a supervisor. It is killed when this is dropped, or when our own process ends, however that ends.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: i32,
    supervisor_pid: i32,
    /// Its end tells the supervisor that nobody wants the process any more.
    orders: Mutex<ChildStdin>,
    log: Log,
    state: watch::Receiver<State>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    New,
    Running(i32),
    Ended(Ended),
    /// The supervisor itself has gone, and took the process and its scratch folder with it.
    Gone,
}

impl Process {
    /// Starts a process.
    ///
    /// # Errors
    /// Where it cannot be started; the error shows what the supervisor said.
    pub async fn start(spec: Spec) -> anyhow::Result<Self> {
        let mut command = Command::new(binaries::of_harness("fleetnet-supervisor").await?);
        if let Some(scratch) = &spec.scratch {
            command.arg("--scratch").arg(scratch);
        }
        command.arg("--").arg(&spec.file).args(&spec.arguments);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs(spec.environment);
        // A group of its own: an interrupt from the keyboard is for the test, and the end of the test is the supervisor's sign.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut supervisor = command.spawn().with_context(|| format!("cannot start the supervisor of {}", spec.name))?;
        let pipes = supervisor.stdin.take().zip(supervisor.stdout.take()).zip(supervisor.stderr.take());
        let ((orders, reports), output) = pipes.context("a pipe that was asked for is not there")?;
        let supervisor_pid = supervisor.id().and_then(|id| i32::try_from(id).ok()).context("no process id")?;
        let log = Log::collect(&spec.name, output);
        let (sender, mut state) = watch::channel(State::New);
        tokio::spawn(async move {
            follow(reports, &sender).await;
            let _ = supervisor.wait().await;
            sender.send_replace(State::Gone);
        });
        let started = wait(&mut state, |state| *state != State::New).await;
        match started {
            Ok(State::Running(pid)) => {
                let orders = Mutex::new(orders);
                Ok(Self { name: spec.name, pid, supervisor_pid, orders, log, state })
            }
            _ => bail!("{} did not start: {}\n{}", spec.name, spec.file.display(), log.tail()),
        }
    }

    /// What it is called in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id, and that of its supervisor.
    #[must_use]
    pub fn pids(&self) -> [i32; 2] {
        [self.pid, self.supervisor_pid]
    }

    /// What it says.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// How it ended; none while it runs.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        match *self.state.borrow() {
            State::Ended(ended) => Some(ended),
            State::Gone => Some(Ended::Killed(KILL)),
            State::New | State::Running(_) => None,
        }
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// Where the supervisor is gone.
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

    /// Waits for its end, and for its last words in the log.
    ///
    /// # Errors
    /// Where it has not ended in [`PROCESS`]; the error shows its last lines.
    pub async fn wait(&self) -> anyhow::Result<Ended> {
        let mut state = self.state.clone();
        wait(&mut state, |state| matches!(state, State::Ended(_) | State::Gone))
            .await
            .with_context(|| format!("{} has not ended in {PROCESS:?}\n{}", self.name, self.log.tail()))?;
        self.ended().context("a process that has ended knows how")
    }

    /// Ends it and its supervisor, and waits until both are gone and the scratch folder removed.
    ///
    /// # Errors
    /// Where that takes longer than [`PROCESS`].
    pub async fn end(self) -> anyhow::Result<()> {
        let Self { name, orders, mut state, .. } = self;
        drop(orders);
        wait(&mut state, |state| *state == State::Gone)
            .await
            .with_context(|| format!("the supervisor of {name} has not ended in {PROCESS:?}"))?;
        Ok(())
    }

    /// Ready when the process and its supervisor are gone, also after this has been dropped.
    pub(crate) fn gone(&self) -> impl Future<Output = ()> + use<> {
        let mut state = self.state.clone();
        async move {
            // An error means that the sender is gone, and so is the supervisor.
            let _ = state.wait_for(|state| *state == State::Gone).await;
        }
    }
}

/// SIGKILL's number.
const KILL: i32 = 9;

/// Follows what the supervisor reports until it ends.
async fn follow(reports: ChildStdout, state: &watch::Sender<State>) {
    let mut lines = BufReader::new(reports).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some((word, Ok(number))) = line.split_once(' ').map(|(word, number)| (word, number.parse())) else {
            continue;
        };
        match word {
            "started" => state.send_replace(State::Running(number)),
            "exited" => state.send_replace(State::Ended(Ended::Exited(number))),
            "killed" => state.send_replace(State::Ended(Ended::Killed(number))),
            _ => continue,
        };
    }
}

async fn wait(state: &mut watch::Receiver<State>, until: impl FnMut(&State) -> bool) -> anyhow::Result<State> {
    let reached = tokio::time::timeout(PROCESS, state.wait_for(until)).await?;
    Ok(*reached?)
}
