//! Decoder of MemberAgent.

use super::meta::DecodedMeta;
use super::object::Root;
use crate::crd::member_agent::{RawOffer, RawSilence, RawSilentMember};
use crate::lenient::{Field, records};
use crate::wire::{Plain, Rule, Wire};
use fleetnet_core::model::{Announcement, MemberAgent, MemberCounts, MemberStatus, Object};
use fleetnet_types::{Text, Timestamp, Uid};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    version: Field<Text>,
    features: Field<Vec<Text>>,
    cluster_uid: Field<Text>,
    leader_identity: Field<Text>,
    renew_time: Field<Timestamp>,
    planned_stop_time: Field<Timestamp>,
    properties: Field<BTreeMap<Text, Text>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawStatus {
    version: Field<Text>,
    features: Field<Vec<Text>>,
    slice_stream: Field<RawOffer>,
    exported_services: Field<i64>,
    exported_slices: Field<i64>,
    exported_endpoints: Field<i64>,
    imported_services: Field<i64>,
    imported_slices: Field<i64>,
    silence: Field<RawSilence>,
    silent_members: Field<Vec<RawSilentMember>>,
}

records!(RawSpec, RawStatus);

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let (spec, status) = (top.spec.or_default(), top.status.or_default());
    Ok(Object::MemberAgent(MemberAgent {
        member: Announcement { version: spec.version.or_default(), features: spec.features.or_default() },
        cluster_uid: spec.cluster_uid.value().filter(|uid| !uid.is_empty()).map(Uid::from),
        leader: spec.leader_identity.value(),
        renewed: spec.renew_time.value(),
        stopped: spec.planned_stop_time.value(),
        properties: spec.properties.or_default(),
        status: MemberStatus {
            announcement: Announcement { version: status.version.or_default(), features: status.features.or_default() },
            slice_stream: status.slice_stream.value().and_then(|offer| offer.model().ok()),
            counts: status.exported_services.value().map(|exported_services| MemberCounts {
                exported_services,
                exported_slices: status.exported_slices.or_default(),
                exported_endpoints: status.exported_endpoints.or_default(),
                imported_services: status.imported_services.or_default(),
                imported_slices: status.imported_slices.or_default(),
            }),
            silence: status.silence.value().and_then(|silence| silence.model().ok()),
            silent_members: Plain::read(status.silent_members, "status.silentMembers is not a list")?,
        },
        meta: decoded.meta,
    }))
}
