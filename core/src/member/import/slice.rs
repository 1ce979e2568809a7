//! Import of one slice: writes the imported EndpointSlice of a distributed slice (EndpointSliceImport). Both APIs
//! import by these rules.

use super::target::{self, Part, Requested, Target, TargetState, is_for_fleet_api, is_ours};
use super::{Step, all, candidates, end_with, selected, silent};
use crate::conditions;
use crate::handover;
use crate::limits::{HUB_OUTAGE_MICROS, ORPHAN_GRACE_MICROS, RESTORE_GRACE_MICROS};
use crate::member::view::HubLeads;
use crate::member::view::reader::{Admitted, Reader};
use crate::member::view::selections::Selected;
use crate::member::view::serving::Clients;
use crate::member::view::shares::Grant;
use crate::model::{EndpointSlice, HubSlice, Kind, SliceContent};
use crate::names;
use crate::plan::{self, Action, BlockingReason, Desired, ImportedSlice, Patch, Plan, Sample, Write};
use crate::reasons::Reason;
use fleetnet_types::{ObjectName, Timestamp};
use std::borrow::Cow;
use std::ops::ControlFlow::{Break, Continue};

/// Kinds that an import for MultiClusterServices requires.
const FOR_FLEET_API: [Kind; 6] = [
    Kind::EndpointSliceImport,
    Kind::EndpointSlice,
    Kind::MultiClusterService,
    Kind::ServiceImport,
    Kind::Service,
    Kind::InternalServiceImport,
];

/// Kinds that an import by the standard API requires. [`target::target`] also requires those that decide about the
/// import.
const FOR_MCS_API: [Kind; 3] = [Kind::EndpointSliceImport, Kind::EndpointSlice, Kind::Service];

const COMPONENT: &str = "endpointsliceimport-controller";

/// Plans the import of a distributed slice into the EndpointSlice with this name.
pub(crate) fn plan_slice(view: Reader<'_>, at: &ObjectName, now: Timestamp) -> Plan {
    let is_for_fleet = is_for_fleet_api(view, &at.namespace);
    let required: &'static [Kind] = if is_for_fleet { &FOR_FLEET_API } else { &FOR_MCS_API };
    if !view.complete(required) || !view.knows_member_agent() {
        return Plan::default();
    }
    if view.is_source_undecodable(at) || view.is_undecodable(Kind::EndpointSlice, at) {
        return Plan::default();
    }
    let present = view.slices().get(at);
    match view.distributed_slice_of(at) {
        Some(distributed) => Import { view, at, part: Part::of(at, distributed), distributed, present, now }.plan(),
        None => {
            present.filter(|present| present.imported).map_or_else(Plan::default, |present| orphan(view, present, now))
        }
    }
}

/// Returns the blocking reason of a Service with more slices or endpoints of one exporter than are imported. It does
/// not name the slice, so its user gets one Event for all of them.
fn too_many(view: Reader<'_>, distributed: &HubSlice) -> BlockingReason {
    let (service, exporter) = (&distributed.spec.owner, &distributed.spec.reference.cluster);
    let (settings, limits) = (view.settings(), view.settings().limits.imports);
    let message = format!(
        "service {service} of cluster {exporter} has more than {} slices or {} endpoints, so cluster {} does not import all of its \
         endpoints. Reduce them in cluster {exporter}, or raise --max-imported-slices and --max-imported-endpoints of the member agent \
         of cluster {}",
        limits.slices, limits.endpoints, settings.cluster, settings.cluster
    );
    BlockingReason { reason: Reason::TooManyEndpoints, message }
}

/// Import of a distributed slice.
struct Import<'a> {
    view: Reader<'a>,
    /// Name of the imported slice.
    at: &'a ObjectName,
    part: Part,
    distributed: &'a HubSlice,
    /// EndpointSlice with this name, of any writer.
    present: Option<&'a EndpointSlice>,
    now: Timestamp,
}

impl<'a> Import<'a> {
    fn plan(&self) -> Plan {
        if self.distributed.meta.deleting {
            return self.withdraw();
        }
        match self.target() {
            TargetState::Waits(again) => Plan { again, ..Plan::default() },
            TargetState::Target(target) => self.within_share(&target),
            TargetState::Ended => self.remove(),
        }
    }

