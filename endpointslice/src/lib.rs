//! Plans the EndpointSlices that a Service should have, separately from writing them.
//!
//! Kubernetes publishes the backends of a Service in EndpointSlices. The EndpointSlice controller of
//! kube-controller-manager computes slices and writes them in one step. This library separates the two steps, as
//! KEP-3685 proposes. The first step returns a **plan**: a value that you can inspect, change, veto or drop. The second
//! step is to **apply** the plan.
//!
//! ```text
//!    Pod ──┐                            ┌──────────────── Config
//!   Node ──┼─ PodBackends ─► Backend ─┐ ▼
//! Service ─┴──────────────────────────┼─ plan ──► Plan ── hooks ──► apply ──► SliceWriter
//!                                     │   ▲         │                 │          (yours)
//!      existing EndpointSlices ───────┘   │         └ FamilyPlan      └► Applied ─► tracker
//!                         ▲               │             └ Draft ◄─ AssignHints (hints)
//!                         │            packer             creates, updates, deletes
//!                         └── Incremental: the same plan from what changed
//! ```
//!
//! - [`plan_pods`] returns a [`Plan`] for the pods that a Service selects. [`plan()`] returns a [`Plan`] for
//!   [`Backend`]s that are not pods. Both functions are pure: no clock, no I/O, no random order. The plan is empty if
//!   the slices are up to date.
//! - [`packer`] assigns endpoints to slices. The module is independent of Kubernetes: it packs items into buckets of
//!   limited size and changes few buckets.
//! - Hooks can change a plan before it is applied: add metadata to slices ([`Plan::change_metadata`]) and remove writes
//!   ([`Plan::veto`]). A plan can also be printed ([`std::fmt::Display`]).
//! - [`apply`](apply()) writes a plan through a [`SliceWriter`] in phases: creates, then updates, then deletes. If a
//!   create or update fails, no slice is deleted. An update can be sent as a merge patch of owned fields, so data of
//!   other writers on the slice survives.
//! - [`Incremental`] keeps the state of one Service and plans from changes. A change of one pod among thousands costs
//!   one write: of the slice with the pod's endpoint.
//! - Independent parts: [`hints`] (topology), [`trigger`] (time of the change that a write publishes), [`tracker`] (own
//!   writes that the watch has not shown yet), and metrics behind the feature `metrics`.
//! - Hooks, [`apply`](apply()), merge patches and [`tracker`] need the feature `apply`.
//! - The types of [`model`] are deserialized directly from the API server's JSON. The feature `k8s-openapi` adds
//!   conversions from and to the types of the crate `k8s-openapi`.
//!
//! Slices and the number of writes are the same as with kube-controller-manager 1.35, except for these intentional
//! differences:
//!
//! - The placement of endpoints in slices is deterministic.
//! - A null list of ports equals an empty list (kubernetes/kubernetes #133474).
//! - A recycled slice (reused instead of deleted) keeps the annotations and finalizers of other writers
//!   (kubernetes/kubernetes #108267).
//! - An address that the API would reject is left out, so that it does not block the other endpoints of the Service.
//! - Slices of an address type that the Service no longer has stay until the slices of its present address types exist.
//! - A placeholder (a slice without endpoints) of an earlier Service of the same name does not count as a placeholder
//!   of the current Service.
//!
//! # Example
//!
//! ```
//! use endpointslice::hints::ServiceHints;
//! use endpointslice::model::{EndpointSlice, Node, Pod, Service};
//! use endpointslice::plan::{Update, Veto, Write};
//! use endpointslice::{Config, NodeZones, PlanRequest, SliceWriter, apply, plan_pods};
//! use futures::FutureExt as _;
//! use serde_json::{from_value, json};
//! use std::{convert::Infallible, num::NonZeroUsize, sync::Arc, sync::Mutex};
//!
//! /// Writer that stores slices in memory. A real writer sends requests to an API server.
//! #[derive(Default)]
//! struct Memory(Mutex<Vec<EndpointSlice>>);
//!
//! impl SliceWriter for Memory {
//!     type Error = Infallible;
//!
//!     async fn create(&self, slice: &EndpointSlice) -> Result<EndpointSlice, Infallible> {
//!         let mut stored = slice.clone();
//!         let mut slices = self.0.lock().unwrap();
//!         stored.metadata.name = format!("{}{}", slice.metadata.generate_name, slices.len()).into();
//!         slices.push(stored.clone());
//!         Ok(stored)
//!     }
//!
//!     async fn update(&self, update: &Update) -> Result<EndpointSlice, Infallible> {
//!         let mut slices = self.0.lock().unwrap();
//!         slices.retain(|slice| slice.metadata.name != update.before.metadata.name);
//!         slices.push(update.after.clone());
//!         Ok(update.after.clone())
//!     }
//!
//!     async fn delete(&self, slice: &EndpointSlice) -> Result<(), Infallible> {
//!         self.0.lock().unwrap().retain(|stored| stored.metadata.name != slice.metadata.name);
//!         Ok(())
//!     }
//!
//!     fn is_namespace_terminating(&self, _error: &Infallible) -> bool {
//!         false
//!     }
//! }
//!
//! // Objects as a watch delivers them.
//! let service: Service = from_value(json!({
//!     "metadata": {"namespace": "shop", "name": "web", "uid": "5f1c", "labels": {"app": "web"}},
//!     "spec": {"clusterIP": "10.96.0.7", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
//!              "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
//! }))?;
//! let node: Node = from_value(json!({
//!     "metadata": {"name": "node-1", "labels": {"topology.kubernetes.io/zone": "a"}},
//! }))?;
//! let pod = |name: &str, ip: &str, ready: &str| from_value::<Pod>(json!({
//!     "metadata": {"namespace": "shop", "name": name, "uid": name, "labels": {"app": "web"}},
//!     "spec": {"nodeName": "node-1", "containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]},
//!     "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
//!                "conditions": [{"type": "Ready", "status": ready}]},
//! }));
//! let pods = [pod("web-1", "10.0.0.1", "True")?, pod("web-2", "10.0.0.2", "False")?];
//!
//! // Plan.
//! let config = Config::new("endpoints.example.com")?.with_max_endpoints_per_slice(100)?;
//! let nodes: NodeZones = [&node].into_iter().collect();
//! let request = PlanRequest { service: &service, existing: &[], trigger_time: None, config: &config };
//! let mut hints = ServiceHints::new();
//! let mut plan = plan_pods(&request, &pods, &nodes, &mut hints);
//! assert_eq!(plan.to_string(), "\
//! create web-* IPv4 [http:8080] 2 endpoints
//!   + 10.0.0.1 web-1 ready
//!   + 10.0.0.2 web-2 not ready
//! ");
//!
//! // Hooks between plan and apply: add an annotation, and forbid deletes.
//! plan.change_metadata(|metadata| {
//!     metadata.annotations.insert("example.com/made-for", "web");
//! });
//! plan.veto(|write| match write {
//!     Write::Delete(_) => Veto::Deny("nothing is deleted on Fridays".into()),
//!     Write::Create(_) | Write::Update(_) => Veto::Allow,
//! });
//!
//! // Apply. Writes to memory complete at once. With a real writer, await the future instead.
//! let memory = Memory::default();
//! let applied = apply(&plan, &memory, NonZeroUsize::MIN).now_or_never().expect("memory is at hand");
//! assert!(applied.is_success());
//!
//! // The next plan is empty, because the slices are up to date.
//! let existing: Vec<_> = memory.0.lock().unwrap().iter().cloned().map(Arc::new).collect();
//! assert_eq!(existing[0].endpoints[0].zone.as_deref(), Some("a"));
//! let request = PlanRequest { existing: &existing, ..request };
//! assert!(plan_pods(&request, &pods, &nodes, &mut hints).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

pub mod address;
#[cfg(feature = "apply")]
pub mod apply;
pub mod backend;
pub mod changes;
pub mod config;
#[cfg(feature = "k8s-openapi")]
mod convert;
pub mod hints;
mod incremental;
mod limits;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod model;
pub mod names;
mod nodes;
pub mod packer;
mod per_service;
pub mod plan;
pub mod ports;
pub mod selector;
mod template;
mod text;
mod text_map;
#[cfg(feature = "apply")]
pub mod tracker;
pub mod trigger;

#[cfg(feature = "apply")]
pub use apply::{Applied, SliceWriter, apply};
pub use backend::Backend;
pub use config::Config;
pub use incremental::{Incremental, Proposal};
pub use limits::MAX_ENDPOINTS_RANGE;
pub use nodes::{KnownNode, NodeZones};
pub use plan::{Plan, PlanRequest, plan, plan_pods};
pub use template::SliceTemplate;
pub use text::Text;
pub use text_map::TextMap;

/// Includes the README, so that doc tests compile and run its example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
