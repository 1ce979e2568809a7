//! Settings of a controller that uses this library ([`Config`]).

use crate::limits::{LABEL_VALUE_BYTES_MAX, MAX_ENDPOINTS_DEFAULT, MAX_ENDPOINTS_RANGE};
use crate::names::CONTROLLER_NAME;
use crate::text::Text;
use std::collections::BTreeSet;
use thiserror::Error;

/// Settings of a controller that uses this library. The defaults equal the behaviour of kube-controller-manager 1.35,
/// except that a recycled slice keeps the annotations and finalizers of other writers. kube-controller-manager removes
/// them (kubernetes/kubernetes #108267).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    controller_name: Text,
    max_endpoints_per_slice: usize,
    /// Keys of labels that other writers, or a hook, may set on slices of this controller. A plan does not remove or
    /// correct such a label, unless the Service has a label with the same key.
    pub foreign_labels: BTreeSet<Text>,
}

/// Invalid value for a [`Config`].
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ConfigError {
    /// The limit of endpoints per slice is not in [`MAX_ENDPOINTS_RANGE`].
    #[error("a slice may be limited to 1 to 1000 endpoints, not to {0}")]
    MaxEndpoints(usize),
    /// The controller's name is not valid as a label value.
    #[error("`{0}` cannot be the name of a controller: it must be a label value of 1 to 63 letters")]
    ControllerName(Text),
}

impl Config {
    /// Returns default settings for a controller that puts `controller_name` in the managed-by label.
    ///
    /// # Errors
    /// If the name is empty or not a valid label value.
    pub fn new(controller_name: impl Into<Text>) -> Result<Self, ConfigError> {
        let controller_name = controller_name.into();
        if !is_label_value(&controller_name) {
            return Err(ConfigError::ControllerName(controller_name));
        }
        Ok(Self { controller_name, ..Self::default() })
    }

    /// Sets the maximum number of endpoints per slice.
    ///
    /// # Errors
    /// If the limit is not in [`MAX_ENDPOINTS_RANGE`].
    pub fn with_max_endpoints_per_slice(mut self, endpoints: usize) -> Result<Self, ConfigError> {
        if !MAX_ENDPOINTS_RANGE.contains(&endpoints) {
            return Err(ConfigError::MaxEndpoints(endpoints));
        }
        self.max_endpoints_per_slice = endpoints;
        Ok(self)
    }

    /// Returns the value of the managed-by label.
    #[must_use]
    pub const fn controller_name(&self) -> &Text {
        &self.controller_name
    }

    /// Returns the maximum number of endpoints per slice. A slice that already has more endpoints keeps them.
    #[must_use]
    pub const fn max_endpoints_per_slice(&self) -> usize {
        self.max_endpoints_per_slice
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            controller_name: CONTROLLER_NAME.into(),
            max_endpoints_per_slice: MAX_ENDPOINTS_DEFAULT,
            foreign_labels: BTreeSet::new(),
        }
    }
}

fn is_label_value(text: &str) -> bool {
    let ends = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    text.len() <= LABEL_VALUE_BYTES_MAX
        && ends(text.chars().next())
        && ends(text.chars().next_back())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_outside_of_1_to_1000_are_invalid() {
        for bad in [0, 1001] {
            let result = Config::default().with_max_endpoints_per_slice(bad);
            assert_eq!(result, Err(ConfigError::MaxEndpoints(bad)));
        }
        for good in [1, 1000] {
            assert_eq!(Config::default().with_max_endpoints_per_slice(good).unwrap().max_endpoints_per_slice(), good);
        }
    }

    #[test]
    fn a_controller_name_must_fit_in_a_label() {
        assert!(Config::new("endpoints.example.com").is_ok());
        for bad in ["", "-a", "a/b", &"a".repeat(64)] {
            assert_eq!(Config::new(bad), Err(ConfigError::ControllerName(bad.into())));
        }
    }
}
