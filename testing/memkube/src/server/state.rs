//! State that requests change, and settings that tests change.

use crate::audit::Ledger;
use crate::auth::{Policy, Token, User};
use crate::clock::Clock;
use crate::faults::Faults;
use crate::issuer::Issuer;
use crate::observe::Observer;
use crate::random::Random;
use crate::registry::Registry;
use crate::registry::ResourceId;
use crate::store::Key;
use crate::store::Store;
use crate::strategy::Effect;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) faults: Option<Arc<dyn Faults>>,
    pub(crate) tokens: Arc<BTreeMap<String, Token>>,
}

/// State that requests change.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) random: Random,
    pub(crate) issuer: Issuer,
    pub(crate) ledger: Ledger,
    pub(crate) watches: usize,
    /// See [`Options::garbage_collector`].
    pub(crate) collects_garbage: bool,
    /// Objects that the garbage collector must check before the server sends the current response.
    pub(crate) looks: VecDeque<Look>,
    /// User of the request in progress.
    pub(crate) user: Option<User>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// Clock of the times of writes. `None` without [`Options::write_times`].
    pub(crate) write_clock: Option<Arc<dyn Clock>>,
}

impl State {
    /// Registers or removes resources after a change of a CustomResourceDefinition.
    pub(crate) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Register(definition, strategy) => {
                    self.store.begin_table(&definition.id());
                    self.registry.register(*definition, strategy);
                }
                Effect::Unregister(resource) => {
                    self.registry.unregister(&resource);
                    self.store.drop_table(&resource);
                }
            }
        }
    }
}

/// Entry in the queue of the garbage collector: an object that the collector must check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) resource: ResourceId,
    pub(crate) key: Key,
}
