//! Page for a browser that shows the fleet of the sandbox. Without a page, the sandbox runs all the same.

use super::event::HUB;
use super::event::{Counts, Event, Traffic};
use super::fleet::Fleet;
use super::kubeconfigs::KUBECTL;
use super::view::Stage;
use crate::args::Options;
use crate::cli::output;
use crate::limits::UI_SANDBOX_INTERVAL;
use crate::ui::source::{Source, Targets};
use crate::ui::{Page, requests};
use diagnosis::read::Target;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::sync::watch;

/// Returns the listener of the page at a free port, if the run has a page and the port can be had.
pub(super) fn listen(options: &Options) -> Option<TcpListener> {
    if options.once { None } else { listen_at((Ipv4Addr::LOCALHOST, 0).into()) }
}

fn listen_at(address: SocketAddr) -> Option<TcpListener> {
    or_note(TcpListener::bind(address))
}

/// Returns the value. Prints an error as a note, and returns `None`.
fn or_note<T>(result: io::Result<T>) -> Option<T> {
    result.inspect_err(|why| output::note(&format!("there is no page for a browser: {why}"))).ok()
}

/// Page that is served. Dropping this value ends it.
pub(super) struct FleetPage {
    targets: watch::Sender<Option<Arc<Targets>>>,
    page: Page,
}

impl FleetPage {
    /// Starts to serve the page, before the fleet runs. Sends the event with its address.
    pub(super) async fn open(listener: Option<TcpListener>, stage: &Stage) -> Option<Self> {
        let targets = watch::Sender::new(None);
        let source = Source::Sandbox(targets.subscribe());
        let page = or_note(Page::open(listener?, source, UI_SANDBOX_INTERVAL))?;
        stage.emit(Event::Page { url: page.url.clone() }).await;
        Some(Self { targets, page })
    }

    /// Shows clusters that run, from now on.
    pub(super) fn show(&self, targets: Targets) {
        self.targets.send_replace(Some(Arc::new(targets)));
    }
}

/// Requests of `--packets`.
#[cfg_attr(not(feature = "real"), allow(dead_code, reason = "only builds with this feature have --packets"))]
impl FleetPage {
    /// Shows that a client sends requests from now on.
    pub(super) fn show_traffic(&self, traffic: &Traffic) {
        let Traffic { service, exporters, importer, client, requests_per_second, .. } = traffic;
        let requests_per_second = *requests_per_second;
        self.page.show_traffic(&requests::Traffic { service, exporters, importer, client, requests_per_second });
    }

    /// Adds the requests of a second.
    pub(super) fn add_requests(&self, counts: &Counts) {
        let Counts { requests: sent, lost, lost_by_kind, answers_by_cluster } = counts;
        let (time, sent, lost) = (self.page.now(), *sent, *lost);
        self.page.add_requests(&requests::Requests { time, sent, lost, lost_by_kind, answers_by_cluster });
    }
}

/// Returns the clusters of a fleet, with the contexts of its kubeconfigs.
pub(super) fn targets(fleet: &Fleet) -> Targets {
    let of = |name: &str, client| target(format!("{KUBECTL}@{name}"), client);
    let members = fleet.members.iter().map(|member| (member.name.clone(), of(&member.name, member.server.kubectl())));
    Targets { hub: of(HUB, fleet.hub.kubectl()), members: members.collect() }
}

/// Returns a cluster as the diagnosis reads it.
pub(super) fn target(context: String, client: kube::Client) -> Target {
    Target {
        context: Some(context),
        // Not all servers have a port. The class of a failure needs an address, and the servers are on this machine.
        server_url: Ipv4Addr::LOCALHOST.to_string(),
        authority: None,
        proxy: None,
        client: Ok(client),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_cannot_be_had_is_no_error() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let listener = listen_at(taken.local_addr().unwrap());
        assert!(listener.is_none(), "{listener:?}");
        let (stage, _events) = Stage::recorded();
        assert!(FleetPage::open(listener, &stage).await.is_none());
    }
}
