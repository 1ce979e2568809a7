//! Test or program inside of namespaces of its own: [`inside`], [`run_inside`], [`again`].
//!
//! The program starts itself again, with new mount, network and PID namespaces. The kernel removes everything in them
//! when the program ends in any way: processes, network devices, rules of nftables and files. So a test never changes
//! the network of the machine, and several tests can use the same addresses.

use crate::limits::BEDS;
use anyhow::{Context as _, bail, ensure};
use harness::binaries;
use parking_lot::{Condvar, Mutex};
use programs::control_plane::{self, Program};
use programs::coredns;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Environment variable of the program inside of its namespaces.
const INSIDE: &str = "FLEETNET_PACKETS_INSIDE";
/// Environment variable with the value `required` where tests that cannot run must fail.
const REQUIREMENT: &str = "FLEETNET_PACKETS";
/// Programs of the machine that a bed needs.
const TOOLS: [&str; 7] = ["unshare", "nsenter", "setpriv", "mount", "sysctl", "ip", "nft"];
/// Programs of this workspace that run inside. They are built before, because there is no network inside.
const BINARIES: [&str; 4] = ["fleetnet-supervisor", "hub-agent", "member-agent", "packets"];
/// Arguments of `setpriv` and `unshare`. `setpriv` lets the kernel kill `unshare` if the first program is killed, and
/// `unshare` lets it kill process 1 of the new PID namespace, and so all processes in it.
const NAMESPACES: [&str; 12] = [
    "--pdeathsig",
    "KILL",
    "unshare",
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--propagation",
    "private",
    "--",
];
/// Script of process 1. It stays process 1 while the program runs, because a shell reaps processes whose parents have
/// ended. The named network namespaces and the temporary files of the program are in a file system of their own.
const SCRIPT: &str =
    "mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/netns /run/fleetnet && ip link set lo up && \"$@\"
exit $?";
/// Folder for temporary files inside.
const TEMPORARY: &str = "/run/fleetnet";

/// Number of beds that this test program runs.
static RUNNING: Mutex<usize> = Mutex::new(0);
/// Notified when a bed ends.
static ENDED: Condvar = Condvar::new();

/// Right to run a bed, of which a test program has a limited number.
struct Turn;

impl Turn {
    /// Waits until a bed can run.
    fn take() -> Self {
        let mut running = RUNNING.lock();
        ENDED.wait_while(&mut running, |running| *running >= BEDS);
        *running += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *RUNNING.lock() -= 1;
        ENDED.notify_one();
    }
}

/// Runs a test inside of namespaces of its own.
///
/// The caller must be the test function itself, because the name of the test is taken from the name of the closure.
///
/// # Errors
/// If the test fails. If the machine cannot run the test, it is reported as not run on standard error, or fails if the
/// environment variable `FLEETNET_PACKETS` is `required`.
pub fn inside<F>(test: F) -> anyhow::Result<()>
where
    F: AsyncFnOnce() -> anyhow::Result<()>,
{
    inside_with(&[], test)
}

/// Runs a test as [`inside`] does, if the machine also has these programs.
pub fn inside_with<F>(tools: &[&str], test: F) -> anyhow::Result<()>
where
    F: AsyncFnOnce() -> anyhow::Result<()>,
{
    let name = name_of::<F>()?;
    if is_inside() {
        println!("{}", begins(name));
        return harness::run(test());
    }
    if !can_run(name, tools)? {
        return Ok(());
    }
    let _turn = Turn::take();
    prepare()?;
    run_again(name)
}

/// True if this machine can run the test with this name, which needs a bed and these programs.
///
/// # Errors
/// If the machine cannot run the test, and the environment variable `FLEETNET_PACKETS` is `required`. Without it, the
/// test is reported as not run on standard error.
pub fn can_run(name: &str, tools: &[&str]) -> anyhow::Result<bool> {
    let Some(reason) = obstacle(tools) else { return Ok(true) };
    ensure!(env::var_os(REQUIREMENT).is_none_or(|value| value != "required"), "{name} cannot run: {reason}");
    // Written directly: the test framework does not show the output of a test that passes.
    writeln!(std::io::stderr(), "not run: {name}: {reason}")?;
    Ok(false)
}

