//! Import of a Service by the standard API: its derived Service and its ServiceImport, in the namespace with the name
//! of the exported Service's namespace.
//!
//! ```text
//!  MergedServiceImport (hub) ─► finalizer ─► derived Service ─► ServiceImport ─► its status
//! ```
//!
//! The finalizer of the member agent on the MergedServiceImport tells the hub agent that this member imports the
//! Service. The derived Service exists first, because the ServiceImport is created with its addresses. A headless
//! Service has no derived Service.
//!
//! `import::slice` imports the slices. This module says if, and with which ports.

mod ports;

use crate::conditions::{self, ConditionValue, DesiredCondition, READY};
use crate::member::derived::as_desired_by_mcs;
use crate::member::view::{Key, Leaving, McsApi, Reader};
use crate::model::{
    AddressType, HubSlice, ImportType, IpFamily, Kind, McsImportSpec, McsImportStatus, McsProperties, McsServiceImport,
    MergedImport, MergedServiceImport, Namespace, Service,
};
use crate::names::{self, API_SERVER};
use crate::plan::{BlockingReason, Desired, McsDerivedService, Patch, Plan, Write};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ObjectName, Text, Timestamp};

const REQUIRED: [Kind; 4] = [Kind::MergedServiceImport, Kind::Namespace, Kind::Service, Kind::McsServiceImport];
/// Kinds that decide if a Service is imported.
const DECISIVE: [Kind; 2] = [Kind::MergedServiceImport, Kind::Namespace];
const COMPONENT: &str = "multicluster-serviceimport-controller";

/// Namespaces that never import, beside that of the fleet.
pub const NEVER_IMPORTING: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

pub(crate) use ports::served;

/// Decision about the import of a Service.
pub(super) enum Importing<'a> {
    Yes(&'a MergedServiceImport),
    Not,
    /// Not known yet, perhaps until this time.
    Unknown(Option<Timestamp>),
}

/// Decides if this cluster imports a Service.
pub(super) fn importing<'a>(view: Reader<'a>, service: &ObjectName, now: Timestamp) -> Importing<'a> {
    let namespace_at = ObjectName::new("", service.namespace.clone());
    let is_unknown = view.is_undecodable(Kind::MergedServiceImport, &merged_at(view, service))
        || view.is_undecodable(Kind::Namespace, &namespace_at);
    if view.settings().mcs_api == McsApi::Off || !view.complete(&DECISIVE) || is_unknown {
        return Importing::Unknown(None);
    }
    match view.leaving(now) {
        Leaving::Yes => return Importing::Not,
        Leaving::Unknown(until) => return Importing::Unknown(until),
        Leaving::No => {}
    }
    if !view.namespaces().live(&namespace_at).is_some_and(|namespace| may_import(view, namespace)) {
        return Importing::Not;
    }
    match merged(view, service) {
        Some(merged) if merged.meta.deleting => Importing::Not,
        Some(merged) => match view.keeps_until(now).filter(|_| !is_as_before_restore(view, merged)) {
            // Perhaps the hub agent has not seen the present exports yet.
            Some(until) => Importing::Unknown(Some(until)),
            None => Importing::Yes(merged),
        },
        // After a restore of the hub, the hub agent writes the MergedServiceImport again.
        None => view.keeps_until(now).map_or(Importing::Not, |until| Importing::Unknown(Some(until))),
    }
}

/// True if the last restore of the hub did not change a merged import, or if the Service was not imported before it.
fn is_as_before_restore(view: Reader<'_>, merged: &MergedServiceImport) -> bool {
    view.merged_before_restore(&merged.service).is_none_or(|before| *before == merged.import)
}

/// Returns the exporting clusters of an import, sorted.
fn exporters(import: &MergedImport) -> Vec<ClusterId> {
    let mut clusters: Vec<ClusterId> = import.clusters.iter().map(|part| part.cluster.clone()).collect();
    clusters.sort();
    clusters
}

fn merged_at(view: Reader<'_>, service: &ObjectName) -> ObjectName {
    view.in_hub(names::merged_import_name(service))
}

/// Returns the MergedServiceImport of a Service.
pub(super) fn merged<'a>(view: Reader<'a>, service: &ObjectName) -> Option<&'a MergedServiceImport> {
    view.merged_imports().get(&merged_at(view, service)).filter(|merged| merged.service == *service)
}

/// Returns the derived Service of an imported Service, if the member agent made it and it stays.
pub(super) fn derived_service<'a>(view: Reader<'a>, service: &ObjectName) -> Option<&'a Service> {
    view.services().live(&names::mcs_derived(service)).filter(|derived| is_derived_for(derived, service))
}

