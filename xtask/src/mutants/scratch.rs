//! Copy of the source tree in which faults are planted, the copy's test programs, and the outcome of a fault.

use super::mark::Fault;
use crate::{cargo, limited};
use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Names of files and folders that are not copied, at any depth.
const LEFT_OUT: &[&str] = &[".git", "target"];
/// Time limit of one test. A fault that makes a test run longer counts as detected.
const LONGEST: Duration = Duration::from_secs(300);

/// Outcome of planting a fault.
pub(super) enum Outcome {
    /// One of the fault's tests failed, as it should.
    Seen,
    /// All of the fault's tests passed, so they do not detect it.
    Survived,
    /// The code with the fault does not compile. The text is the compiler's message.
    Broken(String),
}

impl Outcome {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Seen => "seen",
            Self::Survived => "SURVIVED",
            Self::Broken(_) => "BROKEN",
        }
    }
}

pub(super) struct Scratch {
    tree: PathBuf,
    target: PathBuf,
}

/// Test program built from the copy.
#[derive(Clone)]
struct Program {
    /// Arguments that select the program's target in Cargo: `--lib`, or `--test` with a name.
    target: Vec<String>,
    /// Folder of the program's package, where its tests run.
    folder: PathBuf,
    executable: PathBuf,
}

/// Program of each test of some packages, by (folder of the package, path of the test).
pub(super) struct Suites(BTreeMap<(String, String), Program>);

impl Scratch {
    /// Copies the tree. Changes only what differs from an earlier copy, so that Cargo rebuilds no more than that.
    pub(super) fn copy(root: &Path, folder: &Path) -> anyhow::Result<Self> {
        let scratch = Self { tree: folder.join("tree"), target: folder.join("target") };
        mirror(root, &scratch.tree)?;
        Ok(scratch)
    }

    /// Builds the test programs of the packages in these folders, and lists their tests.
    pub(super) fn suites(&self, folders: &BTreeSet<&str>) -> anyhow::Result<Suites> {
        let mut suites = BTreeMap::new();
        for folder in folders {
            let built = self.build(folder, &["--lib".to_owned(), "--tests".to_owned()])?;
            ensure!(built.status.success(), "the tests of {folder} do not compile:\n{}", words(&built));
            for program in self.programs(folder, &built)? {
                for test in names(&program)? {
                    suites.insert(((*folder).to_owned(), test), program.clone());
                }
            }
        }
        Ok(Suites(suites))
    }

