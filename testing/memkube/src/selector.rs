//! Label selectors and field selectors of lists and watches.

mod fields;
mod labels;

pub use fields::FieldSelector;
pub use labels::LabelSelector;

use crate::registry::Scope;
use crate::server::State;
use crate::status::Status;
use crate::store::Stored;
use crate::wire::Request;

#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    pub(crate) fn of(request: &Request, state: &State) -> Result<Self, Status> {
        let labels = LabelSelector::parse(request.query.text("labelSelector"));
        let fields = FieldSelector::parse(request.query.text("fieldSelector"));
        let selection =
            Self { labels: labels.map_err(Status::bad_request)?, fields: fields.map_err(Status::bad_request)? };
        let registered = state.registry.get(&request.resource());
        let own = registered.map(|registered| registered.strategy.selectable_names(request.version()));
        let own = own.unwrap_or_default();
        let known = |name: &str| {
            let namespaced = request.definition.scope == Scope::Namespaced;
            name == "metadata.name" || (namespaced && name == "metadata.namespace") || own.iter().any(|own| own == name)
        };
        if let Some(unknown) = selection.fields.names().find(|name| !known(name)) {
            return Err(Status::bad_request(format!("field label not supported: {unknown}")));
        }
        Ok(selection)
    }

    /// True if the selectors match all objects.
    pub(crate) fn is_all(&self) -> bool {
        self.labels.is_all() && self.fields.is_all()
    }

    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        self.labels.matches(&stored.header.labels) && self.fields.matches(|name| value(stored, name))
    }
}

fn value<'a>(stored: &'a Stored, name: &str) -> &'a str {
    match name {
        "metadata.name" => stored.key.name(),
        "metadata.namespace" => stored.key.namespace(),
        _ => stored.header.fields.get(name).unwrap_or_default(),
    }
}
