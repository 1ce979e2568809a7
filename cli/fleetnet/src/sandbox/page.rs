//! Page for a browser that shows the fleet of the sandbox.

use super::event::Event;
use super::fleet::{Fleet, HUB, Server};
use super::kubeconfigs::KUBECTL;
use super::view::Stage;
use crate::limits::UI_SANDBOX_INTERVAL;
use crate::ui::Page;
use crate::ui::source::{Source, Targets};
use anyhow::Context as _;
use diagnosis::read::Target;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;

/// Page that is served. Dropping this value ends it.
pub(super) struct FleetPage {
    targets: watch::Sender<Option<Arc<Targets>>>,
    _page: Page,
}

impl FleetPage {
    /// Starts to serve the page at a free port, before the fleet runs. Sends the event with its address.
    pub(super) async fn open(stage: &Stage) -> anyhow::Result<Self> {
        let targets = watch::Sender::new(None);
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let source = Source::Sandbox(targets.subscribe());
        let page = Page::open(listen, source, UI_SANDBOX_INTERVAL).await.context("cannot serve the page")?;
        stage.emit(Event::Page { url: page.url.clone() }).await;
        Ok(Self { targets, _page: page })
    }

    /// Shows a fleet that runs, from now on.
    pub(super) fn show(&self, fleet: &Fleet) {
        let members = fleet.members.iter().map(|member| (member.name.clone(), target(&member.name, &member.server)));
        let targets = Targets { hub: target(HUB, &fleet.hub), members: members.collect() };
        self.targets.send_replace(Some(Arc::new(targets)));
    }
}

/// Returns a cluster as the diagnosis reads it. The context is that of the kubeconfigs.
fn target(cluster: &str, server: &Server) -> Target {
    Target {
        context: Some(format!("{KUBECTL}@{cluster}")),
        // Not all servers have a port. The class of a failure needs an address, and the servers are on this machine.
        server_url: Ipv4Addr::LOCALHOST.to_string(),
        authority: None,
        proxy: None,
        client: Ok(server.kubectl()),
    }
}
