//! Command `fleetnet gather`: writes an archive with what a maintainer needs to find a fault. Secrets are never in it.

mod archive;
mod collect;
mod redact;

use super::contexts::connect::Cluster;
use super::contexts::hub::require as require_hub;
use super::contexts::hub_members::HubMembers;
use super::contexts::members;
use super::contexts::{ClusterFlags, Contexts, duration};
use super::exit::{Exit, Stop};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::table::{Table, column};
use super::output::{self, API_VERSION, Format, OutputFlags, Paint, Report};
use archive::Files;
use diagnosis::agents::Agent;
use fleetnet_runtime::clock::{Clock, to_jiff};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Archive to write [default: fleetnet-gather-<time>.tar.gz in this folder].
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Only Events and log lines of this time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Option<Duration>,

    /// Replace IP addresses by names such as ip-1. An address has the same name in the whole archive.
    #[arg(long)]
    redact_addresses: bool,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Result of the command.
struct Gathered {
    file: String,
    bytes: u64,
    /// Clusters and their numbers of files.
    clusters: Vec<(String, usize)>,
    failures: Vec<String>,
}

impl Report for Gathered {
    fn kind(&self) -> &'static str {
        "Gather"
    }

    fn document(&self) -> Map<String, Value> {
        let clusters = self.clusters.iter().map(|(cluster, files)| json!({"cluster": cluster, "files": files}));
        let mut document = Map::new();
        document.insert("file".to_owned(), json!(self.file));
        document.insert("bytes".to_owned(), json!(self.bytes));
        document.insert("clusters".to_owned(), clusters.collect());
        document.insert("notRead".to_owned(), json!(self.failures));
        document
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let mut table = Table::new(&[column("CLUSTER"), column("FILES"), column("ARCHIVE")]);
        for (cluster, files) in &self.clusters {
            table.row([cluster.as_str().into(), files.to_string().into(), self.file.as_str().into()]);
        }
        table.render(format, has_headers, paint)
    }

    fn names(&self) -> Vec<String> {
        vec![self.file.clone()]
    }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let contexts = Contexts::read(&options.clusters)?;
    contexts.warnings.iter().for_each(|warning| progress.note(warning));
    let now = to_jiff(Clock::system().now());
    let file = options.file.clone().unwrap_or_else(|| PathBuf::from(format!("{}.tar.gz", root(now))));
    let (clusters, mut failures) = clusters(&options, &contexts, &progress).await?;
    if clusters.is_empty() {
        return Err(Stop { exit: Exit::Incomplete, class: None, why: failures.join("; ") });
    }
    let (mut files, mut counts) = (Files::new(), Vec::new());
    for (folder, cluster) in clusters {
        progress.step(&format!("{}: objects, Events, logs and metrics", cluster.context));
        let collected = collect::read(&cluster, options.since, now).await;
        failures.extend(collected.failures.into_iter().map(|failure| format!("{folder}: {failure}")));
        counts.push((folder.clone(), collected.files.len()));
        files.extend(collected.files.into_iter().map(|(path, text)| (format!("{folder}/{path}"), text)));
    }
    let summary = json!({
        "apiVersion": API_VERSION, "kind": "GatherSummary", "version": env!("CARGO_PKG_VERSION"), "time": now.to_string(),
        "clusters": counts.iter().map(|(cluster, _)| cluster).collect::<Vec<_>>(), "notRead": failures,
    });
    files.insert("summary.json".to_owned(), format!("{:#}\n", summary));
    let files = redacted(files, options.redact_addresses);
    progress.step(&format!("writing {}", file.display()));
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let written = archive::write(&file, &root(now), &files, seconds);
    let bytes = written.map_err(|error| Stop::fault(format!("{}: {error}", file.display())))?;
    failures.iter().for_each(|failure| progress.note(&format!("not read: {failure}")));
    drop(progress);
    let exit = if failures.is_empty() { Exit::Healthy } else { Exit::Incomplete };
    let report = Gathered { file: file.display().to_string(), bytes, clusters: counts, failures };
    output::print(&report, options.output)?;
    Ok(exit)
}

/// Returns the clusters to read with their folders in the archive, and what cannot be reached.
async fn clusters(
    options: &Options,
    contexts: &Contexts,
    progress: &Progress,
) -> Result<(Vec<(String, Cluster)>, Vec<String>), Stop> {
    let flags = &options.clusters;
    let (mut clusters, mut failures) = (Vec::new(), Vec::new());
    let hub_context = contexts.hub(flags)?;
    progress.step(&format!("connecting to {hub_context}"));
    let known = match Cluster::connect(contexts, &hub_context, Agent::Hub, flags.request_timeout).await {
        Ok(hub) => {
            require_hub(contexts, &hub).await?;
            let known = HubMembers::of(&hub).await.unwrap_or_else(|failure| {
                failures.push(format!("members: {failure}"));
                HubMembers::default()
            });
            clusters.push(("hub".to_owned(), hub));
            known
        }
        Err(failure) => {
            failures.push(failure.to_string());
            HubMembers::default()
        }
    };
    let members = members::find(contexts, flags, &known).await;
    failures.extend(members.failed.iter().map(ToString::to_string));
    members.silent.iter().for_each(|failure| progress.detail(&failure.to_string()));
    for id in known.ids.iter().filter(|id| !members.reached.contains_key(*id)) {
        let why = members.without_context(!flags.context.is_empty());
        failures.push(format!("member {id}: {}", why.without_context().unwrap_or_default()));
    }
    clusters
        .extend(members.reached.into_iter().map(|(id, cluster)| (format!("member-{}", archive::part(&id)), cluster)));
    Ok((clusters, failures))
}

/// Removes secrets from all files, and addresses if the user asks for it.
fn redacted(files: Files, addresses: bool) -> Files {
    let mut names = redact::Addresses::default();
    let clean = |(path, text): (String, String)| {
        let text = redact::secrets(&text);
        let text = if addresses { names.replace(&text) } else { text };
        (path, text)
    };
    files.into_iter().map(clean).collect()
}

/// Name of the folder in the archive.
fn root(now: Timestamp) -> String {
    format!("fleetnet-gather-{}", now.strftime("%Y%m%dT%H%M%SZ"))
}
