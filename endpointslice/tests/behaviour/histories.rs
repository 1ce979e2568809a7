//! Random histories of a Service. In a history, pods are added, changed and removed. Ports, families and labels of the
//! Service change. The first writes of a plan, or all of them, are executed. Other writers edit or delete slices.

use crate::builders::{
    BuildPod as _, BuildService as _, container_port, named_port, node, pod, port, service, small_node,
};
use endpointslice::address::Family::{V4, V6};
use endpointslice::hints::ServiceHints;
use endpointslice::model::{EndpointSlice, Phase, Pod, Service};
use endpointslice::names::ANNOTATION_TOPOLOGY_MODE;
use endpointslice::{Config, NodeZones, Plan, PlanRequest, TextMap, plan_pods};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Step of a history.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Adds or changes the pod with this number. The shape has the pod's address, readiness and so on.
    Pod(usize, Shape),
    /// Removes a pod.
    NoPod(usize),
    /// Makes this change of the Service.
    Service(Change),
    /// Executes the first writes of the plan, up to this number.
    Write(usize),
    /// Edits a slice, as another writer would.
    Edit(usize, Edit),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Ready,
    NotReady,
    Terminating,
    Ended,
    Elsewhere,
    OtherAddress,
    OtherUid,
    OtherPort,
    NoPort,
    OnlyV4,
    BadAddress,
    UnknownNode,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    Named,
    Numbered,
    TwoPorts,
    OneFamily,
    OtherFamily,
    BothFamilies,
    Labels,
    ClusterIp,
    Deleted,
    Publishing,
    NoSelector,
    SameZone,
    SameNode,
    NoPreference,
    Auto,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    Delete,
    LoseEndpoint,
    Readiness,
    Copy,
    Ports,
    Label,
    Annotation,
    Disown,
    Finalize,
    Hints,
}

/// Random history: its events, and the initial cluster and settings.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) max: usize,
    pub(crate) first: Vec<(usize, Shape)>,
    pub(crate) families: Change,
    pub(crate) ports: Change,
    pub(crate) events: Vec<Event>,
}

const PODS: usize = 14;

pub(crate) fn history() -> impl Strategy<Value = History> {
    let families = prop_oneof![Just(Change::OneFamily), Just(Change::BothFamilies)];
    let ports = prop_oneof![Just(Change::Named), Just(Change::Numbered)];
    let first = proptest::collection::vec((0..PODS, shape()), 0..PODS);
    let events = proptest::collection::vec(event(), 1..12);
    (1..5_usize, first, families, ports, events).prop_map(|(max, first, families, ports, events)| History {
        max,
        first,
        families,
        ports,
        events,
    })
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..PODS, shape()).prop_map(|(number, shape)| Event::Pod(number, shape)),
        3 => (0..PODS).prop_map(Event::NoPod),
        2 => change().prop_map(Event::Service),
        4 => Just(Event::Write(usize::MAX)),
        2 => (1..4_usize).prop_map(Event::Write),
        2 => (any::<usize>(), edit()).prop_map(|(at, edit)| Event::Edit(at, edit)),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    use Shape::*;
    prop_oneof![
        6 => Just(Ready),
        2 => Just(OtherPort),
        1 => proptest::sample::select(vec![
            NotReady, Terminating, Ended, Elsewhere, OtherAddress, OtherUid, NoPort, OnlyV4, BadAddress, UnknownNode,
        ]),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    use Change::*;
    let all = vec![
        Named,
        Named,
        Numbered,
        TwoPorts,
        OneFamily,
        OtherFamily,
        BothFamilies,
        Labels,
        ClusterIp,
        Deleted,
        Publishing,
        NoSelector,
        SameZone,
        SameZone,
        SameNode,
        NoPreference,
        Auto,
        Auto,
    ];
    proptest::sample::select(all)
}

fn edit() -> impl Strategy<Value = Edit> {
    use Edit::*;
    proptest::sample::select(vec![
        Delete,
        LoseEndpoint,
        Readiness,
        Copy,
        Ports,
        Label,
        Annotation,
        Disown,
        Finalize,
        Hints,
    ])
}

/// Returns hints by `spec.trafficDistribution`. The hints of a slice do not depend on other slices.
pub(crate) fn hints() -> ServiceHints {
    ServiceHints { topology: None, ..ServiceHints::new() }
}

