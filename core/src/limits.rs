//! All limits of this crate.

use fleetnet_types::Timestamp;
use std::time::Duration;

/// Maximum length of each part of an exported slice's name, in characters. The name has three parts, three dashes and 5
/// hex digits, and at most 253 characters, so a part has at most (253 - 3 - 5) / 3 = 81. A name with 10 hex digits has
/// at most 253 characters too, because a cluster id has at most 50 characters and a namespace at most 63: 50 + 63 +
/// 81 + 3 + 10 = 207.
pub const SLICE_NAME_SEGMENT_CHARS: usize = 81;

/// Maximum length of a name of the form `<namespace>-<name>`, in characters: the length of a DNS label.
pub const LABEL_CHARS_MAX: usize = 63;

/// Maximum length of the name of an object, in characters: the length of a DNS subdomain.
pub const SUBDOMAIN_CHARS_MAX: usize = 253;

/// Maximum length of the name of a container's port, in characters.
pub const PORT_NAME_CHARS_MAX: usize = 15;

/// Maximum number of changes of one source slice that the exporter remembers until the hub has these changes. Further
/// changes get the time of the newest remembered change. So a latency sample may be slightly too long, but never too
/// short.
pub const PENDING_CHANGES_MAX: usize = 16;

/// Time that an imported slice stays after its EndpointSliceImport disappeared without a deletion: 60 s. The time
/// starts when the importer knows the exporters and the claim of the Service. After a restore of the hub from a backup,
/// the exporters need this time to write their exports again.
pub const ORPHAN_GRACE_MICROS: i64 = 60_000_000;

/// Default of the flag `--failback-after`: 30 s.
pub const FAILBACK_AFTER_MICROS: i64 = 30_000_000;

/// Losses of a cluster's last ready endpoint that lengthen the time until a failback. Further losses lengthen it no
/// more.
pub const LOSSES_MAX: usize = 5;

/// Sums of endpoints that are tried for the best split of a port's traffic by weights. More would hardly be better, and
/// take longer for large Services.
pub const SPLIT_SUMS: usize = 128;

/// Time after a restore of the hub from a backup in which importers keep what an older hub would take back: 60 s. They
/// change no derived Service that has exporters, and no imported slice to an older state of its source. The exporters
/// and the hub agent need this time to bring the newest state back.
pub const RESTORE_GRACE_MICROS: i64 = 60_000_000;

/// Time for which a member agent keeps what a slice stream delivered, while perhaps no hub agent leads that could write
/// the object: 1 h. Longer than most outages of a hub agent.
pub const HUB_OUTAGE_MICROS: i64 = 3_600_000_000;

/// Time for which an agent does nothing about a state `Leave` of which it has not seen the beginning: 10 min. The hub
/// was perhaps restored from a backup of the time when the member left before. The manager, or the operator who
/// restores the hub, needs this time to write `Join` again. What the agent deletes, no later write brings back.
pub const FOUND_LEAVE_MICROS: i64 = 600_000_000;

/// Longest time after the deletion of an exported slice in which a distributed slice waits for a replacement that only
/// its importer can make possible: 60 s. An importer that is not hostile needs milliseconds, and the exporting member
/// waits for the removal.
pub const REPLACEMENT_WAIT_MICROS: i64 = 60_000_000;

/// Time within which an importer acknowledges a preview: 1 s. An import takes milliseconds. After this time the hub
/// agent writes the object, so an importer that does not import from the stream gets a change at most 1 s later than
/// without it.
pub const PREVIEW_ACKNOWLEDGEMENT_MICROS: i64 = 1_000_000;

/// Time without previews from an exporting member after one of its source slices went back, which ends streams of
/// importers. So a member whose slices go back again and again ends the streams of others at most once in this time.
pub const PREVIEW_PAUSE_MICROS: i64 = 600_000_000;

/// Number of probes of a member's clock that count. The hub agent makes one each 10 s, so the best one of the last
/// minute counts.
pub const CLOCK_SAMPLES: usize = 6;

/// Drift of two clocks against each other, in parts per million: 50 for each quartz, and as much for their corrections
/// by time synchronisation.
pub const CLOCK_DRIFT_PARTS_PER_MILLION: i64 = 200;

/// Maximum number of ports of a Service or slice that the hub accepts. The limit is needed because the hub agent
/// compares the ports of all exports of a Service. A Service with more ports is not exported.
pub const PORTS_MAX: usize = 1_000;

