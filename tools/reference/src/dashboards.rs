//! Grafana dashboards: `cargo xtask reference` writes them to the chart of the hub agent, because Helm reads only files
//! inside of a chart.
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

/// Folder of the files, from the root of the work tree.
const FOLDER: &str = "deploy/charts/fleetnet-hub-agent/files/dashboards";

/// Writes all dashboards. Replaces files of the same name.
pub(crate) fn run() -> anyhow::Result<()> {
    let folder = programs::root().join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for (name, text) in files() {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the JSON of all dashboards, each with its file name.
fn files() -> Vec<(String, String)> {
    let file = |dashboard: &Dashboard| (format!("{}.json", dashboard.uid), format!("{:#}\n", dashboard.json()));
    [fleet::dashboard(), member::dashboard(), pair::dashboard()].iter().map(file).collect()
}
