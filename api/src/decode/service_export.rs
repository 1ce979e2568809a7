//! Decoder of ServiceExport.

use super::meta::DecodedMeta;
use super::object::{Root, Unread};
use super::shared::{RawConditions, conditions};
use crate::names::annotations;
use fleetnet_core::model::{Object, ServiceExport};

pub(super) fn read(decoded: DecodedMeta, top: Root<Unread, RawConditions>) -> Result<Object, &'static str> {
    Ok(Object::ServiceExport(ServiceExport {
        headless: decoded.annotations.get(annotations::EXPORT_HEADLESS).is_some_and(|value| &**value == "true"),
        weight: decoded.annotations.get(annotations::WEIGHT).cloned(),
        conditions: conditions(top.status.or_undecodable("status is not an object")?.conditions)?,
        meta: decoded.meta,
    }))
}
