//! Compatibility with command lines of the Go agents: flags with one or two dashes, booleans with or without a value,
//! durations such as `2m0s`, and the flags of klog.

use std::time::Duration;

/// klog flags without a value. The agents accept and ignore these flags, for compatibility with the Go agents.
const KLOG_SWITCHES: [&str; 7] = [
    "add_dir_header",
    "alsologtostderr",
    "legacy_stderr_threshold_behavior",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
];
/// klog flags with a value. The agents accept and ignore these flags, for compatibility with the Go agents. The list
/// does not contain `--v`, because `--v` sets our own log level.
const KLOG_SETTINGS: [&str; 7] = [
    "alsologtostderrthreshold",
    "log_backtrace_at",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "stderrthreshold",
    "vmodule",
];

/// Command line of a Go agent, converted for clap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// Arguments without klog flags. All long flags have two dashes.
    pub arguments: Vec<String>,
    /// Names of the klog flags that were removed. The agent logs one warning with these names.
    pub ignored: Vec<String>,
}

/// Rewrites a command line of a Go agent for clap. The first argument is the name of the program.
pub fn command_line(arguments: impl IntoIterator<Item = String>) -> CommandLine {
    let mut arguments = arguments.into_iter();
    let mut kept: Vec<String> = arguments.next().into_iter().collect();
    let mut ignored = Vec::new();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            kept.push(argument);
            kept.extend(arguments);
            break;
        }
        let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')).filter(|f| !f.is_empty())
        else {
            kept.push(argument);
            continue;
        };
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        if KLOG_SWITCHES.contains(&name) {
            ignored.push(name.to_owned());
        } else if KLOG_SETTINGS.contains(&name) {
            ignored.push(name.to_owned());
            if value.is_none() {
                arguments.next();
            }
        } else if name == "h" || name == "V" {
            kept.push(format!("-{flag}"));
        } else {
            kept.push(format!("--{flag}"));
        }
    }
    CommandLine { arguments: kept, ignored }
}

/// Parses a boolean flag as Go's `strconv.ParseBool` does.
pub fn parse_bool(written: &str) -> Result<bool, String> {
    match written {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("use true or false".to_owned()),
    }
}

/// Parses a duration flag as Go's `time.ParseDuration` does: `300ms`, `1.5h`, `2m0s`, `0`. Negative durations are
/// malformed.
pub fn parse_duration(written: &str) -> Result<Duration, String> {
    let wrong = || "use a duration such as 500ms, 2s or 1m30s".to_owned();
    if written == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = written.strip_prefix('+').unwrap_or(written);
    let mut total_seconds = 0.0_f64;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let number: f64 = rest[..number_end].parse().map_err(|_| wrong())?;
        rest = &rest[number_end..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        total_seconds += number
            * match &rest[..unit_end] {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(wrong()),
            };
        rest = &rest[unit_end..];
    }
    Duration::try_from_secs_f64(total_seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(arguments: &[&str]) -> Vec<String> {
        command_line(arguments.iter().map(|argument| (*argument).to_owned())).arguments
    }

    #[test]
    fn one_dash_is_as_good_as_two() {
        assert_eq!(
            kept(&["agent", "-leader-elect=false", "--v", "2", "-v=3"]),
            ["agent", "--leader-elect=false", "--v", "2", "--v=3"]
        );
        assert_eq!(kept(&["agent", "-h"]), ["agent", "-h"]);
        assert_eq!(kept(&["agent", "--", "-x"]), ["agent", "--", "-x"]);
    }

    /// Rule G3: Flags are written as for the Go agents
    /// Then: The agent accepts flags with one dash or two, and durations such as `2m0s`. The agent ignores klog's
    /// flags, and logs a warning with the ignored flags
    #[test]
    fn klog_flags_are_taken_and_named() {
        let arguments = ["agent", "--add_dir_header", "--vmodule", "a=1", "-logtostderr=true", "--v=2"];
        let line = command_line(arguments.map(str::to_owned));
        assert_eq!(line.arguments, ["agent", "--v=2"]);
        assert_eq!(line.ignored, ["add_dir_header", "vmodule", "logtostderr"]);
    }

    /// Also rule G3.
    #[test]
    fn durations_are_written_as_in_go() {
        let table = [
            ("2m0s", Ok(Duration::from_secs(120))),
            ("300ms", Ok(Duration::from_millis(300))),
            ("1.5h", Ok(Duration::from_secs(5400))),
            ("1h0m0.5s", Ok(Duration::from_millis(3_600_500))),
            ("0", Ok(Duration::ZERO)),
            ("", Err(())),
            ("5", Err(())),
            ("5 s", Err(())),
            ("-5s", Err(())),
            ("s", Err(())),
            ("1d", Err(())),
        ];
        for (written, expected) in table {
            assert_eq!(parse_duration(written).map_err(|_| ()), expected, "{written:?}");
        }
    }

    #[test]
    fn booleans_are_written_as_in_go() {
        assert_eq!(parse_bool("T"), Ok(true));
        assert_eq!(parse_bool("0"), Ok(false));
        assert!(parse_bool("yes").is_err());
    }
}