/// Maximum number of different contents with which the hub agent compares a distributed slice to store equal contents
/// once. Two features reduce a slice, so it has four forms. During a change it also has the four forms of its earlier
/// content.
pub(crate) const CONTENTS_COMPARED_MAX: usize = 8;

/// Maximum number of exporting clusters of a Service of the standard API.
pub const MERGED_CLUSTERS_MAX: usize = 1_000;

/// Maximum number of places in the record of an InternalServiceExport: its own place and those of the 15 oldest
/// exports. With all places, the records of a Service would grow with the square of the number of its exporters.
pub const PLACES_MAX: usize = 16;

/// Latest creation of a ServiceExport that counts: 9999-01-01. Exports after it get later times, which an API server
/// must store.
pub const EXPORT_CREATED_MAX: Timestamp = Timestamp(253_370_764_800_000_000);

/// Time between the creations of two exports that came back to a hub that has lost its record: 10 min. Within this
/// time, the members of a rebuilt hub write their exports again, and the creationTimestamps of their ServiceExports
/// decide their order.
pub const RECREATION_MICROS: i64 = 600_000_000;

/// Maximum number of labels, and of annotations, that an export gives to the ServiceImports of the standard API.
pub const EXPORTED_LABELS_MAX: usize = 32;

/// Maximum length of an annotation that an export gives to the ServiceImports of the standard API, in bytes.
pub const EXPORTED_ANNOTATION_BYTES_MAX: usize = 1_024;

/// Maximum number of endpoints of a slice in the hub, ready and draining together: the limit of an EndpointSlice.
pub const ENDPOINTS_MAX: usize = 1_000;

/// Maximum number of addresses of one endpoint that the agents keep. kube-proxy uses the first address only, and
/// kube-controller-manager writes one.
pub const ADDRESSES_MAX: usize = 8;

/// Default of `--endpointslices-takeover-after`: 12 times the default lease duration of kube-controller-manager (15 s).
pub const SLICES_TAKEOVER: Duration = Duration::from_secs(180);

/// Default of `--max-imported-slices`: slices of one Service from one exporting cluster. At the usual 100 endpoints in
/// a slice, 100 slices have [`IMPORTED_ENDPOINTS`]. During an update, slices are not full.
pub const IMPORTED_SLICES: usize = 400;

/// Default of `--max-imported-endpoints`: endpoints of one Service from one exporting cluster. 5,000 pods with
/// addresses of two families have as many. kube-proxy has a rule for each endpoint on each node.
pub const IMPORTED_ENDPOINTS: usize = 10_000;

/// Default of `--max-exports-per-namespace`: a quarter of the quota of a member's InternalServiceExports in the hub.
pub const EXPORTS_PER_NAMESPACE: usize = 500;

/// Number of slices that a namespace may export for each two Services of `--max-exports-per-namespace`: the quota of a
/// member has 5,000 slices and 2,000 Services.
pub(crate) const SLICES_PER_TWO_EXPORTS: usize = 5;

/// Maximum number of names that a message lists. For further names, the message has only their number. Messages must be
/// readable, and an Event has at most 1024 characters.
pub const REPORTED_NAMES_MAX: usize = 3;

/// Maximum number of characters of a message in an Event or a condition. An API server accepts 32,768 bytes in a
/// condition.
pub const MESSAGE_CHARS_MAX: usize = 4_096;
/// Maximum number of characters of a text of another member in a message. A name of a namespace or cluster has at most
/// 63, and an address at most 45.
pub const QUOTED_CHARS_MAX: usize = 64;

/// Maximum number of cluster selectors of a Service, as in KEP-5939.
pub const CLUSTER_SELECTORS_MAX: usize = 16;

/// Maximum number of requirements of a cluster selector, and of values of a requirement. A Service has at most 16
/// selectors, and the hub agent evaluates them for each importer.
pub const SELECTOR_PARTS_MAX: usize = 64;

/// Maximum weight of a ServiceExport. The minimum is 0.
pub const WEIGHT_MAX: i64 = 1000;

/// Interval at which a member renews its MemberAgent: 10 s.
pub const RENEW_MICROS: i64 = 10_000_000;

/// Time between two checks of an overdue member: 5 s. A process that was paused gets the renewals that wait for it
/// within this time.
pub const CHECK_MICROS: i64 = 5_000_000;

