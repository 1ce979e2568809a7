//! Command `fleetnet services`: exported and imported Services of the fleet.

use super::contexts::ClusterFlags;
use super::exit::{Exit, Stop};
use super::fleet::{Breadth, Fleet};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::table::{Cell, Table, Tone, column, wide};
use super::output::{Format, OutputFlags, Paint, Report, names};
use super::view::{View, ViewFlags, members, show};
use diagnosis::order::distinct;
use diagnosis::read::Scope;
use diagnosis::report::{Api, ServiceRow, ServiceState, Services, Verdict};
use diagnosis::services::Rows;
use diagnosis::suggest::similar;
use fleetnet_types::ObjectName;
use serde_json::{Map, Value, json};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Only this Service, as NAMESPACE/NAME, or as NAME with --namespace.
    #[arg(value_name = "NAMESPACE/NAME", conflicts_with = "all_namespaces")]
    service: Option<String>,

    /// Only Services of this namespace.
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Services of all namespaces. This is the default.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Only Services with conflicts.
    #[arg(long)]
    conflicts: bool,

    #[command(flatten)]
    view: ViewFlags,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Services in every format.
pub(crate) struct Shown {
    pub(crate) services: Services,
    /// Service that the user names.
    named: Option<ObjectName>,
    /// Services that the user may mean, if the named one does not exist.
    similar: Vec<String>,
}

impl Shown {
    /// Returns Services of which the user names none.
    pub(crate) fn of(services: Services) -> Self {
        Self { services, named: None, similar: Vec::new() }
    }
}

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.services.kind
    }

    fn document(&self) -> Map<String, Value> {
        let mut document = members(&self.services);
        if !self.similar.is_empty() {
            document.insert("didYouMean".to_owned(), json!(self.similar));
        }
        document
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let has_conflicts = self.services.services.iter().any(|row| !row.conflicts.is_empty());
        let table = Table::new(&[
            column("NAMESPACE"),
            column("NAME"),
            column("API"),
            wide("TYPE"),
            column("EXPORTERS"),
            column("IMPORTERS"),
            column("ENDPOINTS"),
            column("ARRIVED"),
            if has_conflicts { column("CONFLICT") } else { wide("CONFLICT") },
            column("STATE"),
            column("NAME TO CALL"),
            wide("PORTS"),
            wide("ADDRESSES"),
        ]);
        let rows = self.services.services.iter();
        let table = rows.fold(table, |mut table, row| {
            table.row(cells(row, if format == Format::Wide { names::all } else { names::cell }));
            table
        });
        let mut text = Safe::default();
        if let (Some(named), true) = (&self.named, self.services.services.is_empty()) {
            text.push(&Safe::line(&format!("no cluster exports or imports {}/{}", named.namespace, named.name)));
            let similar = self.similar.join(" or ");
            text.push(&Safe::line(&if similar.is_empty() { similar } else { format!(": did you mean {similar}?") }));
            text.push_own("\n");
            return text;
        }
        text.push(&table.render(format, has_headers, paint));
        text
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.services.services.iter().map(|row| format!("service/{}/{}", row.namespace, row.name)).collect();
        names.dedup(); // one row for each API
        names
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        match self.services.verdict {
            // What the user names does not exist.
            Verdict::Healthy if self.named.is_some() && self.services.services.is_empty() => Verdict::Fault,
            verdict => verdict,
        }
    }

    fn is_waiting(&self) -> bool {
        self.services.services.iter().any(|row| row.state == ServiceState::Waiting)
    }

    fn not_known(&self) -> Vec<String> {
        self.services.not_known.clone()
    }
}

/// Returns an API as the option `--api` of the sandbox names it.
fn api(api: Api) -> &'static str {
    match api {
        Api::Fleet => "fleet",
        Api::Mcs => "multicluster",
    }
}

/// Conflicts of the standard API are no fault.
fn conflict_tone(row: &ServiceRow) -> Tone {
    match row.api {
        _ if row.conflicts.is_empty() => Tone::Plain,
        Api::Fleet => Tone::Bad,
        Api::Mcs => Tone::Warning,
    }
}

/// Returns the name of a state, and its colour.
pub(crate) fn state(state: ServiceState) -> (&'static str, Tone) {
    match state {
        ServiceState::Ready => ("Ready", Tone::Good),
        ServiceState::Waiting => ("Waiting", Tone::Warning),
        ServiceState::NotReady => ("NotReady", Tone::Bad),
        ServiceState::Unknown => ("Unknown", Tone::Warning),
    }
}

/// Returns the cells of a Service. `list` shows several names.
fn cells(row: &ServiceRow, list: fn(&[String]) -> String) -> [Cell; 13] {
    let (state, tone) = state(row.state);
    let mut called: Vec<String> = row.names_to_call.iter().map(|call| call.name.clone()).collect();
    called.sort();
    called.dedup();
    let ports = distinct(row.names_to_call.iter().flat_map(|call| call.ports.iter().cloned()));
    let addresses = row.names_to_call.iter().filter(|call| !call.addresses.is_empty());
    let addresses = addresses.map(|call| format!("{}={}", call.importer, call.addresses.join("/")));
    [
        row.namespace.as_str().into(),
        row.name.as_str().into(),
        api(row.api).into(),
        row.type_.as_deref().unwrap_or("–").into(),
        list(&row.exporters).into(),
        list(&row.importers).into(),
        row.endpoints.to_string().into(),
        arrived(row),
        Cell::toned(&list(&row.conflicts), conflict_tone(row)),
        Cell::toned(state, tone),
        names::all(&called).into(),
        names::all(&ports).into(),
        names::all(&addresses.collect::<Vec<_>>()).into(),
    ]
}

/// Returns the number of endpoints that each importer has, or the smallest and the largest number.
fn arrived(row: &ServiceRow) -> Cell {
    let counts = || row.arrived.iter().map(|arrival| arrival.endpoints);
    let (Some(least), Some(most)) = (counts().min(), counts().max()) else { return "–".into() };
    let text = if least == most { least.to_string() } else { format!("{least}-{most}") };
    let is_missing = row.arrived.iter().any(|arrival| !arrival.missing_exporters.is_empty());
    let tone = match () {
        () if is_missing => Tone::Bad,
        () if least < row.endpoints => Tone::Warning,
        () => Tone::Plain,
    };
    Cell::toned(&text, tone)
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let named = match &options.service {
        Some(written) => Some(super::explain::service(written, options.namespace.as_deref())?),
        None => None,
    };
    let fleet = Fleet::find(&options.clusters, Breadth::All, options.view.timeout, &progress).await?;
    let rows = Rows {
        namespace: named.as_ref().map(|named| named.namespace.to_string()).or(options.namespace),
        name: named.as_ref().map(|named| named.name.to_string()),
        conflicts: options.conflicts,
    };
    let read = async |progress: &Progress| {
        let snapshot = fleet.snapshot(&Scope::Services, progress).await;
        let similar = named.as_ref().map(|named| similar(&snapshot, named)).unwrap_or_default();
        Shown { services: diagnosis::services(&snapshot, &rows), named: named.clone(), similar }
    };
    show(options.view, options.output, &fleet.remarks(), progress, read).await
}

#[cfg(test)]
mod tests;
