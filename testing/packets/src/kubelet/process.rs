//! Process of a container: [`Process`].

use super::place::Place;
use crate::shell::namespace_file;
use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::Container;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{Child, Command};

/// Script that puts the pod's resolver settings in place, if there are any, and becomes the command of the container.
const SCRIPT: &str = "if [ -n \"$1\" ]; then mount --bind \"$1\" /etc/resolv.conf || exit 125; fi; shift; exec \"$@\"";
/// Call of `unshare` for a container. The mounts of new network namespaces appear in the container, and they disappear
/// with them, so that no container keeps the network of another pod.
const UNSHARE: [&str; 8] =
    ["unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Running process of a container. It is killed when this value is dropped.
#[derive(Debug)]
pub(super) struct Process {
    /// `unshare`, which waits for process 1 of the container and ends as it does.
    waiter: Child,
    target: Target,
    killed: bool,
    /// File that tells kubelet-streams the process. It exists while the container runs.
    file: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        // The pod may have lost its folder.
        let _ = fs::remove_file(&self.file);
    }
}

/// Namespaces of a running container, to run commands in.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Process id of `unshare`.
    waiter: i32,
    environment: Arc<BTreeMap<String, String>>,
}

impl Process {
    /// Starts a container.
    pub(super) fn start(place: &Place, container: &Container) -> anyhow::Result<Self> {
        let environment = environment(place, container)?;
        let log = log_file(place, container);
        let output = fs::File::options().create(true).append(true).open(&log);
        let output = output.with_context(|| format!("cannot open {}", log.display()))?;
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", namespace_file(&place.namespace())));
        command.args(UNSHARE).args(["sh", "-c", SCRIPT, "sh"]).arg(place.resolver().unwrap_or_default());
        command.args(words(place, container, &environment)?);
        command.env_clear().envs(&environment);
        command.current_dir(container.working_dir.as_deref().unwrap_or("/")).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let waiter = command.spawn().context("cannot start nsenter")?;
        let pid = waiter.id().and_then(|id| i32::try_from(id).ok()).context("no process id")?;
        let target = Target { waiter: pid, environment: Arc::new(environment) };
        let file = place.folder.join(format!("{}.json", container.name));
        fs::write(&file, target.description()).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { waiter, target, killed: false, file })
    }

    pub(super) fn target(&self) -> Target {
        self.target.clone()
    }

    /// Waits until the container has ended. Returns its exit code: 128 plus the signal if a signal ended it.
    pub(super) async fn wait(&mut self) -> i32 {
        match self.waiter.wait().await {
            // `unshare` of util-linux 2.38 fails instead of repeating SIGKILL.
            Ok(_) if self.killed => 128 + Signal::KILL.as_raw(),
            Ok(status) => code(status),
            Err(_) => 128,
        }
    }

    /// Sends a signal to process 1 of the container.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.killed |= signal == Signal::KILL;
        match self.target.process_one() {
            // An error means that the process has just ended.
            Some(pid) => drop(kill_process(pid, signal)),
            // `unshare` has not made the process yet. It kills the process when it ends itself.
            None => drop(self.waiter.start_kill()),
        }
    }
}

impl Target {
    /// Returns what kubelet-streams must know: the type `target` of `tools/controlplane/streams_linux.go`.
    fn description(&self) -> String {
        json!({"waiter": self.waiter, "environment": &*self.environment}).to_string()
    }

    /// Runs a command in the namespaces of the container, with its variables.
    ///
    /// # Errors
    /// If the command fails, or has not ended within `limit`.
    pub(super) async fn execute(&self, words: &[String], limit: Duration) -> anyhow::Result<()> {
        let Some(target) = self.process_one() else { bail!("the container does not run") };
        let mut command = Command::new("nsenter");
        command.args(["--target", &target.to_string(), "--mount", "--net", "--pid", "--"]).args(words);
        command.env_clear().envs(&*self.environment).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start nsenter")?;
        let _group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).map(Group);
        let status = tokio::time::timeout(limit, child.wait()).await;
        let status = status.with_context(|| format!("{words:?} has not ended in {limit:?}"))??;
        ensure!(status.success(), "{words:?} failed ({status})");
        Ok(())
    }

    /// Returns the process id of process 1 of the container, the only child of `unshare`.
    fn process_one(&self) -> Option<Pid> {
        let waiter = self.waiter;
        let children = fs::read_to_string(format!("/proc/{waiter}/task/{waiter}/children")).ok()?;
        children.split_whitespace().next().and_then(|pid| Pid::from_raw(pid.parse().ok()?))
    }
}

/// Process group that is killed when this value is dropped.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // An error means that the group is empty.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// Returns the file with the output of a container.
fn log_file(place: &Place, container: &Container) -> PathBuf {
    place.folder.join(format!("{}.log", container.name))
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Returns the command of a container and its arguments.
fn words(place: &Place, container: &Container, environment: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
    let given = container.command.iter().flatten().chain(container.args.iter().flatten());
    let given = given.map(|word| expand(word, environment));
    let has_command = container.command.as_ref().is_some_and(|command| !command.is_empty());
    match container.image.as_deref().unwrap_or_default() {
        image @ ("serve" | "client") if !has_command => {
            let program = place.node.settings.images.to_str().context("the path of the images is no text")?;
            Ok([program.to_owned(), image.to_owned()].into_iter().chain(given).collect())
        }
        image => {
            let words: Vec<String> = given.collect();
            ensure!(!words.is_empty(), "the image {image} has no content, so its container needs a command");
            Ok(words)
        }
    }
}

/// Returns the variables of a container.
fn environment(place: &Place, container: &Container) -> anyhow::Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
        ("HOME".to_owned(), "/".to_owned()),
        ("HOSTNAME".to_owned(), place.pod.metadata.name.clone().unwrap_or_default()),
    ]);
    for variable in container.env.iter().flatten() {
        let from = variable.value_from.as_ref().map(|from| from.field_ref.as_ref().map(|field| &*field.field_path));
        let value = match from {
            None => expand(variable.value.as_deref().unwrap_or_default(), &values),
            Some(Some(path)) => field(place, path).with_context(|| format!("the kubelet knows no field {path}"))?,
            Some(None) => bail!("the kubelet knows no source of the variable {}", variable.name),
        };
        values.insert(variable.name.clone(), value);
    }
    Ok(values)
}

/// Returns the value of a field of the pod, as the downward API names it.
fn field(place: &Place, path: &str) -> Option<String> {
    let (metadata, network) = (&place.pod.metadata, place.node.settings.network);
    match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "spec.nodeName" => Some(place.node.settings.node.clone()),
        "status.hostIP" => Some(network.address().to_string()),
        "status.podIP" => Some(place.address().to_string()),
        "status.podIPs" => Some(format!("{},{}", place.address(), network.pod_address6(place.number))),
        _ => None,
    }
}

/// Replaces `$(NAME)` by the value of a variable, if there is one.
fn expand(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut parts = text.split("$(");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let found = part.split_once(')').and_then(|(name, rest)| Some((values.get(name)?, rest)));
        match found {
            Some((value, rest)) => expanded.extend([value, rest]),
            None => expanded.extend(["$(", part]),
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::expand;
    use std::collections::BTreeMap;

    #[test]
    fn known_variables_are_replaced_and_others_stay() {
        let values = BTreeMap::from([("POD".to_owned(), "app-1".to_owned())]);
        assert_eq!(expand("--name=$(POD)@west", &values), "--name=app-1@west");
        assert_eq!(expand("$(date) $(POD)$(POD", &values), "$(date) app-1$(POD");
    }
}
