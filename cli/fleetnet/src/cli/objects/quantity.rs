//! Quantities of Kubernetes, such as `5000`, `5k` and `1Gi`. API servers return `5k` for `5000`.

/// Suffixes with their factors: the power of ten, or the power of two.
const DECIMAL: [(&str, u32); 6] = [("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// True if two texts are the same quantity. Texts that are no whole numbers are the same only if they are equal.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one == other || whole(one).is_some_and(|number| whole(other) == Some(number))
}

/// Returns the number that a quantity stands for; `None` if it is no whole number.
fn whole(text: &str) -> Option<u128> {
    let binary = BINARY.iter().find_map(|(suffix, bits)| Some((text.strip_suffix(suffix)?, 1_u128 << bits)));
    let decimal = || DECIMAL.iter().find_map(|(suffix, zeros)| Some((text.strip_suffix(suffix)?, 10_u128.pow(*zeros))));
    let (digits, factor) = binary.or_else(decimal).unwrap_or((text, 1));
    digits.parse::<u64>().ok().map(|number| u128::from(number) * factor)
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn quantities_are_compared_by_their_number() {
        for (one, other) in
            [("5000", "5k"), ("2000", "2k"), ("4", "4"), ("1024", "1Ki"), ("1500m", "1500m"), ("1M", "1000k")]
        {
            assert!(is_same(one, other) && is_same(other, one), "{one} {other}");
        }
        for (one, other) in [("5000", "5M"), ("5", "5k"), ("", "0"), ("1Ki", "1k"), ("x", "y")] {
            assert!(!is_same(one, other) && !is_same(other, one), "{one} {other}");
        }
    }
}
