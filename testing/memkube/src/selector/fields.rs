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
        let terms = text.split(',').filter(|term| !term.is_empty());
        let requirement = |term: &str| {
            let not_understood = || format!("invalid selector: '{text}'; can't understand '{term}'");
            let (name, value, equal) = parts(term).ok_or_else(not_understood)?;
            Ok(Requirement { name: name.to_owned(), value: value.to_owned(), equal })
        };
        terms.map(requirement).collect::<Result<_, _>>().map(Self)
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

    /// True if the selector matches an object. The function `value` returns the object's value of a field; empty if
    /// absent.
    pub fn matches<'a>(&self, value: impl Fn(&str) -> &'a str) -> bool {
        let mut requirements = self.0.iter();
        requirements.all(|requirement| (value(&requirement.name) == requirement.value) == requirement.equal)
    }
}

/// Splits a term into the field, the value, and true for `=` and `==` or false for `!=`. `None` if the term has no
/// operator.
fn parts(term: &str) -> Option<(&str, &str, bool)> {
    if let Some((name, value)) = term.split_once("!=") {
        return Some((name, value, false));
    }
    let (name, value) = term.split_once("==").or_else(|| term.split_once('='))?;
    Some((name, value, true))
}