    /// Plants a fault, runs its tests until one fails, and removes the fault again.
    pub(super) fn plant(&self, fault: &Fault, tests: &[(String, String)], suites: &Suites) -> anyhow::Result<Outcome> {
        let path = self.tree.join(&fault.file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", fault.file))?;
        let faulty = fault.applied(&text).with_context(|| format!("{}:{}: {}", fault.file, fault.line, fault.id))?;
        fs::write(&path, faulty).with_context(|| format!("cannot write {}", path.display()))?;
        let outcome = self.outcome(tests, suites);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        outcome
    }

    fn outcome(&self, tests: &[(String, String)], suites: &Suites) -> anyhow::Result<Outcome> {
        for (folder, test) in tests {
            let (test, program) = suites.find(folder, test)?;
            let built = self.build(folder, &program.target)?;
            if !built.status.success() {
                return Ok(Outcome::Broken(words(&built)));
            }
            let programs = self.programs(folder, &built)?;
            let [program] = &programs[..] else {
                bail!("{:?} is built as {} programs", program.target, programs.len())
            };
            if !passes(program, &[test])? {
                return Ok(Outcome::Seen);
            }
        }
        Ok(Outcome::Survived)
    }

    /// Returns a digest over all files of the copy.
    pub(super) fn digest(&self) -> anyhow::Result<String> {
        let mut digest = Sha256::new();
        let mut folders = vec![self.tree.clone()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
            let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
            paths.sort();
            for path in paths {
                digest.update(path.as_os_str().as_encoded_bytes());
                if path.is_dir() {
                    folders.push(path);
                } else {
                    digest.update(fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
                }
            }
        }
        Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn build(&self, folder: &str, targets: &[String]) -> anyhow::Result<Output> {
        let manifest = self.tree.join(folder).join("Cargo.toml");
        let mut command =
            cargo::command(&["test", "--no-run", "--quiet", "--message-format=json-diagnostic-rendered-ansi"]);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target).env("CARGO_PROFILE_DEV_DEBUG", "false");
        command.arg("--manifest-path").arg(manifest).args(targets);
        command.output().context("cannot call cargo")
    }

    /// Returns the test programs that a build made, from Cargo's messages.
    fn programs(&self, folder: &str, built: &Output) -> anyhow::Result<Vec<Program>> {
        let mut programs = Vec::new();
        for message in messages(built) {
            let Some(executable) = message["executable"].as_str() else { continue };
            let name = message["target"]["name"].as_str().context("a target without a name")?;
            let target = match message["target"]["kind"][0].as_str() {
                Some("test") => vec!["--test".to_owned(), name.to_owned()],
                Some("lib") => vec!["--lib".to_owned()],
                _ => continue,
            };
            programs.push(Program { target, folder: self.tree.join(folder), executable: executable.into() });
        }
        Ok(programs)
    }
}

impl Suites {
    /// Returns the full path of the test that `file::test` names, and its program.
    fn find(&self, folder: &str, named: &str) -> anyhow::Result<(&str, &Program)> {
        let (file, name) = named.split_once("::").with_context(|| format!("{named} is not written as file::test"))?;
        let is_it = |path: &str| {
            let mut parts = path.rsplit("::");
            parts.next() == Some(name) && parts.any(|part| part == file)
        };
        let found: Vec<_> = self.0.iter().filter(|((of, path), _)| of == folder && is_it(path)).collect();
        match found[..] {
            [((_, path), program)] => Ok((path, program)),
            _ => bail!("{} tests of {folder} are called {named}, and not one", found.len()),
        }
    }

    /// Runs tests, given as (folder, name). Returns those that fail.
    pub(super) fn run_all(&self, tests: &BTreeSet<(&str, &str)>) -> anyhow::Result<Vec<String>> {
        let mut failed = Vec::new();
        let mut by_program: BTreeMap<&Path, (&Program, Vec<&str>)> = BTreeMap::new();
        for (folder, named) in tests {
            let (path, program) = self.find(folder, named)?;
            by_program.entry(&program.executable).or_insert((program, Vec::new())).1.push(path);
        }
        for (program, paths) in by_program.values() {
            if !passes(program, paths)? {
                failed.extend(
                    paths.iter().filter(|path| !passes(program, &[path]).unwrap_or(false)).map(ToString::to_string),
                );
            }
        }
        Ok(failed)
    }
}

fn messages(built: &Output) -> impl Iterator<Item = Value> {
    String::from_utf8_lossy(&built.stdout)
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok())
}

/// Returns the messages of the compiler and Cargo as text.
fn words(built: &Output) -> String {
    let rendered = messages(built).filter_map(|message| message["message"]["rendered"].as_str().map(str::to_owned));
    let mut words: String = rendered.take(3).collect();
    words.push_str(&String::from_utf8_lossy(&built.stderr));
    words
}

/// Returns the paths of a program's tests.
fn names(program: &Program) -> anyhow::Result<Vec<String>> {
    let output = command(program).args(["--list", "--format", "terse"]).output();
    let output = output.with_context(|| format!("cannot run {}", program.executable.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).stdin(Stdio::null());
    command
}

/// True if these tests of a program pass within the time limit.
fn passes(program: &Program, tests: &[&str]) -> anyhow::Result<bool> {
    let mut command = command(program);
    command.args(["--exact", "--quiet"]).args(tests).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.executable.display()))?;
    Ok(limited::wait(&mut child, LONGEST)?.is_some_and(|status| status.success()))
}

/// Makes `to` a copy of `from`. Equal files stay untouched, so that Cargo does not rebuild them.
fn mirror(from: &Path, to: &Path) -> anyhow::Result<()> {
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
            mirror(&source, &copy)?;
        } else {
            let bytes = fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
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
    use super::{Scratch, mirror};
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
        let before = fs::metadata(to.path().join("c.rs")).and_then(|it| it.modified()).expect("its time");
        mirror(from.path(), to.path()).expect("copied");
        assert_eq!(fs::read_to_string(to.path().join("a/b.rs")).expect("read"), "new");
        assert!(!to.path().join("a/gone.rs").exists() && !to.path().join("target").exists());
        let after = fs::metadata(to.path().join("c.rs")).and_then(|it| it.modified()).expect("its time");
        assert_eq!(after, before);
    }

    #[test]
    fn the_digest_of_a_copy_follows_its_files() {
        let (from, to) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let digest = |text: &str| {
            fs::write(from.path().join("a.rs"), text).expect("written");
            Scratch::copy(from.path(), to.path()).expect("copied").digest().expect("read")
        };
        let (first, second) = (digest("1"), digest("2"));
        assert_ne!(first, second);
        assert_eq!(digest("1"), first);
    }
}
