//! Syntax of names, labels and annotations: the rules of apimachinery, with their messages.

const LABEL_BYTES: usize = 63;
const SUBDOMAIN_BYTES: usize = 253;

/// Returns the errors of a name that must be `a lowercase RFC 1123 subdomain`, as for most kinds.
///
/// If `prefix` is true, `name` is a `generateName` and may end in a dash.
#[must_use]
pub fn subdomain(name: &str, prefix: bool) -> Vec<String> {
    let name = masked(name, prefix);
    let mut errors = Vec::new();
    if name.len() > SUBDOMAIN_BYTES {
        errors.push(too_long_name(SUBDOMAIN_BYTES));
    }
    if !name.split('.').all(|part| is_label(part, |first| first.is_ascii_lowercase() || first.is_ascii_digit())) {
        errors.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    errors
}

/// Returns the errors of a name that must be `a lowercase RFC 1123 label`, as for namespaces.
#[must_use]
pub fn label(name: &str, prefix: bool) -> Vec<String> {
    let name = masked(name, prefix);
    let mut errors = Vec::new();
    if name.len() > LABEL_BYTES {
        errors.push(too_long_name(LABEL_BYTES));
    }
    let starts = |first: char| first.is_ascii_lowercase() || first.is_ascii_digit();
    if !is_label(&name, starts) && name.split('.').all(|part| is_label(part, starts)) {
        errors.push("must not contain dots".to_owned());
    } else if !is_label(&name, starts) {
        errors.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// Returns the errors of a name that must be `a DNS-1035 label`, as for Services.
#[must_use]
pub fn label_1035(name: &str, prefix: bool) -> Vec<String> {
    let name = masked(name, prefix);
    let mut errors = Vec::new();
    if name.len() > LABEL_BYTES {
        errors.push(too_long_name(LABEL_BYTES));
    }
    if !is_label(&name, |first| first.is_ascii_lowercase()) {
        errors.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// Returns the errors of a name that must be usable as a path segment, for example the name of a Role.
#[must_use]
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    let forbidden = ["/", "%"].into_iter().filter(|part| name.contains(part));
    forbidden.map(|part| format!("may not contain '{part}'")).collect()
}

/// Returns the errors of a qualified name: a key of a label or annotation, or a finalizer.
#[must_use]
pub fn qualified(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let part = match name.split_once('/') {
        None => name,
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                qualified_rule()
            )];
        }
        Some((prefix, part)) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(subdomain(prefix, false).into_iter().map(|why| format!("prefix part {why}")));
            }
            part
        }
    };
    if part.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if part.len() > LABEL_BYTES {
        errors.push(format!("name part {}", too_long(LABEL_BYTES)));
    }
    if !is_word(part) {
        errors.push(format!("name part {}", qualified_rule()));
    }
    errors
}

fn qualified_rule() -> &'static str {
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
     (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
}

#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_BYTES {
        errors.push(too_long(LABEL_BYTES));
    }
    if !value.is_empty() && !is_word(value) {
        errors.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

fn too_long_name(characters: usize) -> String {
    format!("must be no more than {characters} characters")
}

fn too_long(bytes: usize) -> String {
    format!("must be no more than {bytes} bytes")
}

/// Replaces the final dash of a `generateName` by a letter, so that the checks accept the prefix. The final dash is valid,
/// because the server appends characters to the prefix, so no name ends in this dash.
fn masked(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(rest) if prefix && name.len() > 1 => format!("{rest}a"),
        _ => name.to_owned(),
    }
}

fn is_label(part: &str, first_is_right: impl Fn(char) -> bool) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    part.starts_with(first_is_right) && part.chars().all(inner) && !part.ends_with('-')
}

fn is_word(part: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let end = |letter: char| letter.is_ascii_alphanumeric();
    part.starts_with(end) && part.ends_with(end) && part.chars().all(inner)
}

#[cfg(test)]
mod tests {
    use super::{label, label_1035, label_value, qualified, subdomain};

    #[test]
    fn names_are_checked_by_their_rule() {
        for name in ["a", "a-b.c", "0a"] {
            assert!(subdomain(name, false).is_empty(), "{name}");
        }
        for name in ["", "A", "a_b", "-a", "a-", "a..b", ".a"] {
            assert_eq!(subdomain(name, false).len(), 1, "{name}");
        }
        assert!(subdomain("a-", true).is_empty());
        assert!(subdomain("-", true).len() == 1);
        assert_eq!(subdomain(&"a".repeat(254), false), ["must be no more than 253 characters"]);
        assert_eq!(label("a.b", false).len(), 1);
        assert_eq!(label_1035("0a", false).len(), 1);
    }

    #[test]
    fn qualified_names_have_one_prefix_at_most() {
        for name in ["a", "A_b.c", "ex.io/A"] {
            assert!(qualified(name).is_empty(), "{name}");
        }
        assert_eq!(qualified("/a"), ["prefix part must be non-empty"]);
        assert_eq!(qualified("a/b/c").len(), 1);
        assert_eq!(qualified("_x").len(), 1);
        assert_eq!(qualified("").len(), 2);
    }

    #[test]
    fn label_values_may_be_empty() {
        assert!(label_value("").is_empty());
        assert!(label_value("a_B.c").is_empty());
        assert_eq!(label_value("c d").len(), 1);
    }
}
