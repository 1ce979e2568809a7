//! Agents change nothing that belongs to others. Of objects of users they write only their marks and the status, and in
//! the hub each agent writes only its own objects. Servers in memory know no roles, so this also shows what the roles
//! in `deploy/` would refuse.

use super::memberships::is_answered;
use super::{Oracle, Seen};
use crate::world::{WORK, hub_namespace};
use fleetnet_api::names::{GROUP, annotations, labels};
use fleetnet_core::model::{Kind, MembershipState, Object};
use histories::users::MEMBERS;
use serde_json::Value;
use sim::fleet::Place;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct OnlyOwn {
    /// Members that may delete requests, by index: from a request to leave until they have answered a later request to
    /// join.
    leaving: BTreeSet<usize>,
}

/// Right of an agent to change an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    Nothing,
    /// Change marks: finalizers of the fleet, and labels and annotations with which agents mark objects.
    Mark,
    /// Change marks and status.
    MarkAndAnswer,
    /// Anything but a change of the status.
    Own,
    Everything,
}

impl May {
    fn of(seen: &Seen<'_>, agent: Place, namespace: &str) -> Self {
        let is_of_agents =
            matches!(seen.kind, Kind::InternalServiceExport | Kind::InternalServiceImport | Kind::EndpointSliceExport);
        match (seen.server, agent, seen.kind) {
            (Place::Member(_), _, _) if seen.server != agent => Self::Nothing,
            (Place::Member(_), _, kind) if is_request(kind) => Self::MarkAndAnswer,
            (Place::Member(_), _, Kind::ServiceImport) => Self::Everything,
            // Labels do not tell whose an object is, because users edit them.
            (Place::Member(_), _, Kind::Service | Kind::EndpointSlice) if namespace != WORK => Self::Everything,
            (Place::Hub, Place::Hub, Kind::ServiceImport | Kind::EndpointSliceImport) => Self::Everything,
            (Place::Hub, Place::Hub, Kind::MemberAgent) => Self::MarkAndAnswer,
            (Place::Hub, Place::Hub, _) if is_of_agents => Self::MarkAndAnswer,
            (Place::Hub, Place::Member(index), _) if namespace != hub_namespace(index) => Self::Nothing,
            (Place::Hub, Place::Member(_), Kind::EndpointSliceImport) => Self::Mark,
            (Place::Hub, Place::Member(_), Kind::InternalMemberCluster) => Self::MarkAndAnswer,
            (Place::Hub, Place::Member(_), Kind::MemberAgent) => Self::Own,
            (Place::Hub, Place::Member(_), _) if is_of_agents => Self::Own,
            _ => Self::Nothing,
        }
    }

    /// Returns the part of an object that must stay as it is.
    fn kept(self, object: &[u8]) -> Value {
        let mut object: Value = serde_json::from_slice(object).unwrap_or_default();
        match self {
            Self::Everything => Value::Null,
            Self::Own => object["status"].take(),
            Self::Nothing | Self::Mark | Self::MarkAndAnswer => {
                if self == Self::MarkAndAnswer {
                    object["status"].take();
                }
                let metadata = &mut object["metadata"];
                BY_SERVER.iter().for_each(|field| drop(metadata[field].take()));
                for field in ["labels", "annotations"] {
                    if let Some(map) = metadata[field].as_object_mut() {
                        map.retain(|key, _| !MARKS.contains(&&**key));
                    }
                }
                if let Some(finalizers) = metadata["finalizers"].as_array_mut() {
                    finalizers.retain(|finalizer| finalizer.as_str().is_none_or(|it| !it.starts_with(GROUP)));
                }
                without_empty(object)
            }
        }
    }
}

/// Fields of the metadata that a server sets at each change.
const BY_SERVER: [&str; 3] = ["generation", "managedFields", "resourceVersion"];

/// Labels and annotations with which agents mark objects of others.
const MARKS: [&str; 3] = [annotations::PORTS_OFFERED_SINCE, labels::DERIVED_SERVICE, labels::SERVICE_IMPORT];

/// Removes fields without a value, because an absent list and an empty list are the same.
fn without_empty(value: Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().map(|(key, value)| (key, without_empty(value)));
            kept.filter(|(_, value)| !is_empty(value)).collect()
        }
        Value::Array(items) => items.into_iter().map(without_empty).collect(),
        value => value,
    }
}

/// True for the kinds with which users request exports and imports.
fn is_request(kind: Kind) -> bool {
    matches!(kind, Kind::ServiceExport | Kind::MultiClusterService)
}

/// True if a change is only the deletion of an object, or its begin.
fn is_deletion(seen: &Seen<'_>) -> bool {
    let without_deletion = |json: &[u8]| {
        let mut kept = May::Mark.kept(json);
        if let Some(metadata) = kept["metadata"].as_object_mut() {
            metadata.retain(|field, _| !["deletionTimestamp", "deletionGracePeriodSeconds"].contains(&&**field));
        }
        kept
    };
    seen.after.is_none_or(|after| after.meta().deleting)
        && seen.json_before.is_some_and(|before| without_deletion(before) == without_deletion(seen.json))
}

