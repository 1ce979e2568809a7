//! [`Incremental`]: plans with a cost in proportion to the change, not to the size of the Service.
//!
//! ```text
//!  set_pod, remove_pod ─────┐                    ┌─► touched slices and unplaced endpoints ─► packer ─┐
//!  set_slice, remove_slice ─┼─► pods, holders ───┤                                                   ├─► Plan
//!  set_service ─────────────┘   fill levels      └─► special cases, see below ────► full plan ────────┘
//! ```
//!
//! The state of a Service consists of the desired endpoint of each pod, the slice that contains this endpoint, and the
//! number of endpoints of each slice. A change of a pod marks the slices with its endpoint as touched. A plan compares
//! only touched slices and endpoints without a slice, with the same packer and the same last steps as
//! [`crate::plan()`].
//!
//! The result equals a full plan over the same pods and over slices sorted by name, except that untouched slices are
//! not listed as unchanged. In these cases a full plan over all slices is necessary:
//!
//! - A pod has endpoints in two slices.
//! - A slice has ports that no pod has, belongs to an earlier Service, or has another address type.
//! - A placeholder is needed or must be removed.
//! - Hints depend on all slices.
//!
//! The state does not record planned writes. After a write, pass the stored slice to [`Incremental::set_slice`], from
//! the response of the API server or from the watch. Until then the next plan has the same writes again.

mod family;
mod keys;
mod touched;

use crate::backend::PodBackends;
use crate::config::Config;
use crate::model::{EndpointSlice, Pod, Service};
use crate::nodes::NodeZones;
use crate::plan::{self, AssignHints, Plan, PlanRequest};
use crate::ports::PortKey;
use crate::template::SliceTemplate;
use crate::text::Text;
use family::{FamilyState, KnownPod, Pods};
use jiff::Timestamp;
use keys::PortKeys;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// State of one Service. After a change, a plan from this state costs in proportion to the change.
#[derive(Debug)]
pub struct Incremental {
    service: Arc<Service>,
    config: Arc<Config>,
    pods: Pods,
    /// Names of the pods for which no endpoint is made, or of which an address is omitted.
    skipped: BTreeSet<Text>,
    /// Distinct lists of ports. Equal lists share one allocation, so that they are seldom compared item by item.
    keys: PortKeys,
    families: Vec<FamilyState>,
    /// Slices of address types that the Service does not have, by name.
    unsupported: BTreeMap<Text, Arc<EndpointSlice>>,
    full_plans: u64,
}

/// Plan of [`Incremental::propose`] that the caller may drop. [`Incremental::accept`] tells the state that the caller
/// uses the plan.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Plan to apply.
    pub plan: Plan,
    /// True if the plan compared all slices of the Service, not only the slices that a change of a pod or slice
    /// concerns.
    is_full: bool,
}

impl Incremental {
    /// Returns the state of a Service that has no pods and slices yet.
    #[must_use]
    pub fn new(service: Arc<Service>, config: Arc<Config>) -> Self {
        let families = plan::families(&service).into_iter().map(FamilyState::new).collect();
        Self {
            service,
            config,
            pods: Pods::new(),
            skipped: BTreeSet::new(),
            keys: PortKeys::default(),
            families,
            unsupported: BTreeMap::new(),
            full_plans: 0,
        }
    }

    /// Returns the Service that was last set.
    #[must_use]
    pub const fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Returns the number of full plans so far, for tests and metrics.
    #[must_use]
    pub const fn full_plans(&self) -> u64 {
        self.full_plans
    }

