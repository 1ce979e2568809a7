//! Hub agents and member agents under test. Each agent runs in a separate process.

use crate::binaries;
use crate::eventually::Deadline;
use crate::limits::ADMIN_ANSWER_BYTES;
use crate::log::Log;
use crate::process::{Ended, Process, Signal, Spec};
use crate::running::RUNNING;
pub use crate::running::tails;
use crate::turn::Turn;
use anyhow::{Context as _, bail};
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

/// Settings with which to start an agent's process.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    binary: &'static str,
    name: String,
    flags: Vec<OsString>,
    environment: Vec<(String, OsString)>,
    turn: Option<Turn>,
    root: Option<PathBuf>,
    /// Folder with the agent's program, if it is not the one of the present sources.
    folder: Option<PathBuf>,
}

/// User of the agents in their images.
const IMAGE_USER: &str = "65532";

impl AgentSpec {
    /// Returns settings for the binary `hub-agent` or `member-agent`. `name` appears in messages.
    #[must_use]
    pub fn new(binary: &'static str, name: &str) -> Self {
        let (flags, environment) = (Vec::new(), Vec::new());
        Self { binary, name: name.to_owned(), flags, environment, turn: None, root: None, folder: None }
    }

    /// Sets a command-line flag, as `--name=value`. Replaces an earlier value of the flag.
    #[must_use]
    pub fn flag(mut self, name: &str, value: impl Into<OsString>) -> Self {
        let mut flag = OsString::from(name);
        flag.push("=");
        self.flags.retain(|other| !other.as_encoded_bytes().starts_with(flag.as_encoded_bytes()));
        flag.push(value.into());
        self.flags.push(flag);
        self
    }

    /// Adds an environment variable. The agent's environment is otherwise empty except for PATH.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Keeps the exclusive use of the servers (the test's [`Turn`]) until the agent's process has ended. The process
    /// may still run for a moment after the [`Agent`] value was dropped.
    #[must_use]
    pub fn within(mut self, turn: &Turn) -> Self {
        self.turn = Some(turn.clone());
        self
    }

    /// Starts the agent from the image that is unpacked in this folder, with the folder as its root, as the user of the
    /// image. Files that flags name are copied to the same place below the root. Needs user namespaces, and no root.
    #[must_use]
    pub fn in_root(mut self, root: PathBuf) -> Self {
        self.root = Some(root);
        self
    }

    /// Starts the program of this name in this folder: an agent of another version. `None` for the program of the
    /// present sources.
    #[must_use]
    pub fn from_folder(mut self, folder: Option<&Path>) -> Self {
        self.folder = folder.map(Path::to_path_buf);
        self
    }

    /// Returns the file to execute, and its arguments.
    async fn command(&self) -> anyhow::Result<(PathBuf, Vec<OsString>)> {
        let Some(root) = &self.root else {
            let program = match &self.folder {
                Some(folder) => folder.join(self.binary),
                None => binaries::find(self.binary).await?,
            };
            return Ok((program, self.flags.clone()));
        };
        for flag in &self.flags {
            let value = flag.to_str().and_then(|flag| flag.split_once('=')).map(|(_, value)| Path::new(value));
            if let Some(file) = value.filter(|value| value.is_absolute() && value.is_file()) {
                let copy = root.join(file.strip_prefix("/")?);
                fs::create_dir_all(copy.parent().context("a file has a folder")?)?;
                fs::copy(file, copy)?;
            }
        }
        let mut arguments: Vec<OsString> = vec!["--user".into(), "--wd=/".into()];
        arguments.extend(["--map-user=", "--map-group="].map(|map| format!("{map}{IMAGE_USER}").into()));
        let mut at = OsString::from("--root=");
        at.push(root);
        arguments.extend([at, format!("/{}", self.binary).into()]);
        arguments.extend(self.flags.iter().cloned());
        // Part of util-linux.
        Ok(("unshare".into(), arguments))
    }

