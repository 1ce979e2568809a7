//! Command `fleetnet latency`: time from a change in a member until it is imported in another member.

use super::contexts::ClusterFlags;
use super::exit::{Exit, Stop};
use super::fleet::{Breadth, Fleet};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::table::{Cell, Table, Tone};
use super::output::{Format, OutputFlags, Paint, Report};
use super::view::{View, ViewFlags, members, show};
use fleetnet_diagnosis::latency::Options as Question;
use fleetnet_diagnosis::read::Scope;
use fleetnet_diagnosis::report::{LatencyMatrix, Verdict};
use serde_json::{Map, Value};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Quantile to show, from 0 to 1. Repeat the flag for several [default: 0.5 and 0.99].
    #[arg(long, value_name = "Q", value_parser = quantile)]
    quantile: Vec<f64>,

    /// Number of samples below which a value gets the sign ~.
    #[arg(long, value_name = "N", default_value_t = 20)]
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

struct Shown(LatencyMatrix);

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    fn document(&self) -> Map<String, Value> {
        members(&self.0)
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let members = &self.0.members;
        let mut table = Table::with_headers(std::iter::once("FROM \\ TO".to_owned()).chain(members.iter().cloned()));
        for origin in members {
            let cells = members.iter().map(|destination| self.cell(origin, destination, format));
            table.row(std::iter::once(Cell::new(origin)).chain(cells));
        }
        table.render(format, has_headers, paint)
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
        let without = self.0.without_summary.iter().map(|it| format!("latency to {}: {}", it.member, it.why));
        self.0.not_known.iter().cloned().chain(without).collect()
    }
}

impl Shown {
    fn cell(&self, origin: &str, destination: &str, format: Format) -> Cell {
        let found = self.0.cells.iter().find(|cell| cell.origin == origin && cell.destination == destination);
        let Some(cell) = found else { return Cell::new("–") };
        if let Some(milliseconds) = cell.clock_milliseconds {
            let seconds = milliseconds.unsigned_abs() / 1000;
            let tenths = milliseconds.unsigned_abs() % 1000 / 100;
            return Cell::toned(&format!("! clocks differ by {seconds}.{tenths}s"), Tone::Warning);
        }
        let values: Vec<&str> = cell.quantiles.iter().map(|quantile| quantile.text.as_str()).collect();
        let values = values.join(" / ");
        let samples = if format == Format::Wide { format!(" ({})", cell.count) } else { String::new() };
        Cell::new(&format!("{values}{samples}"))
    }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let fleet = Fleet::find(&options.clusters, Breadth::Named, options.view.timeout, &progress).await?;
    let quantiles = if options.quantile.is_empty() { vec![0.5, 0.99] } else { options.quantile.clone() };
    let question = Question { quantiles, min_count: options.min_count };
    let read = async |progress: &Progress| {
        let matrix = fleetnet_diagnosis::latency::latency(&fleet.snapshot(&Scope::Status, progress).await, &question);
        Shown(matrix)
    };
    show(options.view, options.output, &fleet.remarks(), progress, read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::render;
    use fleetnet_diagnosis::report::{LatencyCell, Quantile, WithoutSummary};

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
        let (api_version, kind) = (fleetnet_diagnosis::report::API_VERSION, "LatencyMatrix");
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
