//! Command line and environment of the member agent: those of the Go member and mcs managers together, and our own.

use crate::endpoints::EndpointFlags;
use clap::{ArgAction, Parser};
use fleetnet_agent::flags::CommonFlags;
use fleetnet_agent::go::{parse_bool, parse_duration};
use std::path::PathBuf;
use std::time::Duration;

/// Exports the Services of this cluster to the hub and imports those of other members.
///
/// Every address serves /metrics, /healthz and /readyz; equal addresses are bound once, ":0" takes a free port and logs
/// it, "0" turns one off.
#[derive(Clone, Debug, Parser)]
#[command(name = "member-agent", version, args_override_self = true)]
pub struct Flags {
    /// What every agent takes.
    #[command(flatten)]
    pub common: CommonFlags,

    /// Kubeconfig of the hub. Default: HUB_SERVER_URL with the token file CONFIG_PATH.
    #[arg(long, value_name = "FILE")]
    pub hub_kubeconfig: Option<PathBuf>,

    /// Id of this cluster in the fleet.
    #[arg(long, value_name = "ID", env = "MEMBER_CLUSTER_NAME")]
    pub member_cluster_id: Option<String>,

    /// Namespace of this member in the hub. Default: fleet-member-<cluster id>.
    #[arg(long, value_name = "NAMESPACE")]
    pub hub_namespace: Option<String>,

    /// Namespace of derived Services and imported slices in this cluster.
    #[arg(long, value_name = "NAMESPACE", default_value = "fleet-system")]
    pub fleet_system_namespace: String,

    /// Parts to run, comma-separated: export, import, multiclusterservice, endpointslice; * is all.
    #[arg(long, value_name = "LIST", default_value = "*", value_delimiter = ',')]
    pub controllers: Vec<String>,

    /// How long a derived Service outlives the loss of its last exporter, so that a redeploy keeps its address.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub derived_service_grace: Duration,

    /// How long a cluster that owns this cluster's id in the hub may fail to renew its MemberAgent before this one takes over.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = parse_duration)]
    pub member_takeover_after: Duration,

    /// Where the endpoints of a cluster lie, as <cluster>=<CIDR>,<CIDR>; for each cluster once or more. What it exports
    /// from elsewhere is not imported. Of a cluster that is not named, any address may be imported.
    #[arg(long, value_name = "CLUSTER=CIDR,...")]
    pub source_ranges: Vec<String>,

    /// The EndpointSlice controller's.
    #[command(flatten)]
    pub endpoints: EndpointFlags,

    /// Accept any certificate of the hub (HUB_SERVER_URL only).
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub tls_insecure: bool,

    /// Accept a hub that is reached by http://. Everybody on the way can then read the token.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub hub_insecure_http: bool,

    /// False runs no part at all, as with the Go agents.
    #[arg(long, value_name = "BOOL", default_value = "true", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool)]
    pub enable_networking_features: bool,

    /// Not supported: true is refused, as by the Go agents.
    #[arg(long, value_name = "BOOL", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = parse_bool, hide = true)]
    pub enable_v1alpha1_apis: bool,

    /// Metrics address of the Go member manager's hub side.
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub hub_metrics_bind_address: String,

    /// Probe address of the Go member manager's hub side.
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub hub_health_probe_bind_address: String,

    /// Metrics address of the Go member manager's member side.
    #[arg(long, value_name = "ADDRESS", default_value = ":8090")]
    pub member_metrics_bind_address: String,

    /// Probe address of the Go member manager's member side.
    #[arg(long, value_name = "ADDRESS", default_value = ":8091")]
    pub member_health_probe_bind_address: String,

    /// Metrics address of the Go mcs manager.
    #[arg(long, value_name = "ADDRESS", default_value = ":8090")]
    pub metrics_bind_address: String,

    /// Probe address of the Go mcs manager.
    #[arg(long, value_name = "ADDRESS", default_value = ":8091")]
    pub health_probe_bind_address: String,

    /// URL of the hub's API server.
    #[arg(long, value_name = "URL", env = "HUB_SERVER_URL")]
    pub hub_server_url: Option<String>,

    /// File with the bearer token for the hub.
    #[arg(long, value_name = "FILE", env = "CONFIG_PATH")]
    pub config_path: Option<PathBuf>,

    /// Certificate authority of the hub, base64 of PEM.
    #[arg(long, value_name = "BASE64", env = "HUB_CERTIFICATE_AUTHORITY", hide_env_values = true)]
    pub hub_certificate_authority: Option<String>,

    /// MIME header block added to each request to the hub.
    #[arg(long, value_name = "HEADERS", env = "HUB_KUBE_HEADER", hide_env_values = true)]
    pub hub_kube_header: Option<String>,
}

impl Flags {
    /// Returns a copy of the flags for the log. It omits headers, which may carry credentials, and the certificate authority,
    /// which is long.
    pub fn without_secrets(&self) -> Self {
        let set = |value: &Option<String>| value.as_ref().map(|_| "(set)".to_owned());
        let hub_certificate_authority = set(&self.hub_certificate_authority);
        Self { hub_kube_header: set(&self.hub_kube_header), hub_certificate_authority, ..self.clone() }
    }

    /// Returns the addresses for the admin server, each with its flag. Some may be equal.
    pub fn addresses(&self) -> [(&'static str, &str); 6] {
        [
            ("--hub-metrics-bind-address", &self.hub_metrics_bind_address),
            ("--hub-health-probe-bind-address", &self.hub_health_probe_bind_address),
            ("--member-metrics-bind-address", &self.member_metrics_bind_address),
            ("--member-health-probe-bind-address", &self.member_health_probe_bind_address),
            ("--metrics-bind-address", &self.metrics_bind_address),
            ("--health-probe-bind-address", &self.health_probe_bind_address),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
