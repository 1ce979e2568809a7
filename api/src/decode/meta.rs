//! Decoder of metadata, and of the labels and annotations that the agents use.

use crate::crd::shared::RawOwner;
use crate::lenient::{Field, Shape, records};
use crate::names::{annotations, labels};
use crate::resources::finalizer;
use crate::times;
use crate::wire::Wire;
use fleetnet_core::model::{Finalizers, Kind, Meta, Owner};
use fleetnet_types::{ObjectName, Text, Timestamp, Traced, Traceparent, Undecodable};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use std::fmt;

/// Keys of the labels and annotations that are decoded. All others are skipped, because users may write any number of
/// them, of any length.
const READ: [&str; 33] = [
    annotations::AZURE_LOAD_BALANCER_INTERNAL,
    annotations::CLUSTER_PROPERTIES,
    annotations::CLUSTER_SELECTION,
    annotations::CLUSTER_SELECTORS,
    annotations::CLUSTER_SELECTOR_RESULTS,
    annotations::EXPORTED,
    annotations::EXPORTERS,
    annotations::EXPORT_HEADLESS,
    annotations::IMPORTERS,
    annotations::LAST_CHANGE_TRIGGER_TIME,
    annotations::LAST_OBSERVED_GENERATION,
    annotations::MCS_DERIVED_SERVICE,
    annotations::PORTS_OFFERED_SINCE,
    annotations::SERVICE_AZURE_LOAD_BALANCER_INTERNAL,
    annotations::SERVICE_IN_USE_BY,
    annotations::SERVICE_TYPE,
    annotations::SOURCE_RANGES,
    annotations::TRACEPARENT,
    annotations::WEIGHT,
    annotations::WEIGHTS,
    labels::DERIVED_SERVICE,
    labels::HEADLESS,
    labels::IMPORT,
    labels::MANAGED_BY,
    labels::MCS_SERVICE_NAME,
    labels::MULTI_CLUSTER_SERVICE_NAME,
    labels::MULTI_CLUSTER_SERVICE_NAMESPACE,
    labels::REGION,
    labels::SERVICE_IMPORT,
    labels::SERVICE_NAME,
    labels::SOURCE_CLUSTER,
    labels::WRITER,
    labels::ZONE,
];

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawMeta {
    name: Field<Text>,
    namespace: Field<Text>,
    uid: Field<Text>,
    resource_version: Field<Box<str>>,
    generation: Field<i64>,
    creation_timestamp: Field<Timestamp>,
    deletion_timestamp: Field<Box<str>>,
    finalizers: Field<Vec<Text>>,
    owner_references: Field<Vec<RawOwner>>,
    labels: Field<Pairs>,
    annotations: Field<Pairs>,
}

records!(RawMeta);

/// Decoded metadata: the fields that every kind has, and fields that only some kinds use.
#[derive(Clone)]
pub(super) struct DecodedMeta {
    pub(super) meta: Meta,
    /// deletionTimestamp; for an object with a malformed one, its creationTimestamp.
    pub(super) deleted: Option<Timestamp>,
    pub(super) owners: Vec<Owner>,
    pub(super) labels: Pairs,
    pub(super) annotations: Pairs,
}

impl DecodedMeta {
    /// Returns the annotations for traces. A malformed one counts as absent.
    pub(super) fn traced(&self) -> Option<Box<Traced>> {
        let annotation = |name| self.annotations.get(name);
        let traceparent = annotation(annotations::TRACEPARENT).and_then(|text| Traceparent::read(text));
        let triggered = annotation(annotations::LAST_CHANGE_TRIGGER_TIME).and_then(|text| times::read(text));
        Traced { traceparent, triggered }.boxed()
    }

    /// Returns the error for an object with this metadata and undecodable content. The error contains name, UID and
    /// resourceVersion of the object. The caller adds the reason.
    pub(super) fn identity(&self) -> Undecodable {
        Undecodable {
            name: self.meta.name.clone(),
            uid: self.meta.uid.clone(),
            resource_version: self.meta.resource_version,
            why: String::new(),
        }
    }
}

/// Decodes metadata. Fails for an object without name, UID or resourceVersion, because these fields identify an object.
pub(super) fn decoded(kind: Kind, raw: Field<RawMeta>) -> Result<DecodedMeta, Undecodable> {
    let raw = raw.or_default();
    let version = raw.resource_version.or_default();
    let identity = Undecodable {
        name: ObjectName::new(raw.namespace.or_default(), raw.name.or_default()),
        uid: raw.uid.or_default().into(),
        resource_version: version.parse().unwrap_or(0),
        why: String::new(),
    };
    if identity.name.name.is_empty() || identity.uid.is_empty() || identity.resource_version == 0 {
        let why = "metadata has no name, no uid or no resourceVersion that is a number".to_owned();
        return Err(Undecodable { why, ..identity });
    }
    let meta = Meta {
        name: identity.name,
        uid: identity.uid,
        resource_version: identity.resource_version,
        generation: raw.generation.or_default(),
        created: raw.creation_timestamp.or_default(),
        // The server sets deletionTimestamp only on objects that are being deleted, so any value counts.
        deleting: raw.deletion_timestamp.is_present(),
        finalizers: split(kind, raw.finalizers.or_default()),
    };
    let deleted = raw.deletion_timestamp.value().and_then(|text| times::read(&text));
    Ok(DecodedMeta {
        deleted: meta.deleting.then(|| deleted.unwrap_or(meta.created)),
        meta,
        owners: raw.owner_references.or_default().model().unwrap_or_default(),
        labels: raw.labels.or_default(),
        annotations: raw.annotations.or_default(),
    })
}

fn split(kind: Kind, mut all: Vec<Text>) -> Finalizers {
    let before = all.len();
    all.retain(|present| Some(&**present) != finalizer(kind));
    Finalizers { ours: all.len() < before, others: all }
}

/// Labels or annotations whose keys the agents use.
#[derive(Clone, Default)]
pub(super) struct Pairs(Vec<(&'static str, Text)>);

impl Pairs {
    /// Returns the value of a label or annotation. `None` if the object does not have it.
    pub(super) fn get(&self, key: &str) -> Option<&Text> {
        self.0.iter().find(|(present, _)| *present == key).map(|(_, value)| value)
    }
}

impl Shape for Pairs {
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut pairs = Self::default();
        while let Some(key) = map.next_key_seed(KnownKey)? {
            match key {
                Some(key) => pairs.0.extend(map.next_value::<Field<Text>>()?.value().map(|value| (key, value))),
                None => drop(map.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        Ok(Some(pairs))
    }
}

struct KnownKey;

impl<'de> DeserializeSeed<'de> for KnownKey {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KnownKey {
    type Value = Option<&'static str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(READ.into_iter().find(|known| *known == key))
    }
}
