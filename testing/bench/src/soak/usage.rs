//! Memory, open files and tasks of the agents.

use super::replicas::Replicas;
use crate::environment::memory_of;
use anyhow::Context as _;
use serde::Serialize;
use std::collections::BTreeMap;

/// Use of resources by one process.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Usage {
    pub resident_mib: f64,
    pub files: usize,
    pub tasks: usize,
}

impl Usage {
    /// Takes the larger of each value.
    pub(super) fn include(&mut self, other: Self) {
        self.resident_mib = self.resident_mib.max(other.resident_mib);
        self.files = self.files.max(other.files);
        self.tasks = self.tasks.max(other.tasks);
    }
}

/// Takes the larger values of the present use by each replica that answers into `most`, by the name of its agent.
pub(super) async fn measure(replicas: &Replicas, most: &mut BTreeMap<String, Usage>) -> anyhow::Result<()> {
    for replica in &replicas.all {
        let Some(agent) = replica.agent.as_ref().filter(|agent| agent.ended().is_none()) else { continue };
        // An agent that is still starting, or ends meanwhile, has no metrics.
        let Ok((200, text)) = agent.get("/metrics").await else { continue };
        let (Ok(memory), Ok(files)) = (memory_of(agent.pid()), std::fs::read_dir(format!("/proc/{}/fd", agent.pid())))
        else {
            continue;
        };
        let tasks = text.lines().find_map(|line| line.strip_prefix("fleetnet_tasks ")?.parse().ok());
        let tasks = tasks.context("an agent shows its tasks")?;
        let used = Usage { resident_mib: memory.resident_mib, files: files.count(), tasks };
        most.entry(replica.name.clone()).or_default().include(used);
    }
    Ok(())
}
