//! Command `fleetnet migrate check`: what a change of agents does not carry over.

use crate::cli::check::push_sign;
use crate::cli::contexts::ClusterFlags;
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet::{Breadth, Fleet};
use crate::cli::output::progress::Progress;
use crate::cli::output::safe::Safe;
use crate::cli::output::{Format, OutputFlags, Paint, Report};
use crate::cli::view::{View, ViewFlags, members, show};
use crate::limits::OBJECTS_LISTED;
use diagnosis::explain::text;
use diagnosis::migrate;
use diagnosis::read::Scope;
use diagnosis::report::{CheckResult, Direction, Impact, Migration, MigrationItem, Outcome, Verdict};
use serde_json::{Map, Value};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// Agents after the change.
    #[arg(long, value_name = "AGENTS", value_enum)]
    to: Agents,

    /// Exit with 1 also for items that do not change traffic.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    view: ViewFlags,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Agents of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Agents {
    /// The agents of this project.
    Fleetnet,
    /// The agents of Azure/fleet-networking.
    Go,
}

struct Shown {
    migration: Migration,
    is_strict: bool,
}

impl Shown {
    fn shown_items(&self) -> impl Iterator<Item = &MigrationItem> {
        self.migration.items.iter().filter(|item| item.outcome != Outcome::Ok)
    }
}

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.migration.kind
    }

    fn document(&self) -> Map<String, Value> {
        members(&self.migration)
    }

    fn lines(&self, format: Format, _has_headers: bool, paint: Paint) -> Safe {
        let mut lines = Safe::default();
        self.shown_items().for_each(|item| push_item(&mut lines, item, format, paint));
        let without = self.migration.items.len() - self.shown_items().count();
        if without > 0 {
            push_sign(&mut lines, CheckResult::Ok, paint);
            lines.push(&Safe::line(&format!(" {without} items without objects")));
            lines.push_own("\n");
        }
        lines.push_own(match self.migration.verdict {
            Verdict::Healthy => "\nTraffic stays as it is: √\n",
            Verdict::NotKnown => "\nNot everything could be read: ?\n",
            Verdict::Fault => "\nTraffic changes: ×\n",
        });
        lines
    }

    fn names(&self) -> Vec<String> {
        self.shown_items().filter(|item| !item.objects.is_empty()).map(|item| format!("item/{}", item.id)).collect()
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        match self.migration.verdict {
            Verdict::Healthy if self.is_strict && self.shown_items().next().is_some() => Verdict::Fault,
            verdict => verdict,
        }
    }

    fn not_known(&self) -> Vec<String> {
        self.migration.not_known.clone()
    }
}

/// Adds an item with its objects: all of them in the wide format, else the first ones.
fn push_item(lines: &mut Safe, item: &MigrationItem, format: Format, paint: Paint) {
    let result = match (item.outcome, item.impact) {
        (Outcome::Broken, Impact::Traffic) => CheckResult::Error,
        (Outcome::Broken, Impact::Behaviour) => CheckResult::Warning,
        (Outcome::Ok | Outcome::Waiting | Outcome::Skipped | Outcome::Unknown, _) => CheckResult::Unknown,
    };
    push_sign(lines, result, paint);
    lines.push(&Safe::line(&format!(" {} ({})", item.id, item.agents)));
    let mut add = |line: &str| {
        lines.push_own("\n    ");
        lines.push(&Safe::line(line));
    };
    if item.outcome == Outcome::Broken {
        add(item.effect);
        let listed = if format == Format::Wide { item.objects.len() } else { OBJECTS_LISTED };
        item.objects.iter().take(listed).for_each(|object| add(&text(object)));
        if item.objects.len() > listed {
            add(&format!("and {} more (-o wide shows all)", item.objects.len() - listed));
        }
        add(&format!("remedy: {}", item.remedy));
    }
    lines.push_own("\n");
}

/// Runs the command.
pub(super) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let fleet = Fleet::find(&options.clusters, Breadth::All, options.view.timeout, &progress).await?;
    let direction = match options.to {
        Agents::Fleetnet => Direction::ToFleetnet,
        Agents::Go => Direction::ToGo,
    };
    let read = async |progress: &Progress| Shown {
        migration: migrate::check(&fleet.snapshot(&Scope::Migration, progress).await, direction),
        is_strict: options.strict,
    };
    show(options.view, options.output, &fleet.remarks(), progress, read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::render;
    use crate::cli::view::exit_of;
    use diagnosis::report::{API_VERSION, Evidence};

    fn shown(verdict: Verdict) -> Shown {
        let object = |name: &str| Evidence {
            cluster: "west".to_owned(),
            kind: "ServiceExport".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            field: "weight".to_owned(),
            value: "0\x1b".to_owned(),
            ..Evidence::default()
        };
        let item = |id, impact, outcome, objects| MigrationItem {
            id,
            impact,
            agents: "exporting member",
            effect: "an effect.",
            remedy: "a remedy.",
            outcome,
            objects,
        };
        let items = vec![
            item("lost", Impact::Traffic, Outcome::Broken, ["a", "b", "c", "d"].map(object).into()),
            item("other", Impact::Behaviour, Outcome::Broken, vec![object("e")]),
            item("unread", Impact::Traffic, Outcome::Unknown, Vec::new()),
            item("fine", Impact::Traffic, Outcome::Ok, Vec::new()),
        ];
        let (api_version, kind, direction) = (API_VERSION, "MigrationCheck", Direction::ToGo);
        let migration = Migration { api_version, kind, direction, items, verdict, not_known: Vec::new() };
        Shown { migration, is_strict: false }
    }

    fn rendered(output: Format) -> String {
        render(&shown(Verdict::Fault), OutputFlags { output, ..OutputFlags::default() }, Paint::Plain).to_string()
    }

    #[test]
    fn each_item_has_a_sign_its_objects_and_a_remedy() {
        assert_eq!(
            rendered(Format::Table),
            "\
× lost (exporting member)
    an effect.
    west: ServiceExport shop/a weight: 0\\u{1b}
    west: ServiceExport shop/b weight: 0\\u{1b}
    west: ServiceExport shop/c weight: 0\\u{1b}
    and 1 more (-o wide shows all)
    remedy: a remedy.
‼ other (exporting member)
    an effect.
    west: ServiceExport shop/e weight: 0\\u{1b}
    remedy: a remedy.
? unread (exporting member)
√ 1 items without objects

Traffic changes: ×
"
        );
        assert!(rendered(Format::Wide).contains("shop/d") && !rendered(Format::Wide).contains("more"));
        assert_eq!(rendered(Format::Name), "item/lost\nitem/other\n");
        let json: Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
        assert_eq!((&json["kind"], &json["direction"]), (&"MigrationCheck".into(), &"ToGo".into()));
        assert_eq!(json["items"][0]["objects"].as_array().unwrap().len(), 4);
    }

    #[test]
    fn items_that_do_not_change_traffic_have_exit_code_1_only_if_the_user_is_strict() {
        let mut view = shown(Verdict::Healthy);
        assert_eq!(exit_of(&view, &[]), Exit::Healthy);
        view.is_strict = true;
        assert_eq!(exit_of(&view, &[]), Exit::Fault);
        view.migration.items.retain(|item| item.outcome == Outcome::Ok);
        assert_eq!(exit_of(&view, &[]), Exit::Healthy);
    }
}
