//! Command `cargo xtask chromium`: Chromium, for the tests of the page in a browser.
//!
//! If Debian's package `chromium` is installed, its program is used. Otherwise the package comes into the cache, with
//! the libraries and fonts that the machine lacks. If the environment variable `FLEETNET_CHROMIUM` is set, the program
//! that it names is used.

use crate::cache;
use crate::debian::{Packages, unpack};
use crate::{named, write_script};
use anyhow::Context as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Environment variable with the path of a ready-made Chromium.
pub const CHROMIUM_VARIABLE: &str = "FLEETNET_CHROMIUM";
/// Program of the installed package.
const INSTALLED: &str = "/usr/bin/chromium";
/// Chromium shows no text without a font, and depends on none.
const PACKAGES: [&str; 2] = ["chromium", "fonts-dejavu-core"];
/// Starts Chromium with the libraries and fonts beside it. Files that the machine has are not beside it.
const LAUNCHER: &str = r#"#!/bin/sh
root=$(dirname "$(readlink -f "$0")")
for libraries in "$root"/lib/*-linux-gnu* "$root"/usr/lib/*-linux-gnu* "$root"/usr/lib/*-linux-gnu*/pulseaudio; do
    LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH FONTCONFIG_FILE="$root/fonts.conf"
exec "$root/usr/lib/chromium/chromium" "$@"
"#;
const FONTS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir prefix="relative">usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"#;

/// Finds Chromium, and downloads it if necessary.
///
/// # Errors
/// If there is no file where `FLEETNET_CHROMIUM` points, or the download fails.
pub fn locate() -> anyhow::Result<PathBuf> {
    if let Some(file) = named(CHROMIUM_VARIABLE, "correct it, or unset it to have the program downloaded")? {
        return Ok(file);
    }
    let installed = Path::new(INSTALLED);
    if installed.is_file() {
        return Ok(installed.to_owned());
    }
    let folder = cache::folder()?.join("chromium");
    let cost = "110 MB, or 230 MB if the machine lacks all libraries, half a minute";
    let download = || unpack(Packages::WithDependencies(&PACKAGES), cost, &folder, complete);
    cache::once(&folder, "chromium", download).with_context(|| {
        format!("cannot get Chromium. Install the package chromium, or set {CHROMIUM_VARIABLE} to the path of Chromium")
    })?;
    Ok(folder.join("chromium"))
}

/// Adds what starts Chromium in a folder.
fn complete(folder: &Path) -> anyhow::Result<()> {
    fs::write(folder.join("fonts.conf"), FONTS).context("cannot write the list of font folders")?;
    write_script(&folder.join("chromium"), LAUNCHER)
}

#[cfg(test)]
mod tests {
    use super::complete;
    use crate::write_script;
    use std::fs;
    use std::process::Command;
    use tempfile::TempDir;

    #[test]
    fn chromium_gets_the_libraries_and_fonts_beside_it() {
        let folder = TempDir::new().expect("a folder");
        let root = folder.path();
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        for folder in [&libraries, &root.join("usr/lib/chromium")] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let print = "#!/bin/sh\necho \"$LD_LIBRARY_PATH $FONTCONFIG_FILE $*\"\n";
        write_script(&root.join("usr/lib/chromium/chromium"), print).expect("a script");
        complete(root).expect("a launcher");
        let output = Command::new(root.join("chromium")).arg("--headless").output().expect("the launcher runs");
        let printed = String::from_utf8(output.stdout).expect("text");
        assert!(printed.contains(&format!("{}", libraries.display())), "{printed}");
        let fonts = root.join("fonts.conf");
        assert!(fonts.is_file() && printed.ends_with(&format!(" {} --headless\n", fonts.display())), "{printed}");
    }
}
