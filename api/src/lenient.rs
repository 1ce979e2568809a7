//! JSON decoding in which an invalid value does not make the whole object undecodable. Each field is valid, absent or
//! invalid ([`Field`]). The decoder makes one pass over the bytes and skips unknown fields.
//!
//! Only a value over its limit ([`Few`], [`Short`]) ends the decoding, immediately. So the decoder neither stores nor
//! reads the part of a member's input that is beyond a limit.

use crate::limits::IP_BYTES_MAX;
use fleetnet_core::model::{Address, IpFamily, Operator, PortNumber, SilencePhase, TargetPort, Treatment};
use fleetnet_types::{ClusterId, ConditionStatus, Text, Timestamp, Uid};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Decoded field of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Field<T> {
    /// The field is absent or null.
    #[default]
    Absent,
    /// The field has a value of an unexpected type or out of range.
    Nonsense,
    /// The field has a valid value.
    Value(T),
}

impl<T> Field<T> {
    /// Returns the value if it is valid.
    pub(crate) fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Nonsense => None,
        }
    }

    /// Returns a reference to the value if it is valid.
    pub(crate) fn as_value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Nonsense => None,
        }
    }

    /// Returns the value if it is valid, otherwise the type's default.
    pub(crate) fn or_default(self) -> T
    where
        T: Default,
    {
        self.value().unwrap_or_default()
    }

    /// Returns the value, or the default if the field is absent. An invalid value is an error.
    ///
    /// Use this function if an agent removes something when the field is absent. An invalid value must not remove
    /// anything, so the object counts as undecodable.
    pub(crate) fn or_undecodable(self, why: &'static str) -> Result<T, &'static str>
    where
        T: Default,
    {
        match self {
            Self::Value(value) => Ok(value),
            Self::Absent => Ok(T::default()),
            Self::Nonsense => Err(why),
        }
    }

    /// True if the field has a value, valid or not.
    pub(crate) fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

/// Type of a field's value. The type decides which JSON values are valid for the field. Each method converts one kind
/// of JSON value, and returns `None` if the type does not accept this value.
pub(crate) trait Shape: Sized {
    /// Maximum length of a text that the type accepts, in bytes.
    const LONGEST_TEXT: usize = usize::MAX;

    /// Converts a JSON string to a value.
    fn text(_: &str) -> Option<Self> {
        None
    }

    /// Converts a JSON integer to a value.
    fn number(_: i64) -> Option<Self> {
        None
    }

    /// Converts a JSON boolean to a value.
    fn boolean(_: bool) -> Option<Self> {
        None
    }

    /// Converts a JSON object to a value. Fails only if the JSON is broken or a limit is exceeded.
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    /// Converts a JSON list to a value. Fails only if the JSON is broken or a limit is exceeded.
    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Implements [`Shape`] for structs whose fields all have the type [`Field`]. The decoding of such a struct fails only
/// if the JSON is broken or a limit is exceeded.
macro_rules! records {
    ($($record:ty),+ $(,)?) => {
        $(
            impl $crate::lenient::Shape for $record {
                fn map<'de, A: serde::de::MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
                    let fields = serde::de::value::MapAccessDeserializer::new(map);
                    <$record as serde::Deserialize>::deserialize(fields).map(Some)
                }
            }
        )+
    };
}
pub(crate) use records;

/// Implements [`Shape`] for types that are a JSON text or a JSON number.
macro_rules! scalars {
    ($($method:ident($from:ty) { $($type:ty: $convert:expr),+ $(,)? })+) => {
        $($(
            impl Shape for $type {
                fn $method(value: $from) -> Option<Self> {
                    let convert: fn($from) -> Option<Self> = $convert;
                    convert(value)
                }
            }
        )+)+
    };
}

scalars! {
    text(&str) {
        Text: |text| Some(text.into()),
        Box<str>: |text| Some(text.into()),
        ClusterId: |text| Some(text.into()),
        Uid: |text| Some(text.into()),
        Address: |text| (text.len() <= IP_BYTES_MAX).then(|| text.into()),
        ConditionStatus: Self::named,
        Timestamp: crate::times::read,
        IpFamily: |text| match text {
            "IPv4" => Some(Self::IPv4),
            "IPv6" => Some(Self::IPv6),
            _ => None,
        },
        Operator: |text| Self::ALL.into_iter().find(|known| known.as_str() == text),
        SilencePhase: |text| Self::ALL.into_iter().find(|known| known.name() == text),
        // A treatment that this version does not know counts as draining.
        Treatment: |text| Self::ALL.into_iter().find(|known| known.name() == text).or(Some(Self::Draining)),
    }
    number(i64) {
        i64: Some,
        i32: |number| number.try_into().ok(),
        u32: |number| number.try_into().ok(),
        PortNumber: |number| i32::try_from(number).ok().map(Self::from),
    }
    boolean(bool) {
        bool: Some,
    }
}

/// The target ports 0 and "" are invalid. Go writes these values for a target port that is not set, and Kubernetes
/// reads them as not set.
impl Shape for TargetPort {
    fn text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::Name(text.into()))
    }

    fn number(number: i64) -> Option<Self> {
        i32::try_from(number).ok().filter(|number| *number != 0).map(|number| Self::Number(number.into()))
    }
}

