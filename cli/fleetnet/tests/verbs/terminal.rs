//! Tests of colours, progress and questions on a pseudoterminal.

use crate::hub::{Cluster, folder};
use crate::views::hub_agent;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Time limit of one command.
const LIMIT: Duration = Duration::from_secs(60);

/// Output that is a terminal.
#[derive(Clone, Copy)]
enum Screen {
    Output,
    Errors,
}

/// Runs a command whose output or errors are a pseudoterminal. Returns everything that was written to the terminal.
fn run(kubeconfig: &PathBuf, screen: Screen, more: &[&str], environment: &[(&str, &str)]) -> String {
    let mut keyboard = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
    let terminal = Stdio::from(File::options().read(true).write(true).open(name).unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
    command.arg("status").arg("--kubeconfig").arg(kubeconfig).args(more);
    command.env_clear().env("TERM", "xterm").envs(environment.iter().copied()).stdin(Stdio::null());
    match screen {
        Screen::Output => command.stdout(terminal).stderr(Stdio::null()),
        Screen::Errors => command.stdout(Stdio::null()).stderr(terminal),
    };
    let mut child = command.spawn().unwrap();
    // The command object also has the terminal open. Without the drop, the terminal would stay open after the process
    // has ended.
    drop(command);
    let (mut written, mut piece) = (Vec::new(), [0; 4096]);
    // A read fails when the last process that had the terminal open has ended.
    while let Ok(bytes @ 1..) = keyboard.read(&mut piece) {
        written.extend_from_slice(&piece[..bytes]);
    }
    child.wait().unwrap();
    String::from_utf8(written).unwrap()
}

async fn on_a_terminal(
    hub: &Cluster,
    screen: Screen,
    more: &'static [&str],
    environment: &'static [(&str, &str)],
) -> String {
    let kubeconfig = hub.kubeconfig.clone();
    let running = spawn_blocking(move || run(&kubeconfig, screen, more, environment));
    timeout(LIMIT, running).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the end of status")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn colours_are_for_terminals_and_can_be_switched_off() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let red = "\u{1b}[31mNeverHeard\u{1b}[0m";
    assert!(on_a_terminal(&hub, Screen::Output, &[], &[]).await.contains(red));
    for (more, environment) in
        [(&["--no-color"][..], &[][..]), (&[], &[("NO_COLOR", "1")]), (&["-o", "json"], &[]), (&["-o", "name"], &[])]
    {
        let written = on_a_terminal(&hub, Screen::Output, more, environment).await;
        assert!(written.contains("west") && !written.contains('\u{1b}'), "{more:?}: {written:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_on_standard_error_and_leaves_nothing_behind() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    hub_agent(&hub).await;
    let written = on_a_terminal(&hub, Screen::Errors, &["--wait=1s"], &[]).await;
    assert!(written.contains("waiting until nothing is wrong"), "{written:?}");
    assert!(written.ends_with("\u{1b}[2K"), "the line of the spinner is cleared: {written:?}");
}

/// Runs `leave west --force` with a pseudoterminal as standard input, and answers its question. Returns its exit code
/// and errors.
fn answered(kubeconfig: &PathBuf, answer: &str) -> (i32, String) {
    let mut keyboard = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    // The terminal keeps the answer until the program reads it.
    writeln!(keyboard, "{answer}").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
    command.args(["leave", "west", "--force", "--wait=1s", "--kubeconfig"]).arg(kubeconfig).env_clear();
    let ended = command.stdin(Stdio::from(terminal)).output().unwrap();
    (ended.status.code().unwrap(), String::from_utf8(ended.stderr).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn leave_asks_before_it_deletes_and_only_yes_agrees() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let namespaces: Api<Namespace> = Api::all(hub.client());
    for (answer, code) in [("n", 1), ("", 1), ("yes", 0)] {
        let kubeconfig = hub.kubeconfig.clone();
        let running = spawn_blocking(move || answered(&kubeconfig, answer));
        let ended = timeout(LIMIT, running).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for leave")).unwrap();
        let question =
            format!("Take the member west out? This deletes or changes 1 objects of context admin@hub ({}/)", hub.url);
        assert!(ended.0 == code && ended.1.contains(&question), "{answer}: {ended:?}");
        assert_eq!(ended.1.contains("nothing was changed"), code == 1, "{ended:?}");
        assert_eq!(namespaces.get_opt("fleet-member-west").await.unwrap().is_some(), code == 1);
    }
}
