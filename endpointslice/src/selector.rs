//! Which pods a Service selects.

use crate::text_map::TextMap;

/// Whether `selector` selects what has `labels`. An empty selector selects nothing: for a Service it means that somebody
/// else makes its slices.
#[must_use]
pub fn selects(selector: &TextMap, labels: &TextMap) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_selects_what_has_all_of_its_labels() {
        let labels = TextMap::from([("app", "web"), ("tier", "front")]);
        assert!(selects(&TextMap::from([("app", "web")]), &labels));
        assert!(!selects(&TextMap::from([("app", "web"), ("tier", "back")]), &labels));
        assert!(!selects(&TextMap::from([("zone", "a")]), &labels));
    }

    #[test]
    fn an_empty_selector_selects_nothing() {
        assert!(!selects(&TextMap::new(), &TextMap::from([("app", "web")])));
    }
}
