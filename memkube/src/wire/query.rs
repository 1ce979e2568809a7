//! Query parameters, converted as kube-apiserver converts them.

use crate::status::Status;
use std::collections::BTreeMap;

/// The parameters of a request; of those that are repeated all values, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let mut parameters = BTreeMap::<String, Vec<String>>::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            parameters.entry(name.into_owned()).or_default().push(value.into_owned());
        }
        Self(parameters)
    }

    /// The first value; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|values| values.first()).map_or("", String::as_str)
    }

    /// All values.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether it is given at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A switch: absent, `0` and `false` are off, all else is on.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.text(name).to_lowercase().as_str(), "0" | "false")
    }

    /// A number; absent and empty are none.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        match self.text(name) {
            "" => Ok(None),
            text => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => {
                    let message = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
                    Err(Status::bad_request(message))
                }
            },
        }
    }
}
