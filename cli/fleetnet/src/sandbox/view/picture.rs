//! Picture of a fleet, as lines that fit the size of a terminal. Does no I/O.

use super::state::{Happened, State};
use super::{legend, lines};
use crate::limits::{CLUSTERS_NAMED, PAIRS_LISTED};
use crate::sandbox::event::{Export, Latency};
use crate::sandbox::measure::Samples;
use chrono::{DateTime, Local};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    With,
    Without,
}

/// Size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Plain,
    Heading,
    Good,
    Bad,
    Faint,
}

type Lines = Vec<(Look, String)>;

/// Part of the picture, such as the imports. Its lines are cut if there is not enough room.
struct Part {
    lines: Lines,
    /// True if the first line is a heading. If only one line fits, the picture shows a line of data instead of the
    /// heading.
    headed: bool,
    /// True if the newest lines of the part are last. If there is not enough room, such a part loses its first lines
    /// instead of its last lines.
    newest_last: bool,
    /// Importance of the part.
    rank: Rank,
}

/// Importance of a part. When room is scarce, the least important parts disappear first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Imports, latencies and changes: the purpose of a sandbox.
    Main,
    Header,
    Exports,
    Kubeconfigs,
    Fleet,
}

/// Number of lines of each important part that must fit before a less important part is shown.
const WORTH: usize = 5;

/// Draws the picture: at most `size.rows` lines of at most `size.columns` characters.
pub(super) fn draw(state: &State, now: DateTime<Local>, size: Size, colours: Colours) -> Vec<String> {
    let Size { columns, rows } = size;
    let last = if state.has_legend { legend() } else { happened(state, columns) };
    let parts = [
        header(state, now, columns),
        fleet(state, now),
        kubeconfigs(state),
        exports(state),
        imports(state),
        latencies(state, columns),
        last,
    ];
    let mut parts: Vec<Part> = parts.into_iter().filter(|part| !part.lines.is_empty()).collect();
    let gaps = give_way(&mut parts, rows);
    let wanted: Vec<usize> = parts.iter().map(|part| part.lines.len()).collect();
    let rooms = share(&wanted, rows.saturating_sub(if gaps { parts.len() } else { 0 }));
    let mut drawn = Vec::new();
    for (part, room) in parts.into_iter().zip(rooms) {
        for (look, line) in cut(part, room) {
            drawn.push(paint(look, &fit(&line, columns), colours));
        }
        if gaps {
            drawn.push(String::new());
        }
    }
    drawn.truncate(rows);
    drawn
}

/// Drops the least important parts when room is scarce. Returns true if there is room for empty lines between the
/// parts.
fn give_way(parts: &mut Vec<Part>, rows: usize) -> bool {
    let worth = |parts: &[Part], most: usize| parts.iter().map(|part| part.lines.len().min(most)).sum::<usize>();
    for rank in [Rank::Fleet, Rank::Kubeconfigs, Rank::Exports] {
        if worth(parts, WORTH) + parts.len() > rows {
            parts.retain(|part| part.rank != rank);
        }
    }
    // Every part needs its heading and one line. If these lines do not fit, drop the picture's header.
    if worth(parts, 2) > rows {
        parts.retain(|part| part.rank != Rank::Header);
    }
    worth(parts, WORTH) + parts.len() <= rows
}

/// Returns the lines that stay on the terminal after the sandbox has ended.
pub(super) fn last(state: &State) -> Vec<String> {
    let mut left: Vec<String> = latencies(state, usize::MAX).lines.into_iter().map(|(_, line)| line).collect();
    left.extend(cost(state));
    for line in state.verdict.iter().map(|(_, line)| line).chain(&state.ended) {
        left.extend(line.lines().map(str::to_owned));
    }
    left
}

/// Returns the part with the hub and its members.
fn fleet(state: &State, now: DateTime<Local>) -> Part {
    let look = |is_well| if is_well { Look::Plain } else { Look::Bad };
    let lines = legend::fleet(state, now).into_iter().map(|(is_well, line)| (look(is_well), line)).collect();
    Part { lines: headed("FLEET", lines), headed: true, newest_last: false, rank: Rank::Fleet }
}

fn legend() -> Part {
    let lines = legend::lines().into_iter().map(|line| (Look::Plain, line)).collect();
    Part { lines: headed("LEGEND", lines), headed: true, newest_last: false, rank: Rank::Main }
}

