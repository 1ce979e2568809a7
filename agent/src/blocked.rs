//! What stands in the way of keys and only a user can mend: said in the log once, and again only when it is something else.

use std::collections::BTreeMap;
use std::fmt::Debug;
use tracing::warn;

/// What was said, by key.
#[derive(Debug)]
pub struct Blocked<K>(BTreeMap<K, String>);

impl<K: Clone + Debug + Ord> Blocked<K> {
    /// Takes what the newest plan of a key says; whether that was news.
    pub fn note(&mut self, key: &K, why: Option<String>) -> bool {
        let Some(why) = why else {
            self.0.remove(key);
            return false;
        };
        if self.0.get(key) == Some(&why) {
            return false;
        }
        warn!(?key, "{why}");
        self.0.insert(key.clone(), why);
        true
    }
}

impl<K> Default for Blocked<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_is_said_once_and_again_when_it_is_something_else() {
        let mut blocked = Blocked::default();
        let mut says = |why: Option<&str>| blocked.note(&"key", why.map(str::to_owned));
        assert!(says(Some("a label")));
        assert!(!says(Some("a label")));
        assert!(says(Some("a name")));
        assert!(!says(None));
        assert!(says(Some("a name")), "it was out of the way in between");
    }
}
