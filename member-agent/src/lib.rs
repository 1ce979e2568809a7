//! Member agent: exports the Services of its cluster to the hub, and imports the Services of other members. The process
//! also makes the EndpointSlices of its cluster while kube-controller-manager does not.
//!
//! The rules of the fleet are in `fleetnet_core::member`. This crate has the watches, the metrics and the process of
//! the agent. [`export`] and [`import`] list the watched kinds. The process also starts the
//! EndpointSlice controller (`endpointslice_controller`), an agent of its own. It shows the responses to its writes to
//! [`Member`], which so exports a slice before its own watch shows it.

mod endpoint_flags;
pub mod export;
mod flags;
/// Entry points of the fuzz targets to private decoders.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod identity;
pub mod import;
mod latency;
mod limits;
mod logic;
pub mod metrics;
mod observed;
mod reports;
mod settings;
mod source;
mod source_ranges;
pub mod stream;
mod switches;
mod token;
mod traces;

pub use flags::Flags;
pub use fleetnet_agent::blocking_reasons::BlockingReasons;
pub use latency::Latencies;
pub use limits::DERIVED_SERVICE_GRACE;
pub use logic::Member;
pub use reports::Reports;
pub use settings::{Hub, Parts, Settings, TokenSecret};

use endpointslice_controller::EndpointsAgent;
use fleetnet_agent::flags::{self as common, Parsed};
use fleetnet_agent::launch::{self, Part, Process};
use fleetnet_agent::traces::{Sampling, Service};
use fleetnet_core::model::Kind;
use fleetnet_runtime::io::client::{ClientError, Cluster};
use fleetnet_runtime::io::token::TokenMetrics;
use fleetnet_runtime::manager::ProcessContext;
use fleetnet_runtime::process::lease;
use prometheus::Registry;
use source::sources;
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
    launch::launch(process, async |registry, context, listeners| {
        let kubeconfig = flags.common.kubeconfig.as_deref();
        let member = Arc::new(Cluster::discover(MEMBER, kubeconfig, &user_agent()).await?);
        let hub = match &settings.hub {
            Some(hub) => Some(Arc::new(connect_hub(hub).await?)),
            None => None,
        };
        let service = Service { name: NAME, cluster: &settings.member.cluster, instance: &context.identity };
        let sampling = Sampling::of_flags(&flags.common, service, &registry, &listeners)?;
        let mut part = part(&settings, &member, hub.as_ref(), sampling, &registry, &context)?;
        if let Some(hub) = &hub {
            hub.show_token(TokenMetrics {
                expiry: metrics::HUB_TOKEN_EXPIRY.gauges(&registry)?,
                life: metrics::HUB_TOKEN_LIFE.gauges(&registry)?,
            });
        }
        if let (Some(secret), Some(hub)) = (&settings.token_secret, &hub) {
            let renewal = token::renew(secret, hub, &member, &context.identity, &registry)?;
            part.manager = part.manager.with_task(renewal);
        }
        Ok(part)
    })
}

/// Returns the agents of a process with these settings: [`Member`] if it belongs to a fleet, and the EndpointSlice
/// controller if that is on. `hub` must be set if the settings have a hub.
///
/// # Errors
/// If the registry already has a metric of an agent.
pub fn part(
    settings: &Settings,
    member: &Arc<Cluster>,
    hub: Option<&Arc<Cluster>>,
    sampling: Option<Sampling>,
    registry: &Registry,
    context: &ProcessContext,
) -> Result<Part, prometheus::Error> {
    let mut part = Part {
        manager: context.manager(),
        statuses: Vec::new(),
        own_cluster: Arc::clone(member),
        leases: settings.leases.clone(),
        blocked: None,
    };
    let mut response_sink = None;
    if let Some(hub) = hub {
        let reports = Reports::new(&settings.member.cluster, registry)?;
        let logic = Member::new(settings.member.clone(), settings.parts, reports);
        let logic = logic.with_stream(settings.slice_stream.clone()).with_traces(sampling);
        let dialer = logic.dialer();
        part.blocked = Some(logic.blocked());
        let runner = context.runner(logic, sources(member, hub, settings));
        if settings.parts.import {
            let (cluster, client) = (settings.member.cluster.clone(), hub.requests.clone());
            let task = stream::task(&runner, cluster, dialer, client, context.clock.clone(), registry)?;
            part.manager = part.manager.with_task(task);
        }
        response_sink = runner.response_sink(Kind::EndpointSlice);
        part.statuses.push(runner.status());
        part.manager = part.manager.with_agent(runner);
    }
    if let Some(endpoints) = &settings.endpoints {
        let agent = EndpointsAgent::new(endpoints.clone(), Arc::clone(member), registry)?;
        let agent = agent.with_response_sink(response_sink);
        part.statuses.push(agent.status());
        let context = context.clone();
        part.manager = part.manager.with(|leadership, shutdown| agent.run(context, leadership, shutdown));
    }
    Ok(part)
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
        crates: &[env!("CARGO_CRATE_NAME"), "endpointslice_controller"],
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
    if settings.parts == Parts::NONE && settings.member.membership.agents.is_empty() {
        notes.push("this agent does nothing: no controller and no heartbeat to a fleet manager is on".to_owned());
    }
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
