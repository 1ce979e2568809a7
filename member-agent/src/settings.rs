//! Conversion of the member agent's flags to checked and complete settings.

use crate::flags::{Flags, McsApiImport};
use crate::limits::{FAILBACK_AFTER_MAX, FAILBACK_AFTER_MIN, MEMBER_TAKEOVER_MIN};
use crate::source_ranges;
use crate::stream::{self, Authorities, Dialer};
use base64::Engine as _;
use fleetnet_agent::flags::{UsageError, check_namespace};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::limits::PROPERTY_BYTES_MAX;
use fleetnet_core::member::{self, ClusterSelection, McsApi, Membership, OnLeave, Pace};
use fleetnet_core::model::{Announcement, MembershipAgent};
use fleetnet_core::names::{self, CLUSTER_ID_PROPERTY, ENDPOINT_SLICE_LEASE, is_property};
use fleetnet_runtime::io::client::{HubConnection, parse_header_block};
use std::path::PathBuf;
use std::time::Duration;

/// Name of the Go agent that supports Traffic Manager, for error messages. This agent does not support Traffic Manager.
const GO_BINARY: &str = "member-net-controller-manager";

/// Leases of the Go member manager. This agent acquires them, so that the Go agent does not export or import at the
/// same time.
const MEMBER_LEASES: [&str; 2] =
    ["2bf2b407.hub.networking.fleet.azure.com", "2bf2b407.member.networking.fleet.azure.com"];
/// Leases of the Go mcs manager. This agent acquires them, so that the Go agent does not handle MultiClusterServices at
/// the same time.
const MCS_LEASES: [&str; 2] =
    ["2bf2b407.mcs.hub.networking.fleet.azure.com", "2bf2b407.mcs.member.networking.fleet.azure.com"];

/// Parts of the agent that are on, as selected by the flag `--controllers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Export of Services and slices to the hub.
    pub export: bool,
    /// Claims in the hub, and import of slices.
    pub import: bool,
    /// MultiClusterServices with their ServiceImports and derived Services.
    pub multi_cluster_service: bool,
    /// EndpointSlices of this cluster's own Services, unless `--endpointslices=off`.
    pub endpoint_slice: bool,
}

impl Parts {
    /// No part runs.
    pub const NONE: Self = Self { export: false, import: false, multi_cluster_service: false, endpoint_slice: false };

    /// All parts run.
    pub const ALL: Self = Self { export: true, import: true, multi_cluster_service: true, endpoint_slice: true };

    /// Returns the version and the features that this process announces to the hub agent. `None` if the process writes
    /// nothing in the hub.
    pub fn announcement(self, mcs_api: McsApi) -> Option<Announcement> {
        let of_slices = Feature::OF_SLICES.into_iter().filter(|_| self.import);
        let of_services = Feature::OF_SERVICES.into_iter().filter(|_| self.multi_cluster_service);
        let is_importer = self.import && mcs_api != McsApi::Off;
        let of_mcs_api = is_importer.then_some(Feature::McsApi);
        let known_features: Features = of_slices.chain(of_services).chain(of_mcs_api).collect();
        (self.export || self.import).then(|| Announcement::new(env!("CARGO_PKG_VERSION"), known_features))
    }

    /// True if one of these parts takes part in a fleet.
    pub fn in_fleet(self) -> bool {
        self.export || self.import || self.multi_cluster_service
    }

    /// Returns the agents of a fleet manager whose work these parts do.
    pub fn membership(self) -> Vec<MembershipAgent> {
        let member = (self.export || self.import).then_some(MembershipAgent::ServiceExportImport);
        member.into_iter().chain(self.multi_cluster_service.then_some(MembershipAgent::MultiClusterService)).collect()
    }

    /// Returns the names of the Leases to acquire. The Leases of a Go manager are included if its parts are on here, so
    /// that the Go manager never writes at the same time.
    pub fn leases(self) -> Vec<String> {
        let mut leases = Vec::new();
        if self.export || self.import {
            leases.extend(MEMBER_LEASES);
        }
        if self.multi_cluster_service {
            leases.extend(MCS_LEASES);
        }
        if self.endpoint_slice {
            leases.push(ENDPOINT_SLICE_LEASE);
        }
        leases.into_iter().map(str::to_owned).collect()
    }
}

