//! Import of a Service by the standard API: its derived Service and its ServiceImport, in the namespace with the name of the exported
//! Service's namespace.
//!
//! ```text
//!  MergedServiceImport (hub) ─► finalizer ─► derived Service ─► ServiceImport ─► its status
//! ```
//!
//! The finalizer of the member agent on the MergedServiceImport tells the hub agent that this member imports the Service. The derived
//! Service exists first, because the ServiceImport is created with its addresses. A headless Service has no derived Service.
//!
//! `import::slice` imports the slices. This module says if, and with which ports.

mod ports;

use crate::conditions::{self, ConditionValue, DesiredCondition, READY};
use crate::member::derived::as_desired_by_standard;
use crate::member::view::{Leaving, Reader, StandardApi};
use crate::model::{
    Condition, ImportType, IpFamily, Kind, MergedImport, MergedServiceImport, Namespace, Service, StandardImportSpec,
    StandardImportStatus, StandardProperties, StandardServiceImport,
};
use crate::names;
use crate::plan::{Desired, Patch, Plan, StandardDerivedService, Write};
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, ObjectName, Timestamp};

const REQUIRED: [Kind; 4] = [Kind::MergedServiceImport, Kind::Namespace, Kind::Service, Kind::StandardServiceImport];
/// Kinds that decide if a Service is imported.
const DECISIVE: [Kind; 2] = [Kind::MergedServiceImport, Kind::Namespace];
const COMPONENT: &str = "multicluster-serviceimport-controller";
/// Service of the API server. Its first family is the default family of the cluster.
const KUBERNETES: (&str, &str) = ("default", "kubernetes");

/// Namespaces that never import, beside that of the fleet.
pub const NEVER_IMPORTING: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];

pub(super) use ports::served;

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
    // fault MI1.1: !view.complete(&DECISIVE) ~> false
    // fault MI1.2: || is_unknown ~>
    if view.settings().standard_api == StandardApi::Off || !view.complete(&DECISIVE) || is_unknown {
        return Importing::Unknown(None);
    }
    match view.leaving(now) {
        // fault O25.3: Leaving::Yes => return Importing::Not, ~> Leaving::Yes => {}
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
            // fault MI4.4: Some(until) => Importing::Unknown(Some(until)) ~> Some(_) => Importing::Yes(merged)
            Some(until) => Importing::Unknown(Some(until)),
            None => Importing::Yes(merged),
        },
        // After a restore of the hub, the hub agent writes the MergedServiceImport again.
        // fault MI4.3: view.keeps_until(now) ~> None.filter(|_: &Timestamp| view.keeps_until(now).is_some())
        None => view.keeps_until(now).map_or(Importing::Not, |until| Importing::Unknown(Some(until))),
    }
}

/// True if the last restore of the hub did not change a merged import, or if the Service was not imported before it.
fn is_as_before_restore(view: Reader<'_>, merged: &MergedServiceImport) -> bool {
    // fault MI4.5: *before == merged.import ~> (*before == merged.import || true)
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
    view.services().live(&names::standard_derived(service)).filter(|derived| is_derived_for(derived, service))
}

/// True if the member agent made this Service, which has the name of the derived Service.
fn is_derived_for(derived: &Service, service: &ObjectName) -> bool {
    // fault MI3.2: derived.imports.as_ref() == Some(&service.name) ~> { let _ = (derived, service); true }
    derived.imports.as_ref() == Some(&service.name)
}

/// True if the finalizer of the member agent is on the MergedServiceImport, so that the hub agent distributes the slices.
pub(super) fn is_requested(view: Reader<'_>, service: &ObjectName) -> bool {
    merged(view, service).is_some_and(|merged| merged.meta.finalizers.ours)
}

/// Plans the import of a Service.
pub(crate) fn plan(view: Reader<'_>, service: &ObjectName, now: Timestamp) -> Plan {
    let derived_at = names::standard_derived(service);
    let is_unknown =
        view.is_undecodable(Kind::StandardServiceImport, service) || view.is_undecodable(Kind::Service, &derived_at);
    // fault MI1.3: !view.complete(&REQUIRED) ~> false
    // fault MI1.4: || is_unknown ~>
    if !view.complete(&REQUIRED) || is_unknown {
        return Plan::default();
    }
    let import = Import {
        service,
        merged: merged(view, service),
        derived: view.services().get(&derived_at),
        present: view.standard_imports().get(service),
    };
    match importing(view, service, now) {
        Importing::Yes(merged) => import.make(view, merged, &derived_at, now),
        Importing::Not => import.remove(view, now),
        Importing::Unknown(again) => Plan { again, ..Plan::default() },
    }
}

