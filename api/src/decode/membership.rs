//! Decoder of InternalMemberCluster and MemberCluster.

use super::meta::DecodedMeta;
use super::object::{Root, Unread};
use super::shared::conditions;
use crate::crd::shared::RawCondition;
use crate::lenient::{Field, Shape, records};
use crate::limits::{HEARTBEAT_SECONDS, HEARTBEAT_SECONDS_MAX};
use fleetnet_core::conditions::JOINED;
use fleetnet_core::model::{
    AgentStatus, InternalMemberCluster, MemberCluster, MembershipAgent, MembershipState, Object,
};
use fleetnet_types::{Text, Timestamp};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess};
use serde_json::{Map, Value};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawSpec {
    state: Field<Text>,
    heartbeat_period_seconds: Field<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawStatus {
    agent_status: Field<Vec<RawAgent>>,
}

/// Entry of an agent: the parts that the rules read, and all of it.
struct RawAgent {
    known: RawKnown,
    json: Text,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawKnown {
    r#type: Field<Text>,
    conditions: Field<Vec<RawCondition>>,
    last_received_heartbeat: Field<Timestamp>,
}

records!(RawSpec, RawStatus, RawKnown);

impl Shape for RawAgent {
    fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        let whole = Map::<String, Value>::deserialize(MapAccessDeserializer::new(map))?;
        let json = Value::Object(whole).to_string();
        let known = serde_json::from_str(&json).map_err(A::Error::custom)?;
        Ok(Some(Self { known, json: json.into() }))
    }
}

pub(super) fn read(decoded: DecodedMeta, top: Root<RawSpec, RawStatus>) -> Result<Object, &'static str> {
    let (spec, status) = (top.spec.or_default(), top.status.or_default());
    let state = match spec.state.value().as_deref() {
        Some("Join") => MembershipState::Join,
        Some("Leave") => MembershipState::Leave,
        Some(_) | None => MembershipState::Other,
    };
    let seconds = spec.heartbeat_period_seconds.value().unwrap_or(HEARTBEAT_SECONDS);
    // An unknown entry would be lost with the next write of the list.
    let agents = status.agent_status.or_undecodable("status.agentStatus is not a list")?;
    Ok(Object::InternalMemberCluster(InternalMemberCluster {
        meta: decoded.meta,
        state,
        heartbeat_micros: seconds.clamp(1, HEARTBEAT_SECONDS_MAX) * 1_000_000,
        agents: agents.into_iter().map(agent).collect::<Result<_, _>>()?,
    }))
}

fn agent(RawAgent { known, json }: RawAgent) -> Result<AgentStatus, &'static str> {
    let agent = known.r#type.value().and_then(|name| MembershipAgent::ALL.into_iter().find(|it| it.name() == &*name));
    let Some(agent) = agent else { return Ok(AgentStatus::Other(json)) };
    let joined = conditions(known.conditions)?.into_iter().find(|condition| &*condition.condition_type == JOINED);
    Ok(AgentStatus::Known { agent, joined, heartbeat: known.last_received_heartbeat.value() })
}

pub(super) fn read_member(decoded: DecodedMeta, _: Root<Unread, Unread>) -> Result<Object, &'static str> {
    Ok(Object::MemberCluster(MemberCluster { deleted: decoded.deleted, meta: decoded.meta }))
}
