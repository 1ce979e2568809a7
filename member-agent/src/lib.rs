//! The member agent: exports the Services of its cluster to the hub and imports those of other members.
//!
//! The rules are `fleetnet_core::{export, import}`; this crate watches, writes, measures and answers for them.
//! [`export`] and [`import`] say what each half watches where.

pub mod endpoints;
pub mod export;
mod flags;
pub mod import;
mod latency;
mod logic;
mod observed;
mod settings;

pub use flags::Flags;
pub use latency::Latencies;
pub use logic::Member;
pub use settings::{Hub, Parts, Settings};

use fleetnet_agent::flags::{self as common, Parsed};
use fleetnet_agent::glue;
use fleetnet_agent::launch::{self, Part, Process};
use fleetnet_runtime::SourceSpec;
use fleetnet_runtime::client::{ClientError, Cluster};
use std::process::ExitCode;
use std::sync::Arc;

/// Name of the member's own cluster in metrics, logs and probes.
const MEMBER: &str = "member";
/// Name of the hub there.
const HUB: &str = "hub";

/// Runs the agent with a command line; the first argument is the program.
pub fn main(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let (flags, ignored) = match common::parse::<Flags>(arguments) {
        Parsed::Flags(flags, ignored) => (flags, ignored),
        Parsed::Exit(code) => return code,
    };
    let settings = match Settings::new(&flags) {
        Ok(settings) => settings,
        Err(error) => return common::refuse(&error),
    };
    let process = match process(&flags, &settings, &ignored) {
        Ok(process) => process,
        Err(why) => return common::refuse(&why),
    };
    launch::launch(process, async |registry| {
        let kubeconfig = flags.common.kubeconfig.as_deref();
        let member = Arc::new(Cluster::discover(MEMBER, kubeconfig, &user_agent()).await?);
        let hub = Arc::new(connect_hub(&settings.hub).await?);
        let latencies = Latencies::new(&settings.member.cluster, &registry)?;
        Ok(Part {
            logic: Member::new(settings.member.clone(), settings.parts, latencies),
            sources: sources(&settings.member.hub_namespace, &member, &hub),
            own_cluster: member,
            leases: settings.parts.leases(),
        })
    })
}

fn process(flags: &Flags, settings: &Settings, ignored: &[String]) -> Result<Process, String> {
    let addresses = launch::addresses(flags.addresses())?;
    let mut notes = common::notes(&flags.common);
    notes.push(format!(
        "member {} with hub namespace {}, running {:?}",
        settings.member.cluster, settings.member.hub_namespace, settings.parts
    ));
    if fleetnet_core::names::cluster_of(&settings.member.hub_namespace).as_ref() != Some(&settings.member.cluster) {
        notes.push(format!(
            "hub namespace {} is not fleet-member-{}: the hub agent knows members by that name and passes over others",
            settings.member.hub_namespace, settings.member.cluster
        ));
    }
    Ok(Process {
        name: "member-agent",
        crate_name: env!("CARGO_CRATE_NAME"),
        common: flags.common.clone(),
        flags: format!("{:?}", flags.without_secrets()),
        addresses,
        own_cluster: MEMBER,
        warning: common::klog_warning(ignored),
        notes,
    })
}

async fn connect_hub(hub: &Hub) -> Result<Cluster, ClientError> {
    match hub {
        Hub::Kubeconfig(kubeconfig) => Cluster::discover(HUB, Some(kubeconfig), &user_agent()).await,
        Hub::Connection(connection) => Cluster::from_hub_connection(HUB, connection, &user_agent()),
    }
}

/// What the member agent watches: its whole cluster, and its namespace in the hub.
pub fn sources(hub_namespace: &str, member: &Arc<Cluster>, hub: &Arc<Cluster>) -> Vec<SourceSpec<Member>> {
    let local = export::LOCAL.into_iter().chain(import::LOCAL).map(|kind| glue::source(kind, member, None));
    let remote =
        export::REMOTE.into_iter().chain(import::REMOTE).map(|kind| glue::source(kind, hub, Some(hub_namespace)));
    local.chain(remote).collect()
}

fn user_agent() -> String {
    format!("fleetnet-member-agent/{}", env!("CARGO_PKG_VERSION"))
}
