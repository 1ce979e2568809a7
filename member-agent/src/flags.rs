//! Command line and environment of the member agent: all flags of the Go member manager and of the Go mcs manager, and
//! additional flags of fleetnet.

use crate::endpoint_flags::EndpointFlags;
use clap::{ArgAction, Parser, ValueEnum};
use fleetnet_agent::flags::CommonFlags;
use fleetnet_agent::go_flags::{parse_bool, parse_duration};
use std::path::PathBuf;
use std::time::Duration;

/// Exports the Services of this cluster to the hub and imports those of other members.
///
/// Every address serves /metrics, /healthz and /readyz. Equal addresses are bound once. The address ":0" stands for any
/// free port, which the agent logs. The address "0" turns a listener off.
#[derive(Clone, Debug, Parser)]
#[command(name = "member-agent", version, args_override_self = true)]
pub struct Flags {
    /// Flags that both agents have.
    #[command(flatten)]
    pub common: CommonFlags,

    /// Kubeconfig of the hub. Default: the server of HUB_SERVER_URL, with the token in the file that CONFIG_PATH names.
    #[arg(long, value_name = "FILE")]
    pub hub_kubeconfig: Option<PathBuf>,

    /// Id of this cluster in the fleet.
    #[arg(long, value_name = "ID", env = "MEMBER_CLUSTER_NAME")]
    pub member_cluster_id: Option<String>,

    /// Namespace of this member in the hub. Default: fleet-member-ID, with the id of this cluster.
    #[arg(long, value_name = "NAMESPACE")]
    pub hub_namespace: Option<String>,

    /// Namespace of derived Services and imported slices in this cluster.
    #[arg(long, value_name = "NAMESPACE", default_value = "fleet-system")]
    pub fleet_system_namespace: String,

    /// Parts of the agent to run, separated by commas: export, import, multiclusterservice, endpointslice, or * for
    /// all.
    #[arg(long, value_name = "LIST", default_value = "*", value_delimiter = ',')]
    pub controllers: Vec<String>,

    /// Time for which a derived Service stays after its last exporter is gone, so that a redeploy keeps its address.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub derived_service_grace: Duration,

    /// Export and import Services also by the standard API multicluster.x-k8s.io. Needs its definitions and the rights
    /// of deploy/multicluster-api.yaml in this cluster, and a hub agent that announces the API.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub multicluster_api: bool,

    /// Namespaces that import Services by the standard API: those with the label fleetnet/import=true, or all.
    /// Namespaces of Kubernetes and of fleetnet never import.
    #[arg(long, value_name = "NAMESPACES", default_value = "labelled")]
    pub multicluster_api_import: McsApiImport,

    /// By the standard API, import two EndpointSlices for each one that the hub distributes: one that gateways and DNS
    /// servers read, and a routing slice that kube-proxy reads. Needs --multicluster-api.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub routing_slices: bool,

    /// Choose the exporting clusters whose endpoints kube-proxy gets, by cluster selectors and weights, and announce
    /// the properties of this cluster to the hub. With --multicluster-api, also turns on --routing-slices.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub cluster_selection: bool,

    /// Property of this cluster, as KEY=VALUE. May be repeated. A ClusterProperty with the same name wins. Needs
    /// --cluster-selection.
    #[arg(long, value_name = "KEY=VALUE")]
    pub cluster_property: Vec<String>,

    /// With --cluster-selection: time for which preferred clusters must hold their strength after a failover, until
    /// only they get traffic again. Each further failover in 60 times this time doubles it, up to 10 times.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub failback_after: Duration,

    /// If another cluster owns this cluster's id in the hub, and does not renew its MemberAgent for this time, this
    /// cluster takes the id over. At least 2m.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = parse_duration)]
    pub member_takeover_after: Duration,

    /// Address ranges of the endpoints of another cluster, as ID=CIDR,CIDR. May be repeated. Endpoints outside of the
    /// ranges are not imported. A cluster that no such flag names may export any address.
    #[arg(long, value_name = "CLUSTER=CIDR,...")]
    pub source_ranges: Vec<String>,

    /// Addresses of this cluster that endpoints of other clusters must not have. With `auto`, these are the cluster IPs
    /// of its Services and the addresses of its API server. CIDR,CIDR adds ranges to them, such as those of its nodes
    /// and pods. With `off`, endpoints of other clusters may have all these addresses.
    #[arg(long, value_name = "RANGES", default_value = "auto")]
    pub own_ranges: String,

    /// Maximum number of load balancers for the MultiClusterServices of one namespace. Load balancers that exist stay,
    /// and the oldest MultiClusterServices get the others. Default: no maximum.
    #[arg(long, value_name = "NUMBER")]
    pub load_balancers_per_namespace: Option<usize>,

    /// Slices of one Service that this cluster imports from one exporting cluster. Those whose import has begun come
    /// first. 0: no limit.
    #[arg(long, value_name = "SLICES", default_value = "400")]
    pub max_imported_slices: u32,

    /// Endpoints of one Service that this cluster imports from one exporting cluster. 0: no limit.
    #[arg(long, value_name = "ENDPOINTS", default_value = "10000")]
    pub max_imported_endpoints: u32,

    /// Services of one namespace that this cluster exports, and two and a half times as many slices. Exports that exist
    /// stay. 0: no limit.
    #[arg(long, value_name = "SERVICES", default_value = "500")]
    pub max_exports_per_namespace: u32,

    /// Flags of the EndpointSlice controller.
    #[command(flatten)]
    pub endpoints: EndpointFlags,

    /// Accept any certificate of the hub (HUB_SERVER_URL only).
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub tls_insecure: bool,

    /// Accept an http:// URL of the hub. Everybody on the network path can then read the token.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub hub_insecure_http: bool,

