//! Simulated cluster of the tests ([`World`]) with one Service, pods, Nodes and slices.

use crate::builders::{node, service};
use crate::memory::{ApiError, Memory};
use crate::meters::{Meters, Nine};
use endpointslice::apply::Applied;
use endpointslice::hints::ServiceHints;
use endpointslice::model::{EndpointSlice, Node, Pod, Service};
use endpointslice::plan::WriteCounts;
use endpointslice::{Config, Plan, PlanRequest, apply, plan_pods};
use futures::FutureExt as _;
use std::cell::RefCell;
use std::num::NonZeroUsize;

/// Simulated cluster: the input of a plan, and the memory that the plan is written to.
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) pods: Vec<Pod>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) memory: Memory,
    pub(crate) config: Config,
    pub(crate) trigger_time: Option<jiff::Timestamp>,
    /// Setter of the hints in plans. By default it supports `spec.trafficDistribution` and no topology hints.
    pub(crate) hints: RefCell<ServiceHints>,
    /// Metrics, created at the first reconcile.
    meters: RefCell<Option<Meters>>,
}

/// Returns a cluster with the Service `web`, these pods, node-1 and no slices.
pub(crate) fn world(pods: Vec<Pod>) -> World {
    World {
        service: service("web"),
        pods,
        nodes: vec![node("node-1", "")],
        memory: Memory::default(),
        config: Config::default(),
        trigger_time: None,
        hints: RefCell::default(),
        meters: RefCell::default(),
    }
}

/// Returns the same cluster after a reconcile.
pub(crate) fn reconciled(pods: Vec<Pod>) -> World {
    let world = world(pods);
    world.reconcile();
    world
}

/// Result of one reconcile: its plan and its writes.
pub(crate) struct Outcome {
    pub(crate) plan: Plan,
    pub(crate) applied: Applied<ApiError>,
    pub(crate) calls: Vec<String>,
}

impl World {
    pub(crate) fn with_service(self, service: Service) -> Self {
        Self { service, ..self }
    }

    /// Returns the cluster with another limit of endpoints per slice, and new metrics.
    pub(crate) fn with_max(self, max: usize) -> Self {
        let config = self.config.clone().with_max_endpoints_per_slice(max).expect("a limit of a test");
        Self { config, meters: RefCell::default(), ..self }
    }

    pub(crate) fn with_slices(self, slices: impl IntoIterator<Item = EndpointSlice>) -> Self {
        Self { memory: Memory::new(slices), ..self }
    }

    pub(crate) fn with_nodes(self, nodes: Vec<Node>) -> Self {
        Self { nodes, ..self }
    }

    pub(crate) fn with_hints(self, hints: ServiceHints) -> Self {
        Self { hints: hints.into(), ..self }
    }

    pub(crate) fn plan(&self) -> Plan {
        let existing = self.memory.slices();
        let Self { service, trigger_time, config, .. } = self;
        let request = PlanRequest { service, existing: &existing, trigger_time: *trigger_time, config };
        plan_pods(&request, &self.pods, &self.nodes.iter().collect(), &mut *self.hints.borrow_mut())
    }

    pub(crate) fn reconcile(&self) -> Outcome {
        let plan = self.plan();
        let mut meters = self.meters.borrow_mut();
        let meters = meters.get_or_insert_with(|| Meters::new(&self.config));
        meters.planned(&self.service, &plan);
        let applied = self.apply(&plan);
        meters.applied(&self.service, &plan, &applied);
        Outcome { plan, applied, calls: self.memory.take_calls() }
    }

    /// Reconciles. Checks the number of endpoints of each slice, and the metrics.
    #[track_caller]
    pub(crate) fn reconcile_to(&self, lengths: &[usize], metrics: Nine) {
        self.reconcile();
        assert_eq!(self.lengths(), lengths);
        self.check_metrics(metrics);
    }

    pub(crate) fn apply(&self, plan: &Plan) -> Applied<ApiError> {
        let parallelism = NonZeroUsize::new(4).expect("four");
        apply(plan, &self.memory, parallelism).now_or_never().expect("memory answers at once")
    }

    /// Checks the metrics after all reconciles so far.
    #[track_caller]
    pub(crate) fn check_metrics(&self, expected: Nine) {
        assert_eq!(self.read(Meters::read), expected);
    }

    /// Returns the labels of the metrics of changed slices and of traffic distributions.
    pub(crate) fn metric_labels(&self) -> Vec<String> {
        self.read(Meters::read_labels)
    }

    fn read<T>(&self, read: fn(&Meters) -> T) -> T {
        self.meters.borrow().as_ref().map(read).expect("a world that was reconciled")
    }

    /// Returns the number of endpoints of each slice, largest first.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<_> = self.memory.slices().iter().map(|slice| slice.endpoints.len()).collect();
        lengths.sort_unstable_by(|one, other| other.cmp(one));
        lengths
    }
}

impl Outcome {
    /// Returns the numbers of creates, updates and deletes.
    pub(crate) fn writes(&self) -> [usize; 3] {
        let WriteCounts { creates, updates, deletes } = self.plan.counts();
        [creates, updates, deletes]
    }
}