/// Way to connect to the hub.
#[derive(Clone, Debug)]
pub enum Hub {
    /// Connection with a kubeconfig.
    Kubeconfig {
        /// Path of the kubeconfig.
        path: PathBuf,
        /// True if a server address with `http://` is accepted.
        insecure_http: bool,
    },
    /// Connection with an address and a token file.
    Connection(HubConnection),
}

/// Secret with the token for the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSecret {
    pub namespace: String,
    pub name: String,
    /// File with the content of the Secret's key `token`, in the agent's pod.
    pub token_file: PathBuf,
}

/// Checked settings of the member agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Settings of the rules for exports and imports, which are in the crate `fleetnet_core`.
    pub member: member::Settings,
    /// Connection to the hub. `None` if the agent only makes this cluster's EndpointSlices.
    pub hub: Option<Hub>,
    /// Parts of the agent that are on.
    pub parts: Parts,
    /// Names of the Leases to acquire.
    pub leases: Vec<String>,
    /// Secret to write renewed tokens for the hub to. `None` if this agent does not renew its token.
    pub token_secret: Option<TokenSecret>,
    pub slice_stream: stream::Use,
    /// Settings of the EndpointSlice controller; `None` if it is off.
    pub endpoints: Option<endpointslice_controller::Settings>,
}

impl Settings {
    /// Checks the flags. `identity` is the Lease identity of this process.
    ///
    /// # Errors
    /// If a setting is missing or malformed. The message names the first such setting.
    pub fn new(flags: &Flags, identity: &str) -> Result<Self, UsageError> {
        flags.common.check(GO_BINARY)?;
        if flags.enable_v1alpha1_apis {
            return Err(UsageError("--enable-v1alpha1-apis=true is not supported: remove the flag".to_owned()));
        }
        check_namespace("--fleet-system-namespace", &flags.fleet_system_namespace)?;
        let Chosen { parts, membership, leases, endpoints } = Chosen::new(flags)?;
        // An agent that only makes this cluster's EndpointSlices needs no cluster id.
        let alone = parts.endpoint_slice && !parts.in_fleet();
        let cluster = if alone { flags.member_cluster_id.clone().unwrap_or_default() } else { cluster_id(flags)? };
        let hub_namespace = match flags.hub_namespace.as_deref() {
            Some(namespace) => {
                check_namespace("--hub-namespace", namespace)?;
                namespace.into()
            }
            None => names::member_namespace(&cluster),
        };
        let grace = flags.derived_service_grace;
        let mcs_api = match flags.multicluster_api_import {
            _ if !flags.multicluster_api => McsApi::Off,
            McsApiImport::Labelled => McsApi::LabelledNamespaces,
            McsApiImport::All => McsApi::AllNamespaces,
        };
        if flags.routing_slices && mcs_api == McsApi::Off {
            return Err(UsageError(
                "--routing-slices needs --multicluster-api: only the standard API has routing slices".to_owned(),
            ));
        }
        let mut member = member::Settings {
            cluster: cluster.into(),
            hub_namespace,
            fleet_system_namespace: flags.fleet_system_namespace.as_str().into(),
            source_ranges: source_ranges::parse(&flags.source_ranges)?,
            own_ranges: source_ranges::own(&flags.own_ranges)?,
            load_balancers_per_namespace: flags.load_balancers_per_namespace,
            derived_service_grace_micros: i64::try_from(grace.as_micros())
                .map_err(|_| UsageError("--derived-service-grace is too long".to_owned()))?,
            announces: parts.announcement(mcs_api),
            leader: identity.into(),
            takeover_after_micros: takeover_after_micros(flags.member_takeover_after)?,
            membership,
            mcs_api,
            routing_slices: flags.routing_slices || flags.cluster_selection && mcs_api != McsApi::Off,
            cluster_selection: cluster_selection(flags)?,
            limits: member::Limits {
                imports: member::ImportLimits {
                    slices: number(flags.max_imported_slices),
                    endpoints: number(flags.max_imported_endpoints),
                },
                exports_per_namespace: number(flags.max_exports_per_namespace),
            },
        };
        if let (Some(announced), Some(_)) = (&mut member.announces, &member.cluster_selection) {
            announced.add_cluster_selection();
        }
        let hub = if alone { None } else { Some(hub(flags)?) };
        let token_secret = token_secret(flags, hub.as_ref())?;
        let slice_stream = slice_stream(flags)?;
        Ok(Self { member, hub, parts, leases, token_secret, slice_stream, endpoints })
    }
}

