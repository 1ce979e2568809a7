//! Copy of the source tree in which faults (deliberate errors) are planted, and the copy's programs.

use crate::cargo;
use anyhow::Context as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Names of files and folders that are not copied, at any depth.
const LEFT_OUT: &[&str] = &[".git", "target", "node_modules"];

/// Reason why the tests were not built.
pub(super) enum NotBuilt {
    /// The compiler rejects these places, as file and byte.
    Rejected {
        places: Vec<(String, usize)>,
        words: String,
    },
    Failed(anyhow::Error),
}

/// Copy of the tree.
pub(super) struct Scratch {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
    /// Folder of intermediate results of Cargo, the same as for the tree itself. So dependencies are not compiled
    /// twice.
    intermediate: PathBuf,
}

/// Test program built from the copy of the source tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    /// Folder of the program's package, where its tests run.
    pub(super) folder: PathBuf,
    pub(super) executable: PathBuf,
}

impl Scratch {
    /// Returns a copy of the tree in `root`, below `folder`. [`Self::write`] creates the files.
    pub(super) fn new(root: PathBuf, folder: &Path, intermediate: PathBuf) -> Self {
        Self { root, tree: folder.join("tree"), target: folder.join("target"), intermediate }
    }

    /// Returns the path of a file beside the copy.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.target.with_file_name(name)
    }

    /// Copies the tree. Files in `texts` get these texts. Files that are already equal are not written, so that Cargo
    /// does not rebuild them.
    pub(super) fn write(&self, texts: &BTreeMap<String, String>) -> anyhow::Result<()> {
        let texts = texts.iter().map(|(file, text)| (self.root.join(file), text.as_str())).collect();
        mirror(&self.root, &self.tree, &texts)
    }

    /// Builds the test programs of the packages in these folders. One call of Cargo builds them all, because a package
    /// alone needs other features of its dependencies, and the dependencies would be compiled for each package.
    pub(super) fn programs(&self, folders: &BTreeSet<&str>) -> Result<Vec<Program>, NotBuilt> {
        let built = self.build(folders, &["test", "--no-run", "--lib", "--tests"]).map_err(NotBuilt::Failed)?;
        if !built.status.success() {
            return Err(NotBuilt::Rejected { places: rejected(&built), words: words(&built) });
        }
        let is_test = |message: &Value| message["profile"]["test"] == true;
        let programs = messages(&built).filter(is_test).filter_map(|message| {
            let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
            Some(Program { folder, executable: message["executable"].as_str()?.into() })
        });
        Ok(programs.collect())
    }

    /// Builds a program of the package in a folder, and returns its path.
    pub(super) fn program(&self, folder: &str, name: &str) -> anyhow::Result<PathBuf> {
        let built = self.build(&BTreeSet::from([folder]), &["build", "--bin", name])?;
        anyhow::ensure!(built.status.success(), "{}", words(&built));
        let is_it = |message: &Value| message["target"]["name"] == name && message["executable"].is_string();
        let path = messages(&built).find(is_it).and_then(|message| message["executable"].as_str().map(PathBuf::from));
        path.with_context(|| format!("{folder} has no program {name}"))
    }

    /// Runs a command of Cargo that builds the packages in these folders.
    fn build(&self, folders: &BTreeSet<&str>, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut command = cargo::command(arguments);
        command.args(["--quiet", "--message-format=json-diagnostic-rendered-ansi"]);
        command.current_dir(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_BUILD_BUILD_DIR", &self.intermediate);
        // The packages of the copy have another setting than those of the tree. With equal settings, Cargo would use
        // programs of the copy for the tree. The settings of dependencies stay equal, so that dependencies are compiled
        // once.
        command.env("CARGO_PROFILE_DEV_DEBUG", "false");
        for folder in folders {
            command.args(["--package", &package(&self.tree.join(folder))?]);
        }
        command.output().context("cannot call cargo")
    }
}

/// Returns the name of the package in a folder.
fn package(folder: &Path) -> anyhow::Result<String> {
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    Ok(name.with_context(|| format!("{} names no package", manifest.display()))?.to_owned())
}

fn messages(built: &Output) -> impl Iterator<Item = Value> {
    String::from_utf8_lossy(&built.stdout)
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
}

/// Returns the places that the compiler rejects, as file and byte.
fn rejected(built: &Output) -> Vec<(String, usize)> {
    let mut places = Vec::new();
    for message in messages(built).filter(|message| message["message"]["level"] == "error") {
        for span in message["message"]["spans"].as_array().into_iter().flatten() {
            let byte = span["byte_start"].as_u64().and_then(|byte| usize::try_from(byte).ok());
            if let (Some(file), Some(byte), true) = (span["file_name"].as_str(), byte, span["is_primary"] == true) {
                places.push((file.to_owned(), byte));
            }
        }
    }
    places
}

/// Returns the messages of the compiler and Cargo as text.
fn words(built: &Output) -> String {
    let rendered = messages(built).filter_map(|message| message["message"]["rendered"].as_str().map(str::to_owned));
    let mut words: String = rendered.take(3).collect();
    words.push_str(&String::from_utf8_lossy(&built.stderr));
    words
}

/// Makes `to` a copy of `from`, except that files in `texts` get these texts. Files that are already equal are not
/// written.
fn mirror(from: &Path, to: &Path, texts: &BTreeMap<PathBuf, &str>) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", from.display()))?;
        let name = entry.file_name();
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let (source, copy) = (entry.path(), to.join(&name));
        if entry.file_type().with_context(|| format!("cannot read {}", source.display()))?.is_dir() {
            mirror(&source, &copy, texts)?;
        } else {
            let bytes = match texts.get(&source) {
                Some(text) => text.as_bytes().to_vec(),
                None => fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?,
            };
            if fs::read(&copy).ok().as_ref() != Some(&bytes) {
                fs::write(&copy, bytes).with_context(|| format!("cannot write {}", copy.display()))?;
            }
        }
        names.insert(name);
    }
    for entry in fs::read_dir(to).with_context(|| format!("cannot read {}", to.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", to.display()))?;
        if !names.contains(&entry.file_name()) {
            let path = entry.path();
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::mirror;
    use std::fs;

    #[test]
    fn a_copy_is_made_equal_and_what_is_equal_is_left_alone() {
        let (from, to) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let write = |path: &std::path::Path, text: &str| {
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        write(&from.path().join("a/b.rs"), "new");
        write(&from.path().join("c.rs"), "same");
        write(&from.path().join("target/x"), "left out");
        write(&to.path().join("a/b.rs"), "old");
        write(&to.path().join("a/gone.rs"), "gone");
        write(&to.path().join("c.rs"), "same");
        write(&from.path().join("d.rs"), "replaced");
        let texts = [(from.path().join("d.rs"), "other")].into();
        let before = fs::metadata(to.path().join("c.rs")).and_then(|it| it.modified()).expect("its time");
        mirror(from.path(), to.path(), &texts).expect("copied");
        assert_eq!(fs::read_to_string(to.path().join("a/b.rs")).expect("read"), "new");
        assert_eq!(fs::read_to_string(to.path().join("d.rs")).expect("read"), "other");
        assert!(!to.path().join("a/gone.rs").exists() && !to.path().join("target").exists());
        let after = fs::metadata(to.path().join("c.rs")).and_then(|it| it.modified()).expect("its time");
        assert_eq!(after, before);
    }
}