/// Time after which a first check of an overdue member does not count any more: 15 s. Perhaps the process was paused
/// since.
pub const CHECK_VALID_MICROS: i64 = 15_000_000;

/// Time between two judgements of a member if the hub's CRD drops them: 60 s.
pub const DROPPED_JUDGEMENT_MICROS: i64 = 60_000_000;

/// Gap in the contact with the API server after which each member has its full time again: 5 s, half of the interval of
/// renewals.
pub const CONTACT_GAP_MICROS: i64 = 5_000_000;

/// Additional time before a member that announced a planned stop counts as silent: 10 min. An upgrade of a node takes
/// minutes.
pub const PLANNED_STOP_MICROS: i64 = 600_000_000;

/// Time after a silence in which another silence shows that the member is unstable: 30 min.
pub const FLAP_MICROS: i64 = 1_800_000_000;

/// Time for which an unstable member must renew until its endpoints are ready again: 10 s after its second silence, and
/// twice as long after each further one.
pub const FLAP_HOLD_MICROS: i64 = 10_000_000;

/// Maximum of [`FLAP_HOLD_MICROS`]: 5 min.
pub const FLAP_HOLD_MAX_MICROS: i64 = 300_000_000;

/// Time between two steps in which the hub agent withdraws the endpoints of a silent member from an importer that does
/// not know silent members: 60 s. In one step, at most half of the endpoints of a Service go.
pub const WITHDRAWAL_STEP_MICROS: i64 = 60_000_000;

/// Maximum number of silent members in a MemberAgent. The CRD has the same limit.
pub const SILENT_MEMBERS_MAX: usize = 1_000;

/// Shortest time between two heartbeats in the InternalMemberCluster: 1 s. The object stores whole seconds, so an
/// earlier heartbeat would change nothing, and no event would lead to the next one.
pub(crate) const HEARTBEAT_MIN_MICROS: i64 = 1_000_000;

/// Jitter of the heartbeats in the InternalMemberCluster, in percent of their period.
pub(crate) const HEARTBEAT_JITTER_PERCENT: i64 = 5;

/// Number of minutes of latency samples in a MemberAgent: the present minute and the five before.
pub const LATENCY_MINUTES: usize = 6;

/// Shortest time between two changes of the latency summary in a MemberAgent. The summary of 100 origins has 13 kB, and
/// etcd stores the whole object at each heartbeat anyway.
pub const LATENCY_REPORT_MICROS: i64 = 60_000_000;

/// Time without a latency sample after which the summary is removed from the MemberAgent.
pub const LATENCY_QUIET_MICROS: i64 = 600_000_000;

/// Maximum number of exporting members in a latency summary. The CRD has the same limit.
pub const LATENCY_ORIGINS_MAX: usize = 256;

/// Time for which an announcement stays valid after its MemberAgent disappeared: 60 s, enough for the member to create
/// the MemberAgent again.
pub const ANNOUNCEMENT_GRACE_MICROS: i64 = 60_000_000;

/// Time between two gains of features by a member: 60 s. Each gain can change each slice that is distributed to the
/// member.
pub const FEATURE_GAIN_MICROS: i64 = 60_000_000;

/// Time that a peer has for its first announcement after the hub gets the CRD of MemberAgent: 6 min. A peer without the
/// CRD checks every 5 minutes if the CRD exists, and then has 1 more minute to write the announcement.
pub const FIRST_ANNOUNCEMENT_MICROS: i64 = 360_000_000;

/// Time that a cluster keeps its id after its agent announced a planned stop: 30 s, longer than a rolling restart.
pub const RESTART_MICROS: i64 = 30_000_000;

/// Time for which the agent still reports two leaders of one cluster after they last renewed in turn: 60 s, longer than
/// a few renewals.
pub const TWO_LEADERS_MICROS: i64 = 60_000_000;

/// Maximum latency that the agent observes, in milliseconds. A longer latency counts as this value, so that averages
/// stay meaningful. The value is twice the last bucket bound of the Go agents (50,000 ms).
pub const LATENCY_MILLISECONDS_MAX: f64 = 100_000.0;

/// Maximum number of properties of a cluster.
pub const PROPERTIES_MAX: usize = 64;

/// Maximum length of the value of a property, in bytes. The hub agent keeps the properties of each cluster in memory.
pub const PROPERTY_BYTES_MAX: usize = 256;
