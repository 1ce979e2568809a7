//! Top level of an object, and the order in which its parts are decoded.

use super::meta::{self, DecodedMeta, RawMeta};
use crate::lenient::{Field, Shape};
use fleetnet_core::model::{Kind, Object};
use fleetnet_types::Undecodable;
use serde::Deserialize;
use serde::de::MapAccess;
use serde::de::value::MapAccessDeserializer;

fn because(identity: Undecodable, why: impl Into<String>) -> Undecodable {
    Undecodable { why: why.into(), ..identity }
}

pub(super) trait Top: Shape + Default {
    fn take_metadata(&mut self) -> Field<RawMeta>;
}

/// Top level of an object of any kind except EndpointSlice. An EndpointSlice has no spec.
#[derive(Deserialize)]
#[serde(bound(deserialize = "S: Shape, T: Shape"))]
pub(super) struct Root<S, T> {
    #[serde(default)]
    metadata: Field<RawMeta>,
    #[serde(default)]
    pub(super) spec: Field<S>,
    #[serde(default)]
    pub(super) status: Field<T>,
}

impl<S: Shape, T: Shape> Shape for Root<S, T> {
    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }
}

impl<S, T> Default for Root<S, T> {
    fn default() -> Self {
        Self { metadata: Field::Absent, spec: Field::Absent, status: Field::Absent }
    }
}

impl<S: Shape, T: Shape> Top for Root<S, T> {
    fn take_metadata(&mut self) -> Field<RawMeta> {
        std::mem::take(&mut self.metadata)
    }
}

/// Placeholder for a value that is skipped.
pub(super) struct Unread;

impl Shape for Unread {}

/// Decodes the top level and the metadata of an object. Passes both to `read`, which decodes the content and may return
/// an error.
///
/// For an object that is being deleted, valid metadata is enough.
pub(super) fn object<T: Top>(
    kind: Kind,
    json: &[u8],
    read: impl Fn(DecodedMeta, T) -> Result<Object, &'static str>,
) -> Result<Object, Undecodable> {
    let nothing_known = |why: String| Undecodable { why, ..Undecodable::default() };
    let top: Field<T> = match serde_json::from_slice(json) {
        Ok(top) => top,
        Err(error) => {
            // The JSON is broken, or a limit is exceeded. Decodes only the metadata, which identifies the undecodable
            // object.
            let bare: Field<Root<Unread, Unread>> =
                serde_json::from_slice(json).map_err(|_| nothing_known(error.to_string()))?;
            let decoded = meta::decoded(kind, bare.or_default().take_metadata())?;
            let identity = decoded.identity();
            if decoded.meta.deleting {
                return read(decoded, T::default()).map_err(|why| because(identity, why));
            }
            return Err(because(identity, error.to_string()));
        }
    };
    let mut top = top.value().ok_or_else(|| nothing_known("it is not a JSON object".to_owned()))?;
    let decoded = meta::decoded(kind, top.take_metadata())?;
    let identity = decoded.identity();
    let bare = decoded.meta.deleting.then(|| decoded.clone());
    let found = read(decoded, top).or_else(|why| bare.map_or(Err(why), |decoded| read(decoded, T::default())));
    found.map_err(|why| because(identity, why))
}