    /// Sets the changed Service. `pods` are all pods that the Service selects now. Converts all pods again, and the
    /// next plan compares all slices.
    pub fn set_service<'a>(
        &mut self,
        service: Arc<Service>,
        pods: impl IntoIterator<Item = &'a Pod>,
        nodes: &NodeZones,
    ) {
        let slices = self.slices();
        *self = Self { full_plans: self.full_plans, ..Self::new(service, Arc::clone(&self.config)) };
        for pod in pods {
            self.set_pod(pod, nodes);
        }
        for slice in slices {
            self.set_slice(slice);
        }
    }

    /// Sets a configuration with additional labels of other writers. `config` may differ only in
    /// [`Config::foreign_labels`], which must contain all previous labels.
    pub fn set_foreign_labels(&mut self, config: Arc<Config>) {
        self.config = config;
    }

    /// Sets the state of a pod that the Service selects. Call this for a new or changed pod, and when its Node changed.
    pub fn set_pod(&mut self, pod: &Pod, nodes: &NodeZones) {
        let service = Arc::clone(&self.service);
        let mut backends = PodBackends::new(&service, nodes);
        let backend = backends.convert(pod);
        let skipped = backends.into_skipped();
        let key = backend.as_ref().map(|backend| self.keys.one_of(PortKey::from(&backend.ports))).unwrap_or_default();
        self.take_pod(&pod.metadata.name, KnownPod { backend, key, skipped });
    }

    /// Keeps the existing endpoints of an undecodable pod until the pod is set or removed. Returns true if slices
    /// contain such endpoints.
    pub fn keep_pod(&mut self, name: &Text) -> bool {
        let mut shown = self.families.iter().filter_map(|family| family.shown(name));
        let Some(mut backend) = shown.next() else { return false };
        for other in shown {
            let (ipv4, ipv6) = (other.ipv4, other.ipv6);
            backend.ipv4 = if backend.ipv4.is_empty() { ipv4 } else { backend.ipv4 };
            backend.ipv6 = if backend.ipv6.is_empty() { ipv6 } else { backend.ipv6 };
        }
        let key = self.keys.one_of(PortKey::from(&backend.ports));
        self.take_pod(name, KnownPod { backend: Some(backend), key, skipped: Vec::new() });
        true
    }

    fn take_pod(&mut self, name: &Text, known: KnownPod) {
        if self.pods.get(name) == Some(&known) {
            return;
        }
        self.remove_pod(name);
        if !known.skipped.is_empty() {
            self.skipped.insert(name.clone());
        }
        if let Some(backend) = &known.backend {
            for family in &mut self.families {
                family.add_pod(name, backend, &known.key);
            }
        }
        self.pods.insert(name.clone(), known);
    }

    /// Removes a pod that was deleted or that the Service no longer selects.
    pub fn remove_pod(&mut self, name: &str) {
        let Some((name, known)) = self.pods.remove_entry(name) else { return };
        self.skipped.remove(&name);
        if let Some(backend) = &known.backend {
            for family in &mut self.families {
                family.remove_pod(&name, backend, &known.key);
            }
        }
    }

    /// Sets the state of a slice that is new or changed, by any writer. A slice that is being deleted, or that this
    /// controller does not manage, counts as removed.
    pub fn set_slice(&mut self, slice: Arc<EndpointSlice>) {
        let name = &slice.metadata.name;
        if self.stored_slice(name).is_some_and(|stored| is_same_version(stored, &slice)) {
            return;
        }
        let template = SliceTemplate::new(&self.service, &self.config);
        if !template.manages(&slice) || slice.metadata.is_terminating() {
            self.remove_slice(name);
            return;
        }
        let owned = template.owns(&slice);
        let key = self.keys.one_of(PortKey::from(&slice.ports[..]));
        let pods = &self.pods;
        let mut found = false;
        for family in &mut self.families {
            if family.address_type() == slice.address_type {
                family.set_slice(Arc::clone(&slice), &key, owned, pods);
                found = true;
            } else {
                family.remove_slice(name, pods);
            }
        }
        if found {
            self.unsupported.remove(name);
        } else {
            self.unsupported.insert(name.clone(), slice);
        }
    }

    /// Removes a slice that was deleted.
    pub fn remove_slice(&mut self, name: &str) {
        for family in &mut self.families {
            family.remove_slice(name, &self.pods);
        }
        self.unsupported.remove(name);
    }

    /// Returns the slices that were last set, sorted by name.
    #[must_use]
    pub fn slices(&self) -> Vec<Arc<EndpointSlice>> {
        let mut slices: Vec<_> = self.families.iter().flat_map(FamilyState::slices).cloned().collect();
        slices.extend(self.unsupported.values().cloned());
        slices.sort_unstable_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        slices
    }

    /// Returns a plan with the same writes as [`crate::plan_pods`], and accepts it ([`Self::accept`]).
    pub fn plan(&mut self, trigger_time: Option<Timestamp>, hints: &mut dyn AssignHints) -> Plan {
        let proposal = self.propose(trigger_time, hints);
        self.accept(&proposal);
        proposal.plan
    }

    /// Returns the same plan as [`Self::plan`] and does not accept it. Until it is accepted, the next plan repeats the
    /// same comparisons.
    pub fn propose(&self, trigger_time: Option<Timestamp>, hints: &mut dyn AssignHints) -> Proposal {
        let touched = self.plan_touched(trigger_time, hints);
        let is_full = touched.is_none();
        let mut plan = touched.unwrap_or_else(|| self.plan_in_full(trigger_time, hints));
        if plan::is_served(&self.service) {
            let skipped = self.skipped.iter().filter_map(|name| self.pods.get(name));
            plan.skipped = skipped.flat_map(|known| known.skipped.iter().cloned()).collect();
        }
        Proposal { plan, is_full }
    }

    /// Accepts a proposal: its unchanged slices need no write, and the next plan does not compare them again. The state
    /// must not have changed since [`Self::propose`].
    pub fn accept(&mut self, proposal: &Proposal) {
        if proposal.is_full {
            self.full_plans += 1;
            return;
        }
        for (family, planned) in self.families.iter_mut().zip(&proposal.plan.families) {
            family.settle(&planned.draft.unchanged);
        }
    }

    /// Returns a plan that compares only touched slices: slices that changed, or that have endpoints of changed pods.
    /// Returns `None` if all slices must be compared.
    fn plan_touched(&self, trigger_time: Option<Timestamp>, hints: &mut dyn AssignHints) -> Option<Plan> {
        let Self { service, config, pods, families, unsupported, .. } = self;
        let template = SliceTemplate::new(service, config);
        let ordinary = unsupported.is_empty()
            && plan::is_served(service)
            && hints.is_local(service)
            && families.iter().all(|family| family.is_ordinary(&template));
        if !ordinary {
            return None;
        }
        let request = PlanRequest { service, existing: &[], trigger_time, config };
        let drafts: Option<Vec<_>> =
            families.iter().map(|family| touched::draft(family, pods, &template, config)).collect();
        let planned = drafts?.into_iter().map(|(mut draft, stats)| {
            hints.assign(service, &mut draft);
            plan::finalize::finalize(&request, &template, draft, stats)
        });
        let families = planned.collect();
        Some(Plan { families, ..Plan::nothing(service) })
    }

    fn plan_in_full(&self, trigger_time: Option<Timestamp>, hints: &mut dyn AssignHints) -> Plan {
        let existing = self.slices();
        let request = PlanRequest { service: &self.service, existing: &existing, trigger_time, config: &self.config };
        if !plan::is_served(&self.service) {
            return Plan::nothing(&self.service);
        }
        let mut pods: Vec<_> = self.pods.iter().collect();
        pods.sort_unstable_by_key(|(name, _)| *name);
        plan::plan(&request, pods.into_iter().filter_map(|(_, known)| known.backend.clone()), hints)
    }

    fn stored_slice(&self, name: &str) -> Option<&Arc<EndpointSlice>> {
        self.families.iter().find_map(|family| family.slice(name)).or_else(|| self.unsupported.get(name))
    }
}

/// True if both slices have the same version: the watch event repeats the cached state.
fn is_same_version(stored: &Arc<EndpointSlice>, slice: &Arc<EndpointSlice>) -> bool {
    let (one, other) = (&stored.metadata, &slice.metadata);
    Arc::ptr_eq(stored, slice)
        || (!one.resource_version.is_empty() && one.resource_version == other.resource_version && one.uid == other.uid)
}
