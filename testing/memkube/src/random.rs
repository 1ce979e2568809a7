//! Random numbers from a seed (splitmix64). With the same seed, the same calls in the same order return the same names,
//! UIDs and addresses.

#[derive(Clone, Debug)]
pub struct Random(u64);

/// Characters of generated names in Kubernetes. The list has no vowels, so that names contain no words. It also has no
/// characters that look alike.
pub const NAME_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

impl Random {
    /// Returns a generator that starts with `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.number() % bound }
    }

    /// Returns a UUID of version 4.
    pub fn uid(&mut self) -> String {
        let (high, low) = (self.number(), self.number());
        let high = (high & !0xF000) | 0x4000;
        let low = (low & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFFF,
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
    }

    /// Returns the five characters that the server appends to `metadata.generateName`.
    pub fn name_suffix(&mut self) -> String {
        let letters = NAME_LETTERS.len() as u64;
        let letter = |random: &mut Self| usize::try_from(random.below(letters)).unwrap_or_default();
        (0..5).map(|_| char::from(NAME_LETTERS[letter(self)])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_uid_is_a_uuid_of_version_4() {
        let uid = Random::new(1).uid();
        assert_eq!(uid, "910a2dec-8902-4cc1-beeb-8da1658eec67");
    }
}
