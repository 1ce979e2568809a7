//! Checks that each limit has a name and a reason, in the `limits.rs` of its crate.

use super::source::Tree;

/// Crates whose limits are checked: the crates of the agents. In other crates, most numbers are parameters of tests and
/// measurements.
const CRATES: [&str; 9] = [
    "types",
    "core",
    "api",
    "endpointslice",
    "endpointslice/controller",
    "runtime",
    "agent",
    "member-agent",
    "hub-agent",
];

/// Start of a comment above a number that is no limit, for example an exit code or a unit. The reason follows.
const MARK: &str = "// no limit: ";

pub(super) fn queues_without_limit(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.rust() {
        places.extend(file.places(&file.code, "unbounded_channel"));
        for (number, line) in file.production_lines(&file.code) {
            let Some((_, capacity)) =
                line.split_once("mpsc::channel(").or_else(|| line.split_once("broadcast::channel("))
            else {
                continue;
            };
            let folder = file.path.split_once("/src/").map_or("", |(folder, _)| folder);
            let limits = tree.file(&format!("{folder}/src/limits.rs"));
            let name: String = capacity.chars().take_while(|letter| *letter != ')').collect();
            let constant = name.rsplit("::").next().unwrap_or_default();
            if !limits.is_some_and(|limits| limits.text.contains(&format!("const {constant}: usize"))) {
                places.push(format!("{}:{number}: {folder}/src/limits.rs has no {constant}", file.path));
            }
        }
    }
    places
}

/// Returns constants outside of `limits.rs` that are numbers or durations, and durations written in the code.
pub(super) fn limits_elsewhere(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in CRATES.iter().flat_map(|folder| tree.sources(folder)) {
        if file.path.ends_with("/limits.rs") {
            continue;
        }
        let lines: Vec<&str> = file.text.lines().collect();
        let is_marked = |number: usize| {
            let above = number.checked_sub(2).and_then(|index| lines.get(index));
            above.is_some_and(|line| line.trim_start().strip_prefix(MARK).is_some_and(|reason| !reason.is_empty()))
        };
        for (number, line) in file.production_lines(&file.code) {
            if let Some(what) = constant(line).or_else(|| time(line))
                && !is_marked(number)
            {
                places.push(format!("{}:{number}: {what}", file.path));
            }
        }
    }
    places
}

/// Returns limits without a doc comment. The doc comment must explain the limit.
pub(super) fn limits_without_reason(tree: &Tree) -> Vec<String> {
    let mut places = Vec::new();
    for file in tree.rust().filter(|file| file.path.ends_with("/src/limits.rs")) {
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(name) = constant(line) else { continue };
            let mut above = lines[..index].iter().rev();
            let is_between = |line: &&&str| line.starts_with("#[") || line.starts_with("// ");
            if !above.find(|line| !is_between(line)).is_some_and(|line| line.starts_with("///")) {
                places.push(format!("{}:{}: {name}", file.path, index + 1));
            }
        }
    }
    places
}

/// Returns the name of the constant that a line declares, if its type contains a number or a duration.
fn constant(line: &str) -> Option<&str> {
    let (visibility, rest) = line.split_once("const ")?;
    let (name, rest) = rest.split_once(": ")?;
    let (kind, _) = rest.split_once(" =")?;
    let is_item = visibility.is_empty() || visibility.starts_with("pub");
    let is_name = name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let is_single = !kind.contains(['&', '[', '(']);
    let mut words = kind.split(|letter: char| !letter.is_ascii_alphanumeric());
    (is_item && is_name && is_single && words.any(is_measure)).then_some(name)
}

/// True if a word of a type is a number or a duration.
fn is_measure(word: &str) -> bool {
    let is_size = |size: &str| size == "size" || !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit());
    word == "Duration" || word.starts_with("NonZero") || word.strip_prefix(['u', 'i', 'f']).is_some_and(is_size)
}

/// Returns the first call in a line that makes a duration from digits, such as `Duration::from_secs` in
/// `Duration::from_secs(3)`.
fn time(line: &str) -> Option<&str> {
    let times = line.match_indices("Duration::from_").map(|(at, _)| &line[at..]);
    let mut written = times.filter_map(|text| {
        let (call, argument) = text.split_once('(')?;
        argument.starts_with(|letter: char| letter.is_ascii_digit()).then_some(call)
    });
    written.next()
}
