//! Quantities of Kubernetes (`8`, `7910m`, `1.5`, `2k`, `1e3`), parsed exactly.
//!
//! The rules are those of `k8s.io/apimachinery/pkg/api/resource`.

// no limit: a unit
const NANO: u128 = 1_000_000_000;
// no limit: a unit
const MILLI_IN_NANO: u128 = NANO / 1000;

/// Parses a quantity into thousandths, rounded up as in Kubernetes. Returns `None` if the quantity is negative, too
/// large or malformed.
pub(super) fn milli(text: &str) -> Option<u64> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let digits_end = unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(digits_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let (up, down) = scale(suffix)?;
    let digits: u128 = format!("0{whole}{fraction}").parse().ok()?;
    let down = down.checked_mul(10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?)?;
    let nano = digits.checked_mul(NANO)?.checked_mul(up)?.div_ceil(down);
    u64::try_from(nano.div_ceil(MILLI_IN_NANO)).ok()
}

/// Returns the factor and the divisor that a suffix stands for: for example (1, 1000) for `m`. `None` if the suffix is
/// malformed.
fn scale(suffix: &str) -> Option<(u128, u128)> {
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, NANO),
        "u" => (1, NANO / 1000),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (1000_u128.pow(2), 1),
        "G" => (1000_u128.pow(3), 1),
        "T" => (1000_u128.pow(4), 1),
        "P" => (1000_u128.pow(5), 1),
        "E" => (1000_u128.pow(6), 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 { (1, power) } else { (power, 1) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly_and_rounded_up_to_thousandths() {
        let cases = [
            ("8", Some(8000)),
            ("7910m", Some(7910)),
            ("1.5", Some(1500)),
            (".5", Some(500)),
            ("2.", Some(2000)),
            ("0", Some(0)),
            ("100u", Some(1)),
            ("1500u", Some(2)),
            ("1n", Some(1)),
            ("0.0001", Some(1)),
            ("2k", Some(2_000_000)),
            ("1e3", Some(1_000_000)),
            ("5E-1", Some(500)),
            ("1Ki", Some(1_024_000)),
            ("+3", Some(3000)),
            ("", None),
            (".", None),
            ("-1", None),
            ("1.2.3", None),
            ("1x", None),
            ("m", None),
            ("1e", None),
            ("1e99", None),
            ("99999999999999999999", None),
            ("9E", None),
        ];
        for (text, expected) in cases {
            assert_eq!(milli(text), expected, "{text}");
        }
    }
}
