//! The picture of a fleet, as lines that fit a terminal. Pure.

use super::lines;
use super::state::State;
use crate::sandbox::event::Export;
use chrono::{DateTime, Local};
use std::collections::BTreeMap;

/// Whether to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    With,
    Without,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Heading,
    Good,
    Bad,
    Faint,
}

type Lines = Vec<(Look, String)>;

/// A part of the picture, which is cut where there is no room for all of it.
struct Part {
    lines: Lines,
    /// Of what is too long its end is shown, not its beginning.
    newest_last: bool,
}

/// The whole picture: at most `size.rows` lines of at most `size.columns` characters.
pub(super) fn draw(state: &State, now: DateTime<Local>, size: Size, colours: Colours) -> Vec<String> {
    let parts =
        [header(state, now), kubeconfigs(state), exports(state), imports(state), latencies(state), happened(state)];
    let parts: Vec<Part> = parts.into_iter().filter(|part| !part.lines.is_empty()).collect();
    let wanted: Vec<usize> = parts.iter().map(|part| part.lines.len()).collect();
    let rooms = share(&wanted, size.rows.saturating_sub(parts.len()));
    let mut drawn = Vec::new();
    for (part, room) in parts.into_iter().zip(rooms) {
        for (look, line) in cut(part, room) {
            drawn.push(paint(look, &fit(&line, size.columns), colours));
        }
        drawn.push(String::new());
    }
    drawn.truncate(size.rows);
    drawn
}

/// What is left on the screen at the end.
pub(super) fn last(state: &State) -> Vec<String> {
    let mut left: Vec<String> = latencies(state).lines.into_iter().map(|(_, line)| line).collect();
    left.extend(cost(state));
    if let Some((passed, wrong)) = &state.verdict {
        left.extend(lines::verdict(*passed, wrong).lines().map(str::to_owned));
    }
    left
}

fn header(state: &State, now: DateTime<Local>) -> Part {
    let seconds = state.began.map_or(0, |began| now.signed_duration_since(began).num_seconds().max(0));
    let mut lines = vec![(
        Look::Heading,
        format!("fleetnet sandbox   {:02}:{:02}   {}   Ctrl-C ends it", seconds / 60, seconds % 60, state.headline),
    )];
    if let Some((passed, wrong)) = &state.verdict {
        let look = if *passed { Look::Good } else { Look::Bad };
        lines.extend(lines::verdict(*passed, wrong).lines().map(|line| (look, line.to_owned())));
    }
    Part { lines, newest_last: false }
}

fn kubeconfigs(state: &State) -> Part {
    Part {
        lines: headed("KUBECTL", state.kubeconfigs.iter().map(|line| (Look::Plain, line.clone())).collect()),
        newest_last: false,
    }
}

/// A line for each Service and what its exports say, with those that say the same.
fn exports(state: &State) -> Part {
    let mut alike: BTreeMap<(&str, String), (Look, Vec<&str>)> = BTreeMap::new();
    for ((service, cluster), export) in &state.exports {
        let told = crate::sandbox::observe::told(export);
        let look =
            if *export == (Export { valid: Some(true), conflict: Some(false) }) { Look::Good } else { Look::Bad };
        alike.entry((service, told)).or_insert((look, Vec::new())).1.push(cluster);
    }
    let line = |((service, told), (look, clusters)): ((&str, String), (Look, Vec<&str>))| {
        (look, format!("{service} of {} {told}", clusters.join(", ")))
    };
    Part { lines: headed("EXPORTS", alike.into_iter().map(line).collect()), newest_last: false }
}

fn imports(state: &State) -> Part {
    let line = |((service, cluster), import): (&(String, String), &crate::sandbox::event::Import)| {
        let look = if import.valid && import.slices > 0 { Look::Good } else { Look::Bad };
        (look, format!("{service} in {cluster} {}", lines::imported(import)))
    };
    Part { lines: headed("IMPORTS", state.imports.iter().map(line).collect()), newest_last: false }
}

fn latencies(state: &State) -> Part {
    let width = state.pairs.keys().map(|(origin, destination)| origin.len() + destination.len() + 4).max().unwrap_or(0);
    let line = |((origin, destination), samples): (&(String, String), &crate::sandbox::measure::Samples)| {
        let latency = samples.latency()?;
        let pair = format!("{origin} -> {destination}");
        let (p50, p99) = (latency.p50_milliseconds, latency.p99_milliseconds);
        Some((Look::Plain, format!("{pair:width$}  {p50:8.1} {p99:8.1} {:8}", latency.samples)))
    };
    let heading = format!("{:width$}  {:>8} {:>8} {:>8}", "LATENCY", "p50 ms", "p99 ms", "changes");
    Part { lines: headed(&heading, state.pairs.iter().filter_map(line).collect()), newest_last: false }
}

fn happened(state: &State) -> Part {
    let mut lines = headed("WHAT HAPPENS", state.happened.iter().map(|line| (Look::Plain, line.clone())).collect());
    if let (Some((_, heading)), Some(cost)) = (lines.first_mut(), cost(state)) {
        *heading = format!("{heading}   {cost}");
    }
    Part { lines, newest_last: true }
}

/// What a change costs, on average.
fn cost(state: &State) -> Option<String> {
    let changes = f64::from(state.changes);
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    let each = |times: u64| times as f64 / changes;
    let parts = state.writes.by_cluster.iter().map(|(cluster, times)| format!("{cluster} {:.1}", each(*times)));
    let parts: Vec<String> = parts.collect();
    (state.changes > 0).then(|| format!("{:.1} writes for a change ({})", each(state.writes.total), parts.join(", ")))
}

fn headed(heading: &str, lines: Lines) -> Lines {
    if lines.is_empty() {
        return lines;
    }
    std::iter::once((Look::Heading, heading.to_owned())).chain(lines).collect()
}

/// Shares rows among parts: each gets what it wants while there is enough, and else an equal share of what the more
/// modest ones leave.
fn share(wanted: &[usize], rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|part| wanted[*part]);
    let (mut left, mut shares) = (rows, vec![0; wanted.len()]);
    for (position, part) in order.iter().enumerate() {
        shares[*part] = wanted[*part].min(left / (wanted.len() - position));
        left -= shares[*part];
    }
    shares
}

/// A part in its rows, with a line that says how much is left out.
fn cut(part: Part, room: usize) -> Lines {
    let Part { mut lines, newest_last } = part;
    if lines.len() <= room || room < 3 {
        lines.truncate(room);
        return lines;
    }
    let out = lines.len() - room + 1;
    if newest_last {
        // The heading stays.
        lines.drain(1..=out);
        lines.insert(1, (Look::Faint, format!("… {out} before these")));
    } else {
        lines.truncate(room - 1);
        lines.push((Look::Faint, format!("… and {out} more")));
    }
    lines
}

fn fit(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    line.chars().take(columns.saturating_sub(1)).chain(['…']).take(columns).collect()
}

fn paint(look: Look, line: &str, colours: Colours) -> String {
    let code = match look {
        Look::Plain => return line.to_owned(),
        Look::Heading => "1",
        Look::Good => "32",
        Look::Bad => "33",
        Look::Faint => "2",
    };
    match colours {
        Colours::With => format!("\u{1b}[{code}m{line}\u{1b}[0m"),
        Colours::Without => line.to_owned(),
    }
}

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