/// Returns the settings of cluster selection; `None` if it is off.
fn cluster_selection(flags: &Flags) -> Result<Option<ClusterSelection>, UsageError> {
    if !flags.cluster_selection {
        let is_unused = !flags.cluster_property.is_empty();
        let error = || UsageError("--cluster-property needs --cluster-selection".to_owned());
        return if is_unused { Err(error()) } else { Ok(None) };
    }
    let property = |written: &String| {
        let (name, value) = written.split_once('=').filter(|(name, value)| is_property(name, value)).ok_or_else(|| {
            UsageError(format!(
                "--cluster-property={written}: want KEY=VALUE, with a qualified name such as example.com/tier as KEY, and a \
                 VALUE of at most {PROPERTY_BYTES_MAX} bytes"
            ))
        })?;
        if name == CLUSTER_ID_PROPERTY {
            return Err(UsageError(format!("--cluster-property={written}: {name} is always the id of the cluster")));
        }
        Ok((name.into(), value.into()))
    };
    let properties = flags.cluster_property.iter().map(property).collect::<Result<_, _>>()?;
    Ok(Some(ClusterSelection { properties, pace: pace(flags.failback_after)? }))
}

/// Returns the value of a flag in which 0 is no limit.
fn number(flag: u32) -> usize {
    usize::try_from(flag).ok().filter(|number| *number > 0).unwrap_or(usize::MAX)
}

/// Checks `--member-takeover-after` (`after`). A member stops its writes to the hub when half of `after` has passed
/// since its last renewal. It renews every 10 s. The minimum of 2 minutes gives a slow hub at least one minute for a
/// renewal.
fn takeover_after_micros(after: Duration) -> Result<i64, UsageError> {
    if after < MEMBER_TAKEOVER_MIN {
        return Err(UsageError(format!(
            "--member-takeover-after ({after:?}) must be at least {MEMBER_TAKEOVER_MIN:?}"
        )));
    }
    i64::try_from(after.as_micros()).map_err(|_| UsageError("--member-takeover-after is too long".to_owned()))
}

/// Checks `--failback-after` (`after`).
fn pace(after: Duration) -> Result<Pace, UsageError> {
    let range = FAILBACK_AFTER_MIN..=FAILBACK_AFTER_MAX;
    let micros = i64::try_from(after.as_micros()).ok().filter(|_| range.contains(&after));
    micros.map(Pace::new).ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        UsageError(format!("--failback-after ({after:?}) must be from {least:?} to {most:?}"))
    })
}

fn cluster_id(flags: &Flags) -> Result<String, UsageError> {
    let Some(cluster) = flags.member_cluster_id.clone().filter(|cluster| !cluster.is_empty()) else {
        return Err(UsageError(
            "MEMBER_CLUSTER_NAME (or --member-cluster-id) is not set: set it to this cluster's id in the fleet"
                .to_owned(),
        ));
    };
    if !names::is_cluster_id(&cluster) {
        return Err(UsageError(format!(
            "MEMBER_CLUSTER_NAME (or --member-cluster-id) {cluster:?} is not a cluster id: use at most 50 lower-case \
             letters, digits and dashes, so that fleet-member-<id> can be a namespace"
        )));
    }
    Ok(cluster)
}

