//! A network between agents and one API server that drops everything of some users.

use crate::board::Board;
use crate::server::Server;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use memkube::auth::Call;
use memkube::faults::{Fault, Faults, WatchFaults};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any client waits.
pub const NEVER: Duration = Duration::from_hours(24);

/// Users whose requests and watch events a server does not get or send.
#[derive(Clone, Debug, Default)]
pub struct Partition(Arc<Board<BTreeSet<String>>>);

impl Partition {
    /// Returns the network in front of a server, which drops nothing yet.
    #[must_use]
    pub fn before(server: &Server) -> Self {
        let partition = Self::default();
        server.memkube().set_faults(Some(Arc::new(partition.clone())));
        partition
    }

    /// Drops everything of these users from now on, and nothing of others. Open watches stay open without events, as
    /// half-open connections do, also later.
    pub fn drop_all_of<'a>(&self, users: impl IntoIterator<Item = &'a str>) {
        self.0.change(|dropped| *dropped = users.into_iter().map(str::to_owned).collect());
    }

    /// Drops nothing from now on.
    pub fn mend(&self) {
        self.drop_all_of([]);
    }
}

impl Faults for Partition {
    fn request(&self, call: &Call) -> Fault {
        let is_dropped = self.0.read(|dropped| dropped.contains(&*call.user.name));
        Fault { delay_before: if is_dropped { NEVER } else { Duration::ZERO }, ..Fault::default() }
    }

    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        Some(Box::new(OfUser { user: call.user.name.to_string(), partition: self.clone() }))
    }
}

struct OfUser {
    user: String,
    partition: Partition,
}

impl WatchFaults for OfUser {
    fn silence(&self) -> BoxFuture<'static, ()> {
        let (user, partition) = (self.user.clone(), self.partition.clone());
        async move { partition.0.wait_for(|dropped| dropped.contains(&user)).await }.boxed()
    }
}
