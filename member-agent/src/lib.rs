//! Member agent: exports the Services of its cluster to the hub, and imports the Services of other members. The agent also makes
//! the EndpointSlices of its cluster while kube-controller-manager does not.
//!
//! The rules of the fleet are in `fleetnet_core::member`. This crate has the watches, the metrics and the process of the agent.
//! [`export`] and [`import`] list the watched kinds. [`endpoints`] is the EndpointSlice controller; the `endpointslice` library
//! computes its slices.

pub mod endpoints;
pub mod export;
mod flags;
mod fleet;
mod identity;
pub mod import;
mod latency;
mod limits;
mod logic;
pub mod metrics;
mod observed;
mod settings;
mod source;
mod source_ranges;
mod token;

pub use flags::Flags;
pub use fleetnet_agent::blocking_reasons::BlockingReasons;
pub use latency::Latencies;
pub use limits::DERIVED_SERVICE_GRACE;
pub use logic::{Key, Member, Object, Receipt, Source};
pub use settings::{Hub, Parts, Settings, TokenSecret};
pub use source::sources;

use endpoints::Serving;
use fleetnet_agent::flags::{self as common, Parsed};
use fleetnet_agent::launch::{self, Part, Process};
use fleetnet_runtime::client::{ClientError, Cluster};
use fleetnet_runtime::lease;
use fleetnet_runtime::token::TokenMetrics;
use std::process::ExitCode;
use std::sync::Arc;

/// Name of the agent in its user agent, Lease identity and log.
const NAME: &str = "member-agent";
/// Name of the member's own cluster in metrics, logs and probes.
const MEMBER: &str = "member";
/// Name of the hub in metrics, logs and probes.
const HUB: &str = "hub";

/// Runs the member agent with a command line. The first argument is the name of the program.
pub fn main(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let (flags, ignored) = match common::parse::<Flags>(arguments) {
        Parsed::Flags(flags, ignored) => (flags, ignored),
        Parsed::Exit(code) => return code,
    };
    let identity = lease::identity(NAME);
    let settings = match Settings::new(&flags, &identity) {
        Ok(settings) => settings,
        Err(error) => return common::exit_with_error(&error),
    };
    let process = match process(&flags, &settings, &ignored, identity) {
        Ok(process) => process,
        Err(why) => return common::exit_with_error(&why),
    };
    let process_identity = process.identity.clone();
    launch::launch(process, async |registry| {
        let kubeconfig = flags.common.kubeconfig.as_deref();
        let member = Arc::new(Cluster::discover(MEMBER, kubeconfig, &user_agent()).await?);
        let hub = match &settings.hub {
            Some(hub) => Some(Arc::new(connect_hub(hub).await?)),
            None => None,
        };
        if let Some(hub) = &hub {
            hub.show_token(TokenMetrics {
                expiry: metrics::HUB_TOKEN_EXPIRY.gauges(&registry)?,
                life: metrics::HUB_TOKEN_LIFE.gauges(&registry)?,
            });
        }
        let leader_task = match (&settings.token_secret, &hub) {
            (Some(secret), Some(hub)) => Some(token::renew(secret, hub, &member, &process_identity, &registry)?),
            _ => None,
        };
        let hub = hub.as_ref().map(|hub| (&*settings.member.hub_namespace, hub));
        let latencies = Latencies::new(&settings.member.cluster, &registry)?;
        let blocking_reasons = BlockingReasons::new(&registry)?;
        let endpoints = settings.endpoints.as_ref().map(|endpoints| Serving::new(endpoints, &registry)).transpose()?;
        let logic = Member::new(settings.member.clone(), settings.parts, latencies, blocking_reasons, endpoints);
        Ok(Part {
            blocked: Some(logic.blocked()),
            logic,
            sources: sources(&member, hub, settings.endpoints.as_ref()),
            own_cluster: member,
            leases: settings.parts.leases(),
            leader_task,
        })
    })
}

fn process(flags: &Flags, settings: &Settings, ignored: &[String], identity: String) -> Result<Process, String> {
    let addresses = launch::addresses(&flags.common, flags.metrics_addresses(), flags.probe_addresses())?;
    let mut notes = common::notes(&flags.common);
    match &settings.hub {
        Some(_) => notes.extend(notes_on_fleet(settings)),
        None => notes.push("this agent makes the EndpointSlices of its cluster only, and joins no fleet".to_owned()),
    }
    Ok(Process {
        name: NAME,
        identity,
        crate_name: env!("CARGO_CRATE_NAME"),
        common: flags.common.clone(),
        flags: format!("{:?}", flags.without_secrets()),
        addresses,
        own_cluster: MEMBER,
        warning: common::klog_warning(ignored),
        notes,
    })
}

fn notes_on_fleet(settings: &Settings) -> Vec<String> {
    let mut notes = vec![format!(
        "member {} with hub namespace {}, running {:?}",
        settings.member.cluster, settings.member.hub_namespace, settings.parts
    )];
    if fleetnet_core::names::cluster_of(&settings.member.hub_namespace).as_ref() != Some(&settings.member.cluster) {
        notes.push(format!(
            "hub namespace {} is not fleet-member-{}: the hub agent ignores members whose namespace has another name",
            settings.member.hub_namespace, settings.member.cluster
        ));
    }
    notes
}

async fn connect_hub(hub: &Hub) -> Result<Cluster, ClientError> {
    match hub {
        Hub::Kubeconfig { path, insecure_http } => {
            Cluster::from_kubeconfig(HUB, path, *insecure_http, &user_agent()).await
        }
        Hub::Connection(connection) => Cluster::from_hub_connection(HUB, connection, &user_agent()),
    }
}

fn user_agent() -> String {
    format!("fleetnet-member-agent/{}", env!("CARGO_PKG_VERSION"))
}
