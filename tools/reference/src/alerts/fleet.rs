//! Alerts about agents, members and their clusters.

use super::Expressions::{Both, Each, Hub, Member};
use super::{Alert, Severity};
use diagnosis::codes::Code;

pub(super) const ALERTS: &[Alert] = &[
    Alert {
        name: "FleetnetAgentAbsent",
        window: "",
        expressions: Each("sum by (cluster, member) (up{JOB}) == 0 or absent(up{JOB})"),
        after: "5m",
        keep: "",
        severity: Severity::Critical,
        summary: "No AGENT runs.",
        description: "Prometheus has reached no pod of the AGENT for 5 minutes.",
        codes: &[Code::FN107],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system get deployments,pods -l app.kubernetes.io/name=AGENT -o wide",
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --tail=20",
        ],
        meaning: "Prometheus scrapes no pod of the agent. Imported slices stay as they were, so traffic continues, but no change of endpoints \
                  arrives any more. With one Prometheus for several clusters, a cluster without any pod of the agent is only seen by FleetnetMemberSilent.",
        steps: &[
            "List the pods of the Deployment. If there are none, look at its Events: quota, image, node.",
            "If the pods run, check that Prometheus reaches them: its page of targets shows the error. With `--metrics-secure`, its ServiceAccount \
             needs the role of `deploy/metrics-auth.yaml`.",
            "If the pods crash, read the last lines of the log: an agent that ends by itself says why.",
        ],
    },
    Alert {
        name: "FleetnetNoLeader",
        window: "",
        expressions: Each("max by (cluster, member, lease) (fleetnet_leader{JOB}) == 0"),
        after: "2m",
        keep: "",
        severity: Severity::Critical,
        summary: "The AGENT has no leader.",
        description: "No replica of the AGENT leads with the Lease {{ $labels.lease }}, so nothing is written.",
        codes: &[Code::FN109],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system get leases -o custom-columns=NAME:.metadata.name,HOLDER:.spec.holderIdentity,RENEWED:.spec.renewTime",
        ],
        meaning: "Replicas run, but none holds the Lease. Nothing is written until one does.",
        steps: &[
            "Look at `spec.holderIdentity` and `spec.renewTime` of the Lease in `fleet-system`. A holder that is none of the pods of this agent is \
             an agent of another product, or a pod outside of this cluster: stop one of the two.",
            "If nobody holds the Lease, read the log for denied writes of Leases: the role of the agent must allow get, create and update.",
            "A slow API server also costs the Lease: see FleetnetWritesFailing.",
        ],
    },
    Alert {
        name: "FleetnetTwoLeaders",
        window: "",
        expressions: Each("sum by (cluster, member, lease) (fleetnet_leader{JOB}) > 1"),
        after: "1m",
        keep: "",
        severity: Severity::Critical,
        summary: "Two replicas of the AGENT lead.",
        description: "{{ $value }} replicas of the AGENT lead with the Lease {{ $labels.lease }}.",
        codes: &[Code::FN109],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system get leases -o custom-columns=NAME:.metadata.name,HOLDER:.spec.holderIdentity,RENEWED:.spec.renewTime",
        ],
        meaning: "Two processes believe that they hold the Lease. Each write has a precondition, so they do no harm to one another, but they may undo \
                  each other's work. With one Prometheus for several clusters and without the label cluster on their metrics, this alert is false.",
        steps: &[
            "Check that the metrics of different clusters have different values of the label cluster.",
            "Compare the clocks and the start times of the two pods. A node that was suspended and goes on can cause this for seconds.",
            "If it lasts, delete the pod that is not `spec.holderIdentity` of the Lease, and keep its log for a report.",
        ],
    },
    Alert {
        name: "FleetnetAgentRestarting",
        window: "",
        expressions: Each("max by (cluster, member, pod) (changes(process_start_time_seconds{JOB}[1h])) > 3"),
        after: "0m",
        keep: "",
        severity: Severity::Warning,
        summary: "A pod of the AGENT restarts again and again.",
        description: "Pod {{ $labels.pod }} of the AGENT restarted {{ $value }} times within an hour.",
        codes: &[Code::FN107],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system get deployments,pods -l app.kubernetes.io/name=AGENT -o wide",
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --previous --tail=20",
        ],
        meaning: "An agent ends when a setting is wrong, or when the node ends it for its memory.",
        steps: &[
            "Read the end of the log of the previous container: `kubectl logs --previous`. An agent that ends by itself says why in its last line.",
            "Look at the pod's last state: `OOMKilled` means that its memory limit is too small for this fleet (docs/how-to/sizing.md).",
        ],
    },
    Alert {
        name: "FleetnetBrokenInvariant",
        window: "",
        expressions: Each(
            "sum by (cluster, member, invariant) (increase(fleetnet_broken_invariants_total{JOB}[1h])) > 0 \
             or sum by (cluster, member, invariant) (fleetnet_broken_invariants_total{JOB} unless fleetnet_broken_invariants_total{JOB} offset 1h) > 0",
        ),
        after: "0m",
        keep: "",
        severity: Severity::Warning,
        summary: "The AGENT dropped a plan that breaks an invariant.",
        description: "The AGENT dropped plans that break the invariant {{ $labels.invariant }}. This is a bug in fleetnet.",
        codes: &[],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --tail=-1 | grep 'bug in this agent'",
        ],
        meaning: "The agent found an error in its own plan and did not carry it out. The object that the log names does not change until the cause is gone; \
                  all other objects do.",
        steps: &[
            "Find the line in the log: it names the object, the plan and the invariant.",
            "If the object must change now, change it by hand as the log says.",
            "Report the line and the archive of `fleetnet gather`.",
        ],
    },
    Alert {
        name: "FleetnetMemberSilent",
        window: "",
        expressions: Hub("max by (cluster, member) (fleetnet_member_last_renewal_age_seconds{JOB}) > 60"),
        after: "1m",
        keep: "",
        severity: Severity::Critical,
        summary: "A member does not send heartbeats.",
        description: "The hub agent has seen no heartbeat of member {{ $labels.member }} for {{ $value | humanizeDuration }}.",
        codes: &[Code::FN206, Code::FN703],
        confirm: &[
            "fleetnet status --hub-context HUB",
            "kubectl --context HUB -n fleet-member-MEMBER get memberagents -o custom-columns=NAME:.metadata.name,RENEWED:.spec.renewTime,STOPPED:.spec.plannedStopTime",
        ],
        meaning: "Changes of endpoints in this member do not reach the hub. After a minute, importers use its endpoints only while no other member has ready ones (docs/concepts/failures.md). \
                  An agent that was stopped on purpose announces its stop, and causes no alert.",
        steps: &[
            "If FleetnetWatchStale or FleetnetAgentAbsent of the hub agent fires as well, begin there.",
            "In the member, check that the agent runs and is ready, and read its log: address, certificate, token and proxy of the hub are named there.",
            "If the cluster is gone for good, remove the member with `fleetnet leave <member> --force`. This also removes its endpoints from all importers.",
        ],
    },
    Alert {
        name: "FleetnetClockSkew",
        window: "",
        expressions: Both(
            "max by (cluster, member) (abs(fleetnet_member_clock_offset_seconds{JOB})) > 2",
            "sum by (cluster, member, origin_cluster_id) (rate(fleet_networking_latency_samples_total{JOB,clock=\"clamped\"}[15m])) \
             / sum by (cluster, member, origin_cluster_id) (rate(fleet_networking_latency_samples_total{JOB}[15m])) > 0.01",
        ),
        after: "15m",
        keep: "",
        severity: Severity::Warning,
        summary: "The clock of a cluster is wrong.",
        description: "The clock of {{ $labels.member }}{{ $labels.origin_cluster_id }} differs from the clocks of other clusters, so measured latencies \
                      are wrong.",
        codes: &[Code::FN212],
        confirm: &["fleetnet status --hub-context HUB"],
        meaning: "No decision of an agent depends on the clock of another cluster, so endpoints are right. Latencies are wrong by the difference of the clocks, \
                  and token checks by a server can fail.",
        steps: &[
            "Compare the clocks: `fleetnet status` shows each member's difference in the column CLOCK.",
            "Check the time synchronisation (chrony, systemd-timesyncd) of the nodes on which the agent of that member runs.",
        ],
    },
    Alert {
        name: "FleetnetVersionSkew",
        window: "",
        expressions: Hub("count by (fleet) (count by (fleet, version) (fleetnet_build_info)) > 1"),
        after: "24h",
        keep: "",
        severity: Severity::Info,
        summary: "Agents of different versions run.",
        description: "{{ $value }} versions of the agents run{{ with $labels.fleet }} in the fleet {{ . }}{{ end }} for more than a day.",
        codes: &[Code::FN210],
        confirm: &["fleetnet status --hub-context HUB"],
        meaning: "An upgrade is not finished. Agents of neighbouring versions work together, but only with what both support.",
        steps: &[
            "Look at the column VERSION of `fleetnet status`.",
            "Finish the upgrade: first the CRDs, then the hub agent, then the members (docs/how-to/install.md).",
        ],
    },
    Alert {
        name: "FleetnetHubTokenExpires",
        window: "",
        expressions: Member(
            "min by (cluster, member) (fleetnet_hub_token_expiry_timestamp_seconds{JOB} > 0) - time() \
             < max by (cluster, member) (fleetnet_hub_token_life_seconds{JOB}) / 2 \
             and on (cluster, member) max by (cluster, member) (fleetnet_hub_token_renewal_failing{JOB}) == 1",
        ),
        after: "10m",
        keep: "",
        severity: Severity::Warning,
        summary: "The token for the hub is not renewed.",
        description: "The last renewal of the token for the hub failed, and the token expires in {{ $value | humanizeDuration }}.",
        codes: &[Code::FN203],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system logs -l app.kubernetes.io/name=AGENT --tail=-1 | grep 'the token was not renewed'",
            "kubectl --context HUB -n fleet-member-MEMBER get serviceaccounts,roles,rolebindings",
        ],
        meaning: "The member agent renews its token long before the end, and the last attempt failed. When the token expires, the member is cut off from the hub: \
                  imported slices stay, and no change arrives.",
        steps: &[
            "Read the log of the leading member agent: it says which request failed, TokenRequest in the hub or the update of the Secret in the member.",
            "Check the rights: `deploy/hub-member.yaml` (create on serviceaccounts/token) and `deploy/member-agent.yaml` (update of the Secret `fleetnet-hub`).",
            "Run `fleetnet join <member> --apply --context <its context>`: it writes a new token.",
        ],
    },
    Alert {
        name: "FleetnetHubTokenExpiresSoon",
        window: "",
        expressions: Member(
            "min by (cluster, member) (fleetnet_hub_token_expiry_timestamp_seconds{JOB} > 0) - time() \
             < clamp_max(max by (cluster, member) (fleetnet_hub_token_life_seconds{JOB}) / 8, 86400)",
        ),
        // An eighth of an hour, the shortest life that hubs grant, is 7 minutes.
        after: "1m",
        keep: "",
        severity: Severity::Critical,
        summary: "The token for the hub expires soon.",
        description: "The token for the hub expires in {{ $value | humanizeDuration }}.",
        codes: &[Code::FN203],
        confirm: &[
            "kubectl --context CLUSTER -n fleet-system get deployments -l app.kubernetes.io/name=member-agent -o yaml | grep hub-token-secret",
        ],
        meaning: "Less than a day of the token's life is left, or less than an eighth if the hub grants short lives. Either the renewal fails \
                  (FleetnetHubTokenExpires), or nobody renews the token: the agent runs without `--hub-token-secret`.",
        steps: &[
            "Run `fleetnet join <member> --apply --context <its context>`: it writes a new token if less than half of the life is left.",
            "Then look for the cause: the steps of FleetnetHubTokenExpires.",
        ],
    },
    Alert {
        name: "FleetnetEndpointSlicesTwoServing",
        window: "",
        expressions: Member("sum by (cluster, member, namespace) (fleetnet_endpointslices_serving{JOB}) > 1"),
        after: "1m",
        keep: "",
        severity: Severity::Critical,
        summary: "Two agents make the EndpointSlices of one cluster.",
        description: "{{ $value }} agents in namespace {{ $labels.namespace }} make the EndpointSlices of the cluster.",
        codes: &[Code::FN318],
        confirm: &["kubectl --context CLUSTER get pods -A -l app.kubernetes.io/name=member-agent -o wide"],
        meaning: "Two EndpointSlice controllers of fleetnet are active in one cluster, and may undo each other's slices.",
        steps: &[
            "Check that the metrics of different clusters have different values of the label cluster. If not, this alert is false.",
            "Look for a second Deployment of the member agent in the cluster, and scale it to 0.",
        ],
    },
    Alert {
        name: "FleetnetEndpointSlicesFlapping",
        window: "",
        expressions: Member("max by (cluster, member, pod) (changes(fleetnet_endpointslices_serving{JOB}[1h])) > 4"),
        after: "0m",
        keep: "",
        severity: Severity::Warning,
        summary: "The EndpointSlice controller of the cluster changes again and again.",
        description: "Pod {{ $labels.pod }} began or ended to make the EndpointSlices of the cluster {{ $value }} times within an hour.",
        codes: &[Code::FN318],
        confirm: &[
            "kubectl --context CLUSTER -n kube-system get leases -o custom-columns=NAME:.metadata.name,HOLDER:.spec.holderIdentity,RENEWED:.spec.renewTime",
        ],
        meaning: "With `--endpointslices=auto`, the agent makes EndpointSlices while kube-controller-manager does not. The two alternate.",
        steps: &[
            "Look at the Lease `kube-controller-manager` in `kube-system`: its holder or its renewals come and go.",
            "Until that is mended, set `endpointslices.mode` to `off` or `on` (docs/how-to/endpointslices.md).",
        ],
    },
    Alert {
        name: "FleetnetSliceStreamDown",
        window: "",
        // A member agent tries again every half minute at most. A stream that is off or not offered causes no attempts.
        expressions: Member(
            "sum by (cluster, member, reason) (\
             increase(fleetnet_slice_stream_ends_total{JOB,reason=~\"no_service_account|token|connection|refused\"}[10m])) > 0 \
             unless on (cluster, member) max by (cluster, member) (fleetnet_slice_stream_connected{JOB}) == 1",
        ),
        after: "10m",
        keep: "",
        severity: Severity::Warning,
        summary: "A member has no slice stream.",
        description: "The hub agent offers a slice stream, and the member does not get one (reason {{ $labels.reason }}).",
        codes: &[],
        confirm: &[
            "kubectl --context HUB get memberagents -A -o wide",
            "kubectl --context HUB -n fleet-member-MEMBER get memberagents -o jsonpath='{.items[*].spec.sliceStream}'",
        ],
        meaning: "Changes arrive as objects, which is slower and costs the hub more writes. Nothing is lost.",
        steps: &[
            "Read `spec.sliceStream.message` of the MemberAgent: it has the last error.",
            "connection: check the Service, the firewall and the certificate of the address in `status.sliceStream`.",
            "refused: compare the rights of the hub agent with `deploy/slice-stream.yaml`, and those of the member with `deploy/hub-member.yaml`.",
            "token: check the right to create `serviceaccounts/token` in `deploy/hub-member.yaml`. no_service_account: let the member join again.",
            "To do without the stream, set `--slice-stream-address=0` at the member agent.",
        ],
    },
];