fn hub(flags: &Flags) -> Result<Hub, UsageError> {
    let insecure_http = flags.hub_insecure_http;
    if let Some(path) = flags.hub_kubeconfig.clone() {
        return Ok(Hub::Kubeconfig { path, insecure_http });
    }
    let missing =
        |name: &str| UsageError(format!("{name} is not set: set HUB_SERVER_URL and CONFIG_PATH, or --hub-kubeconfig"));
    let server_url =
        flags.hub_server_url.clone().filter(|url| !url.is_empty()).ok_or_else(|| missing("HUB_SERVER_URL"))?;
    let token_file =
        flags.config_path.clone().filter(|path| !path.as_os_str().is_empty()).ok_or_else(|| missing("CONFIG_PATH"))?;
    let ca_pem = match flags.hub_certificate_authority.as_deref().filter(|ca| !ca.is_empty() && !flags.tls_insecure) {
        None => None,
        Some(written) => Some(
            base64::engine::general_purpose::STANDARD
                .decode(written.trim())
                .map_err(|error| UsageError(format!("HUB_CERTIFICATE_AUTHORITY is not base64 of PEM: {error}")))?,
        ),
    };
    let extra_headers = parse_header_block(flags.hub_kube_header.as_deref().unwrap_or_default())
        .map_err(|why| UsageError(format!("HUB_KUBE_HEADER is not a MIME header block: {why}")))?;
    let insecure = flags.tls_insecure;
    Ok(Hub::Connection(HubConnection { server_url, token_file, ca_pem, insecure, insecure_http, extra_headers }))
}

fn slice_stream(flags: &Flags) -> Result<stream::Use, UsageError> {
    let address = match flags.slice_stream_address.as_deref() {
        None | Some("") => {
            return Ok(stream::Use::Offered(stream::Dialers::to_hosts(flags.slice_stream_hosts.clone())));
        }
        Some("0") => return Ok(stream::Use::Off),
        Some(address) => address,
    };
    let Some(authorities) = flags.slice_stream_ca_file.clone() else {
        return Err(UsageError(
            "--slice-stream-address needs --slice-stream-ca-file: the file with the authority of the hub agent's \
             certificate"
                .to_owned(),
        ));
    };
    Dialer::tls(address, Authorities::File(authorities))
        .map(stream::Use::Fixed)
        .map_err(|why: String| UsageError(format!("--slice-stream-address: {why}")))
}

fn token_secret(flags: &Flags, hub: Option<&Hub>) -> Result<Option<TokenSecret>, UsageError> {
    let Some(written) = flags.hub_token_secret.as_deref().filter(|written| !written.is_empty()) else {
        return Ok(None);
    };
    let Some((namespace, name)) = written.split_once('/').filter(|(_, name)| names::is_dns_1123_label(name)) else {
        return Err(UsageError(format!("--hub-token-secret {written:?} is not NAMESPACE/NAME of a Secret")));
    };
    check_namespace("--hub-token-secret", namespace)?;
    let Some(Hub::Connection(connection)) = hub else {
        return Err(UsageError(
            "--hub-token-secret needs the token file of CONFIG_PATH: remove --hub-kubeconfig, or this flag".to_owned(),
        ));
    };
    let token_file = connection.token_file.clone();
    Ok(Some(TokenSecret { namespace: namespace.to_owned(), name: name.to_owned(), token_file }))
}

/// Work of the agent, as the flags choose it.
struct Chosen {
    parts: Parts,
    membership: Membership,
    leases: Vec<String>,
    endpoints: Option<endpointslice_controller::Settings>,
}

impl Chosen {
    fn new(flags: &Flags) -> Result<Self, UsageError> {
        let named = parts(flags)?;
        let agents = if flags.common.enable_v1beta1_apis { named.membership() } else { Vec::new() };
        if !flags.enable_networking_features {
            let leases = Parts { endpoint_slice: false, ..named }.leases();
            let membership = Membership { agents, on_leave: OnLeave::Keep };
            return Ok(Self { parts: Parts::NONE, membership, leases, endpoints: None });
        }
        let endpoints = flags.endpoints.settings()?.filter(|_| named.endpoint_slice);
        let parts = Parts { endpoint_slice: endpoints.is_some(), ..named };
        let membership = Membership { agents, on_leave: OnLeave::Delete };
        Ok(Self { parts, membership, leases: parts.leases(), endpoints })
    }
}

