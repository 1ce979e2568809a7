//! Label selectors, for example `app=web,tier in (a, b),!old`.

use crate::object::names;
use crate::store::Pairs;

/// A label selector. The default matches all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    label: String,
    condition: Condition,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Exists,
    Absent,
    In(Vec<String>),
    /// Objects without this label match too.
    NotIn(Vec<String>),
}

impl Condition {
    fn holds(&self, value: Option<&str>) -> bool {
        let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(values) => among(values),
            Self::NotIn(values) => !among(values),
        }
    }
}

impl LabelSelector {
    /// Parses a label selector.
    ///
    /// # Errors
    /// Message about the first term that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut depth = 0;
        let terms = text.split(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            letter == ',' && depth == 0
        });
        let requirement =
            |term| requirement(term).ok_or_else(|| format!("unable to parse requirement: found '{term}'"));
        terms.map(requirement).collect::<Result<_, _>>().map(Self)
    }

    /// True if the selector matches all objects.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the selector matches an object with these labels.
    #[must_use]
    pub fn matches(&self, labels: &Pairs) -> bool {
        self.0.iter().all(|requirement| requirement.condition.holds(labels.get(&requirement.label)))
    }
}

/// Parses one term; `None` if the term is not a requirement.
fn requirement(term: &str) -> Option<Requirement> {
    let term = term.trim();
    let (label, condition) = if let Some(label) = term.strip_prefix('!') {
        (label, Condition::Absent)
    } else if let Some((label, value)) = term.split_once("!=") {
        (label, Condition::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((label, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (label, Condition::In(vec![value.trim().to_owned()]))
    } else if let Some((before, values)) = term.split_once('(') {
        let values = values.strip_suffix(')')?.split(',').map(|value| value.trim().to_owned()).collect();
        match before.trim().rsplit_once(char::is_whitespace)? {
            (label, "in") => (label, Condition::In(values)),
            (label, "notin") => (label, Condition::NotIn(values)),
            _ => return None,
        }
    } else {
        (term, Condition::Exists)
    };
    let label = label.trim();
    let values = match &condition {
        Condition::In(values) | Condition::NotIn(values) => values.as_slice(),
        Condition::Exists | Condition::Absent => &[],
    };
    let right = names::qualified(label).is_none() && values.iter().all(|value| names::label_value(value).is_none());
    right.then(|| Requirement { label: label.to_owned(), condition })
}

#[cfg(test)]
mod tests {
    use super::LabelSelector;
    use crate::store::Pairs;

    fn selects(text: &str, labels: &[(&str, &str)]) -> bool {
        let labels: Pairs = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        LabelSelector::parse(text).unwrap().matches(&labels)
    }

    #[test]
    fn each_operator_does_what_it_says() {
        let labels = [("app", "web"), ("weight", "7")];
        for text in [
            "",
            "app",
            "app=web",
            "app==web",
            "app!=db",
            "none!=x",
            "!none",
            "app in (web,db)",
            "app notin (db)",
            "none notin (x)",
            " app = web , weight",
            "app in ( web , )",
        ] {
            assert!(selects(text, &labels), "{text}");
        }
        for text in ["none", "app=db", "app=", "!app", "app in (db)", "app notin (web)", "none in ()"] {
            assert!(!selects(text, &labels), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for text in ["a b", "a===b", "a in (b", ",", "a>x", "a near (b)", "!"] {
            let error = LabelSelector::parse(text).unwrap_err();
            assert!(error.starts_with("unable to parse requirement: found '"), "{text}: {error}");
        }
    }
}
