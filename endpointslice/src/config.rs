//! [`Config`]: what may differ from one controller to another.

use crate::names::CONTROLLER_NAME;
use crate::text::Text;
use std::collections::BTreeSet;
use thiserror::Error;

/// The smallest and largest number of endpoints that a slice can be limited to: the API refuses more than 1000.
pub const MAX_ENDPOINTS_RANGE: std::ops::RangeInclusive<usize> = 1..=1000;

/// How slices are made. The defaults are those of kube-controller-manager 1.35, except that what others wrote on a slice
/// survives when the slice is used for something else.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    controller_name: Text,
    max_endpoints_per_slice: usize,
    /// What a Service without endpoints has.
    pub placeholder: Placeholder,
    /// Whether a slice that would be deleted is used for one that would be created: one write instead of two.
    pub recycle: bool,
    /// Whether a slice that is recycled keeps the annotations and finalizers that others gave it (kubernetes/kubernetes
    /// #108267: they are lost upstream).
    pub keep_foreign_metadata: bool,
    /// Labels that somebody else adds to slices of this controller, a hook for example: they are neither removed nor
    /// taken for a difference, unless the Service has them too.
    pub foreign_labels: BTreeSet<Text>,
    /// Whether the headless label of a slice is put right when nothing else changes.
    pub repair_headless_label: bool,
    /// Whether the slices of a Service that has no selector any more are removed (#118376).
    pub clean_up_without_selector: bool,
    /// Whether the slices of a Service that became an ExternalName are removed.
    pub clean_up_external_name: bool,
    /// Whether pods that lack a port which the Service names are left out, rather than put in a slice with fewer ports
    /// (kubernetes/ingress-nginx #9141).
    pub leave_out_pods_without_named_port: bool,
    /// Who decides about hints.
    pub hints: HintPolicy,
}

/// What a Service without endpoints has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placeholder {
    /// One slice of each address type, without ports and endpoints: consumers see that it has been dealt with.
    Always,
    /// No slice.
    Never,
}

/// Who decides about hints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HintPolicy {
    /// This library: hints that the Service does not ask for are removed.
    Managed,
    /// Nobody: an endpoint that is written anew has none, a slice is never written because of them.
    Ignored,
}

/// A value that a [`Config`] cannot have.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ConfigError {
    /// A limit that the API or the algorithm cannot work with.
    #[error("a slice may be limited to 1 to 1000 endpoints, not to {0}")]
    MaxEndpoints(usize),
    /// A name that cannot stand in the managed-by label.
    #[error("`{0}` cannot be the name of a controller: it must be a label value of 1 to 63 letters")]
    ControllerName(Text),
}

impl Config {
    /// The controller that puts `controller_name` in the managed-by label, with the defaults for everything else.
    ///
    /// # Errors
    /// The name is no label value, or empty.
    pub fn new(controller_name: impl Into<Text>) -> Result<Self, ConfigError> {
        let controller_name = controller_name.into();
        if !is_label_value(&controller_name) {
            return Err(ConfigError::ControllerName(controller_name));
        }
        Ok(Self { controller_name, ..Self::default() })
    }

    /// The same with at most `endpoints` in a slice.
    ///
    /// # Errors
    /// The limit is not in [`MAX_ENDPOINTS_RANGE`].
    pub fn with_max_endpoints_per_slice(mut self, endpoints: usize) -> Result<Self, ConfigError> {
        if !MAX_ENDPOINTS_RANGE.contains(&endpoints) {
            return Err(ConfigError::MaxEndpoints(endpoints));
        }
        self.max_endpoints_per_slice = endpoints;
        Ok(self)
    }

    /// The value of the managed-by label.
    #[must_use]
    pub const fn controller_name(&self) -> &Text {
        &self.controller_name
    }

    /// How many endpoints a slice may get. One that has more, from before, keeps them.
    #[must_use]
    pub const fn max_endpoints_per_slice(&self) -> usize {
        self.max_endpoints_per_slice
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            controller_name: CONTROLLER_NAME.into(),
            max_endpoints_per_slice: 100,
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
    text.len() <= 63
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
