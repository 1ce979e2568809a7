//! Results of explain, status, services, check and latency. They serialize to the JSON of the command line.
//!
//! Programs read this JSON: within `cli.fleetnet/v1`, fields are only added.

mod api;
mod way;

pub use api::Api;
pub use way::{EndpointCount, Point, Span, Way, WayState, WayStep};

use crate::codes::{Code, Group};
use serde::Serialize;

/// `apiVersion` of all results.
pub const API_VERSION: &str = "cli.fleetnet/v1";

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Ok,
    Broken,
    /// A change is younger than 10 s. The agents may still react.
    Waiting,
    /// The step does not apply.
    Skipped,
    /// The evidence could not be read.
    Unknown,
}

/// Summary of a result, which decides the exit code of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// No fault, and everything could be read.
    Healthy,
    /// No fault, but not everything could be read.
    NotKnown,
    Fault,
}

/// Field of an object that shows a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Cluster id of a member, or `hub`.
    pub cluster: String,
    pub kind: String,
    /// Empty for objects without a namespace.
    pub namespace: String,
    pub name: String,
    pub field: String,
    pub value: String,
    /// RFC 3339 time of the change; `None` if the object does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Command that shows the field again. Empty if no command can.
    pub command: String,
    /// Remedy of this cause. `None` if the remedy of the code fits.
    #[serde(skip)]
    pub remedy: Option<String>,
}

/// Fault or notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub code: Code,
    pub title: &'static str,
    /// Reasons of docs/reference/events.md that belong to the code.
    pub reasons: Vec<&'static str>,
    pub evidence: Evidence,
    pub remedy: String,
}

/// One step of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    pub code: Code,
    pub title: &'static str,
    pub outcome: Outcome,
    /// Evidence of a broken step, or the reason why a step waits, is skipped or is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// Way of a Service from one exporter to one importer, by one API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pair {
    pub api: Api,
    /// Cluster id of the exporter; `None` if nobody exports.
    pub exporter: Option<String>,
    /// Cluster id of the importer; `None` if nobody imports.
    pub importer: Option<String>,
    /// All steps in the order of their codes.
    pub steps: Vec<Step>,
    /// First broken step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Finding>,
    /// True if a step before the cause could not be read, and may be the cause itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub earlier_unknown: bool,
    pub verdict: Verdict,
}

/// Result of `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    pub pairs: Vec<Pair>,
    /// Conditions that degrade the fleet, but are not the cause of missing endpoints. Each occurs once.
    pub notices: Vec<Finding>,
    pub verdict: Verdict,
    /// Text about each member that is in no pair, but may export or import the Service: that could not be read.
    pub not_known: Vec<String>,
}

/// Result of `status`.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub members: Vec<MemberStatus>,
    pub hub: HubStatus,
    pub verdict: Verdict,
    /// Text about everything that could not be read.
    pub not_known: Vec<String>,
}

/// Row of a member in `status`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    pub member: String,
    pub state: MemberState,
    /// Version of the member agent.
    pub version: Option<String>,
    /// Time since the last heartbeat, in seconds.
    pub heard_seconds: Option<i64>,
    /// Difference between the clock of the member and the clock of the hub, in milliseconds: positive if the member is
    /// ahead. `None`: not known.
    pub clock_milliseconds: Option<i64>,
    pub exports: Option<i64>,
    pub endpoints: Option<i64>,
    pub imports: Option<i64>,
    /// Number of EndpointSlices that the member exports.
    pub exported_slices: Option<i64>,
    /// Number of EndpointSlices that the hub distributes to the member.
    pub imported_slices: Option<i64>,
    /// Reason for the state of the slice stream. `None` if the member uses none.
    pub slice_stream: Option<String>,
    /// Program that makes the EndpointSlices of the member's pods. `None`: not known, because the member was not read,
    /// or because it has no Lease of kube-controller-manager.
    pub slices_made_by: Option<SliceMaker>,
    /// UID of the cluster, as the member writes it.
    pub cluster_uid: Option<String>,
}

/// Program that makes the EndpointSlices of a cluster from its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceMaker {
    KubeControllerManager,
    MemberAgent,
    Nobody,
}

impl SliceMaker {
    /// Returns the name of the program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KubeControllerManager => "kube-controller-manager",
            Self::MemberAgent => "member-agent",
            Self::Nobody => "nobody",
        }
    }
}

/// State of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum MemberState {
    Ready,
    /// The member agent announced a planned stop.
    Stopped,
    /// No heartbeat for more than 60 s.
    Silent,
    NeverHeard,
    /// A member agent runs in the cluster, but its namespace in the hub is missing.
    NoNamespace,
    /// The member has objects in the hub, but no MemberAgent.
    GoAgent,
    /// The namespace of the member is terminating. The member loses its exports and imports.
    Leaving,
    /// The hub did not show the state.
    Unknown,
}

/// Line of the hub agent in `status`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HubStatus {
    pub server: String,
    pub reached: bool,
    /// Version that the hub agent announces to the members.
    pub version: Option<String>,
    /// Holder of the Lease.
    pub leader: Option<String>,
    /// Number of ready and of wanted replicas. `None` if there is no Deployment or it could not be read.
    pub replicas: Option<(i32, i32)>,
}

/// Result of `services`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Services {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub services: Vec<ServiceRow>,
    pub verdict: Verdict,
    pub not_known: Vec<String>,
}

