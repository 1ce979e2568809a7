//! MemberAgent: heartbeat and announcement of a member, in the member's namespace in the hub. The Go agents do not have
//! this kind.
#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path")]

use crate::lenient::Filled;
use crate::wire::{Micros, Needed, Plain, record};
use fleetnet_core::model::{self, SilencePhase, Treatment};
use fleetnet_types::{ClusterId, Text};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Heartbeat and announcement of a member agent.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "MemberAgent",
    plural = "memberagents",
    category = "fleet-networking",
    namespaced,
    status = "MemberAgentStatus",
    derive = "PartialEq",
    doc = "MemberAgent tells that a member's agent is there, and what member and hub understand of each other. The member \
           agent makes it, under the ID of its cluster.",
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Hub-Version", type_ = "string", json_path = ".status.version"),
    printcolumn(name = "Renewed", type_ = "date", json_path = ".spec.renewTime"),
    printcolumn(name = "Stopped", type_ = "date", json_path = ".spec.plannedStopTime"),
    printcolumn(name = "Silence", type_ = "string", json_path = ".status.silence.phase"),
    printcolumn(name = "Exports", type_ = "integer", json_path = ".status.exportedServices"),
    printcolumn(name = "Endpoints", type_ = "integer", json_path = ".status.exportedEndpoints"),
    printcolumn(name = "Imports", type_ = "integer", json_path = ".status.importedServices"),
    printcolumn(name = "Exported-Slices", type_ = "integer", json_path = ".status.exportedSlices", priority = 1),
    printcolumn(name = "Imported-Slices", type_ = "integer", json_path = ".status.importedSlices", priority = 1),
    printcolumn(name = "Slice-Stream", type_ = "string", json_path = ".spec.sliceStream.reason", priority = 1),
    printcolumn(name = "Understands", type_ = "string", json_path = ".spec.features", priority = 1),
    printcolumn(name = "Cluster-UID", type_ = "string", json_path = ".spec.clusterUid", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct MemberAgentSpec {
    /// Version of the member agent.
    pub version: String,
    /// Features that the member agent supports in addition to those of the Go agents. The hub agent sends it no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "set"), length(max = 64))]
    pub features: Option<Vec<Name>>,
    /// UID of the namespace kube-system of the cluster that owns this ID. An agent of another cluster with the same ID
    /// writes nothing else to the hub until it takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub cluster_uid: Option<String>,
    /// Identity of the process that wrote the last renewal, as in its Leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub leader_identity: Option<String>,
    /// Time at which the member agent last renewed this object, by its own clock. It renews every 10 seconds while it
    /// watches the EndpointSlices of its cluster.
    pub renew_time: MicroTime,
    /// Time at which the member agent stopped as planned, by its own clock. Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_stop_time: Option<MicroTime>,
    /// Latency of the imports of this member in the last minutes. Absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencySummary>,
    /// State of the slice stream of this member. Absent if the hub agent offers none, or if this member uses none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_stream: Option<SliceStreamReport>,
    /// Properties of the cluster, by which selectors choose exporting clusters. Absent if the member agent announces
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub properties: Option<BTreeMap<String, PropertyValue>>,
}

/// Value of a property.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
pub struct PropertyValue(#[schemars(length(max = 256))] pub String);

/// State of a member's slice stream, as of the last renewal.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SliceStreamReport {
    /// If the member agent holds a slice stream. Without one, changes arrive as objects only.
    pub connected: bool,
    /// Reason for the state, in CamelCase.
    #[schemars(length(max = 63))]
    pub reason: String,
    /// Details for humans.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// Latency of the imports of one member, as counts of samples in buckets. Counts of several members can be added up.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LatencySummary {
    /// Time of this summary, by the clock of the member.
    pub update_time: MicroTime,
    /// Length of the window of the samples: this time and the part of a minute.
    #[schemars(range(min = 1, max = 86400))]
    pub window_seconds: i64,
    /// Upper bounds of the buckets. The last bucket has no upper bound.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(min = 1, max = 64))]
    pub bounds_milliseconds: Vec<f64>,
    /// Exporting members with samples in the window.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = 256))]
    pub origins: Vec<OriginLatency>,
}

/// Latency of the imports from one exporting member: the time from when it sees a change of an EndpointSlice until this
/// member has imported the change.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginLatency {
    /// Id of the exporting member.
    #[schemars(length(min = 1, max = 63))]
    pub cluster: String,
    /// Number of samples in the buckets.
    #[schemars(range(min = 0))]
    pub count: i64,
    /// Number of samples whose two clocks differ so much that the sample is wrong. No bucket counts them.
    #[schemars(range(min = 0))]
    pub clamped: i64,
    /// Number of first imports. No bucket counts them.
    #[schemars(range(min = 0))]
    pub first_imports: i64,
    /// Sum of the samples in the buckets.
    #[schemars(range(min = 0))]
    pub sum_milliseconds: i64,
    /// Number of samples in each bucket. Trailing zeros are left out.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"), length(max = 65))]
    pub buckets: Vec<Count>,
}

