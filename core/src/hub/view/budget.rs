//! Budget of each member: the memory that the view keeps for the objects that the member writes. A member can write
//! objects of several gigabytes within its quota, which counts objects.
//!
//! An object that would exceed the budget counts as undecodable: what was made from its last state stays, and nothing
//! new is made from it. So objects that were there before stay, and no other member notices. When there is room again,
//! the engine reads the object once more. The smallest object comes first.

use crate::model::{
    AddressType, Endpoint, HubSlice, InternalServiceExport, InternalServiceImport, Kind, Meta, Object, ServicePort,
    SliceContent, TargetPort,
};
use fleetnet_types::{Change, MemberNamespace, ObjectName, Text};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// Number of bytes that count for each slice beside its texts and endpoints: its place in tables and indexes, and the
/// values that its plans read.
// no limit: a share of the limit that the flag sets
const SLICE_BYTES: usize = 3_584;

/// Number of bytes that count for each export and claim of a Service beside its texts and ports, like [`SLICE_BYTES`].
/// Its status is a part of them: the hub agent writes it, so a member has no objects refused because of what others
/// write.
// no limit: a share of the limit that the flag sets
const SERVICE_BYTES: usize = 2_560;

/// Number of bytes that count for an allocation beside its content.
// no limit: a share of the limit that the flag sets
const ALLOCATION_BYTES: usize = 32;

/// Budgets of all members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Budgets {
    /// Value of the flag `--member-memory`, in bytes. `None` if there is no limit.
    pub limit: Option<usize>,
    /// Value of the flag `--member-fan-out`: maximum number of objects that the hub agent creates in other member
    /// namespaces for the exports of one member. `None` if there is no limit.
    pub fan_out_limit: Option<usize>,
    /// Budgets by member namespace.
    of: BTreeMap<MemberNamespace, Budget>,
    /// Member namespaces with room for a refused object. The engine has not asked for this object yet.
    with_room: BTreeSet<MemberNamespace>,
    /// Member namespace whose object the engine asked for last. The members take turns.
    last: MemberNamespace,
}

/// Budget of one member.
#[derive(Clone, Debug, Default, PartialEq)]
struct Budget {
    used: usize,
    /// Number of distributed slices of the member's exported slices, and of MergedServiceImports of the Services that
    /// it exports.
    fan_out: usize,
    /// True from the time at which `fan_out` reaches its limit until it is a tenth below. Then what waits for room is
    /// planned again.
    is_fan_out_full: bool,
    /// Refused objects, with the number of bytes that each needs.
    needs: BTreeMap<(Kind, ObjectName), usize>,
    /// The same objects, the smallest first.
    by_need: BTreeSet<(usize, Kind, ObjectName)>,
}

impl Budget {
    /// Records if an object is refused, and how many bytes it needs.
    fn set_need(&mut self, kind: Kind, name: &ObjectName, need: Option<usize>) {
        let object = (kind, name.clone());
        let before = match need {
            Some(need) => {
                self.by_need.insert((need, kind, name.clone()));
                self.needs.insert(object, need)
            }
            None => self.needs.remove(&object),
        };
        if let Some(before) = before.filter(|before| Some(*before) != need) {
            self.by_need.remove(&(before, kind, name.clone()));
        }
    }

    /// Returns the smallest refused object, if there is room for it.
    fn next(&self, limit: usize) -> Option<(Kind, &ObjectName)> {
        let (need, kind, name) = self.by_need.first()?;
        (self.used.saturating_add(*need) <= limit).then_some((*kind, name))
    }
}