/// Returns the parts that `--controllers` names.
fn parts(flags: &Flags) -> Result<Parts, UsageError> {
    let mut parts = Parts::NONE;
    for name in flags.controllers.iter().map(|name| name.trim()) {
        match name {
            "*" => parts = Parts::ALL,
            "export" => parts.export = true,
            "import" => parts.import = true,
            "multiclusterservice" => parts.multi_cluster_service = true,
            "endpointslice" => parts.endpoint_slice = true,
            _ => {
                return Err(UsageError(format!(
                    "--controllers names {name:?}: use export, import, multiclusterservice, endpointslice, or * for all"
                )));
            }
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DERIVED_SERVICE_GRACE;
    use clap::Parser as _;

    fn settings(arguments: &[&str]) -> Result<Settings, String> {
        let flags =
            Flags::try_parse_from(["member-agent"].iter().chain(arguments)).map_err(|error| error.to_string())?;
        Settings::new(&flags, "one").map_err(|error| error.to_string())
    }

    const COMPLETE: [&str; 3] =
        ["--member-cluster-id=member-1", "--hub-server-url=https://hub", "--config-path=/token"];

    /// Returns the settings of complete flags and these flags.
    fn with(flags: &[&str]) -> Result<Settings, String> {
        settings(&[&COMPLETE[..], flags].concat())
    }

    /// Rule M10: The last exporting member of an imported Service stops exporting
    /// Then: The member agent sets `Valid=Unknown` at once. The agent keeps the derived Service and its address for 30
    /// s (`--derived-service-grace`), in case a member exports the Service again
    #[test]
    fn the_go_agents_environment_is_enough() {
        let settings = settings(&COMPLETE).expect("complete");
        assert_eq!(&*settings.member.hub_namespace, "fleet-member-member-1");
        assert_eq!(settings.member.derived_service_grace_micros, 30_000_000);
        assert_eq!(DERIVED_SERVICE_GRACE, Duration::from_secs(30));
        assert_eq!(settings.member.takeover_after_micros, 1_800_000_000);
        assert_eq!(settings.member.load_balancers_per_namespace, None);
        assert_eq!(settings.leases.len(), 5);
    }

    #[test]
    fn who_makes_endpoint_slices_only_needs_no_fleet() {
        let alone = settings(&["--controllers=endpointslice"]).expect("complete");
        assert!(alone.hub.is_none() && alone.endpoints.is_some());
        assert_eq!(alone.leases, [ENDPOINT_SLICE_LEASE]);
        let error = settings(&["--controllers=endpointslice,export"]).expect_err("a hub is missing");
        assert!(error.contains("MEMBER_CLUSTER_NAME"), "{error}");
    }

    /// Also rule G1.
    #[test]
    fn a_malformed_slice_stream_is_named() {
        let chosen = |flags: &[&'static str]| with(flags).expect("complete").slice_stream;
        assert!(matches!(chosen(&[]), stream::Use::Offered(_)));
        assert!(matches!(chosen(&["--slice-stream-address="]), stream::Use::Offered(_)));
        assert!(matches!(chosen(&["--slice-stream-address=0"]), stream::Use::Off));
        let stream = ["--slice-stream-address=hub:8443", "--slice-stream-ca-file=/ca.crt"];
        assert!(matches!(chosen(&stream), stream::Use::Fixed(_)));
        let error = |flags: &[&'static str]| with(flags).expect_err("malformed");
        assert!(error(&stream[..1]).starts_with("--slice-stream-address needs --slice-stream-ca-file"));
        let malformed = error(&["--slice-stream-address=hub", stream[1]]);
        assert_eq!(malformed, "--slice-stream-address: \"hub\" is not HOST:PORT");
    }

    #[test]
    fn a_controller_that_is_off_holds_no_lease() {
        let off = with(&["--endpointslices=off"]).expect("complete");
        assert!(off.endpoints.is_none() && !off.parts.endpoint_slice);
        assert_eq!(off.leases.len(), 4);
    }

    #[test]
    fn who_exports_or_imports_announces_what_its_parts_understand() {
        let announced =
            |parts: Parts| parts.announcement(McsApi::Off).map(|announcement| announcement.known_features());
        let all = Features::ALL.without(Feature::McsApi).without(Feature::ClusterSelection);
        assert_eq!(announced(Parts::ALL), Some(all));
        let alone = Parts { multi_cluster_service: true, endpoint_slice: true, ..Parts::NONE };
        assert_eq!(announced(alone), None, "it writes nothing in the hub");
        let beside_go = Parts { export: true, import: true, ..Parts::NONE };
        let slices: Features = Feature::OF_SLICES.into_iter().collect();
        assert_eq!(announced(Parts { import: true, ..Parts::NONE }), Some(slices));
        assert_eq!(announced(beside_go), Some(slices), "Services are derived by somebody else");
        assert_eq!(announced(Parts { export: true, ..Parts::NONE }), Some(Features::NONE));
    }

    #[test]
    fn the_mcs_api_is_off_unless_a_flag_turns_it_on() {
        let chosen = |flags: &[&'static str]| {
            let settings = with(flags).expect("complete").member;
            let announced = settings.announces.expect("an announcement").known_features();
            (settings.mcs_api, announced.has(Feature::McsApi))
        };
        assert_eq!(chosen(&[]), (McsApi::Off, false));
        assert_eq!(chosen(&["--multicluster-api-import=all"]), (McsApi::Off, false));
        assert_eq!(chosen(&["--multicluster-api"]), (McsApi::LabelledNamespaces, true));
        let all = chosen(&["--multicluster-api=true", "--multicluster-api-import=all"]);
        assert_eq!(all, (McsApi::AllNamespaces, true));
        let exporter = chosen(&["--multicluster-api", "--controllers=export"]);
        assert_eq!(exporter, (McsApi::LabelledNamespaces, false), "it imports nothing");
        let error = with(&["--multicluster-api-import=some"]).expect_err("malformed");
        assert!(error.contains("labelled, all"), "{error}");
    }

    #[test]
    fn cluster_properties_are_checked_and_need_cluster_selection() {
        let chosen = |flags: &[&'static str]| with(flags).map(|settings| settings.member.cluster_selection);
        assert_eq!(chosen(&[]).expect("complete"), None);
        let properties = [("a.example/tier".into(), "x=y".into())].into();
        let selection = ClusterSelection { properties, ..ClusterSelection::default() };
        let flags = ["--cluster-selection", "--cluster-property=a.example/tier=x=y"];
        assert_eq!(chosen(&flags).expect("complete"), Some(selection));
        for flags in [
            &["--cluster-property=a=b"][..],
            &["--cluster-selection", "--cluster-property=a"],
            &["--cluster-selection", "--cluster-property=a b=c"],
            &["--cluster-selection", "--cluster-property=cluster.clusterset.k8s.io=east"],
        ] {
            assert!(chosen(flags).is_err(), "{flags:?}");
        }
        let selecting = with(&["--cluster-selection", "--multicluster-api"]).expect("complete").member;
        assert!(selecting.routing_slices);
        assert!(!with(&["--cluster-selection"]).expect("complete").member.routing_slices);
    }

    #[test]
    fn routing_slices_are_off_unless_a_flag_turns_them_on_and_need_the_mcs_api() {
        let chosen = |flags: &[&'static str]| with(flags).expect("complete").member.routing_slices;
        assert!(!chosen(&["--multicluster-api"]));
        assert!(chosen(&["--multicluster-api", "--routing-slices"]));
        assert!(!chosen(&["--multicluster-api", "--routing-slices=false"]));
        let error = with(&["--routing-slices"]).expect_err("without the API");
        assert!(error.contains("--routing-slices needs --multicluster-api"), "{error}");
    }

    /// Also rule A14.
    #[test]
    fn only_the_leases_of_what_runs_are_held() {
        let leases = |list: &str| with(&[list]).map(|settings| settings.leases);
        assert_eq!(leases("--controllers=export").expect("valid"), MEMBER_LEASES);
        assert_eq!(leases("--controllers=multiclusterservice").expect("valid"), MCS_LEASES);
        assert!(leases("--controllers=exports").expect_err("unknown").contains("exports"));
    }

    /// Also rule A14.
    #[test]
    fn an_agent_without_features_sends_heartbeats_only() {
        let off = "--enable-networking-features=false";
        let heartbeats = |flags: &[&'static str], agents: &[MembershipAgent], leases: &[&str]| {
            let settings = with(flags).expect("valid");
            assert_eq!((settings.parts, settings.member.announces), (Parts::NONE, None));
            assert!(settings.endpoints.is_none() && settings.hub.is_some());
            assert_eq!(settings.member.membership, Membership { agents: agents.to_vec(), on_leave: OnLeave::Keep });
            assert_eq!(settings.leases, leases);
        };
        heartbeats(&[off], &MembershipAgent::ALL, &[MEMBER_LEASES, MCS_LEASES].concat());
        let imports = "--controllers=multiclusterservice,endpointslice";
        heartbeats(&[off, imports], &[MembershipAgent::MultiClusterService], &MCS_LEASES);
        heartbeats(&[off, "--enable-v1beta1-apis=false"], &[], &[MEMBER_LEASES, MCS_LEASES].concat());
        let all = with(&[]).expect("valid").member.membership;
        assert_eq!(all, Membership { agents: MembershipAgent::ALL.to_vec(), on_leave: OnLeave::Delete });
        let unmanaged = with(&["--enable-v1beta1-apis=false"]).expect("valid").member.membership;
        assert_eq!(unmanaged.agents, []);
    }

    #[test]
    fn a_namespace_may_have_a_limit_of_load_balancers_also_none_at_all() {
        for limit in [0, 3] {
            let flag = format!("--load-balancers-per-namespace={limit}");
            assert_eq!(with(&[&flag]).expect("complete").member.load_balancers_per_namespace, Some(limit));
        }
        assert!(with(&["--load-balancers-per-namespace=-1"]).is_err());
    }

    #[test]
    fn ranges_of_several_clusters_need_several_flags() {
        let flags = ["--source-ranges=member-2=10.2.0.0/16,fd00:2::/32", "--source-ranges=member-3=10.3.0.0/16"];
        let ranges = with(&flags).expect("complete").member.source_ranges;
        let counts: Vec<(&str, usize)> = ranges.iter().map(|(cluster, ranges)| (&**cluster, ranges.len())).collect();
        assert_eq!(counts, [("member-2", 2), ("member-3", 1)]);
    }

    /// Rule G1: A setting of an agent is missing, malformed, out of range, or contradicts another setting
    /// Then: The agent prints one line with the name of the setting, and exits with code 2
    #[test]
    fn a_missing_or_malformed_setting_is_named() {
        let table: [(&[&str], &str); 16] = [
            (&["--member-cluster-id=m", "--hub-kubeconfig=/hub", "--hub-token-secret=a/b"], "CONFIG_PATH"),
            (&["--member-cluster-id=m", "--hub-token-secret=b", "--hub-server-url=hub", "--config-path=/t"], "\"b\""),
            (
                &["--member-cluster-id=m", "--hub-token-secret=a/b/c", "--hub-server-url=hub", "--config-path=/t"],
                "a/b/c",
            ),
            (&["--hub-server-url=https://hub", "--config-path=/token"], "MEMBER_CLUSTER_NAME"),
            (&["--member-cluster-id=Member_1", "--hub-kubeconfig=/hub"], "MEMBER_CLUSTER_NAME"),
            (&["--member-cluster-id=m", "--config-path=/token"], "HUB_SERVER_URL"),
            (&["--member-cluster-id=m", "--hub-server-url=https://hub"], "CONFIG_PATH"),
            (&["--member-cluster-id=m", "--hub-kubeconfig=/hub", "--hub-namespace="], "--hub-namespace"),
            (&["--member-cluster-id=m", "--hub-kubeconfig=/hub", "--hub-namespace=a b"], "--hub-namespace \"a b\""),
            (&["--member-cluster-id=m", "--hub-kubeconfig=/hub", "--hub-namespace=a/b"], "--hub-namespace \"a/b\""),
            (&["--controllers=endpointslice", "--fleet-system-namespace=a?b"], "--fleet-system-namespace \"a?b\""),
            (&["--member-cluster-id=m", "--hub-kubeconfig=/hub", "--enable-v1alpha1-apis"], "--enable-v1alpha1-apis"),
            (&[COMPLETE[0], COMPLETE[1], COMPLETE[2], "--hub-certificate-authority=%%"], "HUB_CERTIFICATE_AUTHORITY"),
            (&[COMPLETE[0], COMPLETE[1], COMPLETE[2], "--hub-kube-header=nonsense"], "HUB_KUBE_HEADER"),
            (&[COMPLETE[0], COMPLETE[1], COMPLETE[2], "--source-ranges=m=10.0.0.1/8"], "--source-ranges"),
            (&[COMPLETE[0], COMPLETE[1], COMPLETE[2], "--member-takeover-after=119s"], "--member-takeover-after"),
        ];
        for (arguments, named) in table {
            let error = settings(arguments).expect_err("must be rejected");
            assert!(error.contains(named), "{arguments:?}: {error}");
        }
    }
}
