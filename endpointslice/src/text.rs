//! String that many objects share: [`Text`].
//!
//! Many pods and endpoints contain the same text, for example the name of a Node. Equal texts can share one allocation,
//! so a clone of a slice copies only pointers. Texts that share an allocation are equal without a comparison of bytes.
//! Most comparisons are of this kind, because most texts did not change.

use crate::limits::SHARED_TEXTS;
use hashbrown::DefaultHashBuilder;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::borrow::Borrow;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher as _, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Immutable string whose clones share one allocation.
#[derive(Clone, Default)]
pub struct Text(Arc<str>);

impl Text {
    /// Returns `text`. Shares the allocation of an equal text that this thread requested recently.
    ///
    /// Use this for texts that occur in many objects, such as namespaces, names of Nodes, zones and labels. Shared
    /// texts save memory, and objects that were decoded separately are faster to compare.
    #[must_use]
    pub fn shared(text: &str) -> Self {
        RECENT.with_borrow_mut(|recent| recent.share(text))
    }

    /// Returns the text as a string slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the text, or `None` if it is empty: in most fields of Kubernetes "" and absence are equal.
    #[must_use]
    pub fn non_empty(&self) -> Option<&Self> {
        (!self.0.is_empty()).then_some(self)
    }
}

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::new(Recent::new());
}

/// Cache of recently requested texts. The hash of a text determines its position, and a newer text replaces an older
/// text at the same position.
struct Recent {
    texts: Box<[Text]>,
    hasher: DefaultHashBuilder,
}

impl Recent {
    fn new() -> Self {
        Self { texts: vec![Text::default(); SHARED_TEXTS].into(), hasher: DefaultHashBuilder::default() }
    }

    fn share(&mut self, text: &str) -> Text {
        #[expect(clippy::cast_possible_truncation, reason = "any bits of a hash will do")]
        let place = &mut self.texts[self.hasher.hash_one(text) as usize % SHARED_TEXTS];
        if *place != *text {
            *place = text.into();
        }
        place.clone()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Arc::from(text))
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        Self(Arc::from(text.as_str()))
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Self {
        text.clone()
    }
}

impl PartialEq for Text {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, formatter)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

/// Deserializes a text that occurs in many objects ([`Text::shared`]).
pub(crate) fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
    Ok(shared_option(deserializer)?.unwrap_or_default())
}

/// Deserializes an optional text that occurs in many objects ([`Text::shared`]).
pub(crate) fn shared_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Text>, D::Error> {
    let text: Option<SharedText> = Option::deserialize(deserializer)?;
    Ok(text.map(|SharedText(text)| text))
}

/// Text that occurs in many objects, deserialized with [`Text::shared`].
pub(crate) struct SharedText(pub(crate) Text);

impl<'de> Deserialize<'de> for SharedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SharedVisitor;
        impl Visitor<'_> for SharedVisitor {
            type Value = SharedText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<SharedText, E> {
                Ok(SharedText(Text::shared(text)))
            }

            fn visit_unit<E: Error>(self) -> Result<SharedText, E> {
                Ok(SharedText(Text::default()))
            }
        }
        deserializer.deserialize_any(SharedVisitor)
    }
}

/// Deserializer of a text that accepts null as "" and a number as its digits, so that every stored object can be
/// decoded.
struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        Ok(text.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Text, E> {
        Ok(value.to_string().into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Text, E> {
        Ok(number.to_string().into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Text, E> {
        Ok(number.to_string().into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Text, E> {
        Ok(number.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_reads_as_the_empty_text_and_a_number_as_its_digits() {
        assert_eq!(serde_json::from_str::<Text>("null").unwrap(), "");
        assert_eq!(serde_json::from_str::<Text>("\"a\"").unwrap(), "a");
        assert_eq!(serde_json::from_str::<Text>("8").unwrap(), "8");
    }

    #[test]
    fn texts_that_repeat_are_read_into_one_allocation() {
        let (one, other) = (Text::shared("node-1"), Text::shared("node-1"));
        assert!(std::ptr::eq(one.as_str(), other.as_str()));
        assert_eq!(Text::shared("node-2"), "node-2");
    }

    #[test]
    fn an_absent_text_takes_no_room_of_its_own() {
        assert_eq!(size_of::<Option<Text>>(), size_of::<Text>());
    }
}