/// Row of a Service in `services`. A Service that both APIs export or import has two rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRow {
    pub namespace: String,
    pub name: String,
    pub api: Api,
    /// `ClusterSetIP` or `Headless`. `None` while no export is accepted.
    #[serde(rename = "type")]
    pub type_: Option<String>,
    pub exporters: Vec<String>,
    pub importers: Vec<String>,
    /// Number of ready endpoints of all accepted exporters.
    pub endpoints: usize,
    /// Clusters whose exports conflict. Conflicts of the standard API are no fault: the oldest export decides, and all
    /// clusters stay part of the import.
    pub conflicts: Vec<String>,
    pub state: ServiceState,
    /// Endpoints that each importer has, of the importers that were read.
    pub arrived: Vec<Arrival>,
    /// Names by which clients call the Service, in the importers that were read.
    pub names_to_call: Vec<NameToCall>,
}

/// Endpoints of a Service that one importer has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Arrival {
    /// Cluster id of the importer.
    pub importer: String,
    /// Number of ready endpoints in the imported slices.
    pub endpoints: usize,
    /// Exporters that have ready endpoints, none of which the importer has.
    pub missing_exporters: Vec<String>,
}

/// Name by which clients of one importer call a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NameToCall {
    /// Cluster id of the importer.
    pub importer: String,
    pub api: Api,
    /// DNS name, such as `shop-web.fleet-system.svc` or `web.shop.svc.clusterset.local`.
    pub name: String,
    /// Addresses of the Service in the importer, and of its load balancer. A headless Service has none.
    pub addresses: Vec<String>,
    /// Ports, such as `80/TCP`.
    pub ports: Vec<String>,
}

/// One value of one side of a conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConflictSide {
    /// Cluster id of the exporter.
    pub cluster: String,
    /// Field in which the exports differ, or `outcome`.
    pub what: &'static str,
    pub value: String,
}

/// Cluster that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotReached {
    /// Cluster id of a member, or `hub`.
    pub cluster: String,
    pub why: String,
    pub remedy: &'static str,
}

/// State of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ServiceState {
    /// At least one member exports the Service, each export is accepted, and each claim is granted. By the standard
    /// API, an export is accepted when it is merged. There are ready endpoints, and each importer that was read has
    /// endpoints of each exporter.
    Ready,
    /// Not ready, and all that the hub agent has to answer is younger than 30 s.
    Waiting,
    NotReady,
    /// The hub did not show the state.
    Unknown,
}

/// Result of `check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub categories: Vec<Category>,
    pub verdict: Verdict,
}

/// Checks of one group in `check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Category {
    pub group: Group,
    /// Cluster id of a member, or `hub`.
    pub cluster: String,
    pub checks: Vec<CheckRow>,
}

/// Row of `check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckRow {
    pub code: Code,
    pub title: &'static str,
    pub result: CheckResult,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Remedy; empty unless the result is a warning or an error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
}

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckResult {
    Ok,
    /// The check does not apply.
    Skipped,
    /// A notice, or a change that is younger than 10 s.
    Warning,
    /// The evidence could not be read.
    Unknown,
    Error,
}

/// Result of `migrate check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Migration {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub direction: Direction,
    pub items: Vec<MigrationItem>,
    pub verdict: Verdict,
    pub not_known: Vec<String>,
}

/// Direction of a change of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Direction {
    ToFleetnet,
    ToGo,
}

/// Difference between Go agents and fleetnet, with the objects that show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrationItem {
    pub id: &'static str,
    pub impact: Impact,
    /// Agents whose change has the effect.
    pub agents: &'static str,
    pub effect: &'static str,
    pub remedy: &'static str,
    /// `ok` without objects, `broken` with objects, `unknown` if there are none and not everything could be read.
    pub outcome: Outcome,
    pub objects: Vec<Evidence>,
}

/// Impact of a difference on users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Impact {
    /// Importers get or lose endpoints, or a load balancer appears.
    Traffic,
    /// Something else changes.
    Behaviour,
}

/// Result of `latency`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LatencyMatrix {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// Cluster ids of all members, in the order of rows and columns.
    pub members: Vec<String>,
    /// Pairs with samples.
    pub cells: Vec<LatencyCell>,
    /// Members whose summary is missing, invalid or too old, each with the reason.
    pub without_summary: Vec<WithoutSummary>,
    pub verdict: Verdict,
    /// Text about everything that could not be read.
    pub not_known: Vec<String>,
}

/// Latency from one origin to one destination.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LatencyCell {
    pub origin: String,
    pub destination: String,
    pub count: u64,
    pub clamped: u64,
    pub first_imports: u64,
    pub bounds_milliseconds: Vec<f64>,
    pub buckets: Vec<u64>,
    /// One for each requested quantile.
    pub quantiles: Vec<Quantile>,
    /// Difference between the clocks of origin and destination, in milliseconds, if it is more than 2 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_milliseconds: Option<i64>,
}

/// One quantile of a latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Quantile {
    pub quantile: f64,
    /// `None` without samples.
    pub milliseconds: Option<f64>,
    /// Text of the value, such as `15ms`, `<1ms` or `>50s`; `–` without samples.
    pub text: String,
}

/// Member without a usable latency summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WithoutSummary {
    pub member: String,
    pub why: String,
}
