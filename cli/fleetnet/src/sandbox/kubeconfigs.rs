//! Folder of the option `--kubeconfigs`, with one kubeconfig for every cluster. The kubeconfigs exist only while the
//! sandbox runs.

mod file;

pub(crate) use file::{KUBECTL, write};

use super::event::{Event, HUB};
use super::fleet::Fleet;
use super::view::Stage;
use crate::args::Options;
use anyhow::{Context as _, bail, ensure};
use memkube::serve::Https;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Name of the kubeconfig with a context for each cluster.
pub(crate) const FLEET: &str = "fleet";
/// Folder that the processes of `--packets` have for themselves.
const HIDDEN: &str = "/run";

/// Empty kubeconfig files and reserved ports for a fleet that has not started yet. Dropping this value removes the
/// files.
pub(crate) struct Kubeconfigs {
    folder: Option<Folder>,
    listeners: Vec<TcpListener>,
}

/// Folder with the kubeconfigs. Dropping this value removes the files.
struct Folder {
    path: PathBuf,
    /// True if the sandbox created the folder. In this case the sandbox also removes the folder.
    made: bool,
    files: Vec<PathBuf>,
}

/// Complete kubeconfigs, and the HTTPS listeners of the servers in memory. Dropping this value removes the files and
/// closes the listeners.
pub(crate) struct Published {
    pub(crate) files: usize,
    _folder: Option<Folder>,
    _serving: Vec<Https>,
}

impl Kubeconfigs {
    /// Creates empty files and reserves the ports. Errors name the file or the port.
    pub(crate) fn prepare(options: &Options) -> anyhow::Result<Self> {
        let Some(path) = &options.kubeconfigs else { return Ok(Self { folder: None, listeners: Vec::new() }) };
        let mut folder = Folder::open(path)?;
        if options.packets {
            folder.is_shared()?;
            folder.reserve(FLEET)?;
        }
        let members = (1..=options.members()).map(|number| format!("member-{number}"));
        for name in std::iter::once(HUB.to_owned()).chain(members) {
            folder.reserve(&name)?;
        }
        let ports = 0..=options.members();
        let listeners = if options.real {
            Vec::new()
        } else {
            ports.map(|index| listen(options.port.map_or(0, |first| first + index))).collect::<anyhow::Result<_>>()?
        };
        Ok(Self { folder: Some(folder), listeners })
    }

    /// Returns the listeners on the reserved ports: the hub's, and then those of the members.
    #[cfg(feature = "real")]
    pub(crate) fn listeners(&self) -> &[TcpListener] {
        &self.listeners
    }

    /// Writes the kubeconfigs. Each server in memory starts to listen on its reserved port.
    pub(crate) async fn publish(self, fleet: &Fleet, stage: &Stage) -> anyhow::Result<Published> {
        let mut serving = Vec::new();
        let mut listeners = self.listeners.into_iter();
        for ((cluster, server), path) in fleet.servers().zip(self.folder.iter().flat_map(|folder| &folder.files)) {
            serving.extend(server.publish(cluster, listeners.next(), path).await?);
            stage.emit(Event::Kubeconfig { cluster: cluster.to_owned(), path: path.display().to_string() }).await;
        }
        let paths: Vec<&Path> = self.folder.iter().flat_map(|folder| &folder.files).map(PathBuf::as_path).collect();
        if !paths.is_empty() {
            stage.emit(Event::Commands { commands: commands(&paths) }).await;
        }
        let files = paths.len();
        Ok(Published { files, _folder: self.folder, _serving: serving })
    }
}

/// Returns the commands with which a user begins in another shell.
fn commands(paths: &[&Path]) -> Vec<String> {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    vec![format!("export KUBECONFIG={}", paths.join(":")), "fleetnet explain work/app".to_owned()]
}

impl Folder {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => false,
            Err(error) => bail!("--kubeconfigs {}: cannot make this folder: {error}", path.display()),
        };
        Ok(Self { path: path.to_owned(), made, files: Vec::new() })
    }

    /// Checks that the processes of `--packets` see the folder. They have a file system of their own at [`HIDDEN`].
    fn is_shared(&self) -> anyhow::Result<()> {
        let real = fs::canonicalize(&self.path).with_context(|| format!("--kubeconfigs {}", self.path.display()))?;
        ensure!(
            !real.starts_with(HIDDEN),
            "--kubeconfigs {}: with --packets, name a folder outside of {HIDDEN}",
            self.path.display()
        );
        Ok(())
    }

    /// Creates an empty file that only the user who runs the sandbox can read.
    fn reserve(&mut self, cluster: &str) -> anyhow::Result<()> {
        let path = self.path.join(format!("{cluster}.kubeconfig"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => self.files.push(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("--kubeconfigs: {} already exists: remove it, or name another folder", path.display())
            }
            Err(error) => bail!("--kubeconfigs: cannot write {}: {error}", path.display()),
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Ignore errors: a user may have removed or replaced a file or the folder.
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        if self.made {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn listen(port: u16) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("--port: cannot listen on 127.0.0.1:{port}"))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_removed_and_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("configs");
        let mut folder = Folder::open(&path).unwrap();
        folder.reserve("hub").unwrap();
        assert!(path.join("hub.kubeconfig").is_file());
        drop(folder);
        assert!(!path.exists());

        fs::create_dir(&path).unwrap();
        fs::write(path.join("member-1.kubeconfig"), "mine").unwrap();
        let mut folder = Folder::open(&path).unwrap();
        folder.reserve("hub").unwrap();
        let error = folder.reserve("member-1").unwrap_err().to_string();
        assert!(error.contains("member-1.kubeconfig already exists"), "{error}");
        drop(folder);
        assert_eq!(fs::read_to_string(path.join("member-1.kubeconfig")).unwrap(), "mine");
        assert!(!path.join("hub.kubeconfig").exists());
    }

    #[test]
    fn the_first_commands_name_all_kubeconfigs() {
        let commands = commands(&[Path::new("kc/hub.kubeconfig"), Path::new("kc/member-1.kubeconfig")]);
        assert_eq!(
            commands,
            ["export KUBECONFIG=kc/hub.kubeconfig:kc/member-1.kubeconfig", "fleetnet explain work/app"]
        );
    }
}