fn header(state: &State, now: DateTime<Local>, columns: usize) -> Part {
    let seconds = state.began.map_or(0, |began| now.signed_duration_since(began).num_seconds().max(0));
    let look = if state.is_well() { Look::Heading } else { Look::Bad };
    let keys = if state.has_keys { "q ends it, ? shows all keys" } else { "Ctrl-C ends it" };
    let time = format!("{:02}:{:02}", seconds / 60, seconds % 60);
    let mut lines = vec![(look, format!("fleetnet sandbox   {time}   {}   {keys}", state.headline()))];
    lines.extend(state.page.iter().flat_map(|url| page(url, columns)).map(|line| (Look::Plain, line)));
    if let Some((passed, verdict)) = &state.verdict {
        let look = if *passed { Look::Good } else { Look::Bad };
        lines.extend(verdict.lines().map(|line| (look, line.to_owned())));
    }
    Part { lines, headed: false, newest_last: false, rank: Rank::Header }
}

/// Returns lines that say where the page is. An address that does not fit is on lines of its own, and no part of it is
/// cut.
fn page(url: &str, columns: usize) -> Vec<String> {
    let line = format!("{} {url}", lines::PAGE);
    if line.chars().count() <= columns {
        return vec![line];
    }
    let parts = url.as_bytes().chunks(columns.max(1)).map(|part| String::from_utf8_lossy(part).into_owned());
    std::iter::once(lines::PAGE.to_owned()).chain(parts).collect()
}

fn kubeconfigs(state: &State) -> Part {
    let lines = state.kubeconfigs.iter().map(|line| (Look::Plain, line.clone())).collect();
    Part { lines: headed("KUBECTL", lines), headed: true, newest_last: false, rank: Rank::Kubeconfigs }
}

/// Returns the part about exports: a line for each Service and state of its exports. Clusters with the same state share
/// a line.
fn exports(state: &State) -> Part {
    let mut alike: Alike<'_> = BTreeMap::new();
    for ((service, cluster), export) in &state.exports {
        let well = *export == Export { valid: Some(true), conflict: Some(false) };
        let description = crate::sandbox::observe::export_state(export);
        alike.entry((service, description)).or_insert((well, Vec::new())).1.push(cluster);
    }
    // While the hub is down, nobody checks exports: what is shown is old.
    let heading = if state.hub_down_since.is_some() { "EXPORTS   as before the hub was down" } else { "EXPORTS" };
    let mut lines = grouped(alike, "of");
    if state.hub_down_since.is_some() {
        lines.iter_mut().for_each(|(look, _)| *look = Look::Plain);
    }
    Part { lines: headed(heading, lines), headed: true, newest_last: false, rank: Rank::Exports }
}

/// Returns the part about imports: a line for each Service and state of its imports. Clusters with the same state share
/// a line.
fn imports(state: &State) -> Part {
    let mut alike: Alike<'_> = BTreeMap::new();
    for ((service, cluster), import) in &state.imports {
        let from: Vec<&str> = import.from.iter().map(String::as_str).collect();
        let description = lines::imported_from(import, &clusters(&from));
        let well = import.valid && import.slices > 0 && import.draining == 0;
        alike.entry((service, description)).or_insert((well, Vec::new())).1.push(cluster);
    }
    Part { lines: headed("IMPORTS", grouped(alike, "in")), headed: true, newest_last: false, rank: Rank::Main }
}

