//! Decoder of MemberAgent.

use super::lenient::{Field, records};
use super::meta::Known;
use super::object::Root;
use fleetnet_core::model::{
    Announcement, MemberAgent, MemberCounts, MemberStatus, Object, Silence, SilencePhase, SilentMember,
    SliceStreamOffer, Treatment,
};
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
    silence: Field<RawSilence>,
    silent_members: Field<Vec<RawSilentMember>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSilence {
    phase: Field<Text>,
    phase_time: Field<Timestamp>,
    last_renew_time: Field<Timestamp>,
    count: Field<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawSilentMember {
    cluster: Field<Text>,
    treatment: Field<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawOffer {
    address: Field<Text>,
    ca_bundle: Field<Text>,
}

records!(RawSpec, RawStatus, RawOffer, RawSilence, RawSilentMember);

pub(super) fn read(known: Known, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let (spec, status) = (top.spec.or_default(), top.status.or_default());
    Ok(Object::MemberAgent(MemberAgent {
        member: Announcement { version: spec.version.or_default(), features: spec.features.or_default() },
        cluster_uid: spec.cluster_uid.value().filter(|uid| !uid.is_empty()).map(Uid::from),
        leader: spec.leader_identity.value(),
        renewed: spec.renew_time.value(),
        stopped: spec.planned_stop_time.value(),
        status: MemberStatus {
            announcement: Announcement { version: status.version.or_default(), features: status.features.or_default() },
            slice_stream: status.slice_stream.value().and_then(offer),
            counts: status.exported_services.value().map(|exported_services| MemberCounts {
                exported_services,
                exported_slices: status.exported_slices.or_default(),
                exported_endpoints: status.exported_endpoints.or_default(),
                imported_services: status.imported_services.or_default(),
                imported_slices: status.imported_slices.or_default(),
            }),
            silence: status.silence.value().and_then(silence),
            silent_members: status.silent_members.or_default().into_iter().filter_map(silent_member).collect(),
        },
        meta: known.meta,
    }))
}

fn silence(raw: RawSilence) -> Option<Silence> {
    let phase = raw.phase.value()?;
    Some(Silence {
        phase: SilencePhase::ALL.into_iter().find(|known| known.name() == &*phase)?,
        since: raw.phase_time.value()?,
        renewed: raw.last_renew_time.value()?,
        count: u32::try_from(raw.count.or_default()).unwrap_or_default(),
    })
}

/// Returns an entry of the list. One with a treatment that this version does not know counts as draining.
fn silent_member(raw: RawSilentMember) -> Option<SilentMember> {
    let treatment = raw.treatment.value()?;
    let known = Treatment::ALL.into_iter().find(|known| known.name() == &*treatment);
    Some(SilentMember {
        cluster: raw.cluster.value().filter(|cluster| !cluster.is_empty())?.into(),
        treatment: known.unwrap_or(Treatment::Draining),
    })
}

fn offer(raw: RawOffer) -> Option<SliceStreamOffer> {
    Some(SliceStreamOffer { address: raw.address.value()?, ca_bundle: raw.ca_bundle.value()? })
}
