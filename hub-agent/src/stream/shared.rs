//! State that all streams share.

use super::clocks::{Clocks, SteadyClock};
use super::message::Message;
use super::metrics::Metrics;
use crate::limits::REVIEW_TIMEOUT;
use fleetnet_proto::TOKEN_AUDIENCE;
use fleetnet_runtime::clock::Clock;
use fleetnet_runtime::process::access::{Access, Client, Guard, Question};
use fleetnet_runtime::process::reviews::Wanted;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use tonic::Status;

/// State that all streams share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) inbox: mpsc::Sender<Message>,
    pub(super) guard: Guard,
    pub(super) leads: watch::Receiver<bool>,
    pub(super) clock: Clock,
    pub(super) steady: SteadyClock,
    pub(super) clocks: Arc<Clocks>,
    pub(super) metrics: Metrics,
    pub(super) streams: Arc<Semaphore>,
}

impl Shared {
    pub(super) fn is_serving(&self) -> Result<(), Status> {
        if *self.leads.borrow() && !self.inbox.is_closed() {
            return Ok(());
        }
        Err(Status::unavailable("this replica of the hub agent does not lead; connect again to reach another one"))
    }

    /// Checks that a token is for the slice stream, and that its user may change the distributed slices of a member.
    pub(super) async fn access(&self, client: Client, token: &str, namespace: &str) -> Result<(), Status> {
        let wanted = Wanted::Resource {
            verb: "patch",
            group: fleetnet_api::names::GROUP,
            resource: "endpointsliceimports",
            namespace,
        };
        let question = Question { token, audience: Some(TOKEN_AUDIENCE), wanted };
        let silent = || Status::unavailable("the hub's API server did not review the token in time");
        let reviewed = timeout(REVIEW_TIMEOUT, self.guard.access(client, question)).await.map_err(|_| silent())?;
        let access = reviewed.map_err(|error| {
            tracing::warn!(%error, namespace, "the token of a slice stream could not be reviewed");
            silent()
        })?;
        match access {
            Access::Granted => Ok(()),
            Access::Unauthenticated => Err(not_accepted()),
            Access::Denied(user) => Err(Status::permission_denied(format!(
                "the user {user} may not patch EndpointSliceImports in the namespace {namespace}; the role of the \
                 member in the hub is missing there, or the cluster id is of another member"
            ))),
        }
    }
}

pub(super) fn not_accepted() -> Status {
    Status::unauthenticated(format!(
        "the hub does not accept the token for the audience {TOKEN_AUDIENCE}; it may have expired"
    ))
}
