//! Programs that tests and developers run: Cargo on this work tree, programs that Go builds, and programs of Debian.

mod cache;
pub mod cargo;
pub mod control_plane;
mod debian;
mod go;
pub mod helm;
pub mod prometheus;
pub mod tinyproxy;

use std::path::{Path, PathBuf};

/// Returns the root of the work tree in which this program was compiled.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate is a folder of the workspace").to_path_buf()
}
