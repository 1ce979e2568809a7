//! The server: its state behind one lock, and what a test or a simulation asks of it beside requests.

mod backup;
mod setup;

pub use backup::Backup;

use crate::audit::{Audit, Ledger};
use crate::auth::{AllowAll, Policy, User};
use crate::clock::Clock;
use crate::faults::Faults;
use crate::limits::{self, Limits};
use crate::object::Object;
use crate::random::Random;
use crate::registry::{Definition, Registry, ResourceId};
use crate::service::Service;
use crate::store::{Key, Store};
use crate::strategy::{Effect, Strategy};
use crate::verbs::Look;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a server is made with.
#[allow(missing_debug_implementations, reason = "most of it is code")]
pub struct Options {
    /// The time of creationTimestamps and the like.
    pub clock: Arc<dyn Clock>,
    /// Of UIDs, generated names and addresses.
    pub seed: u64,
    /// Who may do what.
    pub policy: Arc<dyn Policy>,
    /// What goes wrong.
    pub faults: Option<Arc<dyn Faults>>,
    /// How much of everything.
    pub limits: Limits,
    /// Between two bookmarks of a watch that asks for them.
    pub bookmark_interval: Duration,
    /// Whether what has lost its last owner is deleted, and owners that are deleted wait for what they own where that is asked
    /// for, as kube-controller-manager sees to. Without it they wait for ever.
    pub garbage_collector: bool,
    /// Whether namespaces that are deleted are emptied and removed, as kube-controller-manager does. Without it they stay
    /// as they are, terminating.
    pub namespace_controller: bool,
}

impl Options {
    /// With everything allowed, nothing failing and the limits of [`crate::limits`].
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self {
            clock,
            seed,
            policy: Arc::new(AllowAll),
            faults: None,
            limits: Limits::default(),
            bookmark_interval: limits::BOOKMARK_INTERVAL,
            namespace_controller: true,
            garbage_collector: true,
        }
    }
}

/// A server. Clones are the same server.
#[derive(Clone)]
pub struct MemKube(pub(crate) Arc<Shared>);

impl fmt::Debug for MemKube {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MemKube")
    }
}

/// What all services and watches of a server share.
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) bookmark_interval: Duration,
    pub(crate) namespace_controller: bool,
    /// May be exchanged while the server runs.
    manners: Mutex<Manners>,
}

#[derive(Clone)]
pub(crate) struct Manners {
    pub(crate) policy: Arc<dyn Policy>,
    pub(crate) faults: Option<Arc<dyn Faults>>,
    pub(crate) tokens: Arc<BTreeMap<String, User>>,
}

/// All that requests change.
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) random: Random,
    pub(crate) ledger: Ledger,
    /// Watches that are open.
    pub(crate) watches: usize,
    /// Whether [`Options::garbage_collector`].
    pub(crate) collects_garbage: bool,
    /// What the garbage collector has to look at before the request that did it is answered.
    pub(crate) looks: VecDeque<Look>,
}

impl MemKube {
    /// A server with the built-in resources and the namespaces that every cluster has.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let state = State {
            store: Store::new(&options.limits),
            registry: Registry::default(),
            random: Random::new(options.seed),
            ledger: Ledger::new(options.limits.audit_entries),
            watches: 0,
            collects_garbage: options.garbage_collector,
            looks: VecDeque::new(),
        };
        let shared = Shared {
            state: Mutex::new(state),
            clock: options.clock,
            limits: options.limits,
            bookmark_interval: options.bookmark_interval,
            namespace_controller: options.namespace_controller,
            manners: Mutex::new(Manners { policy: options.policy, faults: options.faults, tokens: Arc::default() }),
        };
        let server = Self(Arc::new(shared));
        setup::furnish(&server);
        server
    }

    /// What answers the requests of a user.
    #[must_use]
    pub fn service(&self, user: User) -> Service {
        Service::new(self.clone(), user)
    }

    /// A client of a user, in this process.
    #[must_use]
    pub fn client(&self, user: User) -> kube::Client {
        kube::Client::new(self.service(user), "default")
    }

    /// Adds a resource, or puts it in the place of another of the same group and plural.
    pub fn register(&self, definition: Definition, strategy: Box<dyn Strategy>) {
        self.0.state.lock().registry.register(definition, strategy);
    }

    /// Puts other rules in the place of those of all resources that there are now, which may stand on the old ones: so a
    /// test can plant a fault and see whether anybody notices.
    pub fn wrap_rules(&self, wrap: impl Fn(&Definition, Box<dyn Strategy>) -> Box<dyn Strategy>) {
        self.0.state.lock().registry.wrap(wrap);
    }

    /// All resources, by group and plural.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<Definition>> {
        self.0.state.lock().registry.definitions().cloned().collect()
    }

    /// The resourceVersion of the last change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.state.lock().store.revision()
    }

    /// An object as it is stored, without `apiVersion` and `kind`: for oracles, which must not be seen as requests.
    #[must_use]
    pub fn peek(&self, resource: &ResourceId, namespace: &str, name: &str) -> Option<Object> {
        let state = self.0.state.lock();
        let stored = state.store.get(resource, &Key::new(namespace, name))?;
        Some(stored.decode())
    }

    /// All objects of a resource as they are stored, as in [`MemKube::peek`].
    #[must_use]
    pub fn peek_all(&self, resource: &ResourceId) -> Vec<Object> {
        let state = self.0.state.lock();
        let stored = state.store.list(resource, "");
        stored.map(|stored| stored.decode()).collect()
    }

    /// The audit ledger.
    #[must_use]
    pub fn audit(&self) -> Audit {
        self.0.state.lock().ledger.snapshot()
    }

    /// Forgets what happened before now, as a compaction of etcd does: lists and watches from before are answered 410.
    pub fn compact(&self) {
        self.0.state.lock().store.compact();
    }

    /// How many watches are open.
    #[must_use]
    pub fn open_watches(&self) -> usize {
        self.0.state.lock().watches
    }

    /// From now on, what goes wrong. Watches that are open keep what they were given.
    pub fn set_faults(&self, faults: Option<Arc<dyn Faults>>) {
        self.0.manners.lock().faults = faults;
    }

    /// From now on, the user behind a bearer token; none forgets the token.
    pub fn set_token(&self, token: &str, user: Option<User>) {
        let mut manners = self.0.manners.lock();
        let tokens = Arc::make_mut(&mut manners.tokens);
        match user {
            Some(user) => tokens.insert(token.to_owned(), user),
            None => tokens.remove(token),
        };
    }

    /// The user behind a bearer token.
    #[must_use]
    pub fn user_of_token(&self, token: &str) -> Option<User> {
        self.0.manners.lock().tokens.get(token).cloned()
    }

    /// From now on, who may do what.
    pub fn set_policy(&self, policy: Arc<dyn Policy>) {
        self.0.manners.lock().policy = policy;
    }
}

impl Shared {
    pub(crate) fn manners(&self) -> Manners {
        self.manners.lock().clone()
    }
}

impl State {
    /// Does what follows from a commit.
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