impl Budgets {
    /// Returns the change if the budget of the member has room for it. `before` is the number of bytes that the view
    /// keeps for the present state of the object. An object that is being deleted is always kept, but without its
    /// content.
    pub(super) fn admit(&mut self, kind: Kind, change: Change<Object>, before: usize) -> Change<Object> {
        let Some(limit) = self.limit.filter(|_| is_limited(kind)) else { return change };
        let (name, object) = match change {
            Change::Applied(object) => (object.meta().name.clone(), object),
            Change::Removed { ref name, .. } | Change::Undecodable { ref name } => {
                if let Some(budget) = self.of.get_mut(&*name.namespace) {
                    budget.set_need(kind, name, None);
                }
                return change;
            }
        };
        let budget = self.of.entry(name.member_namespace()).or_default();
        let (after, others) = (bytes(&object), budget.used - before);
        let fits = others.saturating_add(after) <= limit;
        if fits || object.meta().deleting {
            budget.set_need(kind, &name, None);
            return Change::Applied(if fits { object } else { without_content(object) });
        }
        budget.set_need(kind, &name, Some(after.saturating_sub(before)));
        Change::Undecodable { name }
    }

    /// Records the number of bytes that the view keeps for an object in a namespace, which were `before`.
    pub(super) fn kept(&mut self, namespace: &MemberNamespace, before: usize, after: usize) {
        let budget = self.of.entry(namespace.clone()).or_default();
        budget.used = budget.used + after - before;
        match self.limit.and_then(|limit| budget.next(limit)) {
            Some(_) => self.with_room.insert(namespace.clone()),
            None => self.with_room.remove(namespace),
        };
        self.forget_unused(namespace);
    }

    fn forget_unused(&mut self, namespace: &MemberNamespace) {
        if self.of.get(namespace).is_some_and(|it| it.used == 0 && it.fan_out == 0 && it.needs.is_empty()) {
            self.of.remove(namespace);
        }
    }

    /// Adds to the number of objects in other member namespaces that the exports of a member cause. Returns true if
    /// what waits for room must be planned, or if the member reaches its limit.
    pub(super) fn add_fan_out(&mut self, namespace: &MemberNamespace, by: isize) -> bool {
        let budget = self.of.entry(namespace.clone()).or_default();
        budget.fan_out = budget.fan_out.saturating_add_signed(by);
        let was_full = budget.is_fan_out_full;
        // The limit is left a tenth below, so that one object that comes and goes does not requeue all others each
        // time.
        let is_over = |limit: usize| budget.fan_out >= if was_full { limit - limit / 10 } else { limit };
        budget.is_fan_out_full = self.fan_out_limit.is_some_and(is_over);
        let is_changed = budget.is_fan_out_full != was_full;
        self.forget_unused(namespace);
        is_changed
    }

    /// True if the exports of a member cause as many objects as they may, or did so a moment ago.
    pub(crate) fn is_fan_out_full(&self, namespace: &MemberNamespace) -> bool {
        self.of.get(namespace).is_some_and(|budget| budget.is_fan_out_full)
    }

    /// True if the exports of a member may cause one more object.
    pub(crate) fn may_fan_out(&self, namespace: &MemberNamespace) -> bool {
        self.fan_out_limit.is_none_or(|limit| self.of.get(namespace).is_none_or(|budget| budget.fan_out < limit))
    }

    /// Returns the number of refused objects of a member, by its member namespace.
    pub fn refused(&self, namespace: &MemberNamespace) -> usize {
        self.of.get(namespace).map_or(0, |budget| budget.needs.len())
    }

    /// Returns the number of bytes that the view keeps for the objects of a member, by its member namespace.
    pub fn used(&self, namespace: &MemberNamespace) -> usize {
        self.of.get(namespace).map_or(0, |budget| budget.used)
    }

    /// Returns a refused object that the view has room for now, and expects that the engine reads it.
    pub fn wanted_again(&mut self) -> Option<(Kind, ObjectName)> {
        let after = (Bound::Excluded(&self.last), Bound::Unbounded);
        let namespace =
            self.with_room.range::<MemberNamespace, _>(after).next().or_else(|| self.with_room.first())?.clone();
        self.with_room.remove(&namespace);
        self.last = namespace;
        let (kind, name) = self.of.get(&self.last)?.next(self.limit?)?;
        Some((kind, name.clone()))
    }
}