    fn target(&self) -> TargetState<'a> {
        target::target(self.view, self.at, self.distributed, self.now)
    }

    /// Returns the imported slice.
    fn imported(&self) -> Option<&'a EndpointSlice> {
        self.present.filter(|present| is_ours(self.view, self.distributed, present))
    }

    /// Imports the part of a distributed slice that the limits of its Service and exporter allow.
    fn within_share(&self, target: &Target<'_>) -> Plan {
        let grant = self.view.grant(self.distributed);
        let plan = if grant == Grant::Nothing { self.remove() } else { self.import(target) };
        let is_reported = grant != Grant::Whole && self.part == Part::Standard;
        if is_reported { plan.blocked_by([too_many(self.view, self.distributed)]) } else { plan }
    }

    /// Removes the slice that was imported for a Service which this cluster does not import any more.
    fn remove(&self) -> Plan {
        let imported = self.imported().filter(|present| !present.meta.deleting && !self.is_awaited(present));
        Plan::of(imported.map(|present| Write::delete(Kind::EndpointSlice, &present.meta)))
    }

    /// Removes the imported slice. When all of them are gone, removes the finalizer of the distributed slice.
    fn withdraw(&self) -> Plan {
        let Self { view, at, distributed, .. } = *self;
        match self.imported() {
            Some(present) if present.meta.deleting || self.is_replaced(present) || self.is_awaited(present) => {
                Plan::default()
            }
            Some(present) => Plan::one(Write::delete(Kind::EndpointSlice, &present.meta)),
            // One of the keys of a distributed slice removes the finalizer.
            None if !distributed.meta.finalizers.ours || !is_for_fleet_api(view, &at.namespace) => Plan::default(),
            None if target::is_imported_elsewhere(view, at, distributed) => Plan::default(),
            None => Plan::one(Write::remove_finalizer(Kind::EndpointSliceImport, &distributed.meta)),
        }
    }

    /// True if the clusters that are chosen instead do not serve what the imported slice `removed` serves.
    fn is_awaited(&self, removed: &EndpointSlice) -> bool {
        let Self { view, at, distributed, now, .. } = *self;
        let of = Selected { namespace: at.namespace.clone(), service: distributed.spec.owner.clone() };
        selected::is_awaited(view, &of, removed, now)
    }

    /// [`Self::replacement_pending`] for a distributed slice that is being deleted. Without a target, nothing replaces
    /// it in `fleet-system`, because clients use the endpoints of a derived Service. By the standard API, the target
    /// may only be unknown for a moment.
    fn is_replaced(&self, removed: &EndpointSlice) -> bool {
        match self.target() {
            TargetState::Target(target) => self.replacement_pending(Some(&target), removed),
            TargetState::Waits(_) if is_for_fleet_api(self.view, &self.at.namespace) => false,
            TargetState::Waits(_) => self.replacement_pending(None, removed),
            TargetState::Ended => false,
        }
    }

    /// True if the imported slice `removed` must stay until its replacement is imported: another slice of the same
    /// Service from the same cluster, for each kind of clients that use `removed`. Without a target, it must have what
    /// the hub has.
    fn replacement_pending(&self, target: Option<&Target<'_>>, removed: &EndpointSlice) -> bool {
        let Self { view, at: ObjectName { namespace, .. }, distributed, now, .. } = *self;
        let is_used_by = |clients: &Clients| {
            let service = clients.service(removed);
            service.is_some() && target.is_none_or(|it| it.service(*clients, distributed).as_ref() == service)
        };
        let used_by: Vec<Clients> = Clients::ALL.into_iter().filter(is_used_by).collect();
        self.others().any(|other| {
            let admitted = || Cow::Borrowed(view.admitted(other).content);
            let desired = target.map_or_else(admitted, |target| target.content(view, other, now));
            let is_pending = |present| handover::replacement_pending(present, &desired, &removed.content);
            let lack_it = |clients: &Clients| {
                let imported = target::imported_into(view, namespace, other);
                let mut used = imported.iter().filter(|it| clients.service(it) == clients.service(removed)).peekable();
                if used.peek().is_some() {
                    return used.all(|present| is_pending(Some(&present.content)));
                }
                // What cannot be imported, replaces nothing.
                let at = Part::read_by(view, *clients, namespace).name(namespace, other);
                target.is_none() || !target::is_held_by_another(view, &at, other)
            };
            is_pending(None) && used_by.iter().any(lack_it)
        })
    }

    /// Returns the other distributed slices of the same Service from the same cluster.
    fn others(&self) -> impl Iterator<Item = &'a HubSlice> {
        let Self { view, distributed, .. } = *self;
        let all = view.distributed_slices_of(&distributed.spec.owner);
        let live = all.filter_map(move |other| view.distributed_slices().live(other));
        live.filter(|other| other.spec.reference.cluster == distributed.spec.reference.cluster)
    }

    /// Imports the valid parts of a distributed slice. If some parts are not imported, the first write without them
    /// emits an Event.
    fn import(&self, target: &Target<'_>) -> Plan {
        let Self { view, distributed, present, .. } = *self;
        let content = target.content(view, distributed, self.now);
        let Admitted { not_imported, not_imported_since, .. } = view.admitted(distributed);
        let mut plan = all(self.ensure(target, &content));
        plan = plan.blocked_by(candidates::malformed_weights(view, &target.selected(view, distributed)));
        plan.plan_again_at(silent::again(view, distributed, self.now));
        plan.plan_again_at(selected::again(view, &target.selected(view, distributed), self.now));
        // The standard slice lacks the same parts, and one Event about them is enough.
        if not_imported.is_empty() || self.part == Part::Routing {
            return plan;
        }
        let (reason, message) = (not_imported.reason(), not_imported.message(distributed));
        let users_object = target.users_object(view, distributed);
        let event = users_object.map(|(kind, meta)| plan::event(COMPONENT, kind, meta, reason, message.clone()));
        let event = event.filter(|_| is_news(distributed, present, &content, not_imported_since));
        let imports =
            |write: &&mut Write| write.kind() == Kind::EndpointSlice && !matches!(write.action, Action::Delete { .. });
        plan.writes.iter_mut().filter(imports).for_each(|write| write.events.extend(event.clone()));
        plan.blocked_by([BlockingReason { reason, message }])
    }

    /// Writes the imported slice, in these steps. A step that has something to write or to wait for ends the plan.
    fn ensure(&self, target: &Target<'_>, content: &SliceContent) -> Step<Plan> {
        self.check_name()?;
        self.check_writer()?;
        self.add_finalizer()?;
        let present = self.create(target, content)?;
        self.wait_for_hub(present, content)?;
        self.replace_other_address_type(present, content)?;
        self.acknowledge_if_same(target, present, content)?;
        self.wait_for_replacement(target, present, content)?;
        let write = Write::patch(&present.meta, Patch::ImportedSlice(self.desired(target, content)));
        Continue(Plan::one(write.measured(self.sample())))
    }

    fn check_name(&self) -> Step {
        let Self { view, at, part, .. } = *self;
        let is_of_routing_slice = part == Part::Standard && names::routed_slice(&at.name).is_some();
        if is_of_routing_slice && view.settings().routing_slices && !is_for_fleet_api(view, &at.namespace) {
            let message = format!(
                "EndpointSliceImport {} is not imported by the standard API, because only routing slices have names that end so. \
                 Hub agents write no such name: find the client that wrote it",
                at.name
            );
            return Break(Plan::blocked(Reason::NameRefused, message));
        }
        if names::is_dns_1123_subdomain(&at.name) {
            return Continue(());
        }
        let message = format!(
            "EndpointSliceImport {} is not imported, because no EndpointSlice can have its name. Hub agents write no \
             such name: find the client that wrote it",
            self.distributed.meta.name
        );
        Break(Plan::blocked(Reason::NameRefused, message))
    }

    /// Checks that no other writer has the name of the imported slice.
    fn check_writer(&self) -> Step {
        match self.present {
            Some(present) if present.meta.deleting => Break(Plan::default()), // this key is requeued when it is gone
            Some(present) if !is_ours(self.view, self.distributed, present) => Break(in_the_way(self.view, present)),
            _ => Continue(()),
        }
    }

    fn add_finalizer(&self) -> Step {
        let meta = &self.distributed.meta;
        let write = || Write::add_finalizer(Kind::EndpointSliceImport, meta);
        end_with((!meta.finalizers.ours).then(|| Plan::one(write())))
    }

    fn create(&self, target: &Target<'_>, content: &SliceContent) -> Step<&'a EndpointSlice> {
        let Some(present) = self.present else {
            let desired = Desired::EndpointSlice(self.desired(target, content));
            return Break(Plan::one(Write::create(self.at.clone(), desired).measured(self.sample())));
        };
        Continue(present)
    }

    /// Returns the latency sample of an import; `None` if the latency of this generation of the source slice was
    /// observed before.
    ///
    /// The write of the imported slice records the observed generation on this slice. A Go agent recorded the
    /// generation on the distributed slice; this record counts too. If there is no record, for example because a user
    /// deleted the imported slice, `first` is true. Then the agent also checks the generations that it has observed
    /// since its start.
    ///
    /// The routing slice has no sample. The standard slice exists with and without routing slices, and keeps the
    /// record.
    fn sample(&self) -> Option<Sample> {
        let reference = &self.distributed.spec.reference;
        let observed = self.present.and_then(|present| present.observed_generation);
        let observed = observed.max(self.distributed.observed_generation);
        if observed == Some(reference.generation) || self.part == Part::Routing {
            return None;
        }
        let origin = reference.cluster.clone();
        Some(Sample::SliceImported { origin, first: observed.is_none(), exported_since: reference.exported_since })
    }

    fn desired(&self, target: &Target<'_>, content: &SliceContent) -> ImportedSlice {
        let (service, mcs) = target.labels(self.distributed);
        let observed_generation = self.distributed.spec.reference.generation;
        ImportedSlice { service, mcs, content: content.clone(), observed_generation }
    }

    /// Waits if the hub distributes an older state than the imported one. After a restore of the hub, the exporter and
    /// the hub agent need this time to write the newest state again. After the end of a slice stream, the hub agent
    /// needs it to write what the stream delivered. The time runs only while this agent sees what a hub agent writes.
    fn wait_for_hub(&self, present: &EndpointSlice, content: &SliceContent) -> Step {
        let Some(outdated_since) = self.view.outdated_since(self.at) else { return Continue(()) };
        let leads = self.view.hub_leads(self.at, self.now);
        if present.content == *content {
            return Continue(());
        }
        let (since, grace) = match leads {
            HubLeads::Unknown => return Break(Plan::default()),
            HubLeads::Since(since) => (since, RESTORE_GRACE_MICROS),
            HubLeads::Perhaps(since) => (since, HUB_OUTAGE_MICROS),
        };
        let until = outdated_since.max(since).plus_micros(grace);
        end_with((self.now < until).then(|| Plan { again: Some(until), ..Plan::default() }))
    }

    /// Deletes a slice of another address type. It is immutable, so the slice is created again.
    fn replace_other_address_type(&self, present: &EndpointSlice, content: &SliceContent) -> Step {
        let is_other = present.content.address_type != content.address_type;
        end_with(is_other.then(|| Plan::one(Write::delete(Kind::EndpointSlice, &present.meta))))
    }

    /// Acknowledges the preview that an up-to-date slice has.
    fn acknowledge_if_same(&self, target: &Target<'_>, present: &EndpointSlice, content: &SliceContent) -> Step {
        let is_edited = present.relabelled || self.view.has_excess(present);
        let is_bound = target.is_bound(present, self.distributed);
        if !present.imported || is_edited || !is_bound || present.content != *content {
            return Continue(());
        }
        let is_shown = self.view.has_preview(&self.at.name) && self.is_content_everywhere();
        let acknowledged = is_shown.then_some(self.distributed.spec.reference.generation);
        Break(Plan { acknowledged, ..Plan::default() })
    }

    /// True if the other imports of the distributed slice also have the content. The hub agent relies on it that each
    /// import has it.
    fn is_content_everywhere(&self) -> bool {
        let Self { view, at, distributed, now, .. } = *self;
        target::others(view, at, distributed).iter().all(|other| {
            let present = target::imported(view, other, distributed);
            let is_standard = Part::of(other, distributed) == Part::Standard;
            if present.is_none() && (is_standard || target::is_held_by_another(view, other, distributed)) {
                return true; // perhaps another writer has its name
            }
            match target::target(view, other, distributed, now) {
                TargetState::Target(target) => {
                    present.is_some_and(|it| it.content == *target.content(view, distributed, now))
                }
                TargetState::Waits(_) | TargetState::Ended => true, // it stays as it is, or it goes
            }
        })
    }

    /// Keeps endpoints that another slice gets, until that slice is imported, and those for which other clusters are
    /// chosen, until these serve. Then this key is requeued.
    fn wait_for_replacement(&self, target: &Target<'_>, present: &EndpointSlice, content: &SliceContent) -> Step {
        let is_emptied = handover::empties(&present.content, content);
        let is_pending = is_emptied && self.replacement_pending(Some(target), present);
        let loses_port = is_emptied || content.ports.len() < present.content.ports.len();
        end_with((is_pending || loses_port && self.is_awaited(present)).then(Plan::default))
    }
}

