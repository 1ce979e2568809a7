//! Copy of the source tree in which faults (deliberate errors) are planted, the copy's test programs, and the outcome of a fault.

use super::mark::Fault;
use super::switches;
use crate::limits::LONGEST_FAULTY_TEST;
use crate::{cargo, limited};
use anyhow::{Context as _, bail};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Names of files and folders that are not copied, at any depth.
const LEFT_OUT: &[&str] = &[".git", "target"];

/// Outcome of planting a fault (a deliberate error) in the source.
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

/// Reason why the tests were not built.
pub(super) enum NotBuilt {
    /// The compiler rejects these lines, as file and line.
    Rejected {
        places: Vec<(String, usize)>,
        words: String,
    },
    Failed(anyhow::Error),
}

pub(super) struct Scratch {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
    /// Folder of intermediate results of Cargo, the same as for the tree itself. So dependencies are not compiled twice.
    intermediate: PathBuf,
}

/// Test program built from the copy of the source tree.
#[derive(Clone)]
struct Program {
    /// Arguments that select the program's target in Cargo: `--lib`, or `--test` with a name.
    target: Vec<String>,
    /// Folder of the program's package, where its tests run.
    folder: PathBuf,
    executable: PathBuf,
}

/// Test program of each test. The key is the folder of the test's package, and the path of the test.
pub(super) struct Suites(BTreeMap<(String, String), Program>);

impl Scratch {
    /// Returns a copy of the tree in `root`, below `folder`. [`Self::write`] creates the files.
    pub(super) fn new(root: PathBuf, folder: &Path, intermediate: PathBuf) -> Self {
        Self { root, tree: folder.join("tree"), target: folder.join("target"), intermediate }
    }

    /// Returns the numbers of the faults that cannot have a switch, as the last build of the same tree found. Without them, Cargo would
    /// first compile a copy that the compiler rejects, and then everything again.
    pub(super) fn known_alone(&self, digest: &str) -> BTreeSet<u32> {
        let known = fs::read_to_string(self.alone_file()).unwrap_or_default();
        let numbers = known.strip_prefix(digest);
        numbers.into_iter().flat_map(str::split_whitespace).filter_map(|number| number.parse().ok()).collect()
    }

