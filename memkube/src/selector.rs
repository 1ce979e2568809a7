//! Label selectors and field selectors of lists and watches.

mod fields;
mod labels;

pub use fields::FieldSelector;
pub use labels::LabelSelector;

use crate::registry::Scope;
use crate::server::State;
use crate::status::Status;
use crate::store::{Pairs, Stored};
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
        for name in selection.fields.names() {
            let plain = own.is_empty() && !request.definition.custom;
            let known = match name {
                "metadata.name" => true,
                // A cluster-scoped object has no `metadata.namespace`. But kube-apiserver accepts this field for some built-in
                // kinds: for those without a list of selectable fields.
                "metadata.namespace" => plain || request.definition.scope == Scope::Namespaced,
                _ => own.iter().any(|own| own == name),
            };
            if !known {
                return Err(Status::bad_request(unknown(name, plain)));
            }
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

fn unknown(name: &str, plain: bool) -> String {
    if plain {
        format!("\"{name}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    } else {
        format!("field label not supported: {name}")
    }
}

fn value<'a>(stored: &'a Stored, name: &str) -> &'a str {
    match name {
        "metadata.name" => stored.key.name(),
        "metadata.namespace" => stored.key.namespace(),
        _ => of(&stored.header.fields, name),
    }
}

fn of<'a>(fields: &'a Pairs, name: &str) -> &'a str {
    fields.get(name).unwrap_or_default()
}