/// Text that is invalid if it is empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filled<T>(pub(crate) T);

impl<T: Shape> Shape for Filled<T> {
    fn text(text: &str) -> Option<Self> {
        if text.is_empty() { None } else { T::text(text).map(Self) }
    }
}

/// Accepts a JSON object and keeps the entries with valid values.
impl Shape for BTreeMap<Text, Text> {
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut entries = Self::new();
        while let Some((key, value)) = map.next_entry::<Box<str>, Field<Text>>()? {
            entries.extend(value.value().map(|value| (Text::from(key), value)));
        }
        Ok(Some(entries))
    }
}

/// Accepts a JSON list and keeps the valid elements.
impl<T: Shape> Shape for Vec<T> {
    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut elements = Self::new();
        while let Some(element) = list.next_element::<Field<T>>()? {
            keep(&mut elements, element.value());
        }
        Ok(Some(elements))
    }
}

/// Adds an element to a list. A list of one element, such as the addresses of an endpoint, gets no room for more
/// elements.
fn keep<T>(elements: &mut Vec<T>, element: Option<T>) {
    if elements.is_empty() {
        elements.reserve_exact(1);
    }
    elements.extend(element);
}

/// List of at most `MOST` elements. Invalid elements count toward the limit too.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Few<T, const MOST: usize> {
    pub(crate) elements: Vec<T>,
}

impl<T: Shape, const MOST: usize> Shape for Few<T, MOST> {
    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let (mut elements, mut read) = (Vec::new(), 0);
        while read < MOST {
            let Some(element) = list.next_element::<Field<T>>()? else { return Ok(Some(Self { elements })) };
            keep(&mut elements, element.value());
            read += 1;
        }
        match list.next_element::<IgnoredAny>()? {
            None => Ok(Some(Self { elements })),
            Some(_) => Err(A::Error::custom(format_args!("a list has more than {MOST} elements"))),
        }
    }
}

impl<T, const MOST: usize> Field<Few<T, MOST>> {
    /// Converts a field with a limited list to a field with a plain list.
    pub(crate) fn list(self) -> Field<Vec<T>> {
        match self {
            Self::Absent => Field::Absent,
            Self::Nonsense => Field::Nonsense,
            Self::Value(Few { elements }) => Field::Value(elements),
        }
    }
}

/// First `MOST` valid elements of a list. Further elements are skipped and only counted, so a longer list is no error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct First<T, const MOST: usize> {
    pub(crate) elements: Vec<T>,
    /// Number of the elements that were skipped.
    pub(crate) further: usize,
}

impl<T, const MOST: usize> Default for First<T, MOST> {
    fn default() -> Self {
        Self { elements: Vec::new(), further: 0 }
    }
}

impl<T: Shape, const MOST: usize> Shape for First<T, MOST> {
    fn list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut first = Self::default();
        while first.elements.len() < MOST {
            let Some(element) = list.next_element::<Field<T>>()? else { return Ok(Some(first)) };
            keep(&mut first.elements, element.value());
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            first.further += 1;
        }
        Ok(Some(first))
    }
}

/// Text of at most `LONGEST` bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Short<T, const LONGEST: usize>(T);

impl<T, const LONGEST: usize> Short<T, LONGEST> {
    /// Returns the text without the wrapper that limits its length.
    pub(crate) fn as_text(&self) -> &T {
        &self.0
    }

    pub(crate) fn into_text(self) -> T {
        self.0
    }
}

impl<T: Shape, const LONGEST: usize> Shape for Short<T, LONGEST> {
    const LONGEST_TEXT: usize = LONGEST;

    fn text(text: &str) -> Option<Self> {
        T::text(text).map(Self)
    }

    fn number(number: i64) -> Option<Self> {
        T::number(number).map(Self)
    }
}

impl<T, const LONGEST: usize> Field<Short<T, LONGEST>> {
    /// Converts a field with a limited text to a field with a plain text.
    pub(crate) fn text(self) -> Field<T> {
        match self {
            Self::Absent => Field::Absent,
            Self::Nonsense => Field::Nonsense,
            Self::Value(Short(text)) => Field::Value(text),
        }
    }
}

impl<'de, T: Shape> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

fn field<T>(understood: Option<T>) -> Field<T> {
    understood.map_or(Field::Nonsense, Field::Value)
}

impl<'de, T: Shape> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if text.len() > T::LONGEST_TEXT {
            let longest = T::LONGEST_TEXT;
            return Err(E::custom(format_args!("a text has {} bytes, and may have {longest}", text.len())));
        }
        Ok(field(T::text(text)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(field(T::number(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(field(number.try_into().ok().and_then(T::number)))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Field::Nonsense)
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<Self::Value, E> {
        Ok(field(T::boolean(boolean)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Field::Absent)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::map(map).map(field)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        T::list(list).map(field)
    }
}
