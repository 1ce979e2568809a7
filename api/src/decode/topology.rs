//! Decoders of Node, metadata only, and of ClusterProperty (KEP-2149).

use super::meta::DecodedMeta;
use super::object::{Root, Unread};
use crate::lenient::{Field, records};
use crate::names::labels;
use fleetnet_core::model::{ClusterProperty, Node, Object};
use fleetnet_types::Text;
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawProperty {
    value: Field<Text>,
}

records!(RawProperty);

pub(super) fn read_node(decoded: DecodedMeta, _: Root<Unread, Unread>) -> Result<Object, &'static str> {
    let label = |name| decoded.labels.get(name).filter(|value| !value.is_empty()).cloned();
    Ok(Object::Node(Node { region: label(labels::REGION), zone: label(labels::ZONE), meta: decoded.meta }))
}

pub(super) fn read_property(decoded: DecodedMeta, top: Root<RawProperty, Unread>) -> Result<Object, &'static str> {
    let value = match top.spec.or_default().value.value() {
        None if decoded.meta.deleting => Text::default(), // it does not count any more
        value => value.ok_or("spec.value is no text")?,
    };
    Ok(Object::ClusterProperty(ClusterProperty { meta: decoded.meta, value }))
}
