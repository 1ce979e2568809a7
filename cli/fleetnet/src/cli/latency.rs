//! Command `fleetnet latency`: time from a change in a member until it is imported in another member.

use super::contexts::ClusterFlags;
use super::exit::{Exit, Stop};
use super::fleet::{Breadth, Fleet};
use super::output::names::ends;
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::table::{Cell, Table, Tone, column};
use super::output::{Format, OutputFlags, Paint, Report};
use super::view::{View, ViewFlags, members, show};
use diagnosis::latency::Options as Question;
use diagnosis::read::Scope;
use diagnosis::report::{LatencyCell, LatencyMatrix, Verdict};
use serde_json::{Map, Value};

/// Quantiles to show, if the user names none.
const QUANTILES: [f64; 2] = [0.5, 0.99];
/// Number of samples below which a value gets the sign `~`, if the user names none.
const MIN_COUNT: u64 = 20;
/// Maximum width of a matrix. A wider one does not fit on a usual terminal.
const WIDTH: usize = 120;

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Quantiles to show, from 0 to 1, such as 0.5,0.9 [default: 0.5,0.99].
    #[arg(long, value_name = "Q", value_delimiter = ',', value_parser = quantile)]
    quantile: Vec<f64>,

    /// Number of samples below which a value gets the sign ~.
    #[arg(long, value_name = "N", default_value_t = MIN_COUNT)]
    min_count: u64,

    #[command(flatten)]
    view: ViewFlags,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

fn quantile(written: &str) -> Result<f64, String> {
    match written.parse::<f64>() {
        Ok(quantile) if (0.0..=1.0).contains(&quantile) => Ok(quantile),
        _ => Err("not a number from 0 to 1".to_owned()),
    }
}

/// Latency in every format.
pub(crate) struct Shown(pub(crate) LatencyMatrix);

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    fn document(&self) -> Map<String, Value> {
        members(&self.0)
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let matrix = self.matrix(format, has_headers, paint);
        let width = matrix.as_str().lines().map(|line| line.chars().count()).max().unwrap_or_default();
        if format == Format::Wide || width <= WIDTH { matrix } else { self.extremes(has_headers, paint) }
    }

    fn names(&self) -> Vec<String> {
        self.0.cells.iter().map(|cell| format!("pair/{}/{}", cell.origin, cell.destination)).collect()
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    fn not_known(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for it in &self.0.without_summary {
            match reasons.iter_mut().find(|(why, _)| *why == it.why) {
                Some((_, members)) => members.push(it.member.clone()),
                None => reasons.push((&it.why, vec![it.member.clone()])),
            }
        }
        let without = reasons.iter().map(|(why, members)| format!("latency to {}: {why}", ends(members)));
        self.0.not_known.iter().cloned().chain(without).collect()
    }
}

impl Shown {
    /// Returns a table with a row for each origin and a column for each destination.
    fn matrix(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let members = &self.0.members;
        let mut table = Table::with_headers(std::iter::once("FROM \\ TO".to_owned()).chain(members.iter().cloned()));
        for origin in members {
            let cells = members.iter().map(|destination| self.cell(origin, destination, format));
            table.row(std::iter::once(Cell::new(origin)).chain(cells));
        }
        table.render(format, has_headers, paint)
    }

    /// Returns a table with the fastest and the slowest destination of each origin.
    fn extremes(&self, has_headers: bool, paint: Paint) -> Safe {
        let mut table = Table::new(&["FROM", "TO", "FASTEST", "SLOWEST", "CLOCKS DIFFER"].map(column));
        for origin in &self.0.members {
            let of_origin: Vec<&LatencyCell> = self.0.cells.iter().filter(|cell| cell.origin == *origin).collect();
            let is_known = |cell: &&&LatencyCell| cell.clock_milliseconds.is_none() && last(cell).is_some();
            let by_value = |one: &&&LatencyCell, two: &&&LatencyCell| {
                last(one).unwrap_or_default().total_cmp(&last(two).unwrap_or_default())
            };
            let known = || of_origin.iter().filter(is_known);
            let text = |cell: Option<&&LatencyCell>| {
                let shown = cell.map(|cell| format!("{}: {}", cell.destination, values(cell)));
                Cell::new(shown.as_deref().unwrap_or("–"))
            };
            let differing = of_origin.iter().filter(|cell| cell.clock_milliseconds.is_some()).count();
            table.row([
                Cell::new(origin),
                known().count().to_string().into(),
                text(known().min_by(by_value)),
                text(known().max_by(by_value)),
                if differing > 0 { Cell::toned(&differing.to_string(), Tone::Warning) } else { "–".into() },
            ]);
        }
        let mut text = table.render(Format::Table, has_headers, paint);
        if has_headers {
            text.push_own("\n-o wide shows the whole matrix\n");
        }
        text
    }

    fn cell(&self, origin: &str, destination: &str, format: Format) -> Cell {
        let found = self.0.cells.iter().find(|cell| cell.origin == origin && cell.destination == destination);
        let Some(cell) = found else { return Cell::new("–") };
        if let Some(milliseconds) = cell.clock_milliseconds {
            let seconds = milliseconds.unsigned_abs() / 1000;
            let tenths = milliseconds.unsigned_abs() % 1000 / 100;
            return Cell::toned(&format!("! clocks differ by {seconds}.{tenths}s"), Tone::Warning);
        }
        let values = values(cell);
        let samples = if format == Format::Wide { format!(" ({})", cell.count) } else { String::new() };
        Cell::new(&format!("{values}{samples}"))
    }
}

