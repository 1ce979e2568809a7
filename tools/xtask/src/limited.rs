//! Processes with a time limit.

use anyhow::Context as _;
use std::process::{Child, ExitStatus};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(10);

/// Waits until a process ends, and returns its status. After `limit`, kills the process and returns `None`.
#[expect(clippy::disallowed_methods, reason = "std waits for a process with no limit only, and nothing else runs here")]
pub(crate) fn wait(child: &mut Child, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
    let mut left = limit;
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a process")? {
            return Ok(Some(status));
        }
        if left.is_zero() {
            child.kill().context("cannot end a process")?;
            child.wait().context("cannot wait for a process")?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
        left = left.saturating_sub(POLL);
    }
}
