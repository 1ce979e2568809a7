//! Process of an agent from its parsed flags to its exit code. The hub agent and the member agent share this code.

use crate::build_info;
use crate::flags::{CommonFlags, exit_with_error};
use crate::metrics::register_tasks;
use anyhow::Context as _;
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::engine::sources::SourceStatus;
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::manager::{Manager, ProcessContext};
use fleetnet_runtime::metrics::{Metrics, register_process_metrics};
use fleetnet_runtime::process::access::Guard;
use fleetnet_runtime::process::admin::{
    AdminError, AdminServer, AdminSources, BindAddress, Certificates, Check, Readiness, Secure, Server,
};
use fleetnet_runtime::process::listeners::{Listeners, Liveness};
use fleetnet_runtime::process::shutdown::Shutdown;
use fleetnet_runtime::process::{lease, logging};
use prometheus::Registry;
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Settings of an agent's process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Name of the agent, `hub-agent` or `member-agent`. The name is part of the HTTP user agent, the Lease holder's
    /// identity and the log.
    pub name: &'static str,
    /// Identity of this process as holder of Leases.
    pub identity: String,
    /// Names of the crates of this process alone. The flag `--v` raises their log level.
    pub crates: &'static [&'static str],
    /// Parsed flags that both agents have.
    pub common: CommonFlags,
    /// Text of all flags for the log, without secrets.
    pub flags: String,
    /// Addresses of the admin server.
    pub addresses: Addresses,
    /// Name of the agent's own cluster, `hub` or `member`. The agent is ready when it has listed everything it needs
    /// from this cluster.
    pub own_cluster: &'static str,
    /// Warning to log at the start, such as ignored flags. `None` if there is nothing to warn about.
    pub warning: Option<String>,
    /// Lines to log after the warning.
    pub notes: Vec<String>,
}

/// Addresses of the admin server. Without `--metrics-secure`, each address serves metrics and probes.
#[derive(Clone, Debug)]
pub struct Addresses {
    pub metrics: Vec<BindAddress>,
    pub probes: Vec<BindAddress>,
}

/// Parts of a process that differ between hub agent and member agent.
pub struct Part {
    /// Agents of the process.
    pub manager: Manager,
    /// State of the watches of each agent.
    pub statuses: Vec<watch::Receiver<Vec<SourceStatus>>>,
    /// Cluster in which the agent and its Leases are.
    pub own_cluster: Arc<Cluster>,
    /// Names of the Leases that the agent must hold to write.
    pub leases: Vec<String>,
    /// Channel with an additional reason why the agent is not ready. The value is `None` while there is no such reason.
    pub blocked: Option<watch::Receiver<Option<String>>>,
}

/// Parses the listen addresses in the flags of metrics and of probes, given as (flag, value).
///
/// # Errors
/// If a value is not a valid address, or if an address has metrics and probes although metrics need TLS. The error
/// names the flag and its value.
pub fn addresses<'a>(
    common: &CommonFlags,
    metrics: impl IntoIterator<Item = (&'a str, &'a str)>,
    probes: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Addresses, String> {
    let parse = |(flag, written): (&str, &str)| written.parse().map_err(|error| format!("{flag}: {error}"));
    let metrics: Vec<BindAddress> = metrics.into_iter().map(parse).collect::<Result<_, _>>()?;
    let mut parsed = Vec::new();
    for (flag, written) in probes {
        let address = parse((flag, written))?;
        if common.metrics_secure && metrics.contains(&address) && !address.is_any_port() && address != BindAddress::Off
        {
            return Err(format!(
                "{flag}: {written} is an address of metrics too. With --metrics-secure, probes need another address, \
                 because they have no TLS"
            ));
        }
        parsed.push(address);
    }
    Ok(Addresses { metrics, probes: parsed })
}

