//! Fleets whose members have real traffic, without containers. Tests send packets through an unmodified kube-proxy.
//!
//! The crate `harness` has the control planes and the agents. This crate adds the network, and what runs on nodes:
//!
//! ```text
//! isolation (a test or program in mount, network and PID namespaces of its own; nothing stays behind)
//!   └─ listeners (ports of the machine that reach the bed)
//! fleet (hub + members with nodes, and the agents) ── replicas (two processes of an agent) ── gates (to the API servers of one)
//!   ├─ network (addresses, the bridge, nodes and pods as network namespaces)
//!   ├─ node (Node object, kube-proxy)
//!   │    └─ kubelet (pods of a node: processes, probes, graceful deletion) ── inside_namespace (its thread)
//!   ├─ scheduler (binds pods to nodes)
//!   └─ dns (CoreDNS as a pod behind the Service kube-dns)
//! image (programs of pods: serve, client) ── bin/packets
//! workload (servers and clients of tests)
//! disturbance (faults of the network), load_balancer (addresses for clients outside of all clusters)
//! pair (an exporter, an importer, and replicas of their agents) ── interruptions (what happens to them while clients send requests)
//! follow (watch of pods), http (smallest client), shell (calls of `ip`), clock, limits
//! ```

pub mod clock;
pub mod disturbance;
mod dns;
pub mod fleet;
mod follow;
mod gates;
pub mod http;
pub mod image;
mod inside_namespace;
pub mod interruptions;
mod isolation;
pub mod kubelet;
pub mod limits;
pub mod listeners;
pub mod load_balancer;
pub mod network;
pub mod node;
pub mod pair;
pub mod replicas;
pub mod scheduler;
mod shell;
pub mod workload;

pub use fleet::{Fleet, Settings};
pub use isolation::{again, can_run, inside, inside_with, is_inside, obstacle, run_inside};