impl Oracle for OnlyOwn {
    fn committed(&mut self, seen: &Seen<'_>) -> Result<bool, String> {
        if let Some(Object::InternalMemberCluster(membership)) = seen.after {
            let is_of = |index: &usize| hub_namespace(*index) == *membership.meta.name.namespace;
            let Some(index) = (0..MEMBERS).find(is_of) else { return Ok(false) };
            match membership.state {
                MembershipState::Leave => drop(self.leaving.insert(index)),
                // Until then, an agent may not know that it shall stay.
                _ if is_answered(membership) => drop(self.leaving.remove(&index)),
                _ => {}
            }
        }
        let (Some(object), Some(agent)) = (seen.newest(), seen.agent) else { return Ok(false) };
        let name = &object.meta().name;
        let may = May::of(seen, agent, &name.namespace);
        // An object that was being deleted goes with its last finalizer.
        let is_deleted = seen.after.is_none() && !seen.before.is_some_and(|before| before.meta().deleting);
        let is_created = seen.before.is_none() && seen.json_before.is_none();
        let owns = matches!(may, May::Own | May::Everything);
        // A member that leaves deletes its requests.
        let leaves = matches!(agent, Place::Member(index) if self.leaving.contains(&index));
        let what = match seen.json_before {
            _ if may == May::Nothing => "wrote",
            _ if !owns && is_created => "created",
            _ if is_request(seen.kind) && leaves && is_deletion(seen) => return Ok(true),
            _ if !owns && is_deleted => "deleted",
            Some(before) if may.kept(before) != may.kept(seen.json) => "changed",
            _ => return Ok(true),
        };
        let text = |json: &[u8]| String::from_utf8_lossy(json).into_owned();
        Err(format!(
            "the agent of {agent:?} {what} {:?} {name} in {:?}, which is not its own: {} was {}",
            seen.kind,
            seen.server,
            text(seen.json),
            seen.json_before.map(text).unwrap_or_default()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::memberships::tests::membership;
    use super::super::support::{seen, state};
    use super::*;
    use serde_json::{Value, json};

    const MEMBER: Place = Place::Member(0);

    #[test]
    fn a_request_of_a_user_is_neither_deleted_nor_changed_nor_released_by_an_agent() {
        let request = json!({"spec": {"serviceImport": {"name": "app"}, "type": "ClusterIP"}});
        let labels = |label: &str| json!({ label: "work-app" });
        let ours = json!(["networking.fleet.azure.com/service-resources-cleanup"]);
        let table: [(&str, &str, Value, bool); 9] = [
            ("a label of the agent", "/metadata/labels", labels(labels::DERIVED_SERVICE), false),
            ("another label", "/metadata/labels", labels("example.com/theirs"), true),
            ("our finalizer", "/metadata/finalizers", ours, false),
            ("a finalizer of others", "/metadata/finalizers", json!(["example.com/theirs"]), true),
            ("an annotation of users", "/metadata/annotations", json!({annotations::WEIGHT: "1"}), true),
            ("the status", "/status", json!({"loadBalancer": {}, "conditions": [{"type": "Valid"}]}), false),
            ("the target", "/spec/serviceImport/name", json!("other"), true),
            ("a field that agents do not know", "/spec/unknown", json!(1), true),
            ("a deletion", "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), true),
        ];
        for (what, pointer, value, is_foreign) in table {
            let mut changed = request.clone();
            changed["metadata"] = json!({"labels": {}, "annotations": {}, "finalizers": [], "deletionTimestamp": null});
            (changed["spec"]["unknown"], changed["status"]) = (Value::Null, Value::Null);
            *changed.pointer_mut(pointer).expect("a field") = value;
            let [before, after] = [&request, &changed].map(|json| state(Kind::MultiClusterService, "work/app", json));
            for agent in [None, Some(MEMBER)] {
                let committed = OnlyOwn::default().committed(&seen(MEMBER, agent, Some(&before), Some(&after)));
                assert_eq!(committed.is_err(), is_foreign && agent.is_some(), "{what} by {agent:?}: {committed:?}");
            }
        }
    }

    #[test]
    fn the_agent_of_a_member_that_shall_leave_deletes_requests_and_changes_none() {
        let spec = |name: &str| json!({"serviceImport": {"name": name}, "type": "ClusterIP"});
        let before = state(Kind::MultiClusterService, "work/app", &json!({"spec": spec("app")}));
        let deleted = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/a"]});
        let kept = state(
            Kind::MultiClusterService,
            "work/app",
            &json!({"metadata": {"finalizers": ["example.com/a"]}, "spec": spec("app")}),
        );
        let begun = state(Kind::MultiClusterService, "work/app", &json!({"metadata": deleted, "spec": spec("app")}));
        let other = state(Kind::MultiClusterService, "work/app", &json!({"metadata": deleted, "spec": spec("other")}));
        for asked in ["Join", "Leave"] {
            for (from, to, is_deletion) in
                [(&before, None, true), (&kept, Some(&begun), true), (&kept, Some(&other), false)]
            {
                let mut rule = OnlyOwn::default();
                let asks = |rule: &mut OnlyOwn, asked: &str, reason: &str| {
                    let membership = membership(asked, reason, 2);
                    assert_eq!(rule.committed(&seen(Place::Hub, None, None, Some(&membership))), Ok(false));
                };
                asks(&mut rule, asked, "AgentJoined");
                let may = |agent: Place, rule: &mut OnlyOwn| rule.committed(&seen(agent, Some(agent), Some(from), to));
                assert_eq!(may(MEMBER, &mut rule).is_ok(), asked == "Leave" && is_deletion, "{asked}");
                assert!(may(Place::Member(1), &mut rule).is_err(), "another member");
                asks(&mut rule, "Join", "AgentLeft");
                assert_eq!(may(MEMBER, &mut rule).is_ok(), asked == "Leave" && is_deletion, "it may not know yet");
                asks(&mut rule, "Join", "AgentJoined");
                assert!(may(MEMBER, &mut rule).is_err(), "it stays");
            }
        }
    }

    #[test]
    fn services_and_slices_are_of_users_by_their_namespace() {
        for (path, is_foreign) in [("work/app", true), ("fleet-system/work-app", false)] {
            let service = state(Kind::Service, path, &json!({"spec": {"ports": []}}));
            for (before, after) in [(None, Some(&service)), (Some(&service), None)] {
                let committed = OnlyOwn::default().committed(&seen(MEMBER, Some(MEMBER), before, after));
                assert_eq!(committed.is_err(), is_foreign, "{path}");
            }
        }
    }

    /// Name of the change, kind and namespace of the object, its states before and after, and if hub agent and member
    /// agent may make it.
    type Row = (&'static str, Kind, &'static str, Option<Value>, Option<Value>, bool, bool);

    #[test]
    fn in_the_hub_each_agent_writes_only_its_own_objects() {
        let (own, other) = ("fleet-member-member-1", "fleet-member-member-2");
        let reference = json!({"clusterId": "member-1", "namespace": "work", "name": "app"});
        let export = json!({"spec": {"ports": [], "serviceReference": reference}});
        let slice =
            json!({"spec": {"endpoints": [], "endpointSliceReference": reference, "ownerServiceReference": reference}});
        let changed = |json: &Value, pointer: &str, value: Value| {
            let mut changed = json.clone();
            (changed["metadata"], changed["status"]) = (json!({"finalizers": null}), Value::Null);
            *changed.pointer_mut(pointer).expect("a field") = value;
            changed
        };
        let ports =
            |json: &Value| changed(json, "/spec/ports", json!([{"name": "http", "port": 80, "protocol": "TCP"}]));
        let status =
            |json: &Value| changed(json, "/status", json!({"conditions": [{"type": "Valid", "status": "True"}]}));
        let finalizer = |json: &Value| {
            changed(json, "/metadata/finalizers", json!(["networking.fleet.azure.com/endpointsliceimport-cleanup"]))
        };
        let endpoints = |json: &Value| changed(json, "/spec/endpoints", json!([{"addresses": ["10.0.0.1"]}]));
        let table: [Row; 12] = [
            ("creates", Kind::InternalServiceExport, own, None, Some(export.clone()), false, true),
            ("creates elsewhere", Kind::InternalServiceExport, other, None, Some(export.clone()), false, false),
            ("deletes", Kind::InternalServiceExport, own, Some(export.clone()), None, false, true),
            ("changes", Kind::InternalServiceExport, own, Some(export.clone()), Some(ports(&export)), false, true),
            ("answers", Kind::InternalServiceExport, own, Some(export.clone()), Some(status(&export)), true, false),
            ("marks", Kind::InternalServiceExport, own, Some(export.clone()), Some(finalizer(&export)), true, true),
            (
                "marks elsewhere",
                Kind::EndpointSliceImport,
                other,
                Some(slice.clone()),
                Some(finalizer(&slice)),
                true,
                false,
            ),
            ("marks", Kind::EndpointSliceImport, own, Some(slice.clone()), Some(finalizer(&slice)), true, true),
            ("changes", Kind::EndpointSliceImport, own, Some(slice.clone()), Some(endpoints(&slice)), true, false),
            ("creates", Kind::EndpointSliceImport, own, None, Some(slice.clone()), true, false),
            ("deletes", Kind::EndpointSliceExport, own, Some(slice.clone()), None, false, true),
            ("creates", Kind::ServiceImport, "work", None, Some(json!({})), true, false),
        ];
        for (what, kind, namespace, before, after, hub_may, member_may) in table {
            let path = format!("{namespace}/app");
            let [before, after] = [before, after].map(|json| json.map(|json| state(kind, &path, &json)));
            for (agent, may) in [(Place::Hub, hub_may), (MEMBER, member_may)] {
                let committed =
                    OnlyOwn::default().committed(&seen(Place::Hub, Some(agent), before.as_ref(), after.as_ref()));
                assert_eq!(committed.is_ok(), may, "{agent:?} {what} {kind:?} {namespace}: {committed:?}");
            }
        }
    }
}
