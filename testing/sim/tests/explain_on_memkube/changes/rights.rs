//! Rights that agents lack. A server asks its policy for each request and for each SubjectAccessReview, as a real one
//! does.

use crate::world::World;
use fastrand::Rng;
use futures::future::BoxFuture;
use kube::core::ApiResource;
use memkube::Verb;
use memkube::auth::{Call, Policy};
use memkube::faults::{Faults, WatchFaults};
use sim::fleet::Place;
use std::sync::Arc;
use tokio::sync::watch;

/// Verbs on a resource that the agents of a cluster lack.
#[derive(Clone, Debug)]
pub(super) struct Denial {
    group: String,
    /// Resource; with a subresource, as `serviceexports/status`.
    pub(super) resource: String,
    verbs: &'static [Verb],
    /// True if the agent of the cluster starts again without the right. Otherwise the server ends its watches.
    restarts: bool,
}

/// Verbs that a role can lack.
const VERBS: [&[Verb]; 7] = [
    &[Verb::Get],
    &[Verb::List],
    &[Verb::Watch],
    &[Verb::List, Verb::Watch],
    &[Verb::Create],
    &[Verb::Patch, Verb::Update],
    &[Verb::Delete],
];

impl Denial {
    /// Draws verbs on a resource, or on its status.
    pub(super) fn random(rng: &mut Rng, of: &ApiResource, has_status: bool) -> Self {
        let verbs = VERBS[rng.usize(..VERBS.len())];
        let is_of_status = has_status && verbs.contains(&Verb::Patch) && rng.bool();
        let status = if is_of_status { "/status" } else { "" };
        let resource = format!("{}{status}", of.plural);
        Self { group: of.group.clone(), resource, verbs, restarts: rng.bool() }
    }

    /// Takes the right from the agents. A watch that began before goes on in a real cluster until the server or the
    /// agent ends it.
    pub(super) fn apply(&self, world: &mut World, place: Place) -> anyhow::Result<()> {
        world.memkube(place).set_policy(Arc::new(self.clone()));
        if self.restarts {
            return world.fleet.start(place);
        }
        world.memkube(place).set_faults(None);
        Ok(())
    }
}

impl Policy for Denial {
    fn allows(&self, call: &Call) -> bool {
        let target = &call.target;
        let resource = match &*target.subresource {
            "" => target.resource.to_string(),
            subresource => format!("{}/{subresource}", target.resource),
        };
        let is_denied = call.user.name.contains("agent")
            && self.verbs.contains(&call.verb)
            && *target.group == *self.group
            && resource == self.resource;
        !is_denied
    }
}

/// Faults of a server that end all watches when the server drops them.
#[derive(Default)]
pub(super) struct EndOfWatches(watch::Sender<()>);

struct OfWatch(watch::Receiver<()>);

impl Faults for EndOfWatches {
    fn watch(&self, _: &Call) -> Option<Box<dyn WatchFaults>> {
        Some(Box::new(OfWatch(self.0.subscribe())))
    }
}

impl WatchFaults for OfWatch {
    fn cut(&self) -> BoxFuture<'static, ()> {
        let mut receiver = self.0.clone();
        Box::pin(async move { while receiver.changed().await.is_ok() {} })
    }
}