/// True if objects of a kind count. The member agent creates them, and its quota limits only their number.
fn is_limited(kind: Kind) -> bool {
    matches!(kind, Kind::EndpointSliceExport | Kind::InternalServiceExport | Kind::InternalServiceImport)
}

fn bytes(object: &Object) -> usize {
    match object {
        Object::EndpointSliceExport(slice) => of_slice(slice),
        Object::InternalServiceExport(export) => of_internal_export(export),
        Object::InternalServiceImport(claim) => of_claim(claim),
        _ => 0,
    }
}

/// Returns an object that is being deleted without the content that no agent needs any more.
fn without_content(mut object: Object) -> Object {
    match &mut object {
        Object::EndpointSliceExport(slice) => {
            let address_type = slice.spec.content.address_type.clone();
            slice.spec.content =
                Arc::new(SliceContent { address_type, endpoints: Vec::new(), draining: Vec::new(), ports: Vec::new() });
        }
        Object::InternalServiceExport(export) => {
            export.ports = Vec::new();
            // The export stays one of the standard API.
            export.mcs = export.mcs.as_ref().map(|_| Arc::default());
        }
        _ => {}
    }
    object
}

fn of_text(text: &str) -> usize {
    ALLOCATION_BYTES + text.len()
}

fn of_meta(meta: &Meta) -> usize {
    let others: usize = meta.finalizers.others.iter().map(|finalizer| size_of::<Text>() + of_text(finalizer)).sum();
    of_text(&meta.name.namespace) + of_text(&meta.name.name) + of_text(&meta.uid) + others
}

pub(super) fn of_slice(slice: &HubSlice) -> usize {
    let SliceContent { address_type, endpoints, draining, ports } = &*slice.spec.content;
    let (endpoints, draining) = (of_endpoints(endpoints), of_endpoints(draining));
    let ports = ports.iter().map(|port| {
        let app_protocol = port.app_protocol.as_deref().map_or(0, of_text);
        size_of_val(port) + of_text(&port.name) + of_text(&port.protocol) + app_protocol
    });
    let address_type = if let AddressType::Other(other) = address_type { of_text(other) } else { 0 };
    SLICE_BYTES + size_of_val(slice) + of_meta(&slice.meta) + endpoints + draining + ports.sum::<usize>() + address_type
}

fn of_endpoints(endpoints: &[Endpoint]) -> usize {
    let mut zone: Option<&Text> = None;
    let mut bytes = 0;
    for endpoint in endpoints {
        let of_addresses = endpoint.addresses.iter().map(|address| size_of_val(address) + address.heap_bytes());
        let hostname = endpoint.hostname.as_deref().map_or(0, of_text);
        // The endpoints of a slice share the texts of a few zones, so neighbours mostly have the same text.
        let is_shared = zone.zip(endpoint.zone.as_ref()).is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        zone = endpoint.zone.as_ref();
        let of_zone = zone.filter(|_| !is_shared).map_or(0, |zone| of_text(zone));
        bytes += size_of_val(endpoint) + ALLOCATION_BYTES + of_addresses.sum::<usize>() + hostname + of_zone;
    }
    bytes
}

pub(super) fn of_internal_export(export: &InternalServiceExport) -> usize {
    let mcs = export.mcs.as_ref().map_or(0, |mcs| {
        let properties = &mcs.properties;
        let values = properties.labels.iter().chain(&properties.annotations);
        size_of_val(&**mcs)
            + values.map(|(name, value)| 2 * size_of::<Text>() + of_text(name) + of_text(value)).sum::<usize>()
    });
    let content = of_service_ports(&export.ports) + mcs;
    // The merged import of the Service has the content of its exports once more.
    let merged = if export.mcs.is_some() { content } else { 0 };
    SERVICE_BYTES + size_of_val(export) + of_meta(&export.meta) + content + merged
}