/// True if the agent must emit an Event about parts that are not imported, because these parts are new. The generation
/// of the source slice does not show this: the configured address ranges or the distributed slice may have changed
/// without a new generation.
fn is_news(
    distributed: &HubSlice,
    present: Option<&EndpointSlice>,
    content: &SliceContent,
    not_imported_since: Option<i64>,
) -> bool {
    let observed = present.and_then(|present| present.observed_generation);
    let of_the_same = observed == Some(distributed.spec.reference.generation) && observed == not_imported_since;
    observed < not_imported_since || of_the_same && present.is_some_and(|present| present.content != *content)
}

/// Returns the names of distributed slices that cannot be imported, because EndpointSlices of other writers have these
/// names. `None` while not all slices are listed. The condition of the MultiClusterService lists the names, so each
/// Event about them is emitted once ([`super::multi_cluster_service`]).
pub(super) fn names_in_use(view: Reader<'_>, imported: &ObjectName) -> Option<Vec<ObjectName>> {
    if !view.complete(&[Kind::EndpointSliceImport, Kind::EndpointSlice]) {
        return None;
    }
    let mut used_by_others = Vec::new();
    let contested = view.contested_of(imported);
    for distributed in contested.filter_map(|distributed| view.distributed_slices().live(distributed)) {
        let at = view.in_system(distributed.meta.name.name.clone());
        if view.is_undecodable(Kind::EndpointSlice, &at) {
            return None;
        }
        if target::is_held_by_another(view, &at, distributed) {
            used_by_others.push(at);
        }
    }
    Some(used_by_others)
}

