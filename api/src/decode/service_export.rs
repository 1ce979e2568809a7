//! Decoder of ServiceExport.

use super::meta::Known;
use super::object::{Root, Unread};
use super::shared::{RawConditions, conditions};
use crate::names::annotations;
use fleetnet_core::model::{Object, ServiceExport};

pub(super) fn read(known: Known, top: Root<Unread, RawConditions>) -> Result<Object, &'static str> {
    Ok(Object::ServiceExport(ServiceExport {
        headless: known.annotations.get(annotations::EXPORT_HEADLESS).is_some_and(|value| &**value == "true"),
        weight: known.annotations.get(annotations::WEIGHT).cloned(),
        conditions: conditions(top.status.or_undecodable("status is not an object")?.conditions)?,
        meta: known.meta,
    }))
}
