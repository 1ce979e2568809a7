//! Settings in which controllers that use this library may differ ([`Config`]).

use crate::limits::{LABEL_VALUE_BYTES_MAX, MAX_ENDPOINTS_DEFAULT, MAX_ENDPOINTS_RANGE};
use crate::names::CONTROLLER_NAME;
use crate::text::Text;
use std::collections::BTreeSet;
use thiserror::Error;

/// Settings of a controller. The defaults are those of kube-controller-manager 1.35, with one exception: other writers'
/// metadata on a slice survives when the slice is recycled.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    controller_name: Text,
    max_endpoints_per_slice: usize,
    /// Slices to keep for a Service without endpoints.
    pub placeholder: Placeholder,
    /// True to recycle: reuse a slice that would be deleted for one that would be created, which is one write instead of two.
    pub recycle: bool,
    /// True to keep other writers' annotations and finalizers on a slice that is recycled. kube-controller-manager loses them
    /// (kubernetes/kubernetes #108267).
    pub keep_foreign_metadata: bool,
    /// Labels that other writers add to slices of this controller, for example a hook. The plan neither removes them nor counts
    /// them as a difference, unless the Service has them too.
    pub foreign_labels: BTreeSet<Text>,
    /// True to repair the headless label of a slice when nothing else changes.
    pub repair_headless_label: bool,
    /// True to remove the slices of a Service that no longer has a selector (kubernetes/kubernetes #118376).
    pub clean_up_without_selector: bool,
    /// True to remove the slices of a Service that became an ExternalName.
    pub clean_up_external_name: bool,
    /// True to publish no endpoint for a pod that lacks a port which the Service names. Otherwise the pod is in a slice with
    /// fewer ports (kubernetes/ingress-nginx #9141).
    pub leave_out_pods_without_named_port: bool,
    /// Writer of the hints: this library or somebody else.
    pub hints: HintPolicy,
}

/// Slices to keep for a Service without endpoints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placeholder {
    /// One slice of each address type, without ports and endpoints. It shows consumers that the Service was processed.
    Always,
    /// No slice.
    Never,
}

/// Writer of the endpoints' hints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HintPolicy {
    /// This library sets the hints, and removes hints that the Service does not ask for.
    Managed,
    /// Somebody else sets the hints. New endpoints have none, and a difference in hints alone never causes a write.
    Ignored,
}

/// Invalid value for a [`Config`].
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ConfigError {
    /// The limit of endpoints per slice is outside of what the API supports.
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

    /// Limits slices to this number of endpoints.
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

    /// Returns the largest number of endpoints of a slice. A slice that already has more keeps them.
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
            placeholder: Placeholder::Always,
            recycle: true,
            keep_foreign_metadata: true,
            foreign_labels: BTreeSet::new(),
            repair_headless_label: false,
            clean_up_without_selector: false,
            clean_up_external_name: false,
            leave_out_pods_without_named_port: false,
            hints: HintPolicy::Managed,
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
    fn limits_outside_of_1_to_1000_are_refused() {
        for bad in [0, 1001] {
            let refused = Config::default().with_max_endpoints_per_slice(bad);
            assert_eq!(refused, Err(ConfigError::MaxEndpoints(bad)));
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
