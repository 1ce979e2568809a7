//! Debian's Prometheus under test: [`Prometheus`].

use crate::limits::{PROCESS, PROMTOOL};
use crate::process::{Process, Spec};
use crate::watchdog;
use anyhow::{Context as _, ensure};
use http::Request;
use kube::Client;
use programs::prometheus::Prometheus as Programs;
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

/// Finds Prometheus. The first call downloads it, and the clock of the test stops for that time.
async fn locate() -> anyhow::Result<Programs> {
    let _pause = watchdog::pause();
    tokio::task::spawn_blocking(Programs::locate).await?
}

/// Runs promtool in the root of the work tree.
///
/// # Errors
/// If promtool fails. The error has its output.
pub async fn promtool(words: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(locate().await?.promtool);
    command.args(words).current_dir(programs::root()).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(PROMTOOL, command.output()).await;
    let output = output.with_context(|| format!("promtool {words:?} does not end"))??;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "promtool {words:?}: {out}{err}");
    Ok(())
}

/// Running Prometheus on a free port. Its process is killed when this value is dropped, or when the test process ends
/// in any way.
pub struct Prometheus {
    process: Process,
    client: Client,
}

impl Prometheus {
    /// Starts Prometheus with this configuration, whose rule files have absolute paths. The first call downloads
    /// Prometheus, and the clock of the test stops for that time.
    ///
    /// # Errors
    /// If Prometheus cannot be found, or rejects its configuration.
    pub async fn start(configuration: &Value) -> anyhow::Result<Self> {
        let programs = locate().await?;
        let folder = TempDir::with_prefix("fleetnet-prometheus-")?.keep();
        let path = folder.join("prometheus.yaml");
        // JSON is YAML.
        fs::write(&path, configuration.to_string())?;
        let arguments = [
            format!("--config.file={}", path.display()),
            format!("--storage.tsdb.path={}", folder.join("data").display()),
            "--web.listen-address=127.0.0.1:0".to_owned(),
        ];
        let process = Process::start(Spec {
            name: "prometheus".to_owned(),
            file: programs.prometheus,
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            scratch: Some(folder),
        });
        let process = process.await?;
        process.log().find("that it is ready", |line| line.contains("Server is ready").then_some(())).await?;
        let address = process.log().find("where it listens", listening).await?;
        let client = Client::try_from(kube::Config::new(format!("http://{address}").parse()?))?;
        Ok(Self { process, client })
    }

    /// Returns the `data` of an answer of Prometheus's API, such as `query`.
    ///
    /// # Errors
    /// If Prometheus does not answer, or answers with an error.
    pub async fn get(&self, endpoint: &str, parameters: &[(&str, &str)]) -> anyhow::Result<Value> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        let request = Request::get(format!("/api/v1/{endpoint}?{}", query.finish())).body(Vec::new())?;
        let context = || format!("Prometheus rejects {endpoint} with {parameters:?}\n{}", self.process.log().tail());
        let answer = timeout(PROCESS, self.client.request::<Value>(request)).await.with_context(context)?;
        let mut answer = answer.with_context(context)?;
        ensure!(answer["status"] == "success", "{}: {answer}", context());
        Ok(answer["data"].take())
    }

    /// Returns the present series of a query.
    pub async fn query(&self, expression: &str) -> anyhow::Result<Vec<Value>> {
        let mut data = self.get("query", &[("query", expression)]).await?;
        let Value::Array(series) = data["result"].take() else { return Ok(Vec::new()) };
        Ok(series)
    }
}

/// Returns the address in the log line with which Prometheus says where it listens; `None` for other lines.
fn listening(line: &str) -> Option<String> {
    let (_, address) = line.split_once("msg=\"Listening on\" address=")?;
    address.split_whitespace().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::listening;

    #[test]
    fn the_address_is_read_from_its_line_of_the_log_and_from_no_other() {
        let line = r#"ts=2026-11-23T13:28:30.898Z caller=tls_config.go:232 level=info component=web msg="Listening on" address=127.0.0.1:41327"#;
        assert_eq!(listening(line).as_deref(), Some("127.0.0.1:41327"));
        let asked = r#"level=info component=web msg="Start listening for connections" address=127.0.0.1:0"#;
        assert_eq!(listening(asked), None);
    }
}
