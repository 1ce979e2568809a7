//! Command `fleetnet explain`: the first broken step on the way of a Service from each exporter to each importer.

mod codes;
mod lines;

use super::contexts::ClusterFlags;
use super::exit::{Exit, Stop};
use super::fleet::{Breadth, Fleet};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::{self, Format, OutputFlags, Paint, Report, names};
use super::view::{View, ViewFlags, members, show};
pub(crate) use codes::Codes;
use diagnosis::Snapshot;
use diagnosis::call::{importers, names_to_call};
use diagnosis::explain::Filter;
use diagnosis::order::{distinct, natural};
use diagnosis::read::Scope;
use diagnosis::report::{Explanation, NameToCall, NotReached, Outcome, Verdict};
use diagnosis::suggest::similar;
use fleetnet_types::ObjectName;
use lines::{Colour, Lines};
use serde_json::{Map, Value, json};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Service to explain.
    #[arg(value_name = "NAMESPACE/NAME", required_unless_present_any = ["explain_code", "list_codes"])]
    service: Option<String>,

    /// Namespace of the Service, if the name has none.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Only the way from this member.
    #[arg(long, value_name = "MEMBER")]
    from: Option<String>,

    /// Only the way to this member.
    #[arg(long, value_name = "MEMBER")]
    to: Option<String>,

    /// Show all steps, also those that are ok or do not apply.
    #[arg(long)]
    all: bool,

    /// Explain a fault code. Sends no request.
    #[arg(long, value_name = "FNnnn", conflicts_with_all = ["service", "list_codes"], value_parser = codes::code)]
    explain_code: Option<diagnosis::Code>,

    /// List all fault codes. Sends no request.
    #[arg(long, conflicts_with = "service")]
    list_codes: bool,

    /// Exit with 1 also for notices: what degrades the fleet and is no fault.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    view: ViewFlags,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Explanation in every format.
pub(crate) struct Shown {
    explanation: Explanation,
    /// Names by which clients call the Service, in the importers that were read.
    names_to_call: Vec<NameToCall>,
    /// Importers of which the hub knows.
    importers: Vec<String>,
    not_reached: Vec<NotReached>,
    /// Services that the user may mean, if this one does not exist.
    similar: Vec<String>,
    /// True to show all steps.
    all: bool,
    /// True if a notice counts as a fault.
    is_strict: bool,
}

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.explanation.kind
    }

    fn document(&self) -> Map<String, Value> {
        let mut document = members(&self.explanation);
        document.insert("namesToCall".to_owned(), json!(self.names_to_call));
        document.insert("importers".to_owned(), json!(self.importers));
        document.insert("notReached".to_owned(), json!(self.not_reached));
        if !self.similar.is_empty() {
            document.insert("didYouMean".to_owned(), json!(self.similar));
        }
        document
    }

    fn lines(&self, format: Format, _has_headers: bool, paint: Paint) -> Safe {
        let mut lines = Lines { text: Safe::default(), paint, is_wide: format == Format::Wide };
        lines.pairs(&self.explanation.pairs, &self.not_reached, self.all);
        if !self.importers.is_empty() {
            lines.line(Colour::None, &format!("importers in the hub: {}", names::ends(&self.importers)));
        }
        lines.names_to_call(&self.names_to_call);
        lines.notices(&self.explanation.notices);
        if !self.similar.is_empty() {
            lines.line(Colour::Yellow, &format!("did you mean {}?", self.similar.join(" or ")));
        }
        lines.text
    }

    fn names(&self) -> Vec<String> {
        let causes = self.explanation.pairs.iter().filter_map(|pair| pair.cause.as_ref());
        let mut names: Vec<String> = causes.map(|cause| format!("code/{}", cause.code)).collect();
        names.sort();
        names.dedup();
        names.insert(0, format!("service/{}/{}", self.explanation.namespace, self.explanation.name));
        names
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        match self.explanation.verdict {
            Verdict::Healthy if self.is_strict && !self.explanation.notices.is_empty() => Verdict::Fault,
            verdict => verdict,
        }
    }

    fn not_known(&self) -> Vec<String> {
        self.explanation.not_known.clone()
    }

    fn is_waiting(&self) -> bool {
        let mut steps = self.explanation.pairs.iter().flat_map(|pair| &pair.steps);
        steps.any(|step| step.outcome == Outcome::Waiting)
    }
}

