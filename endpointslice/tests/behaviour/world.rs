//! [`World`]: a Service, its pods and Nodes, and the slices that there are of it.

use crate::builders::{node, service};
use crate::memory::{Memory, Refusal};
use endpointslice::apply::Applied;
use endpointslice::model::{EndpointSlice, Node, Pod, Service};
use endpointslice::plan::{FamilyPlan, LeaveHints, WriteCounts};
use endpointslice::{Config, Plan, PlanRequest, apply, plan_pods};
use futures::FutureExt as _;
use std::num::NonZeroUsize;

/// What a plan is made from, and where it is written.
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) pods: Vec<Pod>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) memory: Memory,
    pub(crate) config: Config,
    pub(crate) trigger_time: Option<jiff::Timestamp>,
}

/// The Service `web` with these pods, node-1 and no slices.
pub(crate) fn world(pods: Vec<Pod>) -> World {
    World {
        service: service("web"),
        pods,
        nodes: vec![node("node-1", "")],
        memory: Memory::default(),
        config: Config::default(),
        trigger_time: None,
    }
}

/// What came of one reconcile.
pub(crate) struct Outcome {
    pub(crate) plan: Plan,
    pub(crate) applied: Applied<Refusal>,
    pub(crate) calls: Vec<String>,
}

impl World {
    pub(crate) fn with_service(self, service: Service) -> Self {
        Self { service, ..self }
    }

    pub(crate) fn with_max(self, max: usize) -> Self {
        let config = self.config.clone().with_max_endpoints_per_slice(max).expect("a limit of a test");
        Self { config, ..self }
    }

    pub(crate) fn with_slices(self, slices: impl IntoIterator<Item = EndpointSlice>) -> Self {
        Self { memory: Memory::new(slices), ..self }
    }

    pub(crate) fn with_nodes(self, nodes: Vec<Node>) -> Self {
        Self { nodes, ..self }
    }

    pub(crate) fn plan(&self) -> Plan {
        let existing = self.memory.slices();
        let Self { service, trigger_time, config, .. } = self;
        let request = PlanRequest { service, existing: &existing, trigger_time: *trigger_time, config };
        plan_pods(&request, &self.pods, &self.nodes.iter().collect(), &mut LeaveHints)
    }

    pub(crate) fn reconcile(&self) -> Outcome {
        let plan = self.plan();
        let applied = self.apply(&plan);
        Outcome { plan, applied, calls: self.memory.take_calls() }
    }

    pub(crate) fn apply(&self, plan: &Plan) -> Applied<Refusal> {
        let parallelism = NonZeroUsize::new(4).expect("four");
        apply(plan, &self.memory, parallelism).now_or_never().expect("memory answers at once")
    }

    /// The lengths of all slices, longest first.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<_> = self.memory.slices().iter().map(|slice| slice.endpoints.len()).collect();
        lengths.sort_unstable_by(|one, other| other.cmp(one));
        lengths
    }
}

/// What controllers observe of a plan, all address types together: slices that would do, slices that there will be,
/// endpoints; endpoints added and removed; creates, updates, deletes.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Figures {
    pub(crate) slices: [usize; 2],
    pub(crate) endpoints: [usize; 3],
    pub(crate) writes: [usize; 3],
}

impl Outcome {
    pub(crate) fn figures(&self, max: usize) -> Figures {
        let mut figures = Figures { slices: [0; 2], endpoints: [0; 3], writes: [0; 3] };
        for FamilyPlan { stats, .. } in &self.plan.families {
            let wanted: usize = stats.groups.iter().map(|group| group.endpoints.div_ceil(max)).sum();
            figures.slices[0] += wanted.max(1);
            figures.slices[1] += stats.groups.iter().map(|group| group.slices).sum::<usize>();
            figures.endpoints[0] += stats.groups.iter().map(|group| group.endpoints).sum::<usize>();
            figures.endpoints[1] += stats.added;
            figures.endpoints[2] += stats.removed;
        }
        figures.writes = self.writes();
        figures
    }

    /// Creates, updates, deletes.
    pub(crate) fn writes(&self) -> [usize; 3] {
        let WriteCounts { creates, updates, deletes } = self.plan.counts();
        [creates, updates, deletes]
    }
}

/// Slices that would do and that there will be; endpoints, those added and those removed; creates, updates, deletes.
pub(crate) fn figures(slices: [usize; 2], endpoints: [usize; 3], writes: [usize; 3]) -> Figures {
    Figures { slices, endpoints, writes }
}
