//! Command `fleetnet services`: exported and imported Services of the fleet.

use super::contexts::ClusterFlags;
use super::exit::{Exit, Stop};
use super::fleet::{Breadth, Fleet};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::table::{Cell, Table, Tone, column};
use super::output::{Format, OutputFlags, Paint, Report};
use super::view::{View, ViewFlags, members, show};
use fleetnet_diagnosis::read::Scope;
use fleetnet_diagnosis::report::{Api, ServiceRow, ServiceState, Services, Verdict};
use fleetnet_diagnosis::services::Rows;
use serde_json::{Map, Value};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
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

struct Shown(Services);

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    fn document(&self) -> Map<String, Value> {
        members(&self.0)
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let columns = ["NAMESPACE", "NAME", "API", "TYPE", "EXPORTERS", "IMPORTERS", "ENDPOINTS", "CONFLICT", "STATE"];
        let mut table = Table::new(&columns.map(column));
        for row in &self.0.services {
            let (state, tone) = state(row.state);
            table.row([
                row.namespace.as_str().into(),
                row.name.as_str().into(),
                api(row.api).into(),
                row.type_.as_deref().unwrap_or("–").into(),
                list(&row.exporters).into(),
                list(&row.importers).into(),
                row.endpoints.to_string().into(),
                Cell::toned(&list(&row.conflicts), conflict_tone(row)),
                Cell::toned(state, tone),
            ]);
        }
        table.render(format, has_headers, paint)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.services.iter().map(|row| format!("service/{}/{}", row.namespace, row.name)).collect();
        names.dedup(); // one row for each API
        names
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    fn is_waiting(&self) -> bool {
        self.0.services.iter().any(|row| row.state == ServiceState::Waiting)
    }

    fn not_known(&self) -> Vec<String> {
        self.0.not_known.clone()
    }
}

/// Returns an API as the option `--api` of the sandbox names it.
fn api(api: Api) -> &'static str {
    match api {
        Api::Fleet => "fleet",
        Api::Standard => "multicluster",
    }
}

/// Conflicts of the standard API are no fault.
fn conflict_tone(row: &ServiceRow) -> Tone {
    match row.api {
        _ if row.conflicts.is_empty() => Tone::Plain,
        Api::Fleet => Tone::Bad,
        Api::Standard => Tone::Warning,
    }
}

fn state(state: ServiceState) -> (&'static str, Tone) {
    match state {
        ServiceState::Ready => ("Ready", Tone::Good),
        ServiceState::Waiting => ("Waiting", Tone::Warning),
        ServiceState::NotReady => ("NotReady", Tone::Bad),
        ServiceState::Unknown => ("Unknown", Tone::Warning),
    }
}

fn list(clusters: &[String]) -> String {
    if clusters.is_empty() { "–".to_owned() } else { clusters.join(",") }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let fleet = Fleet::find(&options.clusters, Breadth::Named, options.view.timeout, &progress).await?;
    let rows = Rows { namespace: options.namespace, conflicts: options.conflicts };
    let read = async |progress: &Progress| {
        let snapshot = fleet.snapshot(&Scope::Services, progress).await;
        Shown(fleetnet_diagnosis::services(&snapshot, &rows))
    };
    show(options.view, options.output, &fleet.remarks(), progress, read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::render;

    #[test]
    fn services_are_rows() {
        let row = |name: &str, conflicts: &[&str]| ServiceRow {
            namespace: "work".to_owned(),
            name: name.to_owned(),
            api: Api::Fleet,
            type_: conflicts.is_empty().then(|| "ClusterSetIP".to_owned()),
            exporters: vec!["east".to_owned(), "west".to_owned()],
            importers: Vec::new(),
            endpoints: 12,
            conflicts: conflicts.iter().map(|cluster| (*cluster).to_owned()).collect(),
            state: if conflicts.is_empty() { ServiceState::Ready } else { ServiceState::NotReady },
        };
        let standard = ServiceRow { api: Api::Standard, state: ServiceState::Ready, ..row("db", &["west"]) };
        let services = vec![row("app", &[]), row("db", &["west"]), standard];
        let (api_version, kind, not_known) = (fleetnet_diagnosis::report::API_VERSION, "ServiceList", Vec::new());
        let shown = Shown(Services { api_version, kind, services, verdict: Verdict::Fault, not_known });
        assert_eq!(
            render(&shown, OutputFlags::default(), Paint::Plain).as_str(),
            "\
NAMESPACE  NAME  API           TYPE          EXPORTERS  IMPORTERS  ENDPOINTS  CONFLICT  STATE
work       app   fleet         ClusterSetIP  east,west  –          12         –         Ready
work       db    fleet         –             east,west  –          12         west      NotReady
work       db    multicluster  –             east,west  –          12         west      Ready
"
        );
        let names = OutputFlags { output: Format::Name, ..OutputFlags::default() };
        assert_eq!(render(&shown, names, Paint::Plain).as_str(), "service/work/app\nservice/work/db\n");
    }
}