/// Clusters that have the same state of a Service, to describe them on one line. The key is the Service and the state
/// in words. The bool is true for a good state, and the list has the names of the clusters.
type Alike<'a> = BTreeMap<(&'a str, String), (bool, Vec<&'a str>)>;

fn grouped(alike: Alike<'_>, word: &str) -> Lines {
    // Sort problems first, so that they are not cut when room is scarce.
    let mut all: Vec<_> = alike.into_iter().collect();
    all.sort_by_key(|(_, (well, _))| *well);
    let line = |((service, description), (well, members)): ((&str, String), (bool, Vec<&str>))| {
        let look = if well { Look::Good } else { Look::Bad };
        (look, format!("{service} {word} {} {description}", clusters(&members)))
    };
    all.into_iter().map(line).collect()
}

/// Lists the names of a few clusters. Returns only the number of the clusters if there are many.
fn clusters(names: &[&str]) -> String {
    if names.len() > CLUSTERS_NAMED {
        return format!("{} clusters", names.len());
    }
    let mut names = names.to_vec();
    names.sort_by_key(|name| lines::natural(name));
    names.join(", ")
}

/// Returns the part about latencies: a line for each pair of clusters. Pairs of a cluster with itself are last. If
/// there are many pairs, the first line is a summary of all pairs of different clusters. Before the pairs are latencies
/// with a slice stream and without one.
fn latencies(state: &State, columns: usize) -> Part {
    let mut rows: Vec<(String, Latency)> = Vec::new();
    let is_large = state.pairs.len() > CLUSTERS_NAMED * CLUSTERS_NAMED;
    let row = |((origin, destination), samples): (&(String, String), &Samples)| {
        let order = (origin == destination, lines::natural(origin), lines::natural(destination));
        Some((order, lines::pair(origin, destination), samples.latency()?))
    };
    let mut pairs: Vec<_> = state.pairs.iter().filter_map(row).collect();
    if is_large {
        rows.extend(state.between.latency().map(|latency| ("between clusters".to_owned(), latency)));
        pairs.retain(|((is_itself, ..), ..)| !is_itself);
        pairs.sort_by(|(first, _, one), (second, _, other)| {
            other.p50_milliseconds.total_cmp(&one.p50_milliseconds).then_with(|| first.cmp(second))
        });
        pairs.truncate(PAIRS_LISTED);
    } else {
        pairs.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    }
    if let (Some(with), Some(without)) = state.by_stream.latencies() {
        rows.extend([("with slice stream", with), ("without stream", without)].map(|(name, it)| (name.to_owned(), it)));
    }
    rows.extend(pairs.into_iter().map(|(_, name, latency)| (name, latency)));
    // Each line is a name and up to four columns of numbers. A column has 9 characters: a space, and the number in 8
    // characters. The first column is always shown, so the name gets at most all characters but 10. Other columns are
    // shown only if there is enough room.
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).min(columns.saturating_sub(10));
    let shown = (columns.saturating_sub(width + 1) / 9).clamp(1, 4);
    let line = |name: &str, cells: [String; 4]| {
        let cells: String = cells.iter().take(shown).map(|cell| format!(" {cell:>8}")).collect();
        format!("{:width$} {cells}", fit(name, width))
    };
    let heading = if is_large { "LATENCY (slowest)" } else { "LATENCY" };
    let heading = line(heading, ["p50 ms", "max ms", "changes", "p99 ms"].map(str::to_owned));
    let row = |(name, latency): &(String, Latency)| {
        let p99 = latency.p99_milliseconds.map_or_else(|| "-".to_owned(), |p99| format!("{p99:.1}"));
        let [p50, max] = [latency.p50_milliseconds, latency.max_milliseconds].map(|it| format!("{it:.1}"));
        (Look::Plain, line(name, [p50, max, latency.samples.to_string(), p99]))
    };
    let lines = headed(&heading, rows.iter().map(row).collect());
    Part { lines, headed: true, newest_last: false, rank: Rank::Main }
}

fn happened(state: &State, columns: usize) -> Part {
    let line = |happened: &Happened| {
        let fits = happened.long.chars().count() <= columns;
        (Look::Plain, if fits { &happened.long } else { &happened.short }.clone())
    };
    let mut lines = headed("WHAT HAPPENS", state.happened.iter().map(line).collect());
    if let (Some((_, heading)), Some(cost)) = (lines.first_mut(), cost(state)) {
        *heading = format!("{heading}   {cost}");
    }
    Part { lines, headed: true, newest_last: true, rank: Rank::Main }
}

/// Describes the average cost of a change that reached all importers.
fn cost(state: &State) -> Option<String> {
    let changes = f64::from(state.changes);
    #[expect(clippy::cast_precision_loss, reason = "an average for people")]
    let each = |times: u64| times as f64 / changes;
    let counts: Vec<(String, u64)> =
        state.writes.by_cluster.iter().map(|(name, times)| (name.clone(), *times)).collect();
    let parts = lines::by_cluster(&counts, |times| format!("{:.1}", each(times)));
    let lost = if state.lost > 0 { format!(", {} lost", state.lost) } else { String::new() };
    let mean = if state.changes > 0 { format!("{:.1}", each(state.writes.total)) } else { "-".to_owned() };
    (state.changes + state.lost > 0).then(|| format!("{mean} writes for a change{lost} (1 + 2 per importer; {parts})"))
}

fn headed(heading: &str, lines: Lines) -> Lines {
    if lines.is_empty() {
        return lines;
    }
    std::iter::once((Look::Heading, heading.to_owned())).chain(lines).collect()
}

/// Divides the rows of the terminal among parts. If the rows do not suffice, small parts get all their rows, and the
/// other parts get equal shares of the remaining rows.
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

/// Cuts a part to `room` rows. One row shows the number of omitted lines.
fn cut(part: Part, room: usize) -> Lines {
    let Part { mut lines, newest_last, headed, .. } = part;
    if lines.len() <= room {
        return lines;
    }
    if room < 3 {
        let heading = if headed { Some(lines.remove(0)) } else { None };
        let first = if newest_last { lines.len().saturating_sub(1) } else { 0 };
        let data = lines.into_iter().skip(first).take(1);
        return heading.into_iter().filter(|_| room == 2).chain(data).take(room).collect();
    }
    let out = lines.len() - room + 1;
    if newest_last {
        // Keep the heading, and cut the lines after it.
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
