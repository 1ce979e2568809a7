//! Port numbers.

use std::fmt;
use std::num::NonZeroU16;

/// Number of a port, checked once when the object is decoded.
///
/// A number that is no valid port (0, negative or above 65535) is kept too: the hub agent distributes the number
/// unchanged. The importer does not import this port and names the number in its message to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNumber(Number);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Number {
    Valid(NonZeroU16),
    Malformed(i32),
}

impl PortNumber {
    /// Returns the number; `None` if it is no valid port number.
    pub fn valid(self) -> Option<NonZeroU16> {
        match self.0 {
            Number::Valid(number) => Some(number),
            Number::Malformed(_) => None,
        }
    }

    /// Returns the number as it is in the object, also if it is no valid port number.
    pub fn as_written(self) -> i32 {
        match self.0 {
            Number::Valid(number) => number.get().into(),
            Number::Malformed(number) => number,
        }
    }
}

/// Number 0, which is no valid port.
impl Default for PortNumber {
    fn default() -> Self {
        0.into()
    }
}

impl From<i32> for PortNumber {
    fn from(written: i32) -> Self {
        let valid = u16::try_from(written).ok().and_then(NonZeroU16::new);
        Self(valid.map_or(Number::Malformed(written), Number::Valid))
    }
}

impl From<NonZeroU16> for PortNumber {
    fn from(number: NonZeroU16) -> Self {
        Self(Number::Valid(number))
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_written().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_no_port_is_kept_as_it_is_written() {
        for (written, valid) in
            [(1, true), (80, true), (65_535, true), (0, false), (-5, false), (65_536, false), (i32::MIN, false)]
        {
            let port = PortNumber::from(written);
            assert_eq!((port.valid().is_some(), port.as_written()), (valid, written));
            assert_eq!(port.to_string(), written.to_string());
        }
    }
}