impl Shown {
    /// Returns the explanation of a Service. For people, it has only the steps that are broken, and notices are no
    /// fault.
    pub(crate) fn of(snapshot: &Snapshot, service: &ObjectName, filter: &Filter) -> Self {
        let mut explanation = diagnosis::explain(snapshot, service, filter);
        let id = |id: &Option<String>| id.clone().unwrap_or_default();
        explanation.pairs.sort_by(|one, two| {
            let exporters = natural(&id(&one.exporter), &id(&two.exporter));
            one.api.cmp(&two.api).then(exporters).then_with(|| natural(&id(&one.importer), &id(&two.importer)))
        });
        let called = distinct(explanation.pairs.iter().filter_map(|pair| pair.importer.clone()));
        Self {
            names_to_call: called.iter().flat_map(|id| names_to_call(snapshot, service, id)).collect(),
            importers: importers(snapshot, service),
            not_reached: snapshot.not_reached(),
            similar: similar(snapshot, service),
            explanation,
            all: false,
            is_strict: false,
        }
    }

    /// Leaves out steps that are ok or skipped if there are more pairs than this number.
    pub(crate) fn shortened(mut self, pairs_max: usize) -> Self {
        if self.explanation.pairs.len() > pairs_max {
            for pair in &mut self.explanation.pairs {
                pair.steps.retain(|step| !matches!(step.outcome, Outcome::Ok | Outcome::Skipped));
            }
        }
        self
    }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    if options.list_codes || options.explain_code.is_some() {
        let codes = Codes { code: options.explain_code, agents: options.clusters.agents() };
        output::print(&codes, options.output)?;
        return Ok(Exit::Healthy);
    }
    let service = service(options.service.as_deref().unwrap_or_default(), options.namespace.as_deref())?;
    let progress = Progress::new(options.clusters.verbose);
    let fleet = Fleet::find(&options.clusters, Breadth::All, options.view.timeout, &progress).await?;
    let ids = fleet.ids();
    member(options.from.as_deref(), "--from", ids.as_deref())?;
    member(options.to.as_deref(), "--to", ids.as_deref())?;
    let filter = Filter { from: options.from.clone(), to: options.to.clone() };
    let read = async |progress: &Progress| {
        let snapshot = fleet.snapshot(&Scope::Service(service.clone()), progress).await;
        Shown { all: options.all, is_strict: options.strict, ..Shown::of(&snapshot, &service, &filter) }
    };
    show(options.view, options.output, &fleet.remarks(), progress, read).await
}

/// Fails if the user names a cluster that is no member. Without an answer of the hub, nobody knows.
pub(super) fn member(named: Option<&str>, flag: &str, ids: Option<&[String]>) -> Result<(), Stop> {
    match (named, ids) {
        (Some(named), Some(ids)) if !ids.iter().any(|id| id == named) => Err(Stop::usage(format!(
            "{flag} {named}: it is no member of this fleet; the members are {}",
            if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
        ))),
        _ => Ok(()),
    }
}

/// Returns the Service that the user names: `NAMESPACE/NAME`, or a name and `-n NAMESPACE`.
pub(crate) fn service(written: &str, namespace: Option<&str>) -> Result<ObjectName, Stop> {
    let (namespace, name) = match (written.split_once('/'), namespace) {
        (Some((namespace, name)), None) => (namespace, name),
        (Some((one, name)), Some(other)) if one == other => (one, name),
        (None, Some(namespace)) => (namespace, written),
        (Some(_), Some(_)) => return Err(Stop::usage(format!("{written} and --namespace name two namespaces"))),
        (None, None) => return Err(Stop::usage(format!("{written} has no namespace: use NAMESPACE/{written}"))),
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= NAME_LENGTH
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte))
    };
    if is_name(namespace) && is_name(name) {
        return Ok(ObjectName::new(namespace, name));
    }
    Err(Stop::usage(format!("{} is not the name of a Service: use NAMESPACE/NAME", written.escape_debug())))
}

/// Longest name of an object in Kubernetes.
const NAME_LENGTH: usize = 253;

#[cfg(test)]
mod tests;