    /// With false, the agent only sends the heartbeats of its parts to a fleet manager (InternalMemberCluster).
    #[arg(long, value_name = "BOOL", default_value = "true", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub enable_networking_features: bool,

    /// Not supported. With true, the agent does not start. The Go agents do not start either.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool, hide = true)]
    pub enable_v1alpha1_apis: bool,

    /// Address of metrics and probes. The Go member manager serves the metrics of its hub side here.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub hub_metrics_bind_address: String,

    /// Address of metrics and probes. The Go member manager serves the probes of its hub side here.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub hub_health_probe_bind_address: String,

    /// Address of metrics and probes. The Go member manager serves the metrics of its member side here.
    #[arg(long, value_name = "ADDRESS", default_value = ":8090")]
    pub member_metrics_bind_address: String,

    /// Address of metrics and probes. The Go member manager serves the probes of its member side here.
    #[arg(long, value_name = "ADDRESS", default_value = ":8091")]
    pub member_health_probe_bind_address: String,

    /// Address of metrics and probes. The Go mcs manager serves its metrics here.
    #[arg(long, value_name = "ADDRESS", default_value = ":8090")]
    pub metrics_bind_address: String,

    /// Address of metrics and probes. The Go mcs manager serves its probes here.
    #[arg(long, value_name = "ADDRESS", default_value = ":8091")]
    pub health_probe_bind_address: String,

    /// URL of the hub's API server.
    #[arg(long, value_name = "URL", env = "HUB_SERVER_URL")]
    pub hub_server_url: Option<String>,

    /// File with the bearer token for the hub.
    #[arg(long, value_name = "FILE", env = "CONFIG_PATH")]
    pub config_path: Option<PathBuf>,

    /// Secret in this cluster, as NAMESPACE/NAME, whose key `token` has the token for the hub. The agent renews the
    /// token before it expires, and writes it to this Secret. Default: the agent does not renew its token. Needs
    /// CONFIG_PATH.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub hub_token_secret: Option<String>,

    /// Address of the hub agent's slice stream, as HOST:PORT; needs --slice-stream-ca-file. 0: use no slice stream.
    /// Default: the address that the hub agent offers in the status of the MemberAgent, if any.
    #[arg(long, value_name = "ADDRESS")]
    pub slice_stream_address: Option<String>,

    /// Hosts that the hub agent may offer for the slice stream, separated by commas. The agent does not connect to an
    /// offered address with another host. Default: any host.
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    pub slice_stream_hosts: Vec<String>,

    /// File with the certificate authorities of the slice stream, in PEM. Read again for each connection.
    #[arg(long, value_name = "FILE")]
    pub slice_stream_ca_file: Option<PathBuf>,

    /// Certificate authority of the hub, base64 of PEM.
    #[arg(long, value_name = "BASE64", env = "HUB_CERTIFICATE_AUTHORITY", hide_env_values = true)]
    pub hub_certificate_authority: Option<String>,

    /// Headers to add to each request to the hub, as a MIME header block.
    #[arg(long, value_name = "HEADERS", env = "HUB_KUBE_HEADER", hide_env_values = true)]
    pub hub_kube_header: Option<String>,
}

/// Value of `--multicluster-api-import`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum McsApiImport {
    Labelled,
    All,
}

impl Flags {
    /// Returns a copy of the flags for the log. The copy omits headers, which may contain credentials, and the
    /// certificate authority, which is long.
    pub fn without_secrets(&self) -> Self {
        let set = |value: &Option<String>| value.as_ref().map(|_| "(set)".to_owned());
        let hub_certificate_authority = set(&self.hub_certificate_authority);
        Self { hub_kube_header: set(&self.hub_kube_header), hub_certificate_authority, ..self.clone() }
    }

    /// Returns the addresses of metrics, each with its flag. Several addresses may be equal.
    pub fn metrics_addresses(&self) -> [(&'static str, &str); 3] {
        [
            ("--hub-metrics-bind-address", &self.hub_metrics_bind_address),
            ("--member-metrics-bind-address", &self.member_metrics_bind_address),
            ("--metrics-bind-address", &self.metrics_bind_address),
        ]
    }

    /// Returns the addresses of probes, each with its flag. Several addresses may be equal.
    pub fn probe_addresses(&self) -> [(&'static str, &str); 3] {
        [
            ("--hub-health-probe-bind-address", &self.hub_health_probe_bind_address),
            ("--member-health-probe-bind-address", &self.member_health_probe_bind_address),
            ("--health-probe-bind-address", &self.health_probe_bind_address),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule G2: An agent logs its flags
    /// Then: The log does not show the values of headers and certificates
    #[test]
    fn the_flags_in_the_log_show_no_secret() {
        let line = [
            "member-agent",
            "--hub-kube-header=Authorization: Basic c2VjcmV0",
            "--hub-certificate-authority=TG9uZyBhbmQgYm9yaW5n",
            "--hub-server-url=https://hub",
            "--config-path=/token",
        ];
        let flags = Flags::try_parse_from(line).expect("valid");
        let shown = format!("{:?}", flags.without_secrets());
        assert!(!shown.contains("c2VjcmV0") && !shown.contains("TG9uZyBhbmQgYm9yaW5n"), "{shown}");
        assert!(shown.contains(r#"hub_kube_header: Some("(set)")"#), "{shown}");
        assert!(shown.contains(r#"hub_certificate_authority: Some("(set)")"#), "{shown}");
        assert!(shown.contains(r#"hub_server_url: Some("https://hub")"#), "{shown}");

        let without = Flags::try_parse_from(["member-agent"]).expect("valid").without_secrets();
        assert_eq!((without.hub_kube_header, without.hub_certificate_authority), (None, None));
    }
}
