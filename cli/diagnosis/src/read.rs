//! Reads a [`Snapshot`] from API servers.
//!
//! | file | contents |
//! |---|---|
//! | `target.rs` | which API server to read from, and which objects |
//! | `server.rs` | requests to one API server, with their limits |
//! | `failure.rs` | class of a failure: DNS, TCP, TLS, proxy, timeout, HTTP status |
//! | `hub.rs`, `member.rs` | kinds to read from the hub and from a member |
//! | `rights.rs` | rights of the agents' accounts |
//!
//! Each request has a limit, and so has the whole reading. Whatever does not answer in time is unknown, never a fault.

mod failure;
mod hub;
mod member;
mod rights;
mod server;
mod target;

pub use failure::failure;
use target::unread;
pub use target::{Limits, Scope, Target};

use crate::agents::AgentNamespaces;
use crate::snapshot::{Connection, Hub, Member, Snapshot};
use fleetnet_core::names::cluster_of;
use futures::future::join_all;
use kube::ResourceExt as _;
use server::Server;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Reads the objects of a fleet, all clusters in parallel. `members` has the targets by cluster id. The snapshot also
/// contains the members that only the hub knows.
pub async fn read(
    hub: Option<&Target>,
    members: &BTreeMap<String, Target>,
    agents: &AgentNamespaces,
    scope: &Scope,
    limits: Limits,
) -> Snapshot {
    let deadline = Instant::now() + limits.whole;
    let of_hub = async {
        match hub {
            Some(target) => hub::read(&Server::new(target, limits.request, deadline), &agents.hub, scope).await,
            None => Hub { agent: unread(&agents.hub), ..Hub::default() },
        }
    };
    let of_members = join_all(members.iter().map(|(id, target)| {
        let server = Server::new(target, limits.request, deadline);
        async move { member::read(&server, id, &agents.members, scope).await }
    }));
    let (hub_objects, mut read) = futures::future::join(of_hub, of_members).await;
    let in_hub = hub_objects.namespaces.objects().filter_map(|namespace| cluster_of(&namespace.name_any()));
    for id in in_hub {
        if !read.iter().any(|member| *member.id == *id) {
            read.push(Member { id: id.to_string(), agent: unread(&agents.members), ..Member::default() });
        }
    }
    read.sort_by(|one, two| crate::order::natural(&one.id, &two.id));
    let mut snapshot = Snapshot { hub: hub_objects, members: read };
    if let (Some(target), Scope::Check | Scope::Service(_)) = (hub, scope) {
        rights::of_members_in_hub(&Server::new(target, limits.request, deadline), &mut snapshot).await;
    }
    snapshot
}

/// Connects to an API server without reading any object.
pub async fn connect(target: &Target, limits: Limits) -> Connection {
    Server::new(target, limits.request, Instant::now() + limits.whole).connect().await
}
