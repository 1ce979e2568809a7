//! Names of new slices.
//!
//! A name is a function of data that does not change. So if the response to a create is lost, the retry uses the same
//! name, and finds the slice of the first create. With `generateName`, the retry would create a second slice. The names
//! look like the names that the API server generates.

use crate::limits::{NAME_PREFIX_CHARS_MAX, NAME_SUFFIX_CHARS};
use endpointslice::Text;
use fnv::FnvHasher;
use std::collections::BTreeSet;
use std::hash::Hasher as _;

/// Characters of the API server's random suffixes. There are no vowels, so that suffixes form no words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns an endless sequence of different names that start with `beginning` and are not taken. The same input always
/// gives the same names. `seed` identifies the purpose of the slice, so that slices for different purposes get
/// different names.
pub(super) fn free(beginning: &str, seed: &str, is_taken: impl Fn(&str) -> bool) -> impl Iterator<Item = Text> {
    let beginning = &beginning[..beginning.floor_char_boundary(NAME_PREFIX_CHARS_MAX)];
    let mut used: BTreeSet<Text> = BTreeSet::new();
    let names = (0_u64..).map(move |attempt| Text::from(format!("{beginning}{}", ending(hash(seed, attempt)))));
    names.filter(move |name| !is_taken(name) && used.insert(name.clone()))
}

/// Returns an FNV-1a hash, mixed as in splitmix64 because the lowest bits of FNV-1a are not random enough. Do not
/// change the function: a new version of the agent must compute the same names.
fn hash(seed: &str, attempt: u64) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(seed.as_bytes());
    hasher.write(&attempt.to_le_bytes());
    let mixed = hasher.finish();
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn ending(mut hash: u64) -> String {
    let count = LETTERS.len() as u64;
    let mut next = || {
        let letter = LETTERS[usize::try_from(hash % count).unwrap_or_default()];
        hash /= count;
        char::from(letter)
    };
    (0..NAME_SUFFIX_CHARS).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(beginning: &str, seed: &str, is_taken: impl Fn(&str) -> bool) -> Text {
        free(beginning, seed, is_taken).next().expect("there is always one more")
    }

    #[test]
    fn a_name_is_what_the_api_server_could_have_chosen_and_always_the_same() {
        let name = first("web-", "uid-1/IPv4", |_| false);
        assert_eq!(name, first("web-", "uid-1/IPv4", |_| false));
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert!(name[4..].bytes().all(|letter| LETTERS.contains(&letter)), "{name}");
        assert_ne!(name, first("web-", "uid-2/IPv4", |_| false), "another Service");
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let names: Vec<Text> = free("web-", "uid-1/IPv4", |_| false).take(1_000).collect();
        let others: Vec<Text> = free("web-", "uid-1/IPv4", |name| names[0] == *name).take(999).collect();
        assert_eq!(others, names[1..], "the same, but for the one that is there");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 1_000);
    }

    #[test]
    fn a_long_beginning_is_cut_to_63_letters_in_all() {
        assert_eq!(first(&"a".repeat(80), "uid", |_| false).len(), 63);
    }
}
