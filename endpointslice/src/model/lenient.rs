//! Deserializers for fields that the API server may omit, set to null or fill with values that this library does not
//! know.

use super::Readiness;
use crate::text::{Text, shared};
use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{SerializeSeq as _, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Reads a value. Null becomes the type's default value.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a timestamp; `None` if it is malformed.
pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text: Option<Text> = Option::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

/// Writes a timestamp in the format of Kubernetes, or null for `None`.
#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
pub(super) fn write_time<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(time),
        None => serializer.serialize_none(),
    }
}

/// Reads the `Ready` condition from a list of conditions and skips all other conditions.
pub(super) fn ready<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Readiness, D::Error> {
    deserializer.deserialize_any(ReadyVisitor)
}

/// Writes the `Ready` condition as a list with this one condition.
pub(super) fn write_ready<S: Serializer>(ready: &Readiness, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(serde::Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Ready {
        r#type: &'static str,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none", serialize_with = "write_time")]
        last_transition_time: Option<Timestamp>,
    }
    let status = if ready.is_ready { "True" } else { "False" };
    let mut list = serializer.serialize_seq(Some(1))?;
    list.serialize_element(&Ready { r#type: "Ready", status, last_transition_time: ready.since })?;
    list.end()
}

struct ReadyVisitor;

impl<'de> Visitor<'de> for ReadyVisitor {
    type Value = Readiness;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of conditions")
    }

    fn visit_unit<E>(self) -> Result<Readiness, E> {
        Ok(Readiness::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut conditions: A) -> Result<Readiness, A::Error> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Condition<'a> {
            #[serde(default, borrow)]
            r#type: Option<Cow<'a, str>>,
            #[serde(default, borrow)]
            status: Option<Cow<'a, str>>,
            #[serde(default, deserialize_with = "time")]
            last_transition_time: Option<Timestamp>,
        }
        let mut readiness = Readiness::default();
        while let Some(condition) = conditions.next_element::<Condition<'_>>()? {
            if condition.r#type.as_deref() == Some("Ready") {
                let is_ready = condition.status.as_deref() == Some("True");
                readiness = Readiness { is_ready, since: condition.last_transition_time };
            }
        }
        Ok(readiness)
    }
}

/// Reads the names in a list such as `[{"name": "zone-a"}]`. Hints have this format in the API.
pub(super) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Text>, D::Error> {
    let named: Option<Vec<Named>> = Option::deserialize(deserializer)?;
    Ok(named.unwrap_or_default().into_iter().map(|it| it.name).collect())
}

/// Writes names as a list such as `[{"name": "zone-a"}]`. Hints have this format in the API.
pub(super) fn write_names<S: Serializer>(names: &[Text], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(names.iter().map(|name| Named { name: name.clone() }))
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Named {
    #[serde(default, deserialize_with = "shared")]
    name: Text,
}
