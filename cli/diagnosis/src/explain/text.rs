//! Texts of names, ports and addresses.

use super::reach::Reach;
use crate::limits::LISTED;

/// Returns the first names or addresses as text, with the number of the others.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let first = names[..names.len().min(LISTED)].join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => first,
        others => format!("{first} and {others} more"),
    }
}

/// Returns ports as text.
pub(super) fn ports_of<'a>(ports: impl Iterator<Item = (Option<&'a str>, i32)>) -> String {
    let ports: Vec<String> = ports.map(|(name, number)| port_text(name, number)).collect();
    listed(ports.iter().map(String::as_str))
}

/// Returns a port as text, such as `http 80`.
pub(super) fn port_text(name: Option<&str>, number: i32) -> String {
    format!("{} {number}", name.unwrap_or_default()).trim().to_owned()
}

/// Returns the difference of two sets of addresses and ports as text.
pub(super) fn difference(wanted: &Reach, found: &Reach) -> String {
    let missing = listed(wanted.difference(found).map(String::as_str));
    let excess = listed(found.difference(wanted).map(String::as_str));
    match (missing.is_empty(), excess.is_empty()) {
        (false, false) => format!("without {missing}, and still with {excess}"),
        (false, true) => format!("without {missing}"),
        (true, _) => format!("still with {excess}"),
    }
}