/// Returns the quantiles of a cell.
fn values(cell: &LatencyCell) -> String {
    cell.quantiles.iter().map(|quantile| quantile.text.as_str()).collect::<Vec<_>>().join(" / ")
}

/// Returns the last quantile of a cell in milliseconds.
fn last(cell: &LatencyCell) -> Option<f64> {
    cell.quantiles.last()?.milliseconds
}

/// Returns what the command asks for without options.
pub(crate) fn usual_question() -> Question {
    Question { quantiles: QUANTILES.into(), min_count: MIN_COUNT }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let fleet = Fleet::find(&options.clusters, Breadth::Named, options.view.timeout, &progress).await?;
    let quantiles = if options.quantile.is_empty() { QUANTILES.into() } else { options.quantile.clone() };
    let question = Question { quantiles, min_count: options.min_count };
    let read = async |progress: &Progress| {
        let matrix = diagnosis::latency::latency(&fleet.snapshot(&Scope::Status, progress).await, &question);
        Shown(matrix)
    };
    show(options.view, options.output, &fleet.remarks(), progress, read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::render;
    use diagnosis::report::{Quantile, WithoutSummary};

    fn shown() -> Shown {
        let cell = |origin: &str, destination: &str, count, text: &str, clock| LatencyCell {
            origin: origin.to_owned(),
            destination: destination.to_owned(),
            count,
            clamped: 0,
            first_imports: 0,
            bounds_milliseconds: vec![1.0],
            buckets: vec![count],
            quantiles: [0.5, 0.99]
                .map(|quantile| {
                    let milliseconds = (count > 0).then_some(14.0);
                    Quantile { quantile, milliseconds, text: text.to_owned() }
                })
                .into(),
            clock_milliseconds: clock,
        };
        let cells = vec![
            cell("east", "north", 1234, "14ms", None),
            cell("north", "east", 3, "~12ms", None),
            cell("north", "west", 50, "1s", Some(-3_149)),
            cell("west", "east", 0, "–", None),
        ];
        let members = ["east", "north", "west"].map(str::to_owned).into();
        let without = WithoutSummary { member: "west".to_owned(), why: "no summary".to_owned() };
        let (api_version, kind) = (diagnosis::report::API_VERSION, "LatencyMatrix");
        let (without_summary, verdict) = (vec![without], Verdict::Healthy);
        Shown(LatencyMatrix { api_version, kind, members, cells, without_summary, verdict, not_known: Vec::new() })
    }

    #[test]
    fn origins_are_rows_and_destinations_are_columns() {
        let text =
            |output| render(&shown(), OutputFlags { output, ..OutputFlags::default() }, Paint::Plain).to_string();
        assert_eq!(
            text(Format::Table),
            "\
FROM \\ TO  east           north        west
east       –              14ms / 14ms  –
north      ~12ms / ~12ms  –            ! clocks differ by 3.1s
west       – / –          –            –
"
        );
        assert!(text(Format::Wide).contains("14ms / 14ms (1234)"));
        assert!(text(Format::Name).starts_with("pair/east/north\n"));
        assert_eq!(shown().not_known(), ["latency to west: no summary"]);
    }

    #[test]
    fn a_matrix_of_20_members_is_shortened_to_the_fastest_and_the_slowest_destination() {
        let mut view = shown();
        let first = view.0.cells.remove(0);
        view.0.members = (1..=20).map(|number| format!("member-{number}")).collect();
        let cell = |origin: &String, number: u32| {
            let quantile =
                |quantile| Quantile { quantile, milliseconds: Some(f64::from(number)), text: format!("{number}ms") };
            let (origin, destination) = (origin.clone(), format!("member-{number}"));
            LatencyCell { origin, destination, quantiles: [0.5, 0.99].map(quantile).into(), ..first.clone() }
        };
        view.0.cells = view.0.members.iter().flat_map(|origin| (1..=20).map(|number| cell(origin, number))).collect();
        view.0.cells[19].clock_milliseconds = Some(3_000);
        let text = render(&view, OutputFlags::default(), Paint::Plain).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        assert!(
            text.starts_with(
                "\
FROM       TO  FASTEST              SLOWEST                 CLOCKS DIFFER
member-1   19  member-1: 1ms / 1ms  member-19: 19ms / 19ms  1
member-2   20  member-1: 1ms / 1ms  member-20: 20ms / 20ms  –
"
            ),
            "{text}"
        );
        let wide = OutputFlags { output: Format::Wide, ..OutputFlags::default() };
        assert!(render(&view, wide, Paint::Plain).to_string().starts_with("FROM \\ TO  member-1"));
    }

    #[test]
    fn a_quantile_is_a_number_from_0_to_1() {
        assert_eq!((quantile("0.9"), quantile("1")), (Ok(0.9), Ok(1.0)));
        assert!(
            quantile("1.1").is_err()
                && quantile("-0.1").is_err()
                && quantile("NaN").is_err()
                && quantile("p99").is_err()
        );
    }
}
