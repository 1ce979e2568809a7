//! Command `cargo xtask reference`: writes the pages of `docs/reference` from the code.

mod crds;
mod flags;
mod markdown;
mod metrics;
mod names;

use anyhow::Context as _;
use std::path::Path;

/// Folder of the pages, from the root of the work tree.
const FOLDER: &str = "docs/reference";
/// Line below the title of each page. The test that the line names checks that the pages are current.
const ORIGIN: &str = "Generated from the code by `cargo xtask reference`\
                      <!-- run by pages::the_pages_of_docs_reference_are_current -->. Do not edit.";

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

/// Returns all pages, each with its file name. Descriptions of names come from the doc comments of the sources below `root`.
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
    use std::collections::BTreeSet;

    #[test]
    fn the_pages_of_docs_reference_are_current() {
        let (folder, pages) =
            (programs::root().join(FOLDER), pages(&programs::root()).expect("the sources of the names"));
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        let found: BTreeSet<_> = std::fs::read_dir(&folder).expect("run `cargo xtask reference`").map(name).collect();
        let expected: BTreeSet<_> = pages.iter().map(|(name, _)| std::ffi::OsString::from(name)).collect();
        assert_eq!(found, expected, "run `cargo xtask reference`, and remove files that it does not write");
        for (name, text) in pages {
            let committed = std::fs::read_to_string(folder.join(name)).expect("run `cargo xtask reference`");
            assert!(committed == text, "{FOLDER}/{name} is not current: run `cargo xtask reference`");
        }
    }
}
