//! Gates between one replica of an agent and its API servers: [`Gates`].

use anyhow::ensure;
use harness::control_plane::ControlPlane;
use harness::gate::{Gate, GateProxy};
use harness::kubeconfig::Access;

/// Gates that only one replica uses, so that its connections can be cut and those of the other replica stay.
#[derive(Debug, Default)]
pub(crate) struct Gates(Vec<GateProxy>);

impl Gates {
    /// Starts a gate in front of a server. Returns the access of a user through this gate.
    pub(crate) async fn access(&mut self, server: &ControlPlane, user: &str) -> anyhow::Result<Access> {
        let access = server.access(user).await?;
        let gate = GateProxy::start(&access.server_url, Gate::Open).await?;
        let access = Access { server_url: gate.server_url.clone(), ..access };
        self.0.push(gate);
        Ok(access)
    }

    /// Opens or shuts all gates.
    ///
    /// # Errors
    /// If there are no gates, because of [`crate::Settings::gates`].
    pub(crate) fn set_state(&self, state: Gate) -> anyhow::Result<()> {
        ensure!(!self.0.is_empty(), "the fleet was started without gates");
        for gate in &self.0 {
            gate.set_state(state);
        }
        Ok(())
    }
}
