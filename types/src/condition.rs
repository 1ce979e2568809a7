//! Conditions of objects.

use std::fmt;

/// Status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionStatus {
    True,
    False,
    /// Also the status of a condition whose text is none of the three.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// Returns the status as the API spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Returns the status that the API spells so.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        [Self::True, Self::False, Self::Unknown].into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
