//! Keys and tokens, derived from one seed. A secret for one purpose does not reveal other secrets.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fmt::Write as _;

/// Generator of secrets: a hash of the seed and of the server's name.
pub(super) struct Secrets(Sha256);

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secrets")
    }
}

impl Secrets {
    pub(super) fn new(name: &str, seed: [u8; 32]) -> Self {
        let mut hash = Sha256::new_with_prefix(seed);
        update(&mut hash, name);
        Self(hash)
    }

    /// Returns the secret of a user or server (`whose`) for a purpose.
    pub(super) fn bytes(&self, purpose: &str, whose: &str) -> [u8; 32] {
        let mut hash = self.0.clone();
        update(&mut hash, purpose);
        update(&mut hash, whose);
        hash.finalize().into()
    }

    /// Returns the result of [`Secrets::bytes`] as hexadecimal digits.
    pub(super) fn text(&self, purpose: &str, whose: &str) -> String {
        let bytes = self.bytes(purpose, whose);
        bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// Adds a word to a hash. The length comes before the word, so that two different lists of words never result in the
/// same bytes.
fn update(hash: &mut Sha256, word: &str) {
    hash.update((word.len() as u64).to_be_bytes());
    hash.update(word.as_bytes());
}
