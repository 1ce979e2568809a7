//! Command `fleetnet test connectivity`: connects to imported Services.
//!
//! ```text
//! snapshot ─> targets of each pair ─> pod in each importer (or this machine) ─> outcomes ─> faults
//! ```

mod here;
mod lines;
mod pod;

use pod::INTERRUPTED;

use super::super::contexts::{ClusterFlags, duration};
use super::super::exit::{Exit, Stop};
use super::super::explain;
use super::super::fleet::{Breadth, Fleet};
use super::super::output::OutputFlags;
use super::super::output::progress::Progress;
use super::super::view::{ViewFlags, show};
use crate::limits::SERVICES_TESTED;
use diagnosis::Snapshot;
use diagnosis::connectivity::{self, Outcome, Outcomes, Pair, Target};
use diagnosis::explain::Filter;
use diagnosis::read::Scope;
use diagnosis::services::Rows;
use fleetnet_runtime::process::shutdown::Shutdown;
use fleetnet_types::ObjectName;
use futures::future::join_all;
use lines::Shown;
use pod::Prober;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Service to test. Default: the imported Services, at most 10.
    #[arg(value_name = "NAMESPACE/NAME")]
    service: Option<String>,

    /// Only endpoints of this member.
    #[arg(long, value_name = "MEMBER")]
    from: Option<String>,

    /// Only from a pod in this member.
    #[arg(long, value_name = "MEMBER")]
    to: Option<String>,

    /// Image of the pods. It needs sh, nc, timeout, tr and cut, as BusyBox has them.
    #[arg(long, value_name = "IMAGE", default_value = "docker.io/library/busybox:1.37.0")]
    image: String,

    /// Namespace of the pods. Default: the namespace of the Service.
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Connect from this machine, without a pod. Names are not tested.
    #[arg(long, conflicts_with_all = ["image", "namespace"])]
    from_here: bool,

    /// Time limit of each pod, from its creation to its last result. Also limits each reading of all clusters.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let service = match &options.service {
        Some(written) => Some(explain::service(written, None)?),
        None => None,
    };
    let progress = Progress::new(options.clusters.verbose);
    let fleet = Fleet::find(&options.clusters, Breadth::All, options.timeout, &progress).await?;
    let ids = fleet.ids();
    explain::member(options.from.as_deref(), "--from", ids.as_deref())?;
    explain::member(options.to.as_deref(), "--to", ids.as_deref())?;
    let shutdown = Shutdown::on_signals();
    let shutdown = shutdown.map_err(|error| Stop::fault(format!("signal handlers cannot be installed: {error}")))?;
    let test = Test { fleet: &fleet, options: &options, shutdown };
    let view = ViewFlags { watch: None, wait: None, timeout: options.timeout };
    let read = async |progress: &Progress| test.run(service.as_ref(), progress).await;
    show(view, options.output, &fleet.remarks(), progress, read).await
}

/// One run of the command.
struct Test<'a> {
    fleet: &'a Fleet,
    options: &'a Options,
    shutdown: Shutdown,
}

impl Test<'_> {
    async fn run(&self, named: Option<&ObjectName>, progress: &Progress) -> Shown {
        let mut shown = Shown::new(self.options.from_here);
        let services = match named {
            Some(named) => vec![named.clone()],
            None => self.services(progress, &mut shown).await,
        };
        for service in &services {
            Box::pin(self.service(service, progress, &mut shown)).await;
        }
        if self.shutdown.is_requested() {
            shown.not_known.push(format!("{INTERRUPTED}: no pods of this command are left, unless a line says so"));
        }
        shown
    }

    /// Reads the fleet; `None` if a signal stops the command.
    async fn snapshot(&self, scope: &Scope, progress: &Progress) -> Option<Snapshot> {
        tokio::select! {
            biased;
            () = self.shutdown.requested() => None,
            snapshot = self.fleet.snapshot(scope, progress) => Some(snapshot),
        }
    }

    /// Returns the imported Services, up to a limit.
    async fn services(&self, progress: &Progress, shown: &mut Shown) -> Vec<ObjectName> {
        let Some(snapshot) = self.snapshot(&Scope::Services, progress).await else { return Vec::new() };
        let found = diagnosis::services(&snapshot, &Rows::default());
        shown.not_known.extend(found.not_known);
        let imported = found.services.iter().filter(|row| !row.importers.is_empty());
        let names: BTreeSet<(&str, &str)> = imported.map(|row| (row.namespace.as_str(), row.name.as_str())).collect();
        shown.services_left_out = names.len().saturating_sub(SERVICES_TESTED);
        names.into_iter().take(SERVICES_TESTED).map(|(namespace, name)| ObjectName::new(namespace, name)).collect()
    }

    /// Tests one Service.
    async fn service(&self, service: &ObjectName, progress: &Progress, shown: &mut Shown) {
        let scope = Scope::Service(service.clone());
        let Some(snapshot) = self.snapshot(&scope, progress).await else { return };
        let pairs = self.pairs(&snapshot, service);
        let importers: BTreeSet<&String> = pairs.iter().filter_map(|pair| pair.importer.as_ref()).collect();
        progress.step(&format!("{service}: connecting in {} clusters", importers.len()));
        let tried = importers.into_iter().map(async |importer| {
            let targets = connectivity::targets(&pairs, importer);
            (importer.clone(), self.outcomes(service, importer, &targets).await)
        });
        let tried = join_all(tried).await;
        shown.not_known.extend(tried.iter().filter_map(|(_, (_, leftover))| leftover.clone()));
        let mut outcomes: BTreeMap<String, Outcomes> =
            tried.into_iter().map(|(id, (outcomes, _))| (id, outcomes)).collect();
        let has_failed = outcomes.values().flat_map(BTreeMap::values).any(Outcome::has_failed);
        if has_failed && let Some(newer) = self.snapshot(&scope, progress).await {
            let newer = self.pairs(&newer, service);
            for (importer, outcomes) in &mut outcomes {
                connectivity::drop_gone(outcomes, &newer, importer);
            }
        }
        shown.add(connectivity::judge(&pairs, &outcomes).pairs);
    }

    fn pairs(&self, snapshot: &Snapshot, service: &ObjectName) -> Vec<Pair> {
        let filter = Filter { from: self.options.from.clone(), to: self.options.to.clone() };
        let mut pairs = connectivity::pairs(snapshot, service, &filter);
        if self.options.from_here {
            pairs.iter_mut().for_each(Pair::leave_out_names);
        }
        pairs
    }

    /// Connects to the targets of an importer. Returns also a text about a pod that may be left.
    async fn outcomes(&self, service: &ObjectName, importer: &str, targets: &[Target]) -> (Outcomes, Option<String>) {
        if targets.is_empty() {
            return (Outcomes::new(), None);
        }
        if self.options.from_here {
            return (here::connect(targets, &self.shutdown).await, None);
        }
        let Some(cluster) = self.fleet.member(importer) else {
            let why = self.fleet.without_context.without_context().unwrap_or_default();
            let missing = format!("{importer}: {why}, so no pod can be created there");
            return (connectivity::parse("", targets, &missing), None);
        };
        let prober = Prober {
            cluster,
            namespace: self.options.namespace.as_deref().unwrap_or(&service.namespace),
            image: &self.options.image,
            timeout: self.options.timeout,
            shutdown: &self.shutdown,
        };
        let end = prober.run(&connectivity::script(targets)).await;
        (connectivity::parse(&end.log, targets, &end.missing), end.leftover)
    }
}
