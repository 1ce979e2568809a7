//! Syntax of names, labels and annotations: the rules of apimachinery. Each function returns the rule that a text
//! breaks.

const LABEL_BYTES: usize = 63;
const SUBDOMAIN_BYTES: usize = 253;

const LABEL: &str = "must have at most 63 lower case alphanumeric characters or '-', and start and end with an \
                     alphanumeric character";
const LABEL_1035: &str = "must have at most 63 lower case alphanumeric characters or '-', start with a letter, and end \
                          with an alphanumeric character";
const SUBDOMAIN: &str = "must have at most 253 lower case alphanumeric characters, '-' or '.', and each part must start \
                         and end with an alphanumeric character";
const QUALIFIED: &str = "must have the form 'name' or 'domain/name': at most 63 alphanumeric characters, '-', '_' or \
                         '.', the first and last of them alphanumeric";
const LABEL_VALUE: &str = "must be empty or have at most 63 alphanumeric characters, '-', '_' or '.', the first and last \
                           of them alphanumeric";
const SEGMENT: &str = "must not be '.' or '..', and must not contain '/' or '%'";

/// Checks a lowercase RFC 1123 subdomain, the form of most names. If `prefix` is true, `name` is a `generateName` and
/// may end in a dash.
#[must_use]
pub fn subdomain(name: &str, prefix: bool) -> Option<&'static str> {
    let name = masked(name, prefix);
    broken(name.len() <= SUBDOMAIN_BYTES && name.split('.').all(|part| is_label(part, is_lower_or_digit)), SUBDOMAIN)
}

/// Checks a lowercase RFC 1123 label, the form of names of namespaces and Services.
#[must_use]
pub fn label(name: &str, prefix: bool) -> Option<&'static str> {
    let name = masked(name, prefix);
    broken(name.len() <= LABEL_BYTES && is_label(&name, is_lower_or_digit), LABEL)
}

/// Checks a DNS-1035 label, the form of the names in a CustomResourceDefinition.
#[must_use]
pub fn label_1035(name: &str, prefix: bool) -> Option<&'static str> {
    let name = masked(name, prefix);
    broken(name.len() <= LABEL_BYTES && is_label(&name, |first| first.is_ascii_lowercase()), LABEL_1035)
}

/// Checks that a name is usable as a path segment, for example the name of a Role.
#[must_use]
pub fn path_segment(name: &str, prefix: bool) -> Option<&'static str> {
    broken((prefix || !matches!(name, "." | "..")) && !name.contains(['/', '%']), SEGMENT)
}

/// Checks a qualified name: a key of a label or annotation, or a finalizer.
#[must_use]
pub fn qualified(name: &str) -> Option<&'static str> {
    let (prefix, part) = match name.split_once('/') {
        Some((prefix, part)) => (Some(prefix), part),
        None => (None, name),
    };
    let right = prefix.is_none_or(|prefix| subdomain(prefix, false).is_none());
    broken(right && part.len() <= LABEL_BYTES && is_word(part), QUALIFIED)
}

#[must_use]
pub fn label_value(value: &str) -> Option<&'static str> {
    broken(value.is_empty() || (value.len() <= LABEL_BYTES && is_word(value)), LABEL_VALUE)
}

fn broken(right: bool, rule: &'static str) -> Option<&'static str> {
    if right { None } else { Some(rule) }
}

/// Replaces the final dash of a `generateName` by a letter, so that the checks accept the prefix. The final dash is
/// valid, because the server appends characters to the prefix, so no name ends in this dash.
fn masked(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(rest) if prefix && name.len() > 1 => format!("{rest}a"),
        _ => name.to_owned(),
    }
}

fn is_lower_or_digit(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

fn is_label(part: &str, first_is_right: impl Fn(char) -> bool) -> bool {
    part.starts_with(first_is_right)
        && part.chars().all(|letter| is_lower_or_digit(letter) || letter == '-')
        && !part.ends_with('-')
}

fn is_word(part: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let end = |letter: char| letter.is_ascii_alphanumeric();
    part.starts_with(end) && part.ends_with(end) && part.chars().all(inner)
}
