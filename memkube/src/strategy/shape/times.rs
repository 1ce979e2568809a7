//! Parsing and formatting of times as Go's `metav1.Time` and `metav1.MicroTime` do.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Parts of a time's layout: name in Go, and number of digits. A part with 0 digits is literal text.
const PARTS: [(&str, usize); 11] = [
    ("2006", 4),
    ("-", 0),
    ("01", 2),
    ("-", 0),
    ("02", 2),
    ("T", 0),
    ("15", 2),
    (":", 0),
    ("04", 2),
    (":", 0),
    ("05", 2),
];

/// Parses a time and formats it in UTC: with microseconds if `micro` is true, otherwise with whole seconds.
///
/// # Errors
/// Message of Go's `time.Parse`.
pub(super) fn read(text: &str, micro: bool) -> Result<String, String> {
    let layout = if micro { MICRO_LAYOUT } else { LAYOUT };
    let refuse = |found: &str, wanted: &str| {
        Err(format!("parsing time {text:?} as {layout:?}: cannot parse {found:?} as {wanted:?}"))
    };
    let mut rest = text;
    for (part, digits) in PARTS {
        let taken = match digits {
            0 => rest.strip_prefix(part),
            digits => take_digits(rest, digits),
        };
        match taken {
            Some(behind) => rest = behind,
            None => return refuse(rest, part),
        }
    }
    if micro {
        let fraction = rest.strip_prefix('.').and_then(|fraction| take_digits(fraction, 6));
        match fraction {
            Some(behind) if !behind.starts_with(|letter: char| letter.is_ascii_digit()) => rest = behind,
            _ => return refuse(rest, ".000000"),
        }
    }
    match text.parse::<Timestamp>() {
        Ok(time) => Ok(write(time, micro)),
        Err(_) => refuse(rest, "Z07:00"),
    }
}

/// Formats a time as Go does.
pub(super) fn write(time: Timestamp, micro: bool) -> String {
    let mut text = String::new();
    let printer = DateTimePrinter::new().precision(Some(if micro { 6 } else { 0 }));
    // Writing to a String cannot fail.
    let _ = printer.print_timestamp(&time, &mut text);
    text
}

fn take_digits(text: &str, count: usize) -> Option<&str> {
    let digits = text.get(..count)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| &text[count..])
}