    /// Starts the agent's process, which may not be ready yet.
    ///
    /// # Errors
    /// If the binary cannot be built or started.
    pub async fn start(&self) -> anyhow::Result<Agent> {
        let (file, arguments) = self.command().await?;
        let process = Process::start(Spec {
            name: self.name.clone(),
            file,
            arguments,
            environment: self.environment.clone(),
            scratch: None,
        });
        let process = process.await?;
        register(&process);
        if let Some(turn) = &self.turn {
            turn.outlasts(&process);
        }
        Ok(Agent { process, admin: OnceCell::new() })
    }

    /// Starts the agent's process and waits until it is ready.
    pub async fn start_ready(&self) -> anyhow::Result<Agent> {
        let agent = self.start().await?;
        agent.ready().await?;
        Ok(agent)
    }
}

/// Running agent. Its process is killed when this value is dropped, or when the test process ends in any way.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    admin: OnceCell<String>,
}

impl Agent {
    #[must_use]
    pub fn log(&self) -> &Log {
        self.process.log()
    }

    #[must_use]
    pub fn pid(&self) -> i32 {
        self.process.pids()[0]
    }

    /// Returns how the agent ended; `None` while the agent runs.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.process.ended()
    }

    /// Waits until the agent's `/readyz` reports success.
    ///
    /// # Errors
    /// If the agent ends, or is not ready in time. The error contains the last response and the last lines of the
    /// agent's log.
    pub async fn ready(&self) -> anyhow::Result<()> {
        let deadline = Deadline::start();
        loop {
            let (status, body) = self.get("/readyz").await?;
            if status == 200 {
                return Ok(());
            }
            let shown = || format!("{} is not ready: {status} {body}\n{}", self.process.name(), self.log().tail());
            deadline.pause(shown).await?;
        }
    }

    /// Sends a GET to the agent's admin port. Returns the status and the body of the response.
    ///
    /// # Errors
    /// If the agent's log names no port, or the port does not respond.
    pub async fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        let address = self.address().await?;
        let context =
            || format!("{} does not answer at http://{address}{path}\n{}", self.process.name(), self.log().tail());
        let answer = get(address, path);
        tokio::time::timeout(crate::limits::PROCESS, answer).await.with_context(context)?.with_context(context)
    }

    /// Waits until the agent's metrics have this line.
    ///
    /// # Errors
    /// If the agent ends, or has no such metric in time. The error contains its metrics with the same name.
    pub async fn metrics_have(&self, line: &str) -> anyhow::Result<()> {
        let deadline = Deadline::start();
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        loop {
            let (_, metrics) = self.get("/metrics").await?;
            if metrics.lines().any(|it| it == line) {
                return Ok(());
            }
            let same: Vec<&str> = metrics.lines().filter(|it| it.starts_with(name)).collect();
            deadline.pause(|| format!("{} has no metric {line}: {same:?}", self.process.name())).await?;
        }
    }

    /// Returns the address of the agent's admin port, such as `127.0.0.1:40123`.
    ///
    /// # Errors
    /// If the agent's log names no port in time.
    pub async fn address(&self) -> anyhow::Result<&str> {
        let address = self.admin.get_or_try_init(|| self.log().find("where it listens", listening));
        Ok(address.await?.as_str())
    }

    /// Returns the address of the agent's protected metrics (`--metrics-secure`), such as `127.0.0.1:40123`.
    ///
    /// # Errors
    /// If the agent's log names no such address in time.
    pub async fn secure_metrics_address(&self) -> anyhow::Result<String> {
        self.log().find("where it serves metrics over TLS", |line| address_in(line, SERVING_SECURELY)).await
    }

    /// Returns the address of the hub agent's slice stream.
    ///
    /// # Errors
    /// If the agent's log names no such address in time.
    pub async fn slice_stream_address(&self) -> anyhow::Result<SocketAddr> {
        let address = self.log().find("where it serves the slice stream", |line| address_in(line, SERVING_STREAM));
        Ok(address.await?.parse()?)
    }

    /// Sends SIGTERM to the agent for a graceful stop. Returns before the agent has ended.
    pub async fn ask_to_stop(&self) -> anyhow::Result<()> {
        self.process.signal(Signal::Term).await
    }

    /// Sends SIGTERM to the agent for a graceful stop, and waits until the agent has ended.
    pub async fn terminate(&self) -> anyhow::Result<Ended> {
        self.process.signal(Signal::Term).await?;
        self.process.wait().await
    }

    /// Kills the agent with SIGKILL, and waits until the agent has ended.
    pub async fn kill(self) -> anyhow::Result<()> {
        self.process.signal(Signal::Kill).await?;
        self.process.wait().await?;
        self.process.end().await
    }

    /// Waits until the agent has ended, for any reason.
    pub async fn wait(&self) -> anyhow::Result<Ended> {
        self.process.wait().await
    }

    /// Freezes the agent's process, like a machine that hangs, until [`Agent::thaw`].
    pub async fn freeze(&self) -> anyhow::Result<()> {
        self.process.signal(Signal::Stop).await
    }

    /// Resumes the agent's process after [`Agent::freeze`].
    pub async fn thaw(&self) -> anyhow::Result<()> {
        self.process.signal(Signal::Cont).await
    }
}

