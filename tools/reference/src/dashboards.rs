//! Grafana dashboards: `cargo xtask reference` writes them to `deploy/observability/dashboards`, and for Helm, which
//! reads only files inside of a chart, to the chart of the hub agent.
//!
//! `fleet.rs`, `member.rs` and `pair.rs` describe the dashboards, `model/json.rs` writes the JSON of Grafana. To change
//! a panel, change its description, and run `cargo xtask reference`.

mod agent;
mod fleet;
mod member;
mod model;
mod pair;
#[cfg(test)]
mod tests;

use anyhow::Context as _;
use model::Dashboard;

/// Folders of the files, from the root of the work tree.
const FOLDERS: [&str; 2] = ["deploy/observability/dashboards", "deploy/charts/fleetnet-hub-agent/files/dashboards"];

/// Writes all dashboards to both folders. Replaces files of the same name.
pub(crate) fn run() -> anyhow::Result<()> {
    for folder in FOLDERS {
        let folder = programs::root().join(folder);
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
        for (name, text) in files() {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// Returns the JSON of all dashboards, each with its file name.
fn files() -> Vec<(String, String)> {
    let file = |dashboard: &Dashboard| (format!("{}.json", dashboard.uid), format!("{:#}\n", dashboard.json()));
    [fleet::dashboard(), member::dashboard(), pair::dashboard()].iter().map(file).collect()
}
