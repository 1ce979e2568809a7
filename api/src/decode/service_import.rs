//! Decoder of ServiceImport, in a member or in the hub.

use super::meta::DecodedMeta;
use super::object::{Root, Unread};
use super::shared::{RawImportStatus, conditions, import_status};
use crate::lenient::{Field, records};
use crate::names::annotations;
use fleetnet_core::model::{Claims, Object, ServiceImport};
use fleetnet_types::Text;
use serde::Deserialize;
use std::collections::BTreeMap;

pub(super) fn read(decoded: DecodedMeta, top: Root<Unread, RawImportStatus>) -> Result<Object, &'static str> {
    let mut status = top.status.or_undecodable("status is not an object")?;
    Ok(Object::ServiceImport(ServiceImport {
        conditions: conditions(std::mem::take(&mut status.conditions))?,
        owners: decoded.owners,
        claims: claims(decoded.annotations.get(annotations::SERVICE_IN_USE_BY)),
        status: import_status(Field::Value(status))?,
        meta: decoded.meta,
    }))
}

/// Value of the annotation that records granted claims. Its keys start with a capital letter, because the Go agents use
/// the names of Go fields.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawClaims {
    #[serde(rename = "MemberClusters")]
    member_clusters: Field<BTreeMap<Text, Text>>,
    /// Addition to the Go form: the member namespace with the exclusive claim (type LoadBalancer), if several members
    /// import the Service.
    #[serde(rename = "LoadBalancer")]
    load_balancer: Field<Text>,
}

records!(RawClaims);

fn claims(annotation: Option<&Text>) -> Claims {
    let read = |text: &Text| serde_json::from_str::<Field<RawClaims>>(text).ok()?.value();
    let raw = annotation.and_then(read).unwrap_or_default();
    let members = raw.member_clusters.value().unwrap_or_default();
    Claims {
        present: annotation.is_some(),
        importers: members.into_iter().map(|(namespace, cluster)| (namespace.into(), cluster.into())).collect(),
        load_balancer: raw.load_balancer.value().map(Into::into),
    }
}
