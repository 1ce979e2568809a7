//! Command that supervises one process for a test. The process has a separate process group. When the test ends, the
//! supervisor kills that group with SIGKILL. The supervisor's standard input is a pipe from the test. The kernel closes
//! this pipe when the test ends, even if the test crashes.
//!
//! A parent-death signal is not enough: the kernel sends it when the *thread* that spawned the child ends, and each
//! test is a thread.
//!
//! Input, line by line: `signal TERM|KILL|STOP|CONT`. Output: `started <pid>`, then `exited <code>` or
//! `killed <signal>`. Both outputs of the process go to the supervisor's standard error. At the end the supervisor
//! removes the folder of `--scratch`.

use anyhow::Context as _;
use clap::Parser;
use harness::limits;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::sync::mpsc;

/// Keep a process for as long as our input is open.
#[derive(Parser)]
struct Arguments {
    /// A folder to remove when the owner is gone.
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut owner = Owner::new()?;
    let mut child = start(&arguments.command)?;
    let pid =
        child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).context("the child has no process id")?;
    println!("started {pid}");
    let status = supervise(&mut owner, &mut child, pid).await?;
    if let Some(status) = status {
        println!("{}", describe(status));
        // The test reads the log until every writer has closed the standard error. So the supervisor closes its
        // standard error when the child has ended.
        rustix::stdio::dup2_stderr(File::open("/dev/null")?)?;
        owner.gone().await;
    }
    if let Some(scratch) = &arguments.scratch {
        remove(scratch).await;
    }
    std::process::exit(status.map_or(0, code));
}

fn start(command: &[OsString]) -> anyhow::Result<Child> {
    let (program, arguments) = command.split_first().context("no program")?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", Path::new(program).display()))
}

/// Waits until the child has ended, and returns the child's status. If the test ends first, kills the process group and
/// returns `None`.
async fn supervise(owner: &mut Owner, child: &mut Child, pid: Pid) -> anyhow::Result<Option<ExitStatus>> {
    loop {
        tokio::select! {
            status = child.wait() => {
                // Kill processes that the child may have left in its group. Ignore the error that means that the group
                // is empty.
                let _ = kill_process_group(pid, Signal::KILL);
                return Ok(Some(status?));
            }
            order = owner.order() => match order.as_deref() {
                None => {
                    kill_process_group(pid, Signal::KILL)?;
                    child.wait().await?;
                    return Ok(None);
                }
                // SIGTERM goes to the child alone, as in a pod. Other signals go to everything that the child started.
                Some("signal TERM") => kill_process(pid, Signal::TERM)?,
                Some("signal KILL") => kill_process_group(pid, Signal::KILL)?,
                Some("signal STOP") => kill_process_group(pid, Signal::STOP)?,
                Some("signal CONT") => kill_process_group(pid, Signal::CONT)?,
                Some(other) => anyhow::bail!("unknown order {other:?}"),
            },
        }
    }
}

/// Connection to the test that started the supervisor: lines of the standard input, and signals to end.
struct Owner {
    orders: mpsc::Receiver<String>,
    signals: [SignalStream; 3],
}

impl Owner {
    fn new() -> anyhow::Result<Self> {
        let (sender, orders) = mpsc::channel(limits::ORDERS);
        // Use a separate thread, because a read of the standard input cannot be interrupted. The thread ends with the
        // process.
        std::thread::spawn(move || {
            let lines = std::io::stdin().lines().map_while(Result::ok);
            for line in lines {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        let signals =
            [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, signal(SignalKind::hangup())?];
        Ok(Self { orders, signals })
    }

    /// Returns the next line from the test; `None` if the test has ended or the supervisor gets a signal to end.
    async fn order(&mut self) -> Option<String> {
        let [terminate, interrupt, hangup] = &mut self.signals;
        tokio::select! {
            line = self.orders.recv() => line,
            _ = terminate.recv() => None,
            _ = interrupt.recv() => None,
            _ = hangup.recv() => None,
        }
    }

    async fn gone(&mut self) {
        while self.order().await.is_some() {}
    }
}

fn describe(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("killed {signal}"),
        None => format!("exited {}", code(status)),
    }
}

/// Returns an exit code as a shell reports it: 128 plus the signal if a signal ended the process.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

async fn remove(folder: &Path) {
    for _ in 0..limits::REMOVALS {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tokio::time::sleep(limits::BETWEEN_REMOVALS).await;
            }
            _ => return,
        }
    }
    eprintln!("cannot remove {}", folder.display());
}
