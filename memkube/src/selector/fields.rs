//! Field selectors: `metadata.name=web,status.phase!=Running`.

/// A field selector; the default selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    name: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Of its text.
    ///
    /// # Errors
    /// What cannot be understood, in kube-apiserver's words.
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

    /// The fields that it asks for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|requirement| requirement.name.as_str())
    }

    /// The one value that a field must have, if it asks for that.
    pub fn required(&self, name: &str) -> Option<&str> {
        let requirement = self.0.iter().find(|requirement| requirement.equal && requirement.name == name)?;
        Some(&requirement.value)
    }

    /// Whether it selects all.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it selects an object with these values; an absent field is empty.
    pub fn matches<'a>(&self, value: impl Fn(&str) -> &'a str) -> bool {
        let mut requirements = self.0.iter();
        requirements.all(|requirement| (value(&requirement.name) == requirement.value) == requirement.equal)
    }
}

/// The terms between commas; a backslash takes a comma's meaning away.
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

/// The field, the value as it is written, and whether they are to be equal.
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

/// A value without its backslashes; refused where one of `,=` is bare or another letter is escaped.
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