    /// Stores the numbers for [`Self::known_alone`].
    pub(super) fn note_alone(&self, digest: &str, alone: &BTreeSet<u32>) -> anyhow::Result<()> {
        let numbers: Vec<String> = alone.iter().map(ToString::to_string).collect();
        let path = self.alone_file();
        fs::write(&path, format!("{digest} {}", numbers.join(" ")))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn alone_file(&self) -> PathBuf {
        self.target.with_file_name("alone")
    }

    /// Copies the tree. Files in `texts` get these texts. Files that are already equal are not written, so that Cargo does not
    /// rebuild them.
    pub(super) fn write(&self, texts: &BTreeMap<String, String>) -> anyhow::Result<()> {
        let texts = texts.iter().map(|(file, text)| (self.root.join(file), text.as_str())).collect();
        mirror(&self.root, &self.tree, &texts)
    }

    /// Builds the test programs of the packages in these folders, and lists their tests. One call of Cargo builds them all, because a
    /// package alone needs other features of its dependencies, and the dependencies would be compiled for each package.
    pub(super) fn suites(&self, folders: &BTreeSet<&str>) -> Result<Suites, NotBuilt> {
        let built = self.build(folders, &["--lib".to_owned(), "--tests".to_owned()]).map_err(NotBuilt::Failed)?;
        if !built.status.success() {
            return Err(NotBuilt::Rejected { places: rejected(&built), words: words(&built) });
        }
        let mut suites = BTreeMap::new();
        for program in self.programs(&built).map_err(NotBuilt::Failed)? {
            let folder = program.folder.strip_prefix(&self.tree).unwrap_or(&program.folder).display().to_string();
            for test in names(&program).map_err(NotBuilt::Failed)? {
                suites.insert((folder.clone(), test), program.clone());
            }
        }
        Ok(Suites(suites))
    }

    /// Returns the path of a program of the package in a folder, after the tests of the packages in `folders` were built.
    pub(super) fn program(&self, folders: &BTreeSet<&str>, folder: &str, name: &str) -> anyhow::Result<PathBuf> {
        let built = self.build(folders, &["--lib".to_owned(), "--tests".to_owned()])?;
        let manifest = self.tree.join(folder).join("Cargo.toml");
        let is_it = |message: &Value| {
            message["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest)
                && message["target"]["kind"][0] == "bin"
                && message["target"]["name"] == name
                && message["profile"]["test"] == false
        };
        let path = messages(&built).find(is_it).and_then(|message| message["executable"].as_str().map(PathBuf::from));
        path.with_context(|| format!("{folder} has no program {name}"))
    }

    /// Plants a fault alone, runs its tests until one fails, and removes the fault again.
    pub(super) fn plant(&self, fault: &Fault, tests: &[(String, String)], suites: &Suites) -> anyhow::Result<Outcome> {
        let path = self.tree.join(&fault.file);
        let context = || format!("cannot read {}", fault.file);
        let (before, original) = (fs::read(&path).with_context(context)?, self.root.join(&fault.file));
        let text = fs::read_to_string(original).with_context(context)?;
        let faulty = fault.applied(&text).with_context(|| format!("{}:{}: {}", fault.file, fault.line, fault.id))?;
        fs::write(&path, faulty).with_context(|| format!("cannot write {}", path.display()))?;
        let outcome = self.outcome(tests, suites);
        fs::write(&path, before).with_context(|| format!("cannot write {}", path.display()))?;
        outcome
    }

    fn outcome(&self, tests: &[(String, String)], suites: &Suites) -> anyhow::Result<Outcome> {
        for (folder, test) in tests {
            let (test, program) = suites.find(folder, test)?;
            let built = self.build(&BTreeSet::from([folder.as_str()]), &program.target)?;
            if !built.status.success() {
                return Ok(Outcome::Broken(words(&built)));
            }
            let programs = self.programs(&built)?;
            let [program] = &programs[..] else {
                bail!("{:?} is built as {} programs", program.target, programs.len())
            };
            if !passes(program, &[test], 0)? {
                return Ok(Outcome::Seen);
            }
        }
        Ok(Outcome::Survived)
    }

    /// Returns a digest of all files of the tree.
    pub(super) fn digest(&self) -> anyhow::Result<String> {
        let mut digest = Sha256::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
            let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
            paths.retain(|path| LEFT_OUT.iter().all(|left_out| !path.ends_with(left_out)));
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

    fn build(&self, folders: &BTreeSet<&str>, targets: &[String]) -> anyhow::Result<Output> {
        let mut command =
            cargo::command(&["test", "--no-run", "--quiet", "--message-format=json-diagnostic-rendered-ansi"]);
        command.current_dir(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_BUILD_BUILD_DIR", &self.intermediate);
        // The packages of the copy have another setting than those of the tree. With equal settings, Cargo would use programs of
        // the copy for the tree. The settings of dependencies stay equal, so that dependencies are compiled once.
        command.env("CARGO_PROFILE_DEV_DEBUG", "false");
        for folder in folders {
            command.args(["--package", &package(&self.tree.join(folder))?]);
        }
        command.args(targets);
        command.output().context("cannot call cargo")
    }

    /// Returns the test programs that a build made, from Cargo's messages.
    fn programs(&self, built: &Output) -> anyhow::Result<Vec<Program>> {
        let mut programs = Vec::new();
        for message in messages(built) {
            let Some(executable) = message["executable"].as_str() else { continue };
            let name = message["target"]["name"].as_str().context("a target without a name")?;
            let target = match message["target"]["kind"][0].as_str() {
                Some("test") => vec!["--test".to_owned(), name.to_owned()],
                Some("lib") => vec!["--lib".to_owned()],
                _ => continue,
            };
            let manifest = message["manifest_path"].as_str().context("a program without a manifest")?;
            let folder = Path::new(manifest).parent().context("a manifest without a folder")?.to_owned();
            programs.push(Program { target, folder, executable: executable.into() });
        }
        Ok(programs)
    }
}

impl Suites {
    /// Returns the full path of the test that `file::test` names, and its program.
    fn find(&self, folder: &str, named: &str) -> anyhow::Result<(&str, &Program)> {
        let (file, name) = named.split_once("::").with_context(|| format!("{named} is not written as file::test"))?;
        // The tests of `engine.rs` are in `engine_tests.rs`, as its module `tests`.
        let module = file.strip_suffix("_tests").unwrap_or(file);
        let is_it = |path: &str, program: &Program| {
            let mut parts = path.rsplit("::");
            // A file directly in `tests/` is a separate program, so its tests have no module.
            let is_in_file = path == name && program.target.last().is_some_and(|target| target == file);
            is_in_file || parts.next() == Some(name) && parts.any(|part| part == file || part == module)
        };
        let found: Vec<_> =
            self.0.iter().filter(|((of, path), program)| of == folder && is_it(path, program)).collect();
        match found[..] {
            [((_, path), program)] => Ok((path, program)),
            _ => bail!("{} tests of {folder} are called {named}, and not one", found.len()),
        }
    }

    /// Runs tests with a fault switched on, until one fails.
    pub(super) fn outcome(&self, number: u32, tests: &[(String, String)]) -> anyhow::Result<Outcome> {
        for (folder, test) in tests {
            let (test, program) = self.find(folder, test)?;
            if !passes(program, &[test], number)? {
                return Ok(Outcome::Seen);
            }
        }
        Ok(Outcome::Survived)
    }

    /// Runs tests, given as (folder, name). Returns the tests that fail.
    pub(super) fn run_all(&self, tests: &BTreeSet<(&str, &str)>) -> anyhow::Result<Vec<String>> {
        let mut failed = Vec::new();
        let mut by_program: BTreeMap<&Path, (&Program, Vec<&str>)> = BTreeMap::new();
        for (folder, named) in tests {
            let (path, program) = self.find(folder, named)?;
            by_program.entry(&program.executable).or_insert((program, Vec::new())).1.push(path);
        }
        for (program, paths) in by_program.values() {
            if !passes(program, paths, 0)? {
                failed.extend(
                    paths.iter().filter(|path| !passes(program, &[path], 0).unwrap_or(false)).map(ToString::to_string),
                );
            }
        }
        Ok(failed)
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

/// Returns the lines that the compiler rejects, as file and line.
fn rejected(built: &Output) -> Vec<(String, usize)> {
    let mut places = Vec::new();
    for message in messages(built).filter(|message| message["message"]["level"] == "error") {
        for span in message["message"]["spans"].as_array().into_iter().flatten() {
            let line = span["line_start"].as_u64().and_then(|line| usize::try_from(line).ok());
            if let (Some(file), Some(line), true) = (span["file_name"].as_str(), line, span["is_primary"] == true) {
                places.push((file.to_owned(), line));
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

/// True if these tests of a program pass within the time limit, while the fault with this number is switched on. 0 means no
/// fault.
fn passes(program: &Program, tests: &[&str], fault: u32) -> anyhow::Result<bool> {
    let mut command = command(program);
    command.env(switches::VARIABLE, fault.to_string());
    command.args(["--exact", "--quiet"]).args(tests).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.executable.display()))?;
    Ok(limited::wait(&mut child, LONGEST_FAULTY_TEST)?.is_some_and(|status| status.success()))
}

/// Makes `to` a copy of `from`, except that files in `texts` get these texts. Files that are already equal are not written.
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

    #[test]
    fn the_digest_follows_the_files_of_the_tree() {
        let (from, to) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let digest = |text: &str| {
            fs::write(from.path().join("a.rs"), text).expect("written");
            Scratch::new(from.path().to_owned(), to.path(), to.path().to_owned()).digest().expect("read")
        };
        let (first, second) = (digest("1"), digest("2"));
        assert_ne!(first, second);
        assert_eq!(digest("1"), first);
    }
}
