//! Output of the commands. Data goes to standard output; progress, notes and errors go to standard error.
//!
//! All printing of the commands is in this module, so that only [`Safe`] text reaches a terminal.

pub(crate) mod names;
pub(crate) mod progress;
pub(crate) mod safe;
pub(crate) mod table;

use super::contexts::HEADING;
use safe::Safe;
use serde_json::{Map, Value, json};
use std::io::{self, IsTerminal as _, Write as _};

/// Version of the JSON and YAML output. Within this version, output only gets new fields.
pub(crate) const API_VERSION: &str = "cli.fleetnet/v1";

/// Format of the data on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Lines for people.
    #[default]
    Table,
    /// Lines for people, with more columns.
    Wide,
    /// One JSON document with `apiVersion: cli.fleetnet/v1` and a `kind`.
    Json,
    /// The same document as YAML.
    Yaml,
    /// Names of the objects only, one a line.
    Name,
}

/// Output options that all commands have.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct OutputFlags {
    /// Format of the output.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t, help_heading = HEADING, hide_short_help = true)]
    pub(crate) output: Format,

    /// Leave out the headers of tables.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    pub(crate) no_headers: bool,

    /// Use no colours. The environment variable NO_COLOR does the same.
    #[arg(long, help_heading = HEADING, hide_short_help = true)]
    pub(crate) no_color: bool,
}

impl OutputFlags {
    /// Returns if tables on standard output have colours.
    pub(crate) fn paint(self) -> Paint {
        let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if self.no_color || wants_none || !io::stdout().is_terminal() { Paint::Plain } else { Paint::Colours }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Colours,
}

/// Result of a command, in every format.
pub(crate) trait Report {
    /// Value of `kind` in JSON and YAML.
    fn kind(&self) -> &'static str;
    /// Members of the JSON document.
    fn document(&self) -> Map<String, Value>;
    /// Lines for people.
    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe;
    /// Names of the objects.
    fn names(&self) -> Vec<String>;
}

/// Returns a report in a format.
pub(crate) fn render(report: &dyn Report, flags: OutputFlags, paint: Paint) -> Safe {
    match flags.output {
        Format::Table | Format::Wide => report.lines(flags.output, !flags.no_headers, paint),
        Format::Json => {
            let mut text = Safe::json(&document(report));
            text.push_own("\n");
            text
        }
        Format::Yaml => Safe::yaml(&document(report)),
        Format::Name => {
            let mut text = Safe::default();
            for name in report.names() {
                text.push(&Safe::line(&name));
                text.push_own("\n");
            }
            text
        }
    }
}

/// Returns the JSON document of a report.
pub(crate) fn document(report: &dyn Report) -> Value {
    let mut document = Map::new();
    document.insert("apiVersion".to_owned(), json!(API_VERSION));
    document.insert("kind".to_owned(), json!(report.kind()));
    document.extend(report.document());
    Value::Object(document)
}

/// Prints a report to standard output.
///
/// # Errors
/// If standard output cannot be written to. A reader that has closed it, such as `head`, is no error.
pub(crate) fn print(report: &dyn Report, flags: OutputFlags) -> io::Result<()> {
    write(&render(report, flags, flags.paint()))
}

/// Prints a report in place of the one before. Without a terminal, and in formats for programs, it comes after the one
/// before.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_again(report: &dyn Report, flags: OutputFlags) -> io::Result<()> {
    let mut text = Safe::default();
    if io::stdout().is_terminal() && matches!(flags.output, Format::Table | Format::Wide) {
        text.push_own("\x1b[H\x1b[2J");
    }
    text.push(&render(report, flags, flags.paint()));
    write(&text)
}

/// Prints text to standard output.
///
/// # Errors
/// As [`print`].
pub(crate) fn write(text: &Safe) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_str().as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a line to standard error. Nobody can be told if that fails.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", Safe::line(text));
}

/// True if a user can answer a question.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Prints a question to standard error and reads the answer. Only `y` and `yes` agree.
///
/// # Errors
/// If the question cannot be printed, or the answer cannot be read.
pub(crate) fn ask(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{} ", Safe::line(question))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Prints an error to standard error, on one line.
pub(crate) fn error(text: &str) {
    let _ = writeln!(io::stderr(), "error: {}", Safe::line(text));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Returns the Rust files in a folder and its folders.
    fn sources(folder: &Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(sources(&path));
            } else {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
        found
    }

    #[test]
    fn only_this_module_prints() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli");
        let sources = sources(&folder);
        assert!(sources.len() > 5, "{folder:?}");
        for (path, text) in sources {
            if path.ends_with("cli/output.rs") {
                continue;
            }
            for printer in ["println!", "print!(", "io::stdout", "io::stderr", "stdout()", "dbg!"] {
                assert!(!text.contains(printer), "{path} uses {printer}: use crate::cli::output");
            }
        }
    }
}
