//! Probes of a container: [`Probes`].

use super::place::Place;
use super::process::Target;
use crate::http;
use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::MissedTickBehavior;

/// Probes of a container.
pub(super) struct Probes<'a> {
    place: &'a Place,
    container: &'a Container,
}

impl<'a> Probes<'a> {
    pub(super) fn of(place: &'a Place, container: &'a Container) -> Self {
        Self { place, container }
    }

    pub(super) fn has_readiness(&self) -> bool {
        self.container.readiness_probe.is_some()
    }

    /// Follows the probe of readiness, and calls `set` for each change.
    pub(super) async fn follow_readiness(&self, target: &Target, mut set: impl FnMut(bool)) -> Infallible {
        if let Some(probe) = &self.container.readiness_probe {
            let each = |is_ready| {
                set(is_ready);
                true
            };
            self.follow(target, probe, each).await;
        }
        pending().await
    }

    /// Waits until the container is not alive. Without a probe of liveness, it is always alive.
    pub(super) async fn dead(&self, target: &Target) {
        match &self.container.liveness_probe {
            Some(probe) => self.follow(target, probe, |is_alive| is_alive).await,
            None => pending().await,
        }
    }

    /// Repeats a probe, and calls `goes_on` for each change of its outcome, until `goes_on` returns false.
    async fn follow(&self, target: &Target, probe: &Probe, mut goes_on: impl FnMut(bool) -> bool) {
        let seconds = |value: Option<i32>, otherwise| {
            Duration::from_secs(value.and_then(|value| value.try_into().ok()).unwrap_or(otherwise))
        };
        tokio::time::sleep(seconds(probe.initial_delay_seconds, 0)).await;
        let mut ticks = tokio::time::interval(seconds(probe.period_seconds, 10).max(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let limit = seconds(probe.timeout_seconds, 1);
        // Outcome of the attempts so far, and the number of attempts with this outcome in a row.
        let (mut last, mut row) = (false, 0);
        loop {
            ticks.tick().await;
            let succeeded = self.attempt(target, probe, limit).await.is_ok();
            row = if succeeded == last { row + 1 } else { 1 };
            last = succeeded;
            let threshold = if succeeded { probe.success_threshold } else { probe.failure_threshold };
            let threshold = threshold.unwrap_or(if succeeded { 1 } else { 3 });
            if row == threshold && !goes_on(succeeded) {
                return;
            }
        }
    }

    async fn attempt(&self, target: &Target, probe: &Probe, limit: Duration) -> anyhow::Result<()> {
        let address = self.place.address();
        if let Some(get) = &probe.http_get {
            let port = port_number(self.container, &get.port)?;
            let path = get.path.as_deref().unwrap_or("/");
            let (status, _) = http::call("GET", (address, port).into(), path, limit).await?;
            ensure!((200..400).contains(&status), "the status is {status}");
        }
        if let Some(socket) = &probe.tcp_socket {
            let port = port_number(self.container, &socket.port)?;
            tokio::time::timeout(limit, TcpStream::connect((address, port))).await??;
        }
        if let Some(exec) = &probe.exec {
            target.execute(exec.command.as_deref().unwrap_or_default(), limit).await?;
        }
        Ok(())
    }
}

/// Returns the number of a port that has a number or a name.
pub(super) fn port_number(container: &Container, port: &IntOrString) -> anyhow::Result<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_ref() == Some(name));
            named.with_context(|| format!("{} has no port {name}", container.name))?.container_port
        }
    };
    Ok(number.try_into()?)
}
