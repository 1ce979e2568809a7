//! Script of the pod, and its log. The log has one line for each target:
//!
//! ```text
//! fleetnet-result <number of the target> <exit code> <message of nc>
//! ```

use super::{By, Outcome, Outcomes, Target};
use crate::explain::quoted;
use crate::limits::{CONNECT_SECONDS, CONNECTIONS_AT_ONCE, RESOLVE_SECONDS};
use std::fmt::Write as _;

/// First word of a result in the log.
const RESULT: &str = "fleetnet-result";
/// Exit code of `timeout` when it has ended its command: of GNU and newer BusyBox, and of older BusyBox.
const ENDED: [i32; 2] = [124, 143];
/// Messages of `nc`, of BusyBox and of OpenBSD, in small letters.
const MESSAGES: [(&str, Outcome); 13] = [
    ("bad address", Outcome::NameNotResolved),
    ("getaddrinfo", Outcome::NameNotResolved),
    ("name or service not known", Outcome::NameNotResolved),
    ("name resolution", Outcome::NameNotResolved),
    ("name does not resolve", Outcome::NameNotResolved),
    ("refused", Outcome::Refused),
    ("no route", Outcome::NoRoute),
    ("unreachable", Outcome::NoRoute),
    ("cannot assign requested address", Outcome::NoRoute),
    ("address not available", Outcome::NoRoute),
    ("timed out", Outcome::TimedOut),
    ("timeout", Outcome::TimedOut),
    ("operation now in progress", Outcome::TimedOut),
];

/// Returns the script for a shell with `nc`, `timeout`, `tr` and `cut`, as BusyBox has them. It never fails: the log
/// has the results.
///
/// `nc -z` ends after it has connected. BusyBox without `-z` starts a program instead, which ends at once.
#[must_use]
pub fn script(targets: &[Target]) -> String {
    let mut script = format!(
        "case $(nc -z -w 1 127.0.0.1 1 2>&1 </dev/null) in
*option*) before=; after='-e true' ;;
*) before='-z -vv'; after= ;;
esac
try() {{
  number=$1 limit=$2 host=$3 port=$4
  message=$(timeout \"$limit\" nc $before -w {CONNECT_SECONDS} \"$host\" \"$port\" $after 2>&1 </dev/null)
  code=$?
  message=$(printf %s \"$message\" | tr '\\n\\r\\t' '   ' | cut -c -200)
  printf '{RESULT} %s %s %s\\n' \"$number\" \"$code\" \"$message\"
}}
"
    );
    for (number, target) in targets.iter().enumerate() {
        // A name can have two addresses, which `nc` tries one after the other.
        let limit = match target.by {
            By::Address | By::Service => CONNECT_SECONDS + 1,
            By::Name => 2 * CONNECT_SECONDS + RESOLVE_SECONDS,
        };
        // Writing to a String does not fail.
        let _ = writeln!(script, "try {number} {limit} {} {} &", quoted(&target.host), target.port);
        if (number + 1).is_multiple_of(CONNECTIONS_AT_ONCE) {
            script.push_str("wait\n");
        }
    }
    script.push_str("wait\n");
    script
}

/// Reads the log of the pod. Lines of others are skipped. A target without a result was not tested, for the reason
/// `missing`.
#[must_use]
pub fn parse(log: &str, targets: &[Target], missing: &str) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for line in log.lines() {
        let Some((target, outcome)) = result(line, targets) else { continue };
        outcomes.entry(target.clone()).or_insert(outcome);
    }
    for target in targets {
        outcomes.entry(target.clone()).or_insert_with(|| Outcome::NotTested(missing.to_owned()));
    }
    outcomes
}

/// Returns the result in a line. The end of a log that was cut off has no complete line.
fn result<'a>(line: &str, targets: &'a [Target]) -> Option<(&'a Target, Outcome)> {
    let mut words = line.trim_start().strip_prefix(RESULT)?.strip_prefix(' ')?.splitn(3, ' ');
    let target = targets.get(words.next()?.parse::<usize>().ok()?)?;
    let code = words.next()?.parse().ok()?;
    Some((target, outcome(code, words.next()?, target.by)))
}

/// Returns the outcome of an exit code and a message of `nc`.
#[must_use]
pub fn outcome(code: i32, message: &str, by: By) -> Outcome {
    if code == 0 {
        return Outcome::Connected;
    }
    let text = message.to_lowercase();
    match MESSAGES.iter().find(|(part, _)| text.contains(part)) {
        Some((_, outcome)) => outcome.clone(),
        // `nc` limits the connection itself, so only DNS takes longer.
        None if ENDED.contains(&code) && by == By::Name => Outcome::NameNotResolved,
        None if ENDED.contains(&code) => Outcome::TimedOut,
        None if code == 127 => Outcome::NotTested(format!("the image lacks a program: {}", message.trim())),
        None => Outcome::NotTested(format!("nc ended with code {code}: {}", message.trim())),
    }
}
