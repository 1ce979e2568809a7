//! Query parameters, with the conversions of kube-apiserver.

use crate::status::Status;
use std::collections::BTreeMap;

/// Query parameters of a request. All values of a repeated parameter are kept in order.
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

    /// First value of a parameter; empty if the parameter is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(|values| values.first()).map_or("", String::as_str)
    }

    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// True if the parameter is present, even if it is empty.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Value of a boolean parameter: false if the parameter is absent, `0` or `false`, otherwise true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.text(name).to_lowercase().as_str(), "0" | "false")
    }

    /// Value of an integer parameter; `None` if the parameter is absent or empty.
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