/// Returns hints of all kinds. Each of the two zones has half of the CPUs.
pub(crate) fn all_hints() -> ServiceHints {
    let mut hints = ServiceHints::new();
    let to_plan = hints.set_nodes(&[small_node("node-1", "a"), small_node("node-2", "b")]);
    assert!(to_plan.is_empty(), "no Service has hints yet");
    hints
}

/// State of a simulated cluster, which is the complete input of a plan.
pub(crate) struct Truth {
    pub(crate) service: Service,
    pub(crate) pods: BTreeMap<String, Pod>,
    pub(crate) nodes: NodeZones,
    pub(crate) slices: BTreeMap<String, Arc<EndpointSlice>>,
    pub(crate) config: Config,
    version: usize,
}

/// Changed slice, or the name of a deleted slice.
pub(crate) type SliceChange = Result<Arc<EndpointSlice>, String>;

impl Truth {
    pub(crate) fn new(history: &History) -> Self {
        let config = Config::default().with_max_endpoints_per_slice(history.max).expect("a limit of a test");
        let nodes = [&node("node-1", "a"), &node("node-2", "b")].into_iter().collect();
        let slices = BTreeMap::new();
        let mut truth = Self { service: service("web"), pods: BTreeMap::new(), nodes, slices, config, version: 0 };
        truth.change_service(history.families);
        truth.change_service(history.ports);
        for &(number, shape) in &history.first {
            truth.set_pod(number, shape);
        }
        truth
    }

    /// Returns the same cluster without slices.
    pub(crate) fn without_slices(&self) -> Self {
        let (service, pods, nodes, config) = (&self.service, &self.pods, &self.nodes, &self.config);
        let (service, pods, nodes, config) = (service.clone(), pods.clone(), nodes.clone(), config.clone());
        Self { service, pods, nodes, slices: BTreeMap::new(), config, version: 0 }
    }

    pub(crate) fn plan(&self, hints: &mut ServiceHints) -> Plan {
        let existing: Vec<_> = self.slices.values().cloned().collect();
        let Self { service, config, .. } = self;
        let request = PlanRequest { service, existing: &existing, trigger_time: None, config };
        plan_pods(&request, self.pods.values(), &self.nodes, hints)
    }

    pub(crate) fn set_pod(&mut self, number: usize, shape: Shape) -> Pod {
        let pod = shaped(number, shape);
        self.pods.insert(pod.metadata.name.to_string(), pod.clone());
        pod
    }

    pub(crate) fn remove_pod(&mut self, number: usize) -> String {
        let name = format!("pod{number}");
        self.pods.remove(&name);
        name
    }

    pub(crate) fn change_service(&mut self, change: Change) {
        let service = self.service.clone();
        self.service = match change {
            Change::Named => service.with_ports(vec![named_port("web", "http")]),
            Change::Numbered => service.with_ports(vec![port("web", 80)]),
            Change::TwoPorts => service.with_ports(vec![named_port("web", "http"), port("more", 81)]),
            Change::OneFamily => service.with_families(&[V4]),
            Change::OtherFamily => service.with_families(&[V6]),
            Change::BothFamilies => service.with_families(&[V6, V4]),
            Change::Labels => service.with_labels([("a", "b")]),
            Change::ClusterIp => service.with_cluster_ip("10.0.0.1"),
            Change::Deleted => service.deleted(),
            Change::Publishing => service.publishing_not_ready(),
            Change::NoSelector => service.without_selector(),
            Change::SameZone => service.with_traffic_distribution(Some("PreferSameZone")),
            Change::SameNode => service.with_traffic_distribution(Some("PreferSameNode")),
            Change::NoPreference => service.with_traffic_distribution(None),
            Change::Auto => service,
        };
        let annotations = &mut self.service.metadata.annotations;
        match change {
            Change::Auto => drop(annotations.insert(ANNOTATION_TOPOLOGY_MODE, "Auto")),
            Change::NoPreference => *annotations = TextMap::default(),
            _ => {}
        }
    }

