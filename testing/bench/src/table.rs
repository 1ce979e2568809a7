//! Tables of `docs/contributors/performance.md`: the time of each step of a change, and the times that each agent
//! measured itself.

use crate::churn::Churn;
use crate::environment::Role;
use crate::exposition::Summary;
use crate::quantiles::Quantiles;
use crate::stages::{Hops, Own};
use std::fmt::Write as _;

type Stage = (&'static str, fn(&Own) -> Summary);
type Hop = (&'static str, fn(&Hops) -> Quantiles);

const STAGES: [Stage; 6] = [
    ("decode one object", |own| own.decode),
    ("take it into the view", |own| own.view),
    ("plan one key", |own| own.plan),
    ("**own share of a change**, processor time", |own| own.share),
    ("from decoded news to the start of the write", |own| own.reaction),
    ("write, until it is answered", |own| own.write),
];

const HOPS: [Hop; 4] = [
    ("the user's patch is sent → the slice is seen in the exporter", |hops| hops.change),
    ("→ its EndpointSliceExport is seen in the hub", |hops| hops.export),
    ("→ its EndpointSliceImport is seen in the hub", |hops| hops.distribute),
    ("→ the imported slice is seen in the importer", |hops| hops.import),
];

/// Returns two tables in Markdown: the time of each step, and the times that each agent measured itself.
#[must_use]
pub fn of(churn: &Churn) -> String {
    let mut text = String::from("| hop, ms: p50 / p99 | agents | baseline |\n|---|---|---|\n");
    let hop = |it: Quantiles| format!("{:.1} / {:.1}", it.p50_milliseconds, it.p99_milliseconds);
    for (name, of) in HOPS {
        line(&mut text, name, [hop(of(&churn.stages.agents)), hop(of(&churn.stages.baseline))]);
    }
    line(&mut text, "**all of it**", [hop(churn.agents), hop(churn.baseline)]);

    text.push_str("\n| stage, µs: p50 / p99 | exporter | hub agent | importer |\n|---|---|---|---|\n");
    let own = |of: &dyn Fn(&Own) -> String| Role::ALL.map(|role| churn.stages.own.get(&role).map_or(String::new(), of));
    for (name, of) in STAGES {
        let stage = |own: &Own| format!("{:.0} / {:.0}", of(own).p50_microseconds, of(own).p99_microseconds);
        line(&mut text, name, own(&stage));
    }
    let processor = own(&|own| format!("{:.0}", own.processor_microseconds));
    line(&mut text, "processor time of the whole process for one change (mean)", processor);
    text
}

fn line<const N: usize>(text: &mut String, name: &str, values: [String; N]) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "| {name} | {} |", values.join(" | "));
}
