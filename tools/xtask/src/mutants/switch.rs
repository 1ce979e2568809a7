//! Switches of faults and bugs: functions that are added to the copy of each crate in which some are planted.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// True for the fault whose number an environment variable has. If another variable names a file, writes there which
/// faults are reached. Allocates nothing, because some tests count allocations.
pub(crate) fn is_on(number: usize) -> bool {
    static ON: OnceLock<usize> = OnceLock::new();
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    static REACHED: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];
    let file = FILE.get_or_init(|| {
        let path = std::env::var_os("FLEETNET_FAULTS_REACHED")?;
        OpenOptions::new().create(true).append(true).open(path).ok()
    });
    if let Some(mut file) = file.as_ref()
        && !REACHED[number].swap(true, Ordering::Relaxed)
    {
        drop(writeln!(file, "{number}"));
    }
    number == *ON.get_or_init(|| std::env::var("FLEETNET_FAULT").map_or(0, |on| on.parse().unwrap_or(0)))
}

/// True for the bug whose name an environment variable has.
pub(crate) fn is_bug(name: &str) -> bool {
    static ON: OnceLock<String> = OnceLock::new();
    name == ON.get_or_init(|| std::env::var("FLEETNET_BUG").unwrap_or_default())
}

pub(crate) fn less<T: PartialOrd>(number: usize, left: &T, right: &T) -> bool {
    if is_on(number) { left <= right } else { left < right }
}

pub(crate) fn less_or_equal<T: PartialOrd>(number: usize, left: &T, right: &T) -> bool {
    if is_on(number) { left < right } else { left <= right }
}

pub(crate) fn more<T: PartialOrd>(number: usize, left: &T, right: &T) -> bool {
    if is_on(number) { left >= right } else { left > right }
}

pub(crate) fn more_or_equal<T: PartialOrd>(number: usize, left: &T, right: &T) -> bool {
    if is_on(number) { left > right } else { left >= right }
}

pub(crate) fn smaller<T: Ord>(number: usize, left: T, right: T) -> T {
    if is_on(number) { left.max(right) } else { left.min(right) }
}

pub(crate) fn larger<T: Ord>(number: usize, left: T, right: T) -> T {
    if is_on(number) { left.min(right) } else { left.max(right) }
}