/// True if the member agent made this Service, which has the name of the derived Service.
fn is_derived_for(derived: &Service, service: &ObjectName) -> bool {
    derived.imports.as_ref() == Some(&service.name)
}

/// True if the finalizer of the member agent is on the MergedServiceImport, so that the hub agent distributes the
/// slices.
pub(super) fn is_requested(view: Reader<'_>, service: &ObjectName) -> bool {
    merged(view, service).is_some_and(|merged| merged.meta.finalizers.ours)
}

/// Plans the import of a Service.
pub(crate) fn plan(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    let derived_at = names::mcs_derived(service);
    let is_unknown =
        view.is_undecodable(Kind::McsServiceImport, service) || view.is_undecodable(Kind::Service, &derived_at);
    if !view.complete(&REQUIRED) || is_unknown {
        return Plan::default();
    }
    let import = Import {
        view,
        now,
        service,
        merged: merged(view, service),
        derived: view.services().get(&derived_at),
        present: view.mcs_imports().get(service),
    };
    match importing(view, service, now) {
        Importing::Yes(merged) => import.make(merged, &derived_at),
        Importing::Not => import.remove(),
        Importing::Unknown(again) => Plan { again, ..Plan::default() },
    }
}

/// True if a Service has a derived Service, but no import that needs it: no cluster exports the Service by the standard
/// API, or the import is headless. `None` while the MergedServiceImports are not listed.
pub(super) fn is_unneeded(view: Reader<'_>, service: &ObjectName) -> Option<bool> {
    if derived_service(view, service).is_none() {
        return Some(false); // no grace period runs
    }
    if view.is_undecodable(Kind::MergedServiceImport, &merged_at(view, service)) {
        return None;
    }
    let is_needed = merged(view, service).is_some_and(|merged| !merged.meta.deleting && has_address(merged));
    view.complete(&[Kind::MergedServiceImport]).then_some(!is_needed)
}

/// True if the ServiceImport has addresses.
fn has_address(merged: &MergedServiceImport) -> bool {
    merged.import.import_type == ImportType::ClusterSetIp
}

/// True if a namespace imports Services.
fn may_import(view: Reader<'_>, namespace: &Namespace) -> bool {
    let name = &namespace.meta.name.name;
    if *name == view.settings().fleet_system_namespace || NEVER_IMPORTING.contains(&&**name) {
        return false;
    }
    match view.settings().mcs_api {
        McsApi::LabelledNamespaces => namespace.is_importing,
        McsApi::AllNamespaces => true,
        McsApi::Off => false,
    }
}

/// Addresses of a derived Service, each with its family.
type Addresses = Vec<(IpFamily, Text)>;

/// Import of a Service.
struct Import<'a> {
    view: Reader<'a>,
    now: Timestamp,
    service: &'a ObjectName,
    merged: Option<&'a MergedServiceImport>,
    /// Service with the name of the derived Service.
    derived: Option<&'a Service>,
    /// ServiceImport with the name of the Service.
    present: Option<&'a McsServiceImport>,
}

