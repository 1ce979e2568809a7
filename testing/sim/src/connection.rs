//! Connection between an agent and the API servers. The connection counts the agent's writes, and a test can cut the
//! connection at any write.

use crate::board::Board;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body as Sent;
use memkube::{Body, BoxError, Service};
use parking_lot::Mutex;
use std::future::{Future, pending};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::sleep;

/// Resources whose writes are not counted: Leases, because leader election has its own tests, and Events, because no
/// other write depends on them.
const NOT_COUNTED: [&str; 2] = ["leases", "events"];

/// Time to wait until the server has executed the writes in flight. On paused time, a timer ends only when all other
/// tasks wait, so even a short time is long enough.
const CARRIED_OUT: Duration = Duration::from_millis(1);

/// Write of an agent at which its connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Sequence number of the write at which the connection is cut, from 1.
    pub write: usize,
    /// Moment of the cut, before or after the server executes the write.
    pub side: Side,
}

/// Moment at which a connection is cut, relative to the execution of a write by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The connection is cut before the write: the write does not reach the server.
    Before,
    /// Like [`Self::Before`], but other writes that are in flight at the same time still reach the server. The agent
    /// gets no response to them.
    Overtaken,
    /// The connection is cut after the write: the write reaches the server, but the agent gets no response.
    After,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Before, Self::Overtaken, Self::After];
}

/// Connection of one agent to all of its clusters. Clones share the connection.
#[derive(Clone, Debug)]
pub struct Connection(Arc<State>);

#[derive(Debug)]
struct State {
    count: Mutex<Count>,
    passes: Board<Passes>,
}

/// Traffic that a connection still forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passes {
    Everything,
    /// Requests wait. They reach the servers after [`Connection::release`], even if their agent has ended.
    Held,
    /// Requests reach the servers, but responses do not reach the agent.
    Requests,
    Nothing,
}

#[derive(Debug, Default)]
struct Count {
    written: usize,
    cut: Option<Cut>,
    /// True to hold the next write and everything after it.
    holds_next: bool,
}

impl Default for Connection {
    fn default() -> Self {
        Self(Arc::new(State { count: Mutex::default(), passes: Board::new(Passes::Everything) }))
    }
}

impl Connection {
    /// Sets the count of writes to 0. Plans a cut at one of the next writes; `None` plans no cut.
    pub fn arm(&self, cut: Option<Cut>) {
        *self.0.count.lock() = Count { written: 0, cut, holds_next: false };
    }

    /// Returns the number of writes since the last [`Connection::arm`].
    #[must_use]
    pub fn written(&self) -> usize {
        self.0.count.lock().written
    }

    /// Waits until the connection is cut. After the cut, nothing passes in either direction.
    pub fn is_cut(&self) -> impl Future<Output = ()> + Send + use<> {
        self.is_at(Passes::Nothing)
    }

    /// Holds all requests back from now on, as if the agent's process was stopped with a write on its way.
    pub fn hold(&self) {
        self.0.passes.change(|passes| *passes = Passes::Held);
    }

    /// Holds the next write back, and all requests after it. Until then, all requests pass.
    pub fn hold_at_next_write(&self) {
        self.0.count.lock().holds_next = true;
    }

    /// Sends all requests that were held back, and forwards later requests at once.
    pub fn release(&self) {
        self.0.count.lock().holds_next = false;
        self.0.passes.change(|passes| *passes = Passes::Everything);
    }

    /// Waits until everything passes.
    pub(crate) fn is_open(&self) -> impl Future<Output = ()> + Send + use<> {
        self.is_at(Passes::Everything)
    }

    fn is_at(&self, wanted: Passes) -> impl Future<Output = ()> + Send + use<> {
        let state = Arc::clone(&self.0);
        async move { state.passes.wait_for(|passes| *passes == wanted).await }
    }

    /// Returns a tower service that sends its requests to `service` through this connection.
    #[must_use]
    pub fn to(&self, service: Service) -> Wired {
        Wired { service, connection: self.clone() }
    }

    /// Counts a write. If the cut is planned at this write, returns the moment of the cut.
    fn count(&self) -> Option<Side> {
        let mut count = self.0.count.lock();
        count.written += 1;
        let cut = count.cut?;
        (cut.write == count.written).then_some(cut.side)
    }

    async fn sever(&self) -> ! {
        self.0.passes.change(|passes| *passes = Passes::Nothing);
        pending().await
    }

    /// Waits until the server has executed the other writes in flight, and then cuts the connection.
    async fn sever_behind_others(&self) -> ! {
        self.0.passes.change(|passes| *passes = Passes::Requests);
        sleep(CARRIED_OUT).await;
        self.sever().await
    }
}

/// API server that an agent reaches through a connection that a test can cut.
#[derive(Clone, Debug)]
pub struct Wired {
    service: Service,
    connection: Connection,
}

impl tower::Service<Request<Sent>> for Wired {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let (mut service, connection) = (self.service.clone(), self.connection.clone());
        Box::pin(async move {
            if is_counted(&request) && std::mem::take(&mut connection.0.count.lock().holds_next) {
                connection.hold();
            }
            let passes = connection.0.passes.read(|passes| *passes);
            match passes {
                Passes::Nothing => return pending().await,
                Passes::Held => return late(service, connection, request).await,
                Passes::Everything | Passes::Requests => {}
            }
            let side = if is_counted(&request) { connection.count() } else { None };
            match side {
                Some(Side::Before) => connection.sever().await,
                Some(Side::Overtaken) => connection.sever_behind_others().await,
                Some(Side::After) | None => {}
            }
            let answer = tokio::select! {
                biased;
                answer = tower::Service::call(&mut service, request) => answer,
                () = connection.is_cut() => pending().await,
            };
            if side == Some(Side::After) {
                connection.sever().await;
            }
            let passes = connection.0.passes.read(|passes| *passes);
            match passes {
                Passes::Everything => {}
                Passes::Held => connection.is_at(Passes::Everything).await,
                Passes::Requests | Passes::Nothing => return pending().await,
            }
            answer
        })
    }
}

/// Sends a request after [`Connection::release`]. A task of its own sends it, so the request arrives even if its agent
/// has ended.
async fn late(
    mut service: Service,
    connection: Connection,
    request: Request<Sent>,
) -> Result<Response<Body>, BoxError> {
    let sent = tokio::spawn(async move {
        connection.is_at(Passes::Everything).await;
        tower::Service::call(&mut service, request).await
    });
    sent.await?
}

fn is_counted(request: &Request<Sent>) -> bool {
    let of_agents = request.uri().path().split('/').any(|segment| NOT_COUNTED.contains(&segment));
    !of_agents && !matches!(*request.method(), Method::GET | Method::HEAD)
}
