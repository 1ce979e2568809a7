//! Hub agent: resolves the exports of all members and distributes their slices to importers.
//!
//! The rules are in `fleetnet_core::hub`. This crate runs the watches, the writes and the probes.

mod flags;
/// Entry points of the fuzz targets to private decoders.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod heartbeats;
#[cfg(test)]
mod hostile_bytes_tests;
mod limits;
mod logic;
pub mod metrics;
mod silence_metrics;
mod slice_bodies;
mod slice_stream;
mod states;
pub mod stream;
mod traces;

pub use flags::Flags;
pub use limits::{MEMBER_FAN_OUT, MEMBER_MEMORY_MIB, OBJECT_LAG, SILENCE};
pub use logic::Hub;

use fleetnet_agent::convert;
use fleetnet_agent::flags::{self as common, Parsed};
use fleetnet_agent::launch::{self, Part, Process};
use fleetnet_agent::traces::{Sampling, Service};
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::model::Kind;
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::{SourceSpec, process::lease};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Go agent to run beside this agent for parts that this version does not replace. Used in messages only.
const GO_BINARY: &str = "hub-net-controller-manager";
/// Lease of the Go hub manager. This agent uses the same Lease, so that the two agents never write at the same time.
const LEASE: &str = "2bf2b407.hub.networking.fleet.azure.com";
/// Name of the agent in its Lease identity, its log and its spans.
const NAME: &str = "hub-agent";
/// Name of the hub in metrics, logs and probes.
const CLUSTER: &str = "hub";

/// Runs the agent with a command line. The first argument is the program's name.
pub fn main(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let (flags, ignored) = match common::parse::<Flags>(arguments) {
        Parsed::Flags(flags, ignored) => (flags, ignored),
        Parsed::Exit(code) => return code,
    };
    let (process, silence) = match process(&flags, &ignored).and_then(|it| Ok((it, flags.silence_limits()?))) {
        Ok(both) => both,
        Err(why) => return common::exit_with_error(&why),
    };
    launch::launch(process, async |registry, context, listeners| {
        let hub = Arc::new(Cluster::discover(CLUSTER, flags.common.kubeconfig.as_deref(), &user_agent()).await?);
        let policy = flags.namespace_policy.into();
        let logic = Hub::new(policy, &registry)?.with_object_lag(flags.object_lag);
        let service = Service { name: NAME, cluster: CLUSTER, instance: &context.identity };
        let logic = logic.with_traces(Sampling::of_flags(&flags.common, service, &registry, &listeners)?);
        let leads = logic.leads();
        let membership = flags.common.enable_v1beta1_apis.then_some(flags.force_delete_wait_time);
        let logic = logic.with_force_delete(membership).with_silence(silence);
        let logic = logic.with_member_memory(flags.member_memory).with_member_fan_out(flags.member_fan_out);
        let runner = context.runner(logic, sources(&hub, policy, membership));
        let (statuses, mut manager) = (vec![runner.status()], context.manager());
        if let Some(listener) = slice_stream::Listener::open(&flags, &listeners).await? {
            let client = hub.requests.clone();
            let server = stream::Server::new(&runner, leads, client, context.clock.clone(), &registry)?;
            manager = listener.tasks(server, runner.inbox()).fold(manager, |manager, task| manager.with_task(|_| task));
        }
        let manager = manager.with_agent(runner);
        Ok(Part { manager, statuses, own_cluster: hub, leases: leases(), blocked: None })
    })
}

fn process(flags: &Flags, ignored: &[String]) -> Result<Process, String> {
    flags.common.check(GO_BINARY).map_err(|error| error.to_string())?;
    let metrics = ("--metrics-bind-address", flags.metrics_bind_address.as_str());
    let probes = ("--health-probe-bind-address", flags.health_probe_bind_address.as_str());
    let addresses = launch::addresses(&flags.common, [metrics], [probes])?;
    slice_stream::check(flags)?;
    let mut notes = common::notes(&flags.common);
    if flags.internalserviceexport_retry_interval.is_some() {
        notes.push("--internalserviceexport-retry-interval has no effect: this agent does not poll".to_owned());
    }
    Ok(Process {
        name: NAME,
        identity: lease::identity(NAME),
        crates: &[env!("CARGO_CRATE_NAME")],
        common: flags.common.clone(),
        flags: format!("{flags:?}"),
        addresses,
        own_cluster: CLUSTER,
        warning: common::klog_warning(ignored),
        notes,
    })
}

/// Returns the names of the Leases that the agent needs before it writes.
pub fn leases() -> Vec<String> {
    vec![LEASE.to_owned()]
}

/// Returns the kinds that the hub agent watches, in all namespaces of the hub. `force_delete` is as for
/// [`Hub::with_force_delete`].
pub fn sources(hub: &Arc<Cluster>, policy: NamespacePolicy, force_delete: Option<Duration>) -> Vec<SourceSpec<Hub>> {
    let mut sources: Vec<SourceSpec<Hub>> = [
        Kind::InternalServiceExport,
        Kind::InternalServiceImport,
        Kind::ServiceImport,
        Kind::EndpointSliceExport,
        Kind::EndpointSliceImport,
    ]
    .map(|kind| convert::source(kind, hub, None))
    .into();
    // Optional, because the kind MemberAgent may be absent: in a fleet of Go agents no peer announces features.
    sources.push(SourceSpec { optional: true, ..convert::source(Kind::MemberAgent, hub, None) });
    // Optional, because only fleets that use the standard API have MergedServiceImports.
    sources.push(SourceSpec { optional: true, ..convert::source(Kind::MergedServiceImport, hub, None) });
    // The watch of Namespaces is optional only if the policy is off. Annotations of a Namespace list the clusters that
    // may export and import: without the right to read Namespaces, the hub agent grants nothing new. A new Namespace
    // also requeues keys whose writes were denied because the Namespace was missing. Without the watch, these keys wait
    // for their back-off.
    let optional = policy == NamespacePolicy::Off;
    let namespaces = convert::source(Kind::Namespace, hub, None);
    sources.push(SourceSpec { optional, freezes_when_forbidden: true, ends_denials: true, ..namespaces });
    // Optional, because most fleets have no manager that defines members.
    let members = force_delete.map(|_| convert::source(Kind::MemberCluster, hub, None));
    sources.extend(members.map(|members| SourceSpec { optional: true, ..members }));
    sources
}

fn user_agent() -> String {
    format!("fleetnet-hub-agent/{}", env!("CARGO_PKG_VERSION"))
}