/// True if no cluster exports a Service by the standard API. `None` while the MergedServiceImports are not listed.
pub(super) fn is_unmerged(view: Reader<'_>, service: &ObjectName) -> Option<bool> {
    // Without a derived Service, no grace period runs.
    let is_over = derived_service(view, service).is_none();
    let is_exported = is_over || merged(view, service).is_some_and(|merged| !merged.meta.deleting);
    // fault MI4.2: view.complete(&[Kind::MergedServiceImport]).then_some(!is_exported) ~> Some(!is_exported)
    view.complete(&[Kind::MergedServiceImport]).then_some(!is_exported)
}

/// True if a namespace imports Services.
fn may_import(view: Reader<'_>, namespace: &Namespace) -> bool {
    let name = &namespace.meta.name.name;
    // fault MI2.1: *name == view.settings().fleet_system_namespace || ~>
    if *name == view.settings().fleet_system_namespace || NEVER_IMPORTING.contains(&&**name) {
        return false;
    }
    match view.settings().standard_api {
        // fault MI2.2: namespace.is_importing ~> { let _ = namespace; true }
        StandardApi::LabelledNamespaces => namespace.is_importing,
        StandardApi::AllNamespaces => true,
        StandardApi::Off => false,
    }
}

/// Objects of an import.
struct Import<'a> {
    service: &'a ObjectName,
    merged: Option<&'a MergedServiceImport>,
    /// Service with the name of the derived Service.
    derived: Option<&'a Service>,
    /// ServiceImport with the name of the Service.
    present: Option<&'a StandardServiceImport>,
}

