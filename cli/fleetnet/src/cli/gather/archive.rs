//! Archive of gathered files: tar, compressed with gzip.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Files of the archive by their path. Paths are relative.
pub(super) type Files = BTreeMap<String, String>;

/// Writes an archive that only its owner can read. The file is complete or does not exist.
///
/// # Errors
/// If the file exists or cannot be written.
pub(super) fn write(path: &Path, root: &str, files: &Files, seconds: u64) -> io::Result<u64> {
    if path.exists() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the file already exists: name another one with --file",
        ));
    }
    let part = path.with_extension("part");
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let written = pack(file, root, files, seconds).and_then(|file| file.sync_all());
    let finished = written.and_then(|()| fs::rename(&part, path)).and_then(|()| fs::metadata(path));
    if finished.is_err() {
        // The error that is returned says why. A file that is left behind would only be in the way.
        let _ = fs::remove_file(&part);
    }
    Ok(finished?.len())
}

fn pack(file: File, root: &str, files: &Files, seconds: u64) -> io::Result<File> {
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(seconds);
        archive.append_data(&mut header, format!("{root}/{path}"), text.as_bytes())?;
    }
    let mut file = archive.into_inner()?.finish()?;
    file.flush()?;
    Ok(file)
}

/// Returns a name as one part of a path.
pub(super) fn part(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    let part: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if part.chars().all(|c| c == '.') { format!("_{part}") } else { part }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn an_archive_has_all_files_and_is_its_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.gz");
        let files = Files::from([("hub/one.json".to_owned(), "1\n".to_owned()), ("two".to_owned(), String::new())]);
        write(&path, "root", &files, 7).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut archive = tar::Archive::new(GzDecoder::new(File::open(&path).unwrap()));
        let mut read = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let (mut text, path) = (String::new(), entry.path().unwrap().display().to_string());
            entry.read_to_string(&mut text).unwrap();
            read.insert(path, text);
        }
        assert_eq!(
            read,
            [("root/hub/one.json".to_owned(), "1\n".to_owned()), ("root/two".to_owned(), String::new())].into()
        );
        let again = write(&path, "root", &files, 7).unwrap_err();
        assert!(again.to_string().contains("--file"), "{again}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no part is left behind");
    }

    #[test]
    fn a_name_is_one_part_of_a_path() {
        for (name, expected) in
            [("admin@hub", "admin@hub"), ("../x", ".._x"), ("..", "_.."), ("arn:aws/eks", "arn_aws_eks"), ("", "_")]
        {
            assert_eq!(part(name), expected);
        }
    }
}