/// Returns the message for the importing user about slices that are not imported because other EndpointSlices have
/// their names.
pub(super) fn names_in_use_message(view: Reader<'_>, import: &ObjectName, present: &[ObjectName]) -> String {
    let (cluster, names) = (&view.settings().cluster, conditions::listed(present));
    format!(
        "service {import} is imported into cluster {cluster} without some of its endpoints: other EndpointSlices already have the \
         names of imported slices: {names}. Delete these, or restore their managed-by label"
    )
}

/// Returns the plan of a slice whose name another writer's EndpointSlice has.
fn in_the_way(view: Reader<'_>, present: &EndpointSlice) -> Plan {
    let (name, cluster) = (&present.meta.name, &view.settings().cluster);
    let message = format!(
        "EndpointSlice {name} of cluster {cluster} is not managed by this agent, so the imported slice of that name cannot be \
         written. Delete it, or restore its managed-by label"
    );
    Plan::blocked(Reason::NameHeldByAnother, message)
}

/// Plans an imported slice whose distributed slice disappeared without a deletion, as after a restore of the hub from a
/// backup.
///
/// The hub agent distributes the slice again when it knows the exporters and the claim. So the imported slice stays
/// until the hub agent has granted the claim, and for a grace period afterwards. If nobody imports the slice, the slice
/// is removed at once.
fn orphan(view: Reader<'_>, present: &EndpointSlice, now: Timestamp) -> Plan {
    if present.meta.deleting {
        return Plan::default();
    }
    let at = &present.meta.name;
    let requested_since = match target::requested(view, present, now) {
        Requested::Not => return Plan::one(Write::delete(Kind::EndpointSlice, &present.meta)),
        Requested::Unknown(again) => return Plan { again, ..Plan::default() },
        Requested::Since(since) => since,
    };
    let orphaned_since = view.orphaned_since(at).unwrap_or(now);
    let until = requested_since.max(orphaned_since).plus_micros(ORPHAN_GRACE_MICROS);
    if now < until {
        return Plan { again: Some(until), ..Plan::default() };
    }
    Plan::one(Write::delete(Kind::EndpointSlice, &present.meta))
}
