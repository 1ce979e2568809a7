//! Alerts about watches, writes and the objects that they carry.

use super::Expressions::Each;
use super::{Alert, Severity};
use diagnosis::codes::Code;

pub(super) const ALERTS: &[Alert] = &[
    Alert {
        name: "FleetnetWatchStale",
        window: "",
        // A healthy watch is heard every 65 s at most.
        expressions: Each("max by (cluster, member, side, kind) (fleetnet_watch_age_seconds{JOB}) > 120"),
        after: "3m",
        keep: "",
        severity: Severity::Critical,
        summary: "The AGENT does not hear an API server.",
        description: "The AGENT has heard nothing on its watch of {{ $labels.kind }} (side {{ $labels.side }}) for {{ $value | humanizeDuration }}.",
        codes: &[Code::FN102, Code::FN103],
        confirm: &[
            "fleetnet check --hub-context HUB",
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --tail=-1 | grep -E 'cannot watch|watch failed'",
        ],
        meaning: "The agent's view of these objects is old. It removes nothing that it cannot see, so endpoints stay, but changes do not arrive.",
        steps: &[
            "The label side says which API server: hub, or the member's own.",
            "Read the log of the agent: each failed connection is logged with its address and the reason (DNS, TCP, TLS, 401, proxy).",
            "If all members are silent at once, the hub's API server or the network to it is the cause.",
        ],
    },
    Alert {
        name: "FleetnetViewIncomplete",
        window: "",
        expressions: Each(
            "max by (cluster, member, side, kind, state) (fleetnet_watch_state{JOB,kind!=\"Lease\",state=~\"incomplete|unknown\"} or \
             fleetnet_watch_state{JOB,kind!~\"Lease|InternalMemberCluster|MemberCluster\",state=\"absent\"}) == 1",
        ),
        after: "10m",
        keep: "",
        severity: Severity::Warning,
        summary: "The AGENT cannot list a kind.",
        description: "The AGENT's view of {{ $labels.kind }} (side {{ $labels.side }}) is {{ $labels.state }}.",
        codes: &[Code::FN105, Code::FN108, Code::FN110],
        confirm: &[
            "kubectl --context CLUSTER api-resources -o name | grep fleet",
            "kubectl --context CLUSTER auth can-i list KIND -A --as=system:serviceaccount:fleet-system:AGENT",
        ],
        meaning: "incomplete: the first list has not ended, for example because the API server does not have the kind or denies the list. \
                  absent: the same for an optional kind, so the feature that needs it is off. The kinds of a fleet manager may be absent without \
                  an alert. unknown: the API server had the kind, and no longer has it \
                  or denies it. Rules that need the kind wait, and remove nothing.",
        steps: &[
            "Read the log: the line `cannot watch` has the answer of the API server and the remedy.",
            "If the kind is missing, install the CRDs of this version. If they were deleted by mistake, the objects of the kind are gone. Keep the agents running: \
             they keep what is imported.",
            "If the list is denied, compare the agent's role with `deploy/`.",
            "In a hub of Go agents, MemberAgent is absent on purpose: silence the alert for this kind.",
        ],
    },
    Alert {
        name: "FleetnetWritesRefused",
        window: "",
        // A refused write is tried again every 10 minutes. The longer time of the alert makes a single refusal no
        // alert.
        expressions: Each(
            "sum by (cluster, member, side, kind, result) (rate(fleetnet_writes_total{JOB,result=~\"denied|refused\"}[15m])) > 0",
        ),
        after: "20m",
        keep: "",
        severity: Severity::Warning,
        summary: "An API server rejects writes of the AGENT.",
        description: "Writes of {{ $labels.kind }} (side {{ $labels.side }}) are {{ $labels.result }} again and again.",
        codes: &[Code::FN110, Code::FN202, Code::FN309, Code::FN505],
        confirm: &[
            "kubectl --context CLUSTER get events -A --field-selector reason=WriteDenied",
            "kubectl --context CLUSTER get events -A --field-selector reason=WriteRefused",
        ],
        meaning: "denied: the agent's role lacks a right (403). refused: the content breaks a rule of the API server, a policy or a quota. \
                  The agent tries again every 10 minutes. The other objects are not affected.",
        steps: &[
            "Find the object: the Event `WriteDenied` or `WriteRefused` names it and has the answer of the API server.",
            "denied: apply the role of `deploy/` of this version. In the hub, `fleetnet join <member> --apply` repairs the role of a member.",
            "refused: change the policy, the quota or the object as the answer says.",
        ],
    },
    Alert {
        name: "FleetnetWritesFailing",
        window: "",
        expressions: Each(
            "sum by (cluster, member, side) (rate(fleetnet_writes_total{JOB,result=\"failed\"}[10m])) \
             / sum by (cluster, member, side) (rate(fleetnet_writes_total{JOB}[10m])) > 0.05",
        ),
        after: "10m",
        keep: "",
        severity: Severity::Warning,
        summary: "Writes of the AGENT fail.",
        description: "{{ $value | humanizePercentage }} of the AGENT's writes (side {{ $labels.side }}) fail.",
        codes: &[Code::FN706],
        confirm: &[
            "kubectl --context CLUSTER get --raw '/readyz?verbose'",
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --tail=-1 | grep 'WARN'",
        ],
        meaning: "The API server does not answer, or answers with 429 or 5xx. Each write is tried again with back-off, so changes arrive late.",
        steps: &[
            "Look at the load of that API server and its etcd, and at rejected requests of the flow schema (API priority and fairness).",
            "Look at the network between agent and API server: `fleetnet_write_duration_seconds` by side.",
        ],
    },
    Alert {
        name: "FleetnetRetriesPending",
        window: "",
        expressions: Each(
            "max by (cluster, member) (min_over_time(fleetnet_queue_depth{JOB,queue=\"retry\"}[15m])) > 0",
        ),
        after: "15m",
        keep: "",
        severity: Severity::Warning,
        summary: "Writes of the AGENT wait for another try.",
        description: "At least {{ $value }} writes of the AGENT have waited for another try all the time for half an hour.",
        codes: &[Code::FN110, Code::FN706],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --tail=-1 | grep 'WARN'",
        ],
        meaning: "Some objects cannot be written for a long time.",
        steps: &[
            "See which of FleetnetWritesRefused, FleetnetWritesFailing and FleetnetChangeStuck fires as well, and begin there.",
            "Otherwise search the log for warnings: each failed write is logged with its object.",
        ],
    },
    Alert {
        name: "FleetnetChangeStuck",
        window: "",
        expressions: Each("max by (cluster, member, side) (fleetnet_oldest_unfinished_change_seconds{JOB}) > 120"),
        after: "2m",
        keep: "",
        severity: Severity::Critical,
        summary: "A change is not written.",
        description: "The oldest change that the AGENT could not write yet (side {{ $labels.side }}) is {{ $value | humanizeDuration }} old.",
        codes: &[Code::FN315, Code::FN503, Code::FN606],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --tail=-1 | grep 'WARN'",
            "fleetnet explain NAMESPACE/NAME --hub-context HUB",
        ],
        meaning: "The agent knows what to write and could not do it. Importers of at least one Service have old endpoints. \
                  The latency histograms do not show this, because they have no sample of a change that does not arrive.",
        steps: &[
            "If FleetnetMemberSilent, FleetnetWatchStale or FleetnetWritesFailing fires as well, begin there.",
            "Search the log of the leader for warnings: each failed write is logged with its object.",
            "Run explain for the Service of that object: it names the first broken step.",
        ],
    },
    Alert {
        name: "FleetnetHindered",
        window: "",
        expressions: Each(
            "max by (cluster, member, kind, reason) (fleetnet_hindrances{JOB,reason!~\"UnknownServiceImport|ImportHeldByAnother\"}) > 0",
        ),
        after: "15m",
        keep: "5m",
        severity: Severity::Warning,
        summary: "The AGENT cannot export or import something until somebody acts.",
        description: "The AGENT reports {{ $value }} blocked objects of kind {{ $labels.kind }}: {{ $labels.reason }}.",
        codes: &[],
        confirm: &["kubectl --context CLUSTER get events -A --field-selector reason=REASON"],
        meaning: "The agent works, and an object of a user or of another controller is in the way. The reason is the same word in the condition, \
                  the Event, the log and this label (docs/reference/events.md).",
        steps: &[
            "Find the object: list Events with this reason in all namespaces of the cluster.",
            "Do what the Event says. The table below names the fault code of each reason.",
        ],
    },
    Alert {
        name: "FleetnetObjectUnreadable",
        window: "",
        expressions: Each(
            "sum by (cluster, member, side, kind) (increase(fleetnet_unreadable_objects_total{JOB}[1h])) > 0 \
             or sum by (cluster, member, side, kind) (fleetnet_unreadable_objects_total{JOB} unless fleetnet_unreadable_objects_total{JOB} offset 1h) > 0",
        ),
        after: "0m",
        keep: "",
        severity: Severity::Warning,
        summary: "The AGENT cannot decode an object.",
        description: "The AGENT could not decode objects of kind {{ $labels.kind }} (side {{ $labels.side }}).",
        codes: &[Code::FN506],
        confirm: &[
            "kubectl --context CLUSTER get events -A --field-selector reason=ObjectUnreadable",
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --tail=-1 | grep 'ObjectUnreadable'",
        ],
        meaning: "An object is malformed or exceeds a limit. Its last decoded state stays in force.",
        steps: &[
            "Find the object and the field: the log has a line with both for each undecodable object.",
            "An object in the hub that a member wrote: look at the version of that member agent, or at who else may write there.",
        ],
    },
    Alert {
        name: "FleetnetEventsDropped",
        window: "",
        expressions: Each("sum by (cluster, member) (increase(fleetnet_events_dropped_total{JOB}[30m])) > 0"),
        after: "0m",
        keep: "",
        severity: Severity::Info,
        summary: "The AGENT dropped Kubernetes Events.",
        description: "The AGENT dropped {{ $value }} Events within half an hour. Its log has their text.",
        codes: &[],
        confirm: &[
            "kubectl --context CLUSTER auth can-i create events.events.k8s.io -A --as=system:serviceaccount:fleet-system:AGENT",
        ],
        meaning: "Users miss Events. Nothing else is affected: conditions and log lines have the same texts.",
        steps: &["Check that the agent's role may create and patch Events, and look at the load of the API server."],
    },
];
