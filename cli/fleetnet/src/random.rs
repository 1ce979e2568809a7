//! Random bytes of the operating system, for keys and tokens that nobody can predict.

use std::fs::File;
use std::io::{self, Read as _};

/// Source of the bytes.
const RANDOM: &str = "/dev/urandom";

/// Returns random bytes.
///
/// # Errors
/// If the operating system gives none.
pub(crate) fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let read = File::open(RANDOM).and_then(|mut random| random.read_exact(&mut bytes));
    read.map_err(|error| io::Error::new(error.kind(), format!("cannot read {RANDOM}: {error}")))?;
    Ok(bytes)
}
