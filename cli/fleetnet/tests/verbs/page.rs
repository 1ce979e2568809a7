//! Test of the built page in `cli/ui/dist`: its sources give the same bytes, and their own checks pass.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Time limit of each npm command. The first one downloads packages.
const LIMIT: Duration = Duration::from_secs(300);
/// Largest size of the page in bytes, without compression.
const MOST: usize = 300 << 10;
/// Folders that npm makes, which are no sources.
const MADE: [&str; 3] = ["node_modules", "build", "dist"];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() && !MADE.iter().any(|made| name == *made) {
            copy(&path, &to.join(name));
        } else if path.is_file() {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

async fn npm(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(LIMIT, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("waited {LIMIT:?} for npm {arguments:?}"));
    let output = output.expect("npm, of the Debian packages nodejs and npm (Node 20 or later)");
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "npm {arguments:?}: {}", String::from_utf8_lossy(&text));
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut files: Vec<(String, Vec<u8>)> =
        files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

#[tokio::test]
async fn the_sources_of_the_page_give_the_bytes_that_are_served() {
    let page = programs::root().join("cli/ui");
    let folder = tempfile::tempdir().unwrap();
    copy(&page, folder.path());
    let npm = async |arguments: &[&str]| npm(folder.path(), arguments).await;
    npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).await;
    npm(&["run", "check"]).await;
    npm(&["test"]).await;
    npm(&["run", "build"]).await;
    let (built, served) = (files(&folder.path().join("dist")), files(&page.join("dist")));
    let bytes: usize = served.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < MOST, "the page has {bytes} bytes, and may have {MOST}");
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&built), names(&served));
    for ((name, built), (_, served)) in built.iter().zip(&served) {
        assert!(built == served, "{name} is another one: run `npm ci && npm run build` in cli/ui, and commit dist");
    }
}
