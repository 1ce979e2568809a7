//! Namespace: that it is there is all that is read of it.

use super::meta::Known;
use super::{Root, Unread};
use fleetnet_core::model::{Namespace, Object};

pub(super) fn read(known: Known, _: Root<Unread, Unread>) -> Result<Object, &'static str> {
    Ok(Object::Namespace(Namespace { meta: known.meta }))
}
