//! Command `cargo xtask reference`: writes the pages of `docs/reference` from the code.

mod crds;
mod flags;
pub(crate) mod markdown;
mod metrics;
mod names;

use anyhow::Context as _;
use std::path::Path;

/// Folder of the pages, from the root of the work tree.
const FOLDER: &str = "docs/reference";
/// Line below the title of each page.
const ORIGIN: &str = "Generated from the code by `cargo xtask reference`. Do not edit.";

/// Writes all pages. Replaces files of the same name.
pub(crate) fn run() -> anyhow::Result<()> {
    let folder = programs::root().join(FOLDER);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for (name, text) in pages(&programs::root())? {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns all pages, each with its file name. Descriptions of names come from the doc comments of the sources below
/// `root`.
fn pages(root: &Path) -> anyhow::Result<Vec<(&'static str, String)>> {
    let page = |title: &str, body: String| format!("# {title}\n\n{ORIGIN}\n\n{}\n", body.trim_end());
    Ok(vec![
        ("annotations.md", page("Labels, annotations, finalizers, conditions and reasons", names::body(root)?)),
        ("crds.md", page("Custom resources", crds::body())),
        ("flags.md", page("Flags of the agents", flags::body())),
        ("metrics.md", page("Metrics of the agents", metrics::body()?)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_docs_reference_are_current() {
        let folder = programs::root().join(FOLDER);
        // The folder also has pages that are written by hand.
        let pages = pages(&programs::root()).expect("the sources of the names");
        for (name, text) in pages {
            let committed = std::fs::read_to_string(folder.join(name)).expect("run `cargo xtask reference`");
            assert!(committed == text, "{FOLDER}/{name} is not current: run `cargo xtask reference`");
        }
    }
}
