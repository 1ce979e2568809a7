//! The server: its state behind one lock, and functions for tests and simulations that are not requests.

mod backup;
mod setup;
mod state;

pub use backup::Backup;
pub(crate) use state::{Look, Settings, State};

use crate::audit::{Audit, Ledger};
use crate::auth::{AUDIENCE, AllowAll, Policy, Token, User};
use crate::clock::Clock;
use crate::faults::Faults;
use crate::issuer::Issuer;
use crate::limits::Limits;
use crate::object::Object;
use crate::observe::Observer;
use crate::random::Random;
use crate::registry::{Definition, Registry, ResourceId};
use crate::store::{Key, Store};
use crate::strategy::{Strategy, workload};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Options of a server.
#[allow(missing_debug_implementations, reason = "most of it is code")]
pub struct Options {
    /// Clock of creationTimestamps and other times.
    pub clock: Arc<dyn Clock>,
    /// Seed of UIDs, generated names and addresses.
    pub seed: u64,
    /// Authorization policy.
    pub policy: Arc<dyn Policy>,
    /// Faults to inject.
    pub faults: Option<Arc<dyn Faults>>,
    pub limits: Limits,
    /// True to collect garbage, as kube-controller-manager does: objects without remaining owners are deleted.
    pub garbage_collector: bool,
    /// True to empty and then remove namespaces that are being deleted, as kube-controller-manager does. If false,
    /// these namespaces stay in the phase `Terminating`.
    pub namespace_controller: bool,
    /// True to write the user and the time of the last write into `metadata.managedFields` of each object. The entry
    /// has no fields.
    pub write_times: bool,
}

impl Options {
    /// Returns options with a policy that allows every request, without faults, and with the limits of
    /// [`crate::limits`].
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        Self {
            clock,
            seed,
            policy: Arc::new(AllowAll),
            faults: None,
            limits: Limits::default(),
            namespace_controller: true,
            garbage_collector: true,
            write_times: false,
        }
    }
}

/// A server. Clones refer to the same server.
#[derive(Clone)]
pub struct MemKube(pub(crate) Arc<Shared>);

impl fmt::Debug for MemKube {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MemKube")
    }
}

/// State that all services and watches of a server share.
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) namespace_controller: bool,
    /// Policy, faults and tokens: a test may change them while the server runs.
    settings: Mutex<Settings>,
}

impl MemKube {
    /// Returns a server with the built-in resources and the namespaces that every cluster has.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let mut state = State {
            store: Store::new(&options.limits),
            registry: Registry::default(),
            random: Random::new(options.seed),
            issuer: Issuer::new(options.seed),
            ledger: Ledger::new(options.limits.audit_entries),
            watches: 0,
            collects_garbage: options.garbage_collector,
            looks: VecDeque::new(),
            user: None,
            observer: None,
            write_clock: options.write_times.then(|| Arc::clone(&options.clock)),
        };
        setup::install_builtins(&mut state, options.clock.now());
        let shared = Shared {
            state: Mutex::new(state),
            clock: options.clock,
            limits: options.limits,
            namespace_controller: options.namespace_controller,
            settings: Mutex::new(Settings { policy: options.policy, faults: options.faults, tokens: Arc::default() }),
        };
        Self(Arc::new(shared))
    }

    /// Adds a resource. Replaces an existing resource with the same group and plural.
    pub fn register(&self, definition: Definition, strategy: Box<dyn Strategy>) {
        self.0.state.lock().registry.register(definition, strategy);
    }

    /// Adds the kinds Deployment and ReplicaSet of the group `apps`. Most clusters in tests do without them.
    pub fn add_workloads(&self) {
        for (definition, strategy) in workload::all() {
            self.register(definition, strategy);
        }
    }

    /// Replaces the strategy of each current resource by the result of `wrap`. The argument of `wrap` is the old
    /// strategy. So a test can plant a fault in a rule and check that the fault is detected.
    pub fn wrap_rules(&self, wrap: impl Fn(&Definition, Box<dyn Strategy>) -> Box<dyn Strategy>) {
        self.0.state.lock().registry.wrap(wrap);
    }

    /// Returns the definitions of all resources, sorted by group and plural.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<Definition>> {
        self.0.state.lock().registry.definitions().cloned().collect()
    }

    /// Returns the resourceVersion of the last change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.0.state.lock().store.revision()
    }

    /// Returns a stored object, without `apiVersion` and `kind`. `None` if it does not exist. This read is not a
    /// request, so it is not in the audit ledger.
    #[must_use]
    pub fn peek(&self, resource: &ResourceId, namespace: &str, name: &str) -> Option<Object> {
        let state = self.0.state.lock();
        let stored = state.store.get(resource, &Key::new(namespace, name))?;
        Some(stored.decode())
    }

    /// Returns all stored objects of a resource, without `apiVersion` and `kind`, as [`MemKube::peek`] does.
    #[must_use]
    pub fn peek_all(&self, resource: &ResourceId) -> Vec<Object> {
        let state = self.0.state.lock();
        let stored = state.store.list(resource, "");
        stored.map(|stored| stored.decode()).collect()
    }

    #[must_use]
    pub fn audit(&self) -> Audit {
        self.0.state.lock().ledger.snapshot()
    }

    /// Drops the history before now, as a compaction of etcd does. Later reads of earlier versions get 410.
    pub fn compact(&self) {
        self.0.state.lock().store.compact();
    }

    #[must_use]
    pub fn open_watches(&self) -> usize {
        self.0.state.lock().watches
    }

    /// Sets the faults of future requests. Open watches keep their faults.
    pub fn set_faults(&self, faults: Option<Arc<dyn Faults>>) {
        self.0.settings.lock().faults = faults;
    }

    /// Sets the observer of future changes.
    pub fn observe(&self, observer: Option<Arc<dyn Observer>>) {
        self.0.state.lock().observer = observer;
    }

    /// Assigns a user to a bearer token from now on. `None` removes the token.
    pub fn set_token(&self, token: &str, user: Option<User>) {
        self.set_token_for(token, AUDIENCE, user);
    }

    /// Assigns a user to a bearer token for this audience from now on. `None` removes the token.
    pub fn set_token_for(&self, token: &str, audience: &str, user: Option<User>) {
        let mut settings = self.0.settings.lock();
        let tokens = Arc::make_mut(&mut settings.tokens);
        match user {
            Some(user) => tokens.insert(token.to_owned(), Token { user, audience: audience.to_owned() }),
            None => tokens.remove(token),
        };
    }

    /// Returns the user of a token that this server issued for itself.
    pub(crate) fn user_of_issued(&self, token: &str) -> Option<User> {
        let state = self.0.state.lock();
        let (user, audiences) = state.issuer.read(token, &state.store, self.0.clock.now())?;
        audiences.iter().any(|audience| audience == AUDIENCE).then_some(user)
    }

    /// Sets the authorization policy from now on.
    pub fn set_policy(&self, policy: Arc<dyn Policy>) {
        self.0.settings.lock().policy = policy;
    }
}

impl Shared {
    pub(crate) fn settings(&self) -> Settings {
        self.settings.lock().clone()
    }
}
