//! Traces of changes: the context of a span, as objects carry it (KEP-5915).

use crate::Timestamp;
use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

/// Annotation of an object with the context of the span of its last change.
pub const ANNOTATION: &str = "tracing.k8s.io/traceparent";

/// Context of a sampled span, in the form of W3C Trace Context: `00-<trace id>-<span id>-01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Traceparent {
    pub trace: NonZeroU128,
    pub span: NonZeroU64,
}

impl Traceparent {
    /// Number of bytes of the text.
    const LENGTH: usize = 55;

    /// Reads the text. `None` unless it has version 00, two ids in lower-case hexadecimal digits that are not zero, and
    /// the flag of a sampled span. Another client may have written the text, so nothing else is accepted.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if text.len() != Self::LENGTH {
            return None;
        }
        let (version, rest) = text.split_once('-')?;
        let (trace, rest) = rest.split_once('-')?;
        let (span, flags) = rest.split_once('-')?;
        let is_hex = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if version != "00" || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
            return None;
        }
        let is_sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
        let trace = u128::from_str_radix(trace, 16).ok().and_then(NonZeroU128::new)?;
        let span = u64::from_str_radix(span, 16).ok().and_then(NonZeroU64::new)?;
        is_sampled.then_some(Self { trace, span })
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

/// Annotations of a slice that only traces use. The rules of the agents do not read them, and the views do not keep
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    pub traceparent: Option<Traceparent>,
    /// Time of the first change of a pod or of the Service that led to the last change of the slice.
    pub triggered: Option<Timestamp>,
}

impl Traced {
    /// Returns the annotations, if there is one.
    #[must_use]
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::Traceparent;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_text_is_read_and_written_in_the_same_form() {
        let read = Traceparent::read(TEXT).expect("the example of W3C Trace Context");
        assert_eq!((read.trace.get() >> 64, read.span.get()), (0x4bf9_2f35_77b3_4da6, 0x00f0_67aa_0ba9_02b7));
        assert_eq!(read.to_string(), TEXT);
        let more_flags = TEXT.replace("-01", "-03");
        assert_eq!(Traceparent::read(&more_flags), Some(read), "further flags do not matter");
    }

    #[test]
    fn a_text_of_another_form_is_not_read() {
        let zeros = |digits: usize| "0".repeat(digits);
        let table = [
            String::new(),
            TEXT.replace("00-4b", "01-4b"),
            TEXT.replace("00-4b", "ff-4b"),
            TEXT.replace("4bf9", "4BF9"),
            TEXT.replace("4bf9", "4bfg"),
            TEXT.replace("4bf9", "+bf9"),
            TEXT.replace("-01", "-00"),
            format!("{TEXT}-more"),
            TEXT.replacen('-', "_", 1),
            TEXT.replace("b7-01", "b-701"),
            format!("00-{}-00f067aa0ba902b7-01", zeros(32)),
            format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", zeros(16)),
            TEXT.replace("4bf9", "é́"),
        ];
        for text in table {
            assert_eq!(Traceparent::read(&text), None, "{text}");
        }
    }
}
