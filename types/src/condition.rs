//! Conditions of objects.

use std::fmt;

/// Status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionStatus {
    True,
    False,
    /// Status `Unknown`, and the default for a condition whose status text is invalid.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// Returns the name of the status in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Returns the status with this name in the API; `None` if the API has no such status.
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
