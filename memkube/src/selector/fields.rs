//! Field selectors: `metadata.name=web,status.phase!=Running`.

/// A field selector. The default matches all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    name: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses a field selector.
    ///
    /// # Errors
    /// Message of kube-apiserver about the term that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for term in split(text) {
            if term.is_empty() {
                continue;
            }
            let not_understood = || format!("invalid selector: '{text}'; can't understand '{term}'");
            let (name, value, equal) = parts(&term).ok_or_else(not_understood)?;
            requirements.push(Requirement { name: name.to_owned(), value: unescape(value)?, equal });
        }
        Ok(Self(requirements))
    }

    /// Names of the fields in the selector.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|requirement| requirement.name.as_str())
    }

    /// Value that the selector requires for a field. `None` if the selector does not require one exact value.
    pub fn required(&self, name: &str) -> Option<&str> {
        let requirement = self.0.iter().find(|requirement| requirement.equal && requirement.name == name)?;
        Some(&requirement.value)
    }

    /// True if the selector matches all objects.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the selector matches an object. The function `value` returns the object's value of a field; empty if absent.
    pub fn matches<'a>(&self, value: impl Fn(&str) -> &'a str) -> bool {
        let mut requirements = self.0.iter();
        requirements.all(|requirement| (value(&requirement.name) == requirement.value) == requirement.equal)
    }
}

/// Splits a selector into terms at commas. A backslash escapes a comma.
fn split(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for letter in text.chars() {
        if letter == ',' && !escaped {
            terms.push(String::new());
            continue;
        }
        escaped = letter == '\\' && !escaped;
        if let Some(term) = terms.last_mut() {
            term.push(letter);
        }
    }
    terms
}

/// Splits a term into the field, the escaped value, and true for `=` and `==` or false for `!=`. `None` if the term has no
/// operator.
fn parts(term: &str) -> Option<(&str, &str, bool)> {
    let at = term.find(['=', '!'])?;
    let (name, rest) = term.split_at(at);
    let (value, equal) = if let Some(value) = rest.strip_prefix("!=") {
        (value, false)
    } else {
        let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
        (value, true)
    };
    Some((name, value, equal))
}

/// Removes backslashes from a value. Rejects an unescaped `,` or `=`, and a backslash before any other character.
fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(letter @ ('\\' | ',' | '=')) => plain.push(letter),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", letter as u32));
            }
            _ => plain.push(letter),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::FieldSelector;

    fn selects(text: &str, name: &str) -> bool {
        FieldSelector::parse(text).unwrap().matches(|field| if field == "metadata.name" { name } else { "" })
    }

    #[test]
    fn fields_are_compared() {
        assert!(selects("metadata.name=a", "a"));
        assert!(selects("metadata.name==a", "a"));
        assert!(!selects("metadata.name!=a", "a"));
        assert!(!selects("metadata.name=a,spec.x=y", "a"));
        assert!(selects("", "a"));
        assert!(selects("metadata.name=a\\,b", "a,b"));
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        let error = FieldSelector::parse("junk").unwrap_err();
        assert_eq!(error, "invalid selector: 'junk'; can't understand 'junk'");
    }
}