/// Runs the main part of a program inside of namespaces of its own.
///
/// The program starts itself again with the same arguments. `work` runs only in the second process. Both processes have
/// the same standard output and standard error.
///
/// # Errors
/// If the machine cannot run a bed, or if `work` fails.
///
/// # Panics
/// In the second process, if `work` takes longer than `limit`.
pub fn run_inside(limit: Duration, work: impl AsyncFnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    if is_inside() {
        return harness::run_within(limit, work());
    }
    if let Some(reason) = obstacle(&[]) {
        bail!("this machine cannot run fleets with real traffic: {reason}");
    }
    let status = again()?.status().context("cannot start setpriv")?;
    ensure!(status.success(), "this program failed in its namespaces ({status})");
    Ok(())
}

/// Returns the call that starts this program again with the same arguments, inside of namespaces of its own. All
/// processes inside end with the thread that starts it, or with the process that it starts. The exit code is that of
/// the program inside.
///
/// # Errors
/// If a program that a bed needs cannot be built. [`obstacle`] tells what else is missing.
pub fn again() -> anyhow::Result<Command> {
    prepare()?;
    let program = env::current_exe().context("cannot tell where this program is")?;
    let mut command = command(&program, env::args_os().skip(1));
    command.env(INSIDE, "program");
    Ok(command)
}

/// True in a process that was started inside of namespaces of its own.
#[must_use]
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Returns the name of the test that the closure belongs to, as the test program knows it.
fn name_of<F>() -> anyhow::Result<&'static str> {
    let path = std::any::type_name::<F>();
    let (_, path) = path.split_once("::").with_context(|| format!("{path} has no name of a crate"))?;
    Ok(path.split("::{{closure}}").next().unwrap_or(path))
}

/// Line with which a test inside begins.
fn begins(name: &str) -> String {
    format!("{name} runs in its own namespaces")
}

/// Returns the reason why this machine cannot run a bed that needs these programs too; `None` if it can.
#[must_use]
pub fn obstacle(more: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it needs root".to_owned());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let is_there = |tool: &str| env::split_paths(&folders).any(|folder| folder.join(tool).is_file());
    if let Some(tool) = TOOLS.iter().chain(more).find(|tool| !is_there(tool)) {
        return Some(format!("it needs the program {tool}"));
    }
    let tried = Command::new("setpriv").args(NAMESPACES).args(["nft", "list", "ruleset"]).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            Some(format!("it cannot make namespaces with nftables: {}", message.trim()))
        }
        Err(error) => Some(format!("it cannot make namespaces: {error}")),
    }
}

/// Builds the programs that tests need.
fn prepare() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    for binary in BINARIES {
        runtime.block_on(binaries::find(binary))?;
    }
    control_plane::locate(Program::Proxy)?;
    coredns::locate()?;
    Ok(())
}

fn run_again(name: &str) -> anyhow::Result<()> {
    let program = env::current_exe().context("cannot tell where this program is")?;
    let arguments = [name, "--exact", "--nocapture", "--include-ignored"].map(OsString::from);
    let mut command = command(&program, arguments);
    command.env(INSIDE, name).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("cannot start setpriv")?;
    let pipes = child.stdout.take().zip(child.stderr.take()).context("a pipe that was asked for is not there")?;
    let begun = AtomicBool::new(false);
    // These threads print, so that the test framework shows the output only if the test fails.
    std::thread::scope(|scope| {
        let (output, errors) = pipes;
        scope.spawn(|| {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                begun.fetch_or(line.ends_with(&begins(name)), Ordering::Relaxed);
                println!("{line}");
            }
        });
        scope.spawn(|| {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                eprintln!("{line}");
            }
        });
    });
    let status = child.wait()?;
    ensure!(status.success(), "{name} failed in its namespaces ({status})");
    ensure!(begun.into_inner(), "no test with the name {name} ran in namespaces");
    Ok(())
}

/// Returns the call of a program inside of new namespaces.
fn command(program: &Path, arguments: impl IntoIterator<Item = OsString>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(NAMESPACES).args(["sh", "-c", SCRIPT, "sh"]).arg(program).args(arguments);
    command.env("TMPDIR", TEMPORARY).stdin(Stdio::null());
    command
}
