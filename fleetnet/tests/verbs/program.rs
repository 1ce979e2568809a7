//! The program `fleetnet` in a test.

use serde_json::Value;
use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Time limit of one command. Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// What a command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    /// Output as JSON, which must be a document of this kind.
    pub(crate) fn json(&self, kind: &str) -> Value {
        let value: Value = serde_json::from_str(&self.output).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!((&value["apiVersion"], &value["kind"]), (&"cli.fleetnet/v1".into(), &kind.into()), "{self:?}");
        value
    }

    /// Fails if the exit code is another one.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.output, self.errors);
        self
    }
}

/// Runs a command with an empty environment.
pub(crate) async fn run<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetnet"));
    let child = command.args(arguments).env_clear().stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(LIMIT, child).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for {command:?}")).unwrap();
    Ended {
        code: output.status.code().unwrap(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}