fn register(process: &Process) {
    let [pid, _] = process.pids();
    let log = process.log().clone();
    RUNNING.lock().push((pid, Box::new(move || log.tail())));
    let gone = process.gone();
    tokio::spawn(async move {
        gone.await;
        RUNNING.lock().retain(|(registered, _)| *registered != pid);
    });
}

/// Log messages with which an agent reports the address of each open admin port without TLS.
const SERVING: [&str; 2] = ["serving metrics and probes", "serving probes"];
/// Log message with which an agent reports the address of its protected metrics.
const SERVING_SECURELY: &str = "serving metrics over TLS";

/// Log message with which the hub agent reports the address of its slice stream.
const SERVING_STREAM: &str = "serving the slice stream";

/// Returns the address in a log line about an admin port without TLS; `None` for other lines.
fn listening(line: &str) -> Option<String> {
    SERVING.iter().find_map(|message| address_in(line, message))
}

/// Returns the address in a log line with this message; `None` for other lines.
fn address_in(line: &str, message: &str) -> Option<String> {
    let (before, rest) = line.split_once("127.0.0.1:")?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    (before.contains(message) || rest.contains(message)).then(|| format!("127.0.0.1:{port}"))
}

/// Sends a GET with HTTP/1.0, so that the server closes the connection at the end of the response.
async fn get(address: &str, path: &str) -> anyhow::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(u64::try_from(ADMIN_ANSWER_BYTES)?).read_to_end(&mut answer).await?;
    let answer = String::from_utf8(answer).context("the answer is not text")?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        bail!("the answer has no end of its head: {answer}")
    };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).context("the answer has no status")?;
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::listening;

    #[test]
    fn the_admin_port_is_read_from_its_line_of_the_log_and_from_no_other() {
        let json =
            r#"{"fields":{"message":"serving metrics and probes","address":"127.0.0.1:40123","asked":"127.0.0.1:0"}}"#;
        assert_eq!(listening(json).as_deref(), Some("127.0.0.1:40123"));
        let text = "INFO serving metrics and probes address=127.0.0.1:7 asked=127.0.0.1:0";
        assert_eq!(listening(text).as_deref(), Some("127.0.0.1:7"));
        let probes = "INFO serving probes address=127.0.0.1:8 asked=127.0.0.1:0";
        assert_eq!(listening(probes).as_deref(), Some("127.0.0.1:8"));
        assert_eq!(listening("INFO serving metrics over TLS address=127.0.0.1:9 asked=127.0.0.1:0"), None);
        assert_eq!(listening("flag --metrics-bind-address=127.0.0.1:0"), None);
        assert_eq!(listening("the API server is at https://127.0.0.1:6443"), None);
    }
}
