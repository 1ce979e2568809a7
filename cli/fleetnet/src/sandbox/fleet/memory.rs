//! API servers in memory: memkube with the fleet's CRDs, and a connection that can be interrupted.

use crate::limits::AUDIT_ENTRIES;
use crate::random;
use crate::sandbox::kubeconfigs::{self, KUBECTL};
use crate::sandbox::measure::{Ledger, Written};
use crate::sandbox::workloads;
use anyhow::Context as _;
use fleetnet_api::crds;
use fleetnet_runtime::clock::{Clock, to_jiff};
use fleetnet_runtime::io::client::Cluster;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use memkube::faults::{Answer, Fault, Faults, WatchFaults};
use memkube::serve::{self, Https};
use memkube::{Call, Options, PathCall, Status, User};
use sim::Server;
use sim::fleet::MEMBER_ACCOUNT;
use sim::server::ADMIN;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// API server in memory.
pub(crate) struct InMemory {
    server: Server,
    cable: Cable,
}

/// Starts servers for a hub and for members with these names.
pub(crate) async fn start(members: &[String]) -> anyhow::Result<(InMemory, Vec<InMemory>)> {
    let hub = InMemory::start("hub", 0).await?;
    let mut servers = Vec::new();
    for (name, seed) in members.iter().zip(1..) {
        servers.push(InMemory::start(name, seed).await?);
    }
    Ok((hub, servers))
}

impl InMemory {
    async fn start(name: &str, seed: u64) -> anyhow::Result<Self> {
        let clock = Clock::system();
        let mut options = Options::new(Arc::new(move || to_jiff(clock.now())), seed);
        options.limits.audit_entries = AUDIT_ENTRIES;
        options.write_times = true; // the page shows when each object was written
        let cable = Cable(Arc::new(watch::Sender::new(false)));
        options.faults = Some(Arc::new(cable.clone()));
        Ok(Self { server: Server::start(name, options).await?, cable })
    }

    pub(super) fn admin(&self) -> kube::Client {
        self.server.admin()
    }

    /// Returns a client of the user of kubectl, whose connection can be interrupted.
    pub(super) fn kubectl(&self) -> kube::Client {
        self.server.operator_as(KUBECTL, &Clock::system())
    }

    pub(super) fn cluster(&self, name: &str, user: &str) -> Cluster {
        self.server.cluster(name, user)
    }

    pub(super) fn ledger(&self, cluster: &str) -> Ledger {
        let mut ledger = Ledger::default();
        for (kind, times) in self.server.memkube().audit().counts {
            if kind.verb.writes() && kind.code < 300 {
                let resource = without_group(&kind.resource);
                let (cluster, user, verb) = (cluster.to_owned(), kind.user.to_string(), kind.verb.name().to_owned());
                ledger.add(Written { cluster, user, verb, resource }, times);
            }
        }
        ledger
    }

    pub(super) async fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        self.server.make_namespace(name).await
    }

    /// Creates a member namespace of the hub, with the ServiceAccount whose token opens the member's slice stream.
    pub(super) async fn admit(&self, namespace: &str) -> anyhow::Result<()> {
        self.server.make_namespace(namespace).await?;
        self.server.make_service_account(namespace, MEMBER_ACCOUNT).await
    }

    pub(super) async fn admit_mcs_api(&self) -> anyhow::Result<()> {
        self.server.install(&crds::mcs()).await
    }

    pub(super) async fn add_workloads(&self) -> anyhow::Result<()> {
        self.server.memkube().add_workloads();
        workloads::make_kubernetes_service(&self.admin()).await?;
        workloads::make_kubernetes_slice(&self.admin()).await
    }

    pub(super) fn publish(&self, cluster: &str, listener: TcpListener, path: &Path) -> anyhow::Result<Https> {
        // Other users of this machine can reach the port, so the keys must not be predictable.
        let seed = random::bytes().context("the keys of the server cannot be made")?;
        let options = serve::Options { name: cluster.to_owned(), seed, users: vec![User::new(KUBECTL)] };
        let https = Https::start(self.server.memkube(), tokio::net::TcpListener::from_std(listener)?, options)?;
        let text = https.kubeconfig(KUBECTL).context("the user of kubectl is known to the server")?;
        kubeconfigs::write(path, &text)?;
        Ok(https)
    }

    pub(super) fn cut(&self, cut: bool) {
        self.cable.0.send_replace(cut);
    }
}

/// Returns a resource without its group but with its subresource: `leases.coordination.k8s.io` becomes `leases`.
fn without_group(resource: &str) -> String {
    let (object, subresource) = resource.split_once('/').map_or((resource, None), |(it, sub)| (it, Some(sub)));
    let plural = object.split('.').next().unwrap_or_default();
    subresource.map_or_else(|| plural.to_owned(), |subresource| format!("{plural}/{subresource}"))
}

/// Connection to a server. The value is true while the connection is interrupted: then requests have no effect and no
/// response, and watches break.
#[derive(Clone)]
struct Cable(Arc<watch::Sender<bool>>);

impl Cable {
    /// True if the connection is interrupted for this user. The sandbox itself uses the user [`ADMIN`], whose
    /// connection is never interrupted.
    fn is_pulled_for(&self, user: &User) -> bool {
        *self.0.borrow() && &*user.name != ADMIN
    }

    fn befalls(&self, user: &User) -> Fault {
        if !self.is_pulled_for(user) {
            return Fault::default();
        }
        let refuse = Some(Status::internal("the cable of this server is pulled"));
        Fault { refuse, answer: Answer::Cut, ..Fault::default() }
    }
}

impl Faults for Cable {
    fn request(&self, call: &Call) -> Fault {
        self.befalls(&call.user)
    }

    fn path(&self, call: &PathCall) -> Fault {
        self.befalls(&call.user)
    }

    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        (&*call.user.name != ADMIN).then(|| Box::new(self.clone()) as Box<dyn WatchFaults>)
    }
}

impl WatchFaults for Cable {
    fn cut(&self) -> BoxFuture<'static, ()> {
        let mut pulled = self.0.subscribe();
        async move {
            if pulled.wait_for(|pulled| *pulled).await.is_err() {
                // An error means that the server was dropped. Nothing can interrupt this watch any more, so wait
                // without end.
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::{Cable, without_group};
    use memkube::faults::{Answer, Faults};
    use memkube::{PathCall, User};
    use sim::server::ADMIN;
    use std::sync::Arc;
    use tokio::sync::watch;

    #[test]
    fn a_pulled_cable_cuts_discovery_too_for_all_but_us() {
        let cable = Cable(Arc::new(watch::Sender::new(true)));
        let befalls = |user| {
            let call = PathCall { user: User::new(user), verb: "get".into(), path: "/apis".into() };
            let fault = cable.path(&call);
            (fault.refuse.is_some(), matches!(fault.answer, Answer::Cut))
        };
        assert_eq!(befalls("hub-agent"), (true, true));
        assert_eq!(befalls(ADMIN), (false, false));
        cable.0.send_replace(false);
        assert_eq!(befalls("hub-agent"), (false, false));
    }

    #[test]
    fn resources_are_named_without_their_group() {
        assert_eq!(without_group("services"), "services");
        assert_eq!(without_group("leases.coordination.k8s.io"), "leases");
        assert_eq!(without_group("serviceexports.example.io/status"), "serviceexports/status");
        assert_eq!(without_group("services/status"), "services/status");
    }
}
