//! Registered resources: their definitions and their strategies.

mod definition;

pub use definition::{Definition, ResourceId, Scope, Subresource, Version};

use crate::strategy::Strategy;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A registered resource.
pub(crate) struct Registered {
    pub(crate) definition: Arc<Definition>,
    pub(crate) strategy: Box<dyn Strategy>,
}

/// All registered resources.
#[derive(Default)]
pub(crate) struct Registry {
    resources: BTreeMap<ResourceId, Registered>,
}

impl Registry {
    /// Adds a resource. Replaces an existing resource with the same group and plural.
    pub(crate) fn register(&mut self, definition: Definition, strategy: Box<dyn Strategy>) {
        let registered = Registered { definition: Arc::new(definition), strategy };
        self.resources.insert(registered.definition.id(), registered);
    }

    /// Replaces the strategy of every resource with the result of `wrap`. The argument of `wrap` is the old strategy.
    pub(crate) fn wrap(&mut self, wrap: impl Fn(&Definition, Box<dyn Strategy>) -> Box<dyn Strategy>) {
        for (id, Registered { definition, strategy }) in std::mem::take(&mut self.resources) {
            let strategy = wrap(&definition, strategy);
            self.resources.insert(id, Registered { definition, strategy });
        }
    }

    pub(crate) fn unregister(&mut self, id: &ResourceId) {
        self.resources.remove(id);
    }

    pub(crate) fn get(&self, id: &ResourceId) -> Option<&Registered> {
        self.resources.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Registered> {
        self.resources.get_mut(id)
    }

    /// Returns all definitions, sorted by group and plural.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.resources.values().map(|registered| &registered.definition)
    }
}
