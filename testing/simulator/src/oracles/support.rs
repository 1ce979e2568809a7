//! Objects and changes for the tests of the rules.

use super::Seen;
use fleetnet_api::decode::decode;
use fleetnet_core::model::{Kind, Object};
use fleetnet_types::Timestamp;
use serde_json::Value;
use sim::fleet::Place;
use std::time::Duration;

/// State of an object, with its JSON.
#[derive(Clone)]
pub(super) struct State {
    object: Object,
    json: Vec<u8>,
}

/// Returns an object of a kind with this `namespace/name`. `rest` has all other fields.
pub(super) fn state(kind: Kind, path: &str, rest: &Value) -> State {
    let mut json = rest.clone();
    let meta = &mut json["metadata"];
    let (namespace, name) = path.split_once('/').expect("namespace/name");
    (meta["namespace"], meta["name"]) = (namespace.into(), name.into());
    for (field, value) in [("uid", path), ("resourceVersion", "1"), ("creationTimestamp", "2026-01-01T00:00:00Z")] {
        if meta[field].is_null() {
            meta[field] = value.into();
        }
    }
    let json = json.to_string().into_bytes();
    State { object: decode(kind, &json).expect("an object"), json }
}

/// Returns a change of an object, 1,000 calm seconds after the start.
pub(super) fn seen<'a>(
    server: Place,
    agent: Option<Place>,
    before: Option<&'a State>,
    after: Option<&'a State>,
) -> Seen<'a> {
    let newest = after.or(before).expect("an object");
    Seen {
        at: Timestamp::from_seconds(1_000),
        calm: Duration::from_secs(1_000),
        freshness: Duration::from_secs(240),
        may_withdraw: true,
        server,
        agent,
        replica: None,
        leader: None,
        is_late: false,
        kind: newest.object.kind(),
        before: before.map(|state| &state.object),
        after: after.map(|state| &state.object),
        json: &newest.json,
        json_before: before.map(|state| &*state.json),
    }
}