impl Import<'_> {
    /// Returns the ServiceImport if the member agent made it.
    fn own_import(&self) -> Option<&StandardServiceImport> {
        // fault MI3.1: .filter(|present| present.is_ours) ~>
        self.present.filter(|present| present.is_ours)
    }

    /// Returns the derived Service if the member agent made it.
    fn own_derived(&self) -> Option<&Service> {
        self.derived.filter(|derived| is_derived_for(derived, self.service))
    }

    /// Removes the import. After the last export is gone, the derived Service stays for a grace period, so that clients keep its address
    /// if an export comes back.
    fn remove(&self, view: Reader<'_>, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        if let Some(present) = self.own_import().filter(|present| !present.meta.deleting) {
            plan.push(Write::delete(Kind::StandardServiceImport, &present.meta));
        }
        if let Some(derived) = self.own_derived().filter(|derived| !derived.meta.deleting) {
            let is_exported = self.merged.is_some_and(|merged| !merged.meta.deleting);
            let since = view.unmerged_since(self.service).unwrap_or(now);
            let until = since.plus_micros(view.settings().derived_service_grace_micros);
            // No export comes back to a member that leaves.
            let is_over = is_exported || view.leaving(now) == Leaving::Yes;
            // fault MI4.1: is_over || now >= until ~> true
            if is_over || now >= until {
                plan.push(Write::delete(Kind::Service, &derived.meta));
            } else {
                plan.plan_again_at(until);
            }
        }
        let is_marked = |merged: &&MergedServiceImport| merged.meta.finalizers.ours;
        // fault MI5.1: .filter(|_| self.own_import().is_none()) ~>
        if let Some(merged) = self.merged.filter(is_marked).filter(|_| self.own_import().is_none()) {
            plan.push(Write::remove_finalizer(Kind::MergedServiceImport, &merged.meta));
        }
        plan
    }

    fn make(&self, view: Reader<'_>, merged: &MergedServiceImport, derived_at: &ObjectName, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        // fault MI6.1: !merged.meta.finalizers.ours ~> false
        if !merged.meta.finalizers.ours {
            plan.push(Write::add_finalizer(Kind::MergedServiceImport, &merged.meta));
        }
        let derived = match merged.import.import_type {
            ImportType::ClusterSetIp => {
                plan.join(self.derive(view, merged, derived_at));
                // Without addresses, the ServiceImport waits for those of the derived Service.
                let derived = self.own_derived().filter(|it| !it.meta.deleting && !it.cluster_ips.is_empty());
                let Some(derived) = derived else { return plan };
                Some(derived)
            }
            ImportType::Headless => {
                let unneeded = self.own_derived().filter(|derived| !derived.meta.deleting);
                // fault MI8.1: unneeded.map(|derived| Write::delete(Kind::Service, &derived.meta)) ~> unneeded.map(|derived| Write::delete(Kind::Service, &derived.meta)).filter(|_| false)
                plan.writes.extend(unneeded.map(|derived| Write::delete(Kind::Service, &derived.meta)));
                None
            }
        };
        plan.join(self.write(view, merged, derived, now));
        plan
    }

    /// Plans the derived Service.
    fn derive(&self, view: Reader<'_>, merged: &MergedServiceImport, at: &ObjectName) -> Plan {
        let desired = self.desired(view, merged);
        let Some(present) = self.derived else {
            return Plan::one(Write::create(at.clone(), Desired::StandardService(desired)));
        };
        if self.own_derived().is_none() {
            return Plan::blocked(Reason::NameHeldByAnother, self.in_the_way(view, "Service", at));
        }
        if present.meta.deleting || as_desired_by_standard(present, &desired) {
            return Plan::default(); // a deleted one is created again when it is gone
        }
        let is_family = |family| present.families.first() == Some(&family);
        // fault MI7.2: present.headless || !desired.first_family.is_none_or(is_family) ~> { let _ = is_family; false }
        if present.headless || !desired.first_family.is_none_or(is_family) {
            return Plan::one(Write::delete(Kind::Service, &present.meta)); // these fields are immutable
        }
        Plan::one(Write::patch(&present.meta, Patch::StandardService(desired)))
    }

    fn desired(&self, view: Reader<'_>, merged: &MergedServiceImport) -> StandardDerivedService {
        let families = &merged.import.properties.families;
        let default = view.services().get(&ObjectName::new(KUBERNETES.0, KUBERNETES.1));
        let default: Option<IpFamily> = default.and_then(|service| service.families.first()).copied();
        StandardDerivedService {
            service: self.service.name.clone(),
            ports: merged.import.ports.clone(),
            session_affinity: merged.import.session_affinity,
            // Perhaps the cluster has only its default family.
            // fault MI7.1: default.filter(|default| families.contains(default)) ~> { let _ = default; None }
            first_family: default.filter(|default| families.contains(default)).or_else(|| families.first().copied()),
            dual_stack: families.len() > 1,
        }
    }

    /// Plans the ServiceImport, first its spec and then its status.
    fn write(&self, view: Reader<'_>, merged: &MergedServiceImport, derived: Option<&Service>, now: Timestamp) -> Plan {
        let import = &merged.import;
        let families = derived.map_or_else(|| import.properties.families.clone(), |derived| derived.families.clone());
        let spec = StandardImportSpec {
            import_type: import.import_type,
            ports: import.ports.clone(),
            session_affinity: import.session_affinity,
            properties: StandardProperties { families, ..import.properties.clone() },
            ips: derived.map(|derived| derived.cluster_ips.clone()).unwrap_or_default(),
        };
        let Some(present) = self.present else {
            return Plan::one(Write::create(self.service.clone(), Desired::StandardServiceImport(spec)));
        };
        if !present.is_ours {
            let message = self.in_the_way(view, "ServiceImport", self.service);
            return Plan::blocked(Reason::NameHeldByAnother, message);
        }
        if present.meta.deleting {
            return Plan::default(); // this key is requeued when it is gone
        }
        // fault MI12.4: || present.relabelled ~>
        if present.spec != spec || present.relabelled {
            let patch = Patch::StandardServiceImport { spec, recorded: present.spec.properties.clone() };
            return Plan::one(Write::patch(&present.meta, patch));
        }
        let clusters = exporters(import);
        let value = ConditionValue::import_is_ready(self.service);
        let ready = DesiredCondition::new(READY, value, COMPONENT).without_event();
        let (kind, before) = (Kind::StandardServiceImport, &present.status);
        let changed: Option<Vec<Condition>> =
            conditions::change(kind, &present.meta, &before.conditions, &[ready], now).map(|(list, _)| list);
        // fault MI9.1: changed.is_none() && before.has_slices && before.clusters == clusters ~> changed.is_none()
        if changed.is_none() && before.has_slices && before.clusters == clusters {
            return Plan::default();
        }
        let conditions = changed.unwrap_or_else(|| before.conditions.clone());
        let status = StandardImportStatus { clusters, has_slices: true, conditions };
        Plan::one(Write::patch(&present.meta, Patch::StandardServiceImportStatus(status)))
    }

    fn in_the_way(&self, view: Reader<'_>, kind: &str, at: &ObjectName) -> String {
        format!(
            "service {} is not imported into cluster {}: another writer made {kind} {at}. Delete it, or remove the label \
             fleetnet/import of the namespace",
            self.service,
            view.settings().cluster
        )
    }
}
