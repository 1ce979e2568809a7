//! Decoder of MemberAgent.

use super::Root;
use super::lenient::{Field, records};
use super::meta::Known;
use fleetnet_core::model::{Announcement, MemberAgent, MemberCounts, Object, SliceStreamOffer};
use fleetnet_types::{Text, Timestamp, Uid};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    version: Field<Text>,
    features: Field<Vec<Text>>,
    cluster_uid: Field<Text>,
    leader_identity: Field<Text>,
    renew_time: Field<Timestamp>,
    planned_stop_time: Field<Timestamp>,
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
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawOffer {
    address: Field<Text>,
    ca_bundle: Field<Text>,
}

records!(RawSpec, RawStatus, RawOffer);

pub(super) fn read(known: Known, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let (spec, status) = (top.spec.or_default(), top.status.or_default());
    Ok(Object::MemberAgent(MemberAgent {
        member: Announcement { version: spec.version.or_default(), features: spec.features.or_default() },
        cluster_uid: spec.cluster_uid.value().filter(|uid| !uid.is_empty()).map(Uid::from),
        leader: spec.leader_identity.value(),
        renewed: spec.renew_time.value(),
        stopped: spec.planned_stop_time.value(),
        counts: status.exported_services.value().map(|exported_services| MemberCounts {
            exported_services,
            exported_slices: status.exported_slices.or_default(),
            exported_endpoints: status.exported_endpoints.or_default(),
            imported_services: status.imported_services.or_default(),
            imported_slices: status.imported_slices.or_default(),
        }),
        slice_stream: status.slice_stream.value().and_then(offer),
        hub: Announcement { version: status.version.or_default(), features: status.features.or_default() },
        meta: known.meta,
    }))
}

fn offer(raw: RawOffer) -> Option<SliceStreamOffer> {
    Some(SliceStreamOffer { address: raw.address.value()?, ca_bundle: raw.ca_bundle.value()? })
}