pub(super) fn of_claim(claim: &InternalServiceImport) -> usize {
    SERVICE_BYTES + size_of_val(claim) + of_meta(&claim.meta)
}

fn of_service_ports(ports: &[ServicePort]) -> usize {
    let of_port = |port: &ServicePort| {
        let target = if let Some(TargetPort::Name(name)) = &port.target_port { of_text(name) } else { 0 };
        let app_protocol = port.app_protocol.as_deref().map_or(0, of_text);
        size_of_val(port) + of_text(&port.name) + of_text(&port.protocol) + app_protocol + target
    };
    ports.iter().map(of_port).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::hub::{Key, Planner};
    use crate::names;
    use crate::support::build::{
        BuildHubSlice, IntoObject, claim, internal_export, member_agent, seconds, service, service_import, slice,
        slice_export,
    };
    use fleetnet_types::Removal;

    const NAMESPACE: &str = "fleet-member-member-1";

    /// Returns an exported slice of a cluster with this number of endpoints.
    fn export(cluster: &str, number: usize, endpoints: usize) -> HubSlice {
        let addresses: Vec<String> = (0..endpoints).map(|it| format!("10.{}.{}.1", it / 250, it % 250)).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        slice_export(cluster, &slice(&format!("work/app{number:05}-1"))).with_addresses(&addresses, 1)
    }

    fn apply(view: &mut Planner, object: Object) -> Vec<Key> {
        let mut requeue = Vec::new();
        view.applied(object, seconds(1), &mut requeue);
        requeue
    }

    fn put(view: &mut Planner, slice: &HubSlice) -> Vec<Key> {
        apply(view, Object::EndpointSliceExport(slice.clone()))
    }

    fn remove(view: &mut Planner, slice: &HubSlice) {
        let (name, uid) = (slice.meta.name.clone(), slice.meta.uid.clone());
        let change = Change::Removed { name, uid, how: Removal::Deleted };
        view.apply(Kind::EndpointSliceExport, change, seconds(1), &mut Vec::new());
    }

    fn limited(slices: usize, endpoints: usize) -> Planner {
        let mut view = Planner::default();
        view.budgets.limit = Some(slices * of_slice(&export("member-1", 1, endpoints)));
        view
    }

    fn kept(view: &Planner) -> usize {
        view.slice_exports.in_namespace(&NAMESPACE.into()).count()
    }

    /// Rule T51: The exports and claims of a member need more memory in the hub agent than `--member-memory` allows (32
    /// MiB)
    /// Then: The hub agent does not keep an object, or a larger state of it, that exceeds the memory. The object counts
    /// as undecodable (rule A9): what was made from its last state stays, and nothing new is made from it. Other
    /// members do not notice. An object that is being deleted is kept without its content. When there is room, the
    /// agent reads the smallest refused object once more; the members take turns. After a restart, the agent may refuse
    /// other objects of the member than before. What the hub agent writes does not count
    ///
    /// Also rule T52.
    #[test]
    fn objects_above_the_memory_of_a_member_count_as_undecodable_and_others_do_not_notice() {
        let mut view = limited(2, 100);
        let exports = [1, 2, 3].map(|number| export("member-1", number, 100));
        assert!(!put(&mut view, &exports[0]).contains(&Key::Member("member-1".into())));
        put(&mut view, &exports[1]);
        let requeued = put(&mut view, &exports[2]);
        assert!(requeued.contains(&Key::Member("member-1".into())), "{requeued:?}");
        assert_eq!((kept(&view), view.budgets.refused(&NAMESPACE.into())), (2, 1));
        assert!(view.undecodable.has(Kind::EndpointSliceExport, &exports[2].meta.name));
        put(&mut view, &export("member-2", 3, 100));
        assert!(view.slice_exports.get(&export("member-2", 3, 100).meta.name).is_some());
        // A larger state of an object is refused too, and the last state stays.
        put(&mut view, &export("member-1", 1, 101));
        let present = view.slice_exports.get(&exports[0].meta.name).expect("the last state stays");
        assert_eq!(present.spec.content.endpoints.len(), 100);
        assert!(view.undecodable.has(Kind::EndpointSliceExport, &exports[0].meta.name));
        // A state that fits is taken at once.
        put(&mut view, &export("member-1", 1, 99));
        assert!(!view.undecodable.has(Kind::EndpointSliceExport, &exports[0].meta.name));
        assert_eq!(view.budgets.refused(&NAMESPACE.into()), 1);
        apply(&mut view, internal_export("member-1", &service("work/app")).object());
        assert_eq!(view.internal_exports.iter().count(), 0, "an export counts like a slice");
    }

    /// Also rule T51.
    #[test]
    fn an_object_that_is_being_deleted_is_kept_without_its_content() {
        let mut view = limited(1, 10);
        let mut going = export("member-1", 2, 1_000);
        put(&mut view, &export("member-1", 1, 10));
        put(&mut view, &going);
        assert_eq!(kept(&view), 1);
        going.meta.deleting = true;
        put(&mut view, &going);
        let present = view.slice_exports.get(&going.meta.name).expect("its finalizer must be removed");
        assert!(present.meta.deleting && present.spec.content.endpoints.is_empty());
        assert_eq!(view.budgets.refused(&NAMESPACE.into()), 0);
    }

    /// Also rule T51.
    #[test]
    fn refused_objects_are_read_again_the_smallest_first_when_there_is_room() {
        let mut view = limited(2, 100);
        let exports = [(1, 100), (2, 100), (3, 90), (4, 80)].map(|(number, size)| export("member-1", number, size));
        exports.iter().for_each(|export| drop(put(&mut view, export)));
        assert_eq!(view.budgets.wanted_again(), None, "there is no room");
        remove(&mut view, &exports[0]);
        let smallest = (Kind::EndpointSliceExport, exports[3].meta.name.clone());
        assert_eq!(view.budgets.wanted_again(), Some(smallest));
        assert_eq!(view.budgets.wanted_again(), None, "it is read once");
        put(&mut view, &exports[3]);
        assert_eq!((kept(&view), view.budgets.wanted_again()), (2, None), "the other does not fit");
        remove(&mut view, &exports[1]);
        assert_eq!(view.budgets.wanted_again(), Some((Kind::EndpointSliceExport, exports[2].meta.name.clone())));
        remove(&mut view, &exports[2]);
        assert_eq!(view.budgets.refused(&NAMESPACE.into()), 0, "it is gone");
        remove(&mut view, &exports[3]);
        assert_eq!((view.budgets.used(&NAMESPACE.into()), view.budgets.of.len()), (0, 0), "nothing is remembered");
    }

    /// Also rule T51.
    #[test]
    fn members_take_turns_when_their_objects_are_read_again() {
        let mut view = limited(1, 100);
        for cluster in ["member-1", "member-2"] {
            (1..=3)
                .for_each(|number| drop(put(&mut view, &export(cluster, number, if number == 1 { 100 } else { 10 }))));
        }
        for cluster in ["member-1", "member-2"] {
            remove(&mut view, &export(cluster, 1, 100));
        }
        let mut turns = Vec::new();
        while let Some((_, name)) = view.budgets.wanted_again() {
            let cluster = names::cluster_of(&name.namespace).expect("a member");
            let number = if name.name.contains("app00002") { 2 } else { 3 };
            turns.push((cluster.to_string(), number));
            put(&mut view, &export(&cluster, number, 10));
        }
        let turn = |cluster: &str, number| (cluster.to_owned(), number);
        assert_eq!(turns, [turn("member-1", 2), turn("member-2", 2), turn("member-1", 3), turn("member-2", 3)]);
    }

    fn path(number: usize) -> String {
        format!("work/app{number:05}")
    }

    fn small(number: usize, endpoints: usize) -> Object {
        Object::EndpointSliceExport(export("member-1", number, endpoints))
    }

    /// Returns a slice that needs much memory.
    fn large(number: usize) -> Object {
        let mut slice = export("member-1", number, 500);
        let mut content = (*slice.spec.content).clone();
        for (at, endpoint) in content.endpoints.iter_mut().enumerate() {
            endpoint.addresses = ["fd00:0::1"; 8].map(Into::into).to_vec();
            endpoint.hostname = Some("h".repeat(63).into());
            endpoint.zone = Some(format!("zone-{at}").into());
        }
        slice.spec.content = Arc::new(content);
        Object::EndpointSliceExport(slice)
    }

    /// Checks what counts for a number of objects against the memory that is allocated for them.
    fn check_memory(what: &str, number: usize, object: fn(usize) -> Object) {
        let mut view = Planner::default();
        let kept = allocation_counter::measure(|| {
            for key in (0..number).flat_map(|number| apply(&mut view, object(number))).collect::<Vec<_>>() {
                let (_, reads) = view.plan_and_reads(&key, seconds(1));
                view.planned(&key, reads);
            }
        });
        let (kept, counted) = (kept.bytes_current, view.budgets.used(&NAMESPACE.into()));
        let kept = usize::try_from(kept).expect("memory is kept");
        assert!(kept <= counted, "{what}: {kept} bytes are kept, and {counted} count");
        assert!(counted <= 2 * kept, "{what}: {kept} bytes are kept, and {counted} count");
    }

    /// Also rule T51.
    #[test]
    fn what_counts_for_an_object_is_at_least_what_the_view_keeps_for_it() {
        check_memory("a large slice", 50, large);
        check_memory("a slice without endpoints", 1_000, |number| small(number, 0));
        check_memory("a small slice", 1_000, |number| small(number, 1));
        check_memory("an export", 1_000, |number| internal_export("member-1", &service(&path(number))).object());
        check_memory("a claim", 1_000, |number| claim("member-1", &service_import(&path(number))).object());
    }

    /// Also rule T51.
    #[test]
    fn every_text_of_an_object_counts() {
        let base = export("member-1", 1, 2);
        let slice = |change: fn(&mut SliceContent)| {
            let mut slice = base.clone();
            change(Arc::make_mut(&mut slice.spec.content));
            of_slice(&slice) - of_slice(&base)
        };
        let zone = || Text::from("z".repeat(1_000).as_str());
        let each = of_text(&zone());
        assert_eq!(
            slice(|content| content.address_type = AddressType::Other("a".repeat(100).into())),
            of_text(&"a".repeat(100))
        );
        assert_eq!(slice(|content| content.endpoints[0].zone = Some("zone".into())), of_text("zone"));
        let shared = zone();
        let of_zones = |zones: [&Text; 2]| {
            let mut endpoints = base.spec.content.endpoints.clone();
            endpoints.iter_mut().zip(zones).for_each(|(endpoint, zone)| endpoint.zone = Some(zone.clone()));
            of_endpoints(&endpoints) - of_endpoints(&base.spec.content.endpoints)
        };
        assert_eq!(of_zones([&shared, &shared]), each, "they share the text");
        assert_eq!(of_zones([&shared, &zone()]), 2 * each);
        let mut other = base.meta.clone();
        other.finalizers.others.push("example.com/other".into());
        assert_eq!(of_meta(&other) - of_meta(&base.meta), size_of::<Text>() + of_text("example.com/other"));
        assert!(of_meta(&base.meta) > base.meta.name.name.len());
        let plain = internal_export("member-1", &service("work/app"));
        assert!(of_service_ports(&plain.ports) > of_text("http") + of_text("TCP"));
        let mut named = plain.clone();
        named.ports[0].target_port = Some(TargetPort::Name("a-name".into()));
        assert_eq!(of_service_ports(&named.ports) - of_service_ports(&plain.ports), of_text("a-name"));
        let mcs = InternalServiceExport { mcs: Some(Arc::default()), ..plain.clone() };
        let content = of_service_ports(&plain.ports) + size_of::<crate::model::McsExport>();
        assert_eq!(
            of_internal_export(&mcs) - of_internal_export(&plain),
            content + size_of::<crate::model::McsExport>()
        );
    }

    /// Also rule T51.
    #[test]
    fn an_export_or_claim_that_is_being_deleted_needs_no_room() {
        let mut view = Planner::default();
        view.budgets.limit = Some(0);
        let mut going = internal_export("member-1", &service("work/app")).object();
        going.meta_mut().deleting = true;
        apply(&mut view, going);
        let present = view.internal_exports.iter().next().expect("its finalizer must be removed");
        assert_eq!((present.ports.len(), present.mcs.is_some()), (0, false));
        let mut of_mcs = internal_export("member-2", &service("work/app"));
        of_mcs.meta.deleting = true;
        let properties = crate::support::build::mcs_part();
        of_mcs.mcs = Some(Arc::new(properties));
        let name = of_mcs.meta.name.clone();
        apply(&mut view, of_mcs.object());
        let present = view.internal_exports.get(&name).and_then(|it| it.mcs.as_deref().cloned());
        assert_eq!(present, Some(crate::model::McsExport::default()), "it stays one of the standard API");
        apply(&mut view, claim("member-1", &service_import("work/app")).object());
        assert_eq!((view.claims.iter().count(), view.budgets.refused(&NAMESPACE.into())), (0, 1));
        apply(&mut view, crate::support::build::namespace("work").object());
        assert_eq!(view.namespaces.iter().count(), 1, "members do not write it");
        apply(&mut view, member_agent("member-1", Features::ALL, Features::ALL).object());
        assert_eq!(view.member_agents.iter().count(), 1, "a member has one");
    }

    #[test]
    fn an_object_for_which_there_is_exactly_room_is_read_again() {
        let mut budget = Budget { used: 6, ..Budget::default() };
        let name = export("member-1", 1, 1).meta.name;
        budget.set_need(Kind::EndpointSliceExport, &name, Some(4));
        budget.set_need(Kind::EndpointSliceExport, &name, Some(4));
        assert_eq!(budget.next(10), Some((Kind::EndpointSliceExport, &name)));
        assert_eq!(budget.next(9), None);
        budget.set_need(Kind::EndpointSliceExport, &name, Some(5));
        assert_eq!((budget.next(10), budget.by_need.len()), (None, 1));
    }

    #[test]
    fn the_limit_of_distributed_objects_is_left_a_tenth_below() {
        let mut budgets = Budgets { fan_out_limit: Some(20), ..Budgets::default() };
        let namespace = MemberNamespace::from(NAMESPACE);
        for (by, is_changed, is_full) in [
            (19, false, false),
            (1, true, true),
            (-1, false, true),
            (-1, false, true),
            (-1, true, false),
            (2, false, false),
        ] {
            assert_eq!(budgets.add_fan_out(&namespace, by), is_changed, "{by}");
            assert_eq!(budgets.is_fan_out_full(&namespace), is_full, "{by}");
        }
        budgets.add_fan_out(&namespace, -19);
        assert_eq!(budgets.of.len(), 0, "nothing is remembered");
    }

    #[test]
    fn objects_of_each_kind_that_a_member_creates_need_room() {
        type Make = fn(usize) -> Object;
        let kinds: [Make; 3] = [
            |number| small(number, 1),
            |number| internal_export("member-1", &service(&path(number))).object(),
            |number| claim("member-1", &service_import(&path(number))).object(),
        ];
        for object in kinds {
            let mut view = Planner::default();
            view.budgets.limit = Some(2 * bytes(&object(0)));
            (0..5).for_each(|number| drop(apply(&mut view, object(number))));
            assert_eq!(view.budgets.refused(&NAMESPACE.into()), 3, "{:?}", object(0).kind());
        }
    }
}