/// Runs an agent until it stops. Returns the exit code of the process:
///
/// - 0 after a planned stop.
/// - 1 after an error. The last line of the log is the cause.
/// - 2 if the process cannot start. The cause is one line on standard error.
///
/// `part` returns the part of one agent. It runs all that other clients can connect to on the thread of the
/// [`Listeners`].
pub fn launch<F>(process: Process, part: impl FnOnce(Registry, ProcessContext, Listeners) -> F) -> ExitCode
where
    F: Future<Output = anyhow::Result<Part>>,
{
    let clock = Clock::system();
    let settings = logging::LogSettings {
        format: process.common.log_format,
        verbosity: process.common.v,
        own_crates: &[process.crates, &["fleetnet_agent", "fleetnet_core", "fleetnet_api"]].concat(),
    };
    if let Err(error) = logging::init(settings, &clock) {
        return exit_with_error(&error);
    }
    // One thread is enough for the engine: the work of an agent in memory needs far less than one CPU. With more
    // threads, a change would pass from one CPU to another on its way to a write. On a busy machine, that costs more
    // time than the work. The second thread serves clients, so that none of them takes the time of the first one.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit_with_error(&format!("cannot start the timers and tasks of this process: {error}")),
    };
    let listeners = match Listeners::start() {
        Ok(listeners) => listeners,
        Err(error) => return exit_with_error(&format!("cannot start the thread that serves clients: {error}")),
    };
    // Ignores the error, which means that a default provider is already installed. This happens only in a test with two
    // agents in one process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let registry = Registry::new();
    let metrics = match Metrics::new(&registry) {
        Ok(metrics) => metrics,
        Err(error) => return exit_with_error(&format!("engine metrics: {error}")),
    };
    let context = ProcessContext { identity: process.identity.clone(), clock, metrics };
    let part = match runtime.block_on(part(registry.clone(), context, listeners.clone())) {
        Ok(part) => part,
        Err(error) => return exit_with_error(&format!("{error:#}")),
    };
    match runtime.block_on(run(&process, registry, part, listeners)) {
        Ok(()) => {
            tracing::info!(agent = process.name, "stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(agent = process.name, "{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(process: &Process, registry: Registry, part: Part, listeners: Listeners) -> anyhow::Result<()> {
    let identity = process.identity.clone();
    tracing::info!(agent = process.name, version = env!("CARGO_PKG_VERSION"), identity, "starting");
    tracing::info!(flags = process.flags, "flags");
    if let Some(warning) = &process.warning {
        tracing::warn!("{warning}");
    }
    for note in &process.notes {
        tracing::info!("{note}");
    }
    register_process_metrics(&registry).context("process metrics")?;
    register_tasks(&registry, [Handle::current(), listeners.runtime().clone()]).context("metric of the tasks")?;
    build_info::register(&registry).context("metric of the build")?;
    let shutdown = Shutdown::on_signals().context("signal handlers cannot be installed")?;
    let api_server = part.own_cluster.requests.clone();
    let lease = process.common.lease(part.own_cluster.requests.clone(), part.leases, identity);
    let manager = match lease {
        Some(lease) => part.manager.with_lease(lease),
        None => part.manager,
    };
    let (statuses, own_cluster, blocked) = (part.statuses, process.own_cluster, part.blocked);
    let readiness = Arc::new(move || {
        let blocked = blocked.as_ref().and_then(|blocked| blocked.borrow().clone());
        let watched: Vec<Vec<SourceStatus>> = statuses.iter().map(|status| status.borrow().clone()).collect();
        readiness(&watched, own_cluster, blocked)
    });
    let sources = AdminSources { registry, engine: Liveness::start(), readiness };
    let secure = if process.common.metrics_secure {
        let (folder, host_name) = (process.common.metrics_cert_path.as_deref(), lease::hostname());
        let certificates = Certificates::open(Server::METRICS, folder, &host_name).await?;
        Some(Secure { certificates, guard: Guard::of_metrics(api_server) })
    } else {
        None
    };
    let _admin = serve(&listeners, process.addresses.clone(), sources, secure).await?;
    Ok(manager.run(shutdown).await?)
}

/// Starts the admin server on the thread of the listeners.
async fn serve(
    listeners: &Listeners,
    Addresses { metrics, probes }: Addresses,
    sources: AdminSources,
    secure: Option<Secure>,
) -> Result<AdminServer, AdminError> {
    let start = async move {
        match secure {
            Some(secure) => AdminServer::start_secure(&metrics, &probes, sources, secure).await,
            None => AdminServer::start(&[metrics, probes].concat(), sources).await,
        }
    };
    listeners.run(start).await
}

/// Computes readiness from the watches of each agent of the process. The process is ready when its agents have listed
/// its own cluster and `blocked` is `None`. If two agents watch one kind, the check of this kind needs both.
///
/// Watches of other clusters are listed for information only. While the hub is not reachable, a member agent works with
/// its cached objects, and a restart would not help.
fn readiness(agents: &[Vec<SourceStatus>], own_cluster: &str, blocked: Option<String>) -> Readiness {
    let mut readiness = Readiness::default();
    if let Some(detail) = blocked {
        readiness.checks.insert("blocked".to_owned(), Check { ok: false, required: true, detail });
    }
    for source in agents.iter().flatten() {
        let check = Check {
            ok: source.is_settled(),
            required: source.cluster == own_cluster && !source.optional,
            detail: source.state.as_str().to_owned(),
        };
        let name = format!("{}/{}", source.cluster, source.resource.plural);
        if readiness.checks.get(&name).is_none_or(|known| known.ok) {
            readiness.checks.insert(name, check);
        }
    }
    if agents.iter().any(Vec::is_empty) {
        let check = Check { ok: false, required: true, detail: "not started yet".to_owned() };
        readiness.checks.insert("watches".to_owned(), check);
    }
    readiness
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleetnet_runtime::{Resource, WatchState};
    use std::io::{Read as _, Write as _};

    fn source(cluster: &str, plural: &'static str, optional: bool, state: WatchState) -> SourceStatus {
        let resource = Resource { group: "", version: "v1", kind: "Thing", plural };
        SourceStatus { cluster: cluster.to_owned(), resource, optional, state }
    }

    /// Also rule K10.
    #[test]
    fn ready_is_who_knows_all_that_is_required_of_its_own_cluster() {
        use WatchState::{Absent, Complete, Incomplete, Unknown};
        let (own, hub) = ("member", "hub");
        let table = [
            (own, false, Complete, true, true),
            (own, false, Absent, true, true),
            (own, false, Incomplete, false, false),
            (own, false, Unknown, false, false),
            // Watches that do not count for readiness: optional watches, and watches of the hub. A restart of the agent
            // would not repair these watches.
            (own, true, Incomplete, false, true),
            (own, true, Unknown, false, true),
            (hub, false, Incomplete, false, true),
            (hub, true, Unknown, false, true),
        ];
        for (cluster, optional, state, ok, ready) in table {
            let sources = [source(own, "services", false, Complete), source(cluster, "things", optional, state)];
            let readiness = readiness(&[sources.to_vec()], own, None);
            assert_eq!(readiness.is_ready(), ready, "{cluster} {optional} {state:?}");
            let check = &readiness.checks[&format!("{cluster}/things")];
            assert_eq!((check.ok, check.detail.as_str()), (ok, state.as_str()), "{cluster} {optional} {state:?}");
            assert_eq!(readiness.checks.len(), 2);
        }
    }

    /// Also rule K10.
    #[test]
    fn a_kind_that_two_agents_watch_is_ready_when_both_have_listed_it() {
        use WatchState::{Complete, Incomplete};
        for (one, other) in [(Complete, Incomplete), (Incomplete, Complete), (Complete, Complete)] {
            let agents = [one, other].map(|state| vec![source("member", "endpointslices", false, state)]);
            let readiness = readiness(&agents, "member", None);
            assert_eq!(readiness.is_ready(), one == other, "{one:?} {other:?}");
        }
    }

    /// Rule G8: Metrics are protected, and a flag gives one address to metrics and probes
    /// Then: The agent does not start, and names the flag: probes have no TLS
    #[test]
    fn protected_metrics_need_other_addresses_than_probes() {
        use clap::Parser;
        #[derive(Parser)]
        struct Flags {
            #[command(flatten)]
            common: CommonFlags,
        }
        let table = [
            ("--metrics-secure=true", ":8080", ":8081", true),
            ("--metrics-secure=true", ":8080", "0.0.0.0:8080", false),
            ("--metrics-secure=true", "127.0.0.1:8080", "127.0.0.1:8080", false),
            ("--metrics-secure=true", ":0", ":0", true),
            ("--metrics-secure=true", "0", "0", true),
            ("--metrics-secure=false", ":8080", ":8080", true),
        ];
        for (secure, metrics, probes, starts) in table {
            let common = Flags::try_parse_from(["agent", secure]).expect("a flag").common;
            let parsed = addresses(&common, [("--metrics", metrics)], [("--probes", probes)]);
            assert_eq!(parsed.is_ok(), starts, "{secure} {metrics} {probes}: {parsed:?}");
            if let Err(error) = parsed {
                assert!(error.starts_with("--probes: "), "{error}");
            }
        }
    }

    /// Also rule K14.
    #[tokio::test]
    async fn probes_and_metrics_are_answered_while_the_thread_of_the_engine_is_busy() {
        let listeners = Listeners::start().expect("a thread");
        let addresses = Addresses { metrics: vec!["127.0.0.1:0".parse().expect("an address")], probes: Vec::new() };
        let readiness = Arc::new(Readiness::default);
        let sources = AdminSources { registry: Registry::new(), engine: Liveness::start(), readiness };
        let server = serve(&listeners, addresses, sources, None).await.expect("a free port");
        // This thread does nothing else until the answer is there.
        let mut stream = std::net::TcpStream::connect(server.addresses()[0]).expect("it listens");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a time limit");
        let request = b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        stream.write_all(request).expect("it reads the request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    /// Also rule K10.
    #[test]
    fn who_has_not_started_is_not_ready() {
        assert!(!readiness(&[Vec::new()], "member", None).is_ready());
    }
}