    /// Executes the first `count` writes of a plan. Returns the changed slices in the order of the writes.
    pub(crate) fn write(&mut self, plan: &Plan, count: usize) -> Vec<SliceChange> {
        let mut changes: Vec<SliceChange> = Vec::new();
        for family in &plan.families {
            let creates = family.draft.creates.iter().map(|slice| Ok(slice.clone()));
            let updates = family.draft.updates.iter().map(|update| Ok(update.after.clone()));
            let deletes = family.draft.deletes.iter().map(|slice| Err(slice.metadata.name.to_string()));
            for write in creates.chain(updates).chain(deletes) {
                changes.push(write.map(Arc::new));
            }
        }
        changes.extend(plan.unsupported.iter().map(|slice| Err(slice.metadata.name.to_string())));
        changes.into_iter().take(count).map(|change| self.store(change)).collect()
    }

    pub(crate) fn edit(&mut self, at: usize, edit: Edit) -> Vec<SliceChange> {
        let Some(picked) = self.slices.values().nth(at % self.slices.len().max(1)).cloned() else { return vec![] };
        let mut slice = (*picked).clone();
        match edit {
            Edit::Delete => return vec![self.store(Err(slice.metadata.name.to_string()))],
            Edit::LoseEndpoint => drop(slice.endpoints.pop()),
            Edit::Readiness => slice.endpoints.iter_mut().for_each(|endpoint| endpoint.conditions.ready = None),
            Edit::Copy => {
                slice.metadata.name = "".into();
                slice.metadata.generate_name = "copy-".into();
            }
            Edit::Ports => slice.ports.clear(),
            Edit::Label => drop(slice.metadata.labels.insert("extra", "1")),
            Edit::Annotation => drop(slice.metadata.annotations.insert("extra", "1")),
            Edit::Disown => slice.metadata.owner_references.clear(),
            Edit::Hints => slice.endpoints.iter_mut().for_each(|endpoint| endpoint.hints = Some(Arc::default())),
            Edit::Finalize => slice.metadata.deletion_timestamp = crate::builders::time("2026-01-01T00:00:00Z"),
        }
        vec![self.store(Ok(Arc::new(slice)))]
    }

    fn store(&mut self, change: SliceChange) -> SliceChange {
        let mut slice = match change {
            Ok(slice) => (*slice).clone(),
            Err(name) => {
                self.slices.remove(&name);
                return Err(name);
            }
        };
        self.version += 1;
        if slice.metadata.name.is_empty() {
            // The generated names are not in the order of creation, as on an API server. The versions of a test are
            // below 10007, a prime, so all names differ.
            let suffix = (self.version * 7919) % 10_007;
            slice.metadata.name = format!("{}{suffix:05}", slice.metadata.generate_name).into();
            slice.metadata.uid = format!("uid-{}", self.version).into();
        }
        slice.metadata.resource_version = self.version.to_string().into();
        let slice = Arc::new(slice);
        self.slices.insert(slice.metadata.name.to_string(), Arc::clone(&slice));
        Ok(slice)
    }
}

fn shaped(number: usize, shape: Shape) -> Pod {
    let addresses =
        |four: usize| vec![format!("10.0.{four}.{}", number + 1), format!("fd00::{}:{}", four + 1, number + 1)];
    let with = |addresses: Vec<String>| {
        let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
        pod(number).with_ips(&addresses)
    };
    let both = || with(addresses(0)).with_container(vec![container_port("http", 8080)]);
    match shape {
        Shape::Ready => both(),
        Shape::NotReady => both().not_ready(),
        Shape::Terminating => both().terminating(),
        Shape::Ended => both().in_phase(Phase::Failed),
        Shape::Elsewhere => both().on_node("node-2"),
        Shape::OtherAddress => with(addresses(1)).with_container(vec![container_port("http", 8080)]),
        Shape::OtherUid => {
            let mut pod = both();
            pod.metadata.uid = "another".into();
            pod
        }
        Shape::OtherPort => with(addresses(0)).with_container(vec![container_port("http", 8081)]),
        Shape::NoPort => with(addresses(0)),
        Shape::OnlyV4 => with(addresses(0)[..1].to_vec()).with_container(vec![container_port("http", 8080)]),
        Shape::BadAddress => with(vec!["bad".into(), format!("10.0.2.{}", number + 1)]),
        Shape::UnknownNode => both().on_node("node-9"),
    }
}