impl Import<'_> {
    /// Returns the ServiceImport if the member agent made it.
    fn own_import(&self) -> Option<&McsServiceImport> {
        self.present.filter(|present| present.is_ours)
    }

    /// Returns the derived Service if the member agent made it.
    fn own_derived(&self) -> Option<&Service> {
        self.derived.filter(|derived| is_derived_for(derived, self.service))
    }

    /// Removes the import.
    fn remove(&self) -> Plan {
        let mut plan = Plan::default();
        if let Some(present) = self.own_import().filter(|present| !present.meta.deleting) {
            plan.push(Write::delete(Kind::McsServiceImport, &present.meta));
        }
        let is_exported = self.merged.is_some_and(|merged| !merged.meta.deleting);
        // No export comes back to a member that leaves.
        let is_over = is_exported || self.view.leaving(self.now) == Leaving::Yes;
        let since = (!is_over).then(|| self.view.unneeded_since(self.service).unwrap_or(self.now));
        plan.join(self.retire(since));
        let is_marked = |merged: &&MergedServiceImport| merged.meta.finalizers.ours;
        if let Some(merged) = self.merged.filter(is_marked).filter(|_| self.own_import().is_none()) {
            plan.push(Write::remove_finalizer(Kind::MergedServiceImport, &merged.meta));
        }
        plan
    }

    /// Deletes the derived Service: at once, or after a grace period in which no import needs it. Until then it stays
    /// with its slices, so that clients can use the address that they have resolved, and keep it if an export comes
    /// back.
    fn retire(&self, unneeded_since: Option<Timestamp>) -> Plan {
        let Some(derived) = self.own_derived().filter(|derived| !derived.meta.deleting) else { return Plan::default() };
        let grace = self.view.settings().derived_service_grace_micros;
        match unneeded_since.map(|since| since.plus_micros(grace)).filter(|until| self.now < *until) {
            Some(until) => Plan { again: Some(until), ..Plan::default() },
            None => Plan::one(Write::delete(Kind::Service, &derived.meta)),
        }
    }

    fn make(&self, merged: &MergedServiceImport, derived_at: &ObjectName) -> Plan {
        let mut plan = Plan::default();
        if !merged.meta.finalizers.ours {
            plan.push(Write::add_finalizer(Kind::MergedServiceImport, &merged.meta));
        }
        let addresses = if has_address(merged) {
            plan.join(self.derive(merged, derived_at));
            let derived = self.own_derived().filter(|it| !it.meta.deleting && !it.cluster_ips.is_empty());
            derived.and_then(|derived| self.addresses(merged, derived))
        } else {
            let since = self.view.unneeded_since(self.service).unwrap_or(self.now);
            plan.join(self.retire(Some(since)));
            Some(Vec::new())
        };
        plan.blocking_reasons.extend(self.rejection(&plan));
        let problem = plan.blocking_reasons.first().cloned();
        // The ServiceImport waits for addresses, unless it is not known when there are any.
        let Some(addresses) = addresses.or_else(|| problem.is_some().then(Vec::new)) else { return plan };
        plan.join(self.write(merged, addresses, problem));
        plan
    }

    /// Returns the rejection of a write of the plan by a server.
    fn rejection(&self, plan: &Plan) -> Option<BlockingReason> {
        let message = self.view.rejection(&Key::McsImport(self.service.clone())).filter(|_| !plan.writes.is_empty())?;
        Some(BlockingReason { reason: Reason::WriteRefused, message: message.to_owned() })
    }

    /// Plans the derived Service.
    fn derive(&self, merged: &MergedServiceImport, at: &ObjectName) -> Plan {
        let desired = self.desired(merged);
        let Some(present) = self.derived else {
            return Plan::one(Write::create(at.clone(), Desired::McsService(desired)));
        };
        if self.own_derived().is_none() {
            return Plan::blocked(Reason::NameHeldByAnother, self.in_the_way("Service", at));
        }
        if present.meta.deleting || as_desired_by_mcs(present, &desired) {
            return Plan::default(); // a deleted one is created again when it is gone
        }
        if present.headless {
            // Another writer has made it, because the agent makes no headless Service. This field is immutable.
            return Plan::one(Write::delete(Kind::Service, &present.meta));
        }
        Plan::one(Write::patch(&present.meta, Patch::McsService(desired)))
    }

    /// Returns the desired state of the derived Service. Its first family is immutable, so it is always the default of
    /// the cluster: then no change of the import changes an address. For any other family, the Service requests both.
    fn desired(&self, merged: &MergedServiceImport) -> McsDerivedService {
        let families = &merged.import.properties.families;
        // The first family of the API server's Service is the default family of the cluster.
        let kubernetes = || self.view.services().get(&ObjectName::new(API_SERVER.0, API_SERVER.1));
        let first = self.derived.or_else(kubernetes).and_then(|service| service.families.first()).or(families.first());
        McsDerivedService {
            service: self.service.name.clone(),
            ports: merged.import.ports.clone(),
            session_affinity: merged.import.session_affinity,
            dual_stack: families.iter().any(|family| Some(family) != first),
        }
    }

    /// Returns the addresses of the derived Service that clients can use: those of the families that all exporters
    /// have. If this cluster has none of these families, clients can use the exporters that have another family. `None`
    /// while the addresses are not known.
    fn addresses(&self, merged: &MergedServiceImport, derived: &Service) -> Option<Addresses> {
        let families = &merged.import.properties.families;
        let all = || derived.families.iter().copied().zip(derived.cluster_ips.iter().cloned());
        let is_of_all = |(family, _): &(IpFamily, Text)| families.is_empty() || families.contains(family);
        let of_all_exporters: Addresses = all().filter(is_of_all).collect();
        if !of_all_exporters.is_empty() {
            return Some(of_all_exporters);
        }
        // Before the Service requests both families, it is not known which families the cluster has.
        derived.dual_stack.then(|| all().filter(|(family, _)| self.has_slice_of(merged, *family)).collect())
    }

    /// True if an exporter in the merged import has a slice with addresses of this family.
    fn has_slice_of(&self, merged: &MergedServiceImport, family: IpFamily) -> bool {
        let address_type = match family {
            IpFamily::IPv4 => AddressType::IPv4,
            IpFamily::IPv6 => AddressType::IPv6,
        };
        let slices =
            self.view.distributed_slices_of(self.service).filter_map(|name| self.view.distributed_slices().live(name));
        let is_of_exporter =
            |slice: &&HubSlice| merged.import.clusters.iter().any(|it| it.cluster == slice.spec.reference.cluster);
        slices.filter(is_of_exporter).any(|slice| slice.spec.content.address_type == address_type)
    }

    /// Plans the ServiceImport, first its spec and then its status.
    fn write(&self, merged: &MergedServiceImport, addresses: Addresses, problem: Option<BlockingReason>) -> Plan {
        let is_unreachable = has_address(merged) && addresses.is_empty() && problem.is_none();
        let spec = self.spec(merged, addresses);
        let Some(present) = self.present else {
            return Plan::one(Write::create(self.service.clone(), Desired::McsServiceImport(spec)));
        };
        if !present.is_ours {
            return Plan::blocked(Reason::NameHeldByAnother, self.in_the_way("ServiceImport", self.service));
        }
        if present.meta.deleting {
            return Plan::default(); // this key is requeued when it is gone
        }
        if present.spec != spec || present.relabelled {
            let patch = Patch::McsServiceImport { spec, recorded: present.spec.properties.clone() };
            return Plan::one(Write::patch(&present.meta, patch));
        }
        let unreachable = is_unreachable.then(|| self.unreachable(&merged.import));
        let status = self.status(present, merged, problem.or_else(|| unreachable.clone()));
        Plan::of(status).blocked_by(unreachable)
    }

    /// Returns the write of the status of the ServiceImport; `None` if it is up to date.
    fn status(
        &self,
        present: &McsServiceImport,
        merged: &MergedServiceImport,
        problem: Option<BlockingReason>,
    ) -> Option<Write> {
        let ready = |value| DesiredCondition::new(READY, value, COMPONENT);
        let ready = match problem {
            Some(problem) => ready(ConditionValue::import_is_not_ready(problem)),
            None => ready(ConditionValue::import_is_ready(self.service)).without_event(),
        };
        let (before, clusters) = (&present.status, exporters(&merged.import));
        let changed = conditions::change(Kind::McsServiceImport, &present.meta, &before.conditions, &[ready], self.now);
        if changed.is_none() && before.has_slices && before.clusters == clusters {
            return None;
        }
        let (conditions, events) = changed.unwrap_or_else(|| (before.conditions.clone(), Vec::new()));
        let status = McsImportStatus { clusters, has_slices: true, conditions };
        Some(Write::patch(&present.meta, Patch::McsServiceImportStatus(status)).with_events(events))
    }

    /// Returns the desired fields of the ServiceImport.
    fn spec(&self, merged: &MergedServiceImport, addresses: Addresses) -> McsImportSpec {
        let import = &merged.import;
        let derived = self.own_derived().filter(|_| has_address(merged));
        let (families, ips) = addresses.into_iter().unzip();
        let families = if has_address(merged) { families } else { import.properties.families.clone() };
        McsImportSpec {
            import_type: import.import_type,
            ports: import.ports.clone(),
            session_affinity: import.session_affinity,
            properties: McsProperties { families, ..import.properties.clone() },
            ips,
            derived: derived.map(|derived| derived.meta.name.name.clone()),
            selector_results: merged.selection.results.clone(),
        }
    }

    /// Returns why clients cannot use the Service: this cluster has no address family of its exporters.
    fn unreachable(&self, import: &MergedImport) -> BlockingReason {
        let named =
            |families: &[IpFamily]| families.iter().map(|family| format!("{family:?}")).collect::<Vec<_>>().join(", ");
        let (service, cluster) = (self.service, &self.view.settings().cluster);
        let theirs = named(&import.properties.families);
        let ours = named(self.own_derived().map_or(&[], |derived| &derived.families));
        let message = format!(
            "service {service} cannot be used in cluster {cluster}: all its exporters have the IP family {theirs}, and this cluster has {ours} only. \
             Export a Service with an IP family of this cluster"
        );
        BlockingReason { reason: Reason::IPFamilyNotSupported, message }
    }

    fn in_the_way(&self, kind: &str, at: &ObjectName) -> String {
        let (service, cluster) = (self.service, &self.view.settings().cluster);
        format!(
            "service {service} is not imported into cluster {cluster}: another writer made {kind} {at}. Delete it, or remove the label \
             fleetnet/import of the namespace"
        )
    }
}
