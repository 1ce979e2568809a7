//! Command `cargo xtask release --dry-run`: prepares a release on this machine, and says what it still lacks.
//!
//! ```text
//! texts of the repository ──> problems (all of them)
//! charts, images, crate, notes ──> target/releases/<version>/ ──> SHA256SUMS
//! ```
//!
//! Nothing leaves the machine. The publisher runs the commands that it prints.

mod readiness;

use crate::image::{self, ImageArgs};
use anyhow::{Context as _, bail, ensure};
use programs::{helm, root};
use readiness::{File, Problem};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The only crate that is published.
const LIBRARY: &str = "endpointslice";

/// Arguments of `cargo xtask release`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    /// Prepare everything on this machine, and publish nothing. There is no other way yet: the publisher runs the
    /// commands that this command prints.
    #[arg(long, required = true)]
    dry_run: bool,
    /// Version of the release. Default: the version of the workspace.
    #[arg(long, value_name = "X.Y.Z")]
    version: Option<String>,
    /// Folder of the release. Default: target/releases/<version>.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Leave out the images, whose builds take minutes. Such a folder is no release.
    #[arg(long)]
    without_images: bool,
}

/// Prepares the release.
///
/// # Errors
/// If the repository is not ready for a release. The error lists everything that is missing.
pub(crate) fn run(arguments: &ReleaseArgs) -> anyhow::Result<()> {
    let version = arguments.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
    readiness::version(version).map_err(anyhow::Error::msg)?;
    let out = match &arguments.out {
        Some(folder) => folder.clone(),
        None => crate::test::target_folder()?.join("releases").join(version),
    };
    let is_empty = !out.exists() || fs::read_dir(&out)?.next().is_none();
    ensure!(is_empty, "{} is not empty: remove it, or name another folder with --out", out.display());
    fs::create_dir_all(&out).with_context(|| format!("cannot make the folder {}", out.display()))?;

    let problems = problems(version)?;
    charts(&out)?;
    library(&out)?;
    if arguments.without_images {
        println!("THE IMAGES ARE LEFT OUT (--without-images): this folder is no release");
    } else {
        image::run(&ImageArgs::for_release(&out.join("images")))?;
    }
    let (_, changelog) = read("CHANGELOG.md")?;
    if let Some(notes) = readiness::notes(&changelog, version) {
        fs::write(out.join("notes.md"), notes)?;
    }
    let sums = sums(&out)?;
    fs::write(out.join("SHA256SUMS"), sums)?;
    println!("{} is written. Verify it there with: sha256sum --check SHA256SUMS", out.display());
    if problems.is_empty() {
        println!("{}", next_steps(version));
        return Ok(());
    }
    let lines: String = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    bail!("the repository is not ready for the release {version}:{lines}")
}

fn read(path: &str) -> anyhow::Result<File> {
    let text = fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))?;
    Ok((path.to_owned(), text))
}

/// Returns the paths of the files of a folder with this ending, from the root of the work tree.
fn files(folder: &str, ending: &str) -> anyhow::Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join(folder))? {
        let name = entry?.file_name();
        files.extend(name.to_str().filter(|name| name.ends_with(ending)).map(|name| format!("{folder}/{name}")));
    }
    files.sort_unstable();
    Ok(files)
}

/// Returns the paths of all pages of `docs`, which has one level of folders.
fn pages() -> anyhow::Result<Vec<String>> {
    let mut pages = files("docs", ".md")?;
    for folder in files("docs", "")? {
        if root().join(&folder).is_dir() {
            pages.extend(files(&folder, ".md")?);
        }
    }
    Ok(pages)
}

/// Returns everything that the repository lacks for this release.
fn problems(version: &str) -> anyhow::Result<Vec<Problem>> {
    let mut problems = readiness::workspace(&read("Cargo.toml")?, version);
    for chart in files("deploy/charts", "")? {
        problems.extend(readiness::chart(&read(&format!("{chart}/Chart.yaml"))?, version));
    }
    let mut tagged = files("deploy", ".yaml")?;
    tagged.extend(pages()?);
    tagged.push("README.md".to_owned());
    for path in tagged {
        problems.extend(readiness::tags(&read(&path)?, version));
    }
    problems.extend(readiness::changelog(&read("CHANGELOG.md")?, version));
    let status = Command::new("git").args(["status", "--porcelain"]).current_dir(root()).output();
    let status = status.context("cannot call git")?;
    ensure!(status.status.success(), "git status fails: {}", String::from_utf8_lossy(&status.stderr).trim());
    problems.extend(readiness::work_tree(&String::from_utf8_lossy(&status.stdout)));
    Ok(problems)
}

/// Packages all charts.
fn charts(out: &Path) -> anyhow::Result<()> {
    let helm = helm::locate()?;
    for chart in files("deploy/charts", "")? {
        let mut package = Command::new(&helm);
        package.args(["package", &chart, "--destination"]).arg(out.join("charts")).current_dir(root());
        let output = package.output().with_context(|| format!("cannot run {}", helm.display()))?;
        ensure!(output.status.success(), "helm package {chart}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Packages the EndpointSlice library as its users get it. Nothing is compiled: the tests do that.
fn library(out: &Path) -> anyhow::Result<()> {
    let built = crate::test::target_folder()?.join("package-of-release");
    let mut package = Command::new(env!("CARGO"));
    package.args(["package", "--package", LIBRARY, "--offline", "--no-verify", "--allow-dirty", "--target-dir"]);
    let output = package.arg(&built).current_dir(root()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo package {LIBRARY}: {}", String::from_utf8_lossy(&output.stderr).trim());
    let archive = format!("{LIBRARY}-{}.crate", env!("CARGO_PKG_VERSION"));
    fs::create_dir_all(out.join("crates"))?;
    fs::copy(built.join("package").join(&archive), out.join("crates").join(&archive))?;
    Ok(())
}

/// Returns the checksums of all files below a folder, in the format of sha256sum.
fn sums(folder: &Path) -> anyhow::Result<String> {
    let (mut folders, mut sums) = (vec![PathBuf::new()], Vec::new());
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else {
                sums.push((path, image::sha256(&fs::read(entry.path())?)));
            }
        }
    }
    sums.sort_unstable();
    Ok(sums.into_iter().map(|(path, digest)| format!("{digest}  {}\n", path.display())).collect())
}

fn next_steps(version: &str) -> String {
    let copy =
        |image: &str| format!("  skopeo copy oci:images/{image}:{version} docker://<registry>/{image}:{version}\n");
    format!(
        "The repository is ready. To publish (docs/contributors/releasing.md):\n  \
         git tag --sign v{version} && git push origin v{version}\n\
         {}  for chart in charts/*.tgz; do helm push \"$chart\" oci://<registry>/charts; done",
        image::PROGRAMS.map(copy).concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_are_those_of_all_files_sorted_by_path() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("b/c")).expect("folders");
        fs::write(folder.path().join("z"), "abc").expect("a file");
        fs::write(folder.path().join("b/c/d"), "").expect("a file");
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b/c/d\n\
                        ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  z\n";
        assert_eq!(sums(folder.path()).expect("checksums"), expected);
    }
}