/// Number of samples.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Count(#[schemars(range(min = 0))] pub i64);

/// Name of a feature that an agent supports.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Name(#[schemars(length(min = 1, max = 63))] pub String);

/// Announcement of the hub agent, and its counts of the objects of the member.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberAgentStatus {
    /// Version of the hub agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Features that the hub agent supports in addition to those of the Go agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "set"), length(max = 64))]
    pub features: Option<Vec<Name>>,
    /// Offer of the hub agent's slice stream. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_stream: Option<SliceStreamOffer>,
    /// Number of Services that the member exports. All counts are as of the last renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_services: Option<i64>,
    /// Number of EndpointSlices that the member exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_slices: Option<i64>,
    /// Number of ready endpoints in the EndpointSlices that the member exports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported_endpoints: Option<i64>,
    /// Number of Services that the member imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_services: Option<i64>,
    /// Number of EndpointSlices that the hub distributes to the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_slices: Option<i64>,
    /// Last silence of this member. Absent if the member was not silent in the last 30 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Silence>,
    /// Silent members whose endpoints this member does not use as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]), length(max = 1000))]
    pub silent_members: Option<Vec<SilentMember>>,
}

record! {
    /// Silence of a member, as the hub agent judges it.
    #[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct Silence: RawSilence => model::Silence {
        /// Postponed: most members are silent, so nothing changes. Draining: importers use the endpoints of this member
        /// only while no other member has ready endpoints. Withdrawn: they do not import the endpoints then. Returning:
        /// it renews again, and is not trusted yet. Returned: it renews again.
        #[schemars(length(min = 1, max = 63))]
        phase: String = phase "phase" as Needed<SilencePhase>,
        /// Time at which the phase began, by the clock of the hub agent. For Draining, Withdrawn and Returning: time at
        /// which importers began to treat the member as silent.
        phase_time: MicroTime = since "phaseTime" as Needed<Micros>,
        /// renewTime of the last renewal before the silence.
        last_renew_time: MicroTime = renewed "lastRenewTime" as Needed<Micros>,
        /// Number of silences in a row: each began within 30 minutes after the end of the one before.
        #[schemars(range(min = 0))]
        count: i64 = count "count" as Plain<u32>,
    }
}

record! {
    /// Silent member, and how this member treats its endpoints.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct SilentMember: RawSilentMember => model::SilentMember {
        /// ID of the silent member.
        #[schemars(length(min = 1, max = 63))]
        cluster: String = cluster "cluster" as Needed<Filled<ClusterId>>,
        /// Draining or Withdrawn.
        #[schemars(length(min = 1, max = 63))]
        treatment: String = treatment "treatment" as Needed<Treatment>,
    }
}

record! {
    /// How member agents reach the slice stream of the hub agent.
    #[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
    struct SliceStreamOffer: RawOffer => model::SliceStreamOffer {
        /// Address, as HOST:PORT.
        #[schemars(length(min = 1, max = 512))]
        address: String = address "address" as Needed<Text>,
        /// Certificate authorities of the hub agent's certificate, in PEM.
        #[schemars(length(min = 1, max = 65536))]
        ca_bundle: String = ca_bundle "caBundle" as Needed<Text>,
    }
}
