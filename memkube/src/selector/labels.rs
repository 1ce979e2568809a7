//! Label selectors, for example `app=web,tier in (a, b),!old,weight>5`. Error messages are those of kube-apiserver.

mod tokens;

use crate::object::names;
use crate::store::Pairs;
use tokens::{Token, Tokens};

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
    Above(i64),
    Below(i64),
}

impl Condition {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.iter().any(|one| one == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|one| one != value)),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl LabelSelector {
    /// Parses a label selector.
    ///
    /// # Errors
    /// Message of kube-apiserver about the first token that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens::of(text);
        let mut requirements = Vec::new();
        if tokens.peek() == Token::End {
            return Ok(Self(requirements));
        }
        loop {
            match tokens.peek() {
                Token::Word(_) | Token::Not => {}
                other => return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text())),
            }
            let requirement = requirement(&mut tokens).map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match tokens.next() {
                Token::End => return Ok(Self(requirements)),
                Token::Comma => match tokens.peek() {
                    Token::Word(_) | Token::Not => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    /// True if the selector matches all objects.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the selector matches an object with these labels.
    #[must_use]
    pub fn matches(&self, labels: &Pairs) -> bool {
        let mut requirements = self.0.iter();
        requirements.all(|requirement| requirement.condition.holds(labels.get(&requirement.label)))
    }
}

fn requirement(tokens: &mut Tokens) -> Result<Requirement, String> {
    let absent = tokens.peek() == Token::Not;
    if absent {
        tokens.next();
    }
    let label = match tokens.next() {
        Token::Word(label) => label,
        other => return Err(format!("found '{}', expected: identifier", other.text())),
    };
    if let Some(why) = names::qualified(&label).into_iter().next() {
        return Err(format!("<nil>: Invalid value: {label:?}: {why}"));
    }
    let condition = match tokens.peek() {
        _ if absent => Condition::Absent,
        Token::End | Token::Comma => Condition::Exists,
        _ => comparison(tokens, &label)?,
    };
    Ok(Requirement { label, condition })
}

fn comparison(tokens: &mut Tokens, label: &str) -> Result<Condition, String> {
    let operator = tokens.next();
    match &operator {
        Token::Equal => Ok(Condition::In(vec![checked(label, one_value(tokens)?)?])),
        Token::NotEqual => Ok(Condition::NotIn(vec![checked(label, one_value(tokens)?)?])),
        Token::Above => Ok(Condition::Above(bound(label, one_value(tokens)?)?)),
        Token::Below => Ok(Condition::Below(bound(label, one_value(tokens)?)?)),
        Token::Word(word) if word == "in" || word == "notin" => {
            let values = values(tokens)?;
            let values = values.into_iter().map(|value| checked(label, value));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            Ok(if word == "in" { Condition::In(values) } else { Condition::NotIn(values) })
        }
        other => Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
    }
}

fn checked(label: &str, value: String) -> Result<String, String> {
    match names::label_value(&value).into_iter().next() {
        None => Ok(value),
        Some(why) => Err(format!("values[0][{label}]: Invalid value: {value:?}: {why}")),
    }
}

/// Parses the number after `>` or `<`. The number must be a valid label value, so a negative number is an error.
fn bound(label: &str, value: String) -> Result<i64, String> {
    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
    let bound = value.parse().map_err(|_| format!("values[0]: Invalid value: {value:?}: {why}"))?;
    checked(label, value).map(|_| bound)
}

/// Parses the value after an operator. Returns an empty text if no value follows.
fn one_value(tokens: &mut Tokens) -> Result<String, String> {
    match tokens.peek() {
        Token::End | Token::Comma => Ok(String::new()),
        Token::Word(word) => {
            tokens.next();
            Ok(word)
        }
        other => Err(format!("found '{}', expected: identifier", other.text())),
    }
}

fn values(tokens: &mut Tokens) -> Result<Vec<String>, String> {
    match tokens.next() {
        Token::Open => {}
        other => return Err(format!("found '{}' expected: '('", other.text())),
    }
    let mut values = Vec::new();
    let mut word = String::new();
    loop {
        match tokens.next() {
            Token::Word(next) if word.is_empty() => word = next,
            Token::Comma => values.push(std::mem::take(&mut word)),
            Token::Close => {
                values.push(word);
                return Ok(values);
            }
            other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
        }
    }
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
            "weight>6",
            "weight<8",
            " app = web , weight",
            "app in ( web , )",
        ] {
            assert!(selects(text, &labels), "{text}");
        }
        for text in
            ["none", "app=db", "app=", "!app", "app in (db)", "app notin (web)", "weight>7", "app>1", "none in ()"]
        {
            assert!(!selects(text, &labels), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_told_as_kube_apiserver_tells_it() {
        let error = |text| LabelSelector::parse(text).unwrap_err();
        assert_eq!(error("a b"), "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
        assert_eq!(error("a===b"), "unable to parse requirement: found '=', expected: identifier");
        assert_eq!(error("a in (b"), "unable to parse requirement: found '', expected: ',' or ')'");
        assert_eq!(error(","), "found ',', expected: !, identifier, or 'end of string'");
        assert_eq!(
            error("a>x"),
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"
        );
    }
}
