//! Matching of pods to Services by selector.

use crate::text::Text;
use crate::text_map::TextMap;
use hashbrown::HashMap;
use std::collections::BTreeSet;

/// True if `selector` selects an object with `labels`. An empty selector selects nothing: another controller manages
/// the slices of such a Service.
#[must_use]
pub fn selects(selector: &TextMap, labels: &TextMap) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Index of the selectors of all Services in one namespace. The cost of a lookup grows with the number of matches, not
/// with the number of selectors.
///
/// Each selector is stored under only one of its labels: the label under which the index has the fewest selectors.
#[derive(Clone, Debug, Default)]
pub struct SelectorIndex {
    selectors: HashMap<Text, TextMap>,
    by_label: HashMap<Text, HashMap<Text, BTreeSet<Text>>>,
}

impl SelectorIndex {
    /// Adds or replaces the selector of a Service.
    pub fn insert(&mut self, service: &Text, selector: &TextMap) {
        self.remove(service);
        let Some((key, value)) = selector.iter().min_by_key(|(key, value)| self.under(key, value)) else { return };
        let values = self.by_label.entry(key.clone()).or_default();
        values.entry(value.clone()).or_default().insert(service.clone());
        self.selectors.insert(service.clone(), selector.clone());
    }

    /// Removes the selector of a Service.
    pub fn remove(&mut self, service: &str) {
        let Some(selector) = self.selectors.remove(service) else { return };
        for (key, value) in selector.iter() {
            let Some(values) = self.by_label.get_mut(key) else { continue };
            let Some(services) = values.get_mut(value) else { continue };
            services.remove(service);
            if services.is_empty() {
                values.remove(value);
            }
            if values.is_empty() {
                self.by_label.remove(key);
            }
        }
    }

    /// Returns the Services that select an object with `labels`.
    #[must_use]
    pub fn selecting(&self, labels: &TextMap) -> BTreeSet<Text> {
        let candidates = labels.iter().filter_map(|(key, value)| self.by_label.get(key)?.get(value)).flatten();
        let selecting = candidates.filter(|service| {
            let selector = self.selectors.get(*service);
            selector.is_some_and(|selector| selects(selector, labels))
        });
        selecting.cloned().collect()
    }

    fn under(&self, key: &str, value: &str) -> usize {
        self.by_label.get(key).and_then(|values| values.get(value)).map_or(0, BTreeSet::len)
    }
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
        let mut index = SelectorIndex::default();
        index.insert(&"web".into(), &TextMap::new());
        assert!(index.selecting(&TextMap::from([("app", "web")])).is_empty());
    }

    fn found(index: &SelectorIndex, app: &str) -> Vec<String> {
        let labels = TextMap::from([("app", app), ("tier", "front")]);
        index.selecting(&labels).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_pod_is_selected_by_its_services_and_by_no_others() {
        let mut index = SelectorIndex::default();
        for number in 0..3 {
            let app = format!("test-{number}");
            index.insert(&format!("service-{number}").into(), &TextMap::from([("app", app.as_str())]));
        }
        for number in 0..3 {
            assert_eq!(found(&index, &format!("test-{number}")), [format!("service-{number}")]);
        }
        assert!(found(&index, "test-3").is_empty() && found(&index, "test-4").is_empty());
    }

    #[test]
    fn a_selector_that_changes_or_goes_selects_no_more() {
        let mut index = SelectorIndex::default();
        index.insert(&"all".into(), &TextMap::from([("tier", "front")]));
        index.insert(&"web".into(), &TextMap::from([("app", "web"), ("tier", "front")]));
        assert_eq!(found(&index, "web"), ["all", "web"]);
        index.insert(&"web".into(), &TextMap::from([("app", "shop"), ("tier", "front")]));
        assert_eq!(found(&index, "web"), ["all"]);
        assert_eq!(found(&index, "shop"), ["all", "web"]);
        index.remove("all");
        index.remove("web");
        assert!(found(&index, "shop").is_empty());
        assert!(index.selectors.is_empty() && index.by_label.is_empty());
    }
}
