//! Replay of the fuzz corpus on the stable compiler: each target runs on each file of its folder in
//! `testing/fuzz/corpus/`, and on changes of it. A failure names the target, the file and the change.
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use fuzz_targets::{TARGETS, Target};
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// Number of random changes of each file. Cuts are not counted.
const CHANGES: usize = 24;
/// Maximum number of cuts of each file, at equal distances.
const CUTS: usize = 24;
/// Bytes of one value that a change inserts, so that a message that repeats its input is found to be too long.
const LONG: usize = 6000;
/// Bytes that separate or end values in the formats of the inputs.
const SPECIAL: &[u8] = b"\0\n\r\"\\{}[],:=/.-+ 0919eE\x7f\x80\xff";

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("fuzz")
}

/// Returns the names of the files in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Runs a target. Returns the message of its panic.
fn run(target: Target, bytes: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| target(bytes))).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
    })
}

/// Returns the file, and changes of it, each with a description. The same file gives the same changes.
fn inputs(file: &str, bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut inputs = vec![("as it is".to_owned(), bytes.to_vec())];
    let step = bytes.len().div_ceil(CUTS).max(1);
    let cut = |length: usize| (format!("cut to {length} bytes"), bytes[..length].to_vec());
    inputs.extend((0..bytes.len()).step_by(step).map(cut));
    let seed = file.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let mut random = fastrand::Rng::with_seed(seed);
    for number in 0..CHANGES {
        let at = random.usize(..=bytes.len());
        let mut changed = bytes.to_vec();
        let what = match number % 4 {
            0 if at < bytes.len() => {
                changed[at] ^= 1 << random.u8(..8);
                format!("byte {at} is {:#04x}", changed[at])
            }
            1 => {
                let byte = SPECIAL[random.usize(..SPECIAL.len())];
                changed.insert(at, byte);
                format!("{byte:#04x} inserted at {at}")
            }
            2 => {
                let end = random.usize(at..=bytes.len().min(at + 40));
                changed.drain(at..end);
                format!("bytes {at}..{end} removed")
            }
            _ => {
                let letter = bytes.get(at).copied().filter(u8::is_ascii_alphanumeric).unwrap_or(b'a');
                changed.splice(at..at, std::iter::repeat_n(letter, LONG));
                format!("{LONG} times {:?} inserted at {at}", char::from(letter))
            }
        };
        inputs.push((what, changed));
    }
    inputs
}

/// Runs a target on all files of a folder and their changes. Returns the failures.
fn failures(name: &str, target: Target, folder: &Path) -> Vec<String> {
    let mut failures = Vec::new();
    for file in names(folder) {
        let bytes = fs::read(folder.join(&file)).unwrap();
        for (what, input) in inputs(&file, &bytes) {
            if let Err(why) = run(target, &input) {
                failures.push(format!("target {name}, file {file}, {what}: {why:.300}"));
            }
        }
    }
    failures
}

#[test]
fn each_target_has_a_corpus_and_a_program() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len(), "two targets have one name");
    let folders: BTreeSet<String> = names(&fuzz_folder().join("corpus")).into_iter().collect();
    assert_eq!(folders, targets, "testing/fuzz/corpus/ has a folder for each target, and no other folder");
    for folder in folders {
        assert!(
            !names(&fuzz_folder().join("corpus").join(&folder)).is_empty(),
            "testing/fuzz/corpus/{folder} is empty"
        );
    }
    let programs = names(&fuzz_folder().join("fuzz_targets"));
    let programs: BTreeSet<String> = programs.iter().map(|name| name.trim_end_matches(".rs").to_owned()).collect();
    assert_eq!(programs, targets, "testing/fuzz/fuzz_targets/ has a file for each target, and no other file");
    let manifest = fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    for name in &targets {
        let program = fs::read_to_string(fuzz_folder().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("::{name}(")), "testing/fuzz/fuzz_targets/{name}.rs calls another target");
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "testing/fuzz/Cargo.toml does not have {name}");
    }
}

#[test]
fn no_file_of_the_corpus_and_no_change_of_it_fails() {
    let folder = fuzz_folder().join("corpus");
    let failures: Vec<String> =
        TARGETS.iter().flat_map(|(name, target)| failures(name, *target, &folder.join(name))).collect();
    assert!(failures.is_empty(), "{} inputs fail:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_target_that_fails_is_named_with_the_file_and_the_change() {
    fn refuses_short(bytes: &[u8]) {
        assert!(bytes.len() > 2, "{} bytes", bytes.len());
    }
    let folder = fuzz_folder().join("corpus/claims");
    let failures = failures("refuses_short", refuses_short, &folder);
    let first = "target refuses_short, file exclusive.json, cut to 0 bytes: 0 bytes";
    assert_eq!(failures.first().map(String::as_str), Some(first));
    let is_named = |failure: &String| failure.starts_with("target refuses_short, file ") && failure.ends_with(" bytes");
    assert!(failures.len() > 5 && failures.iter().all(is_named), "{failures:?}");
}
