//! Connection between one agent and the API servers. It counts the agent's writes and can be cut at any of them.

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body as Sent;
use memkube::{Body, BoxError, Service};
use parking_lot::Mutex;
use std::future::{Future, pending};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Resources whose writes do not count. Leader election has its own tests, and nothing waits for Events.
const NOT_COUNTED: [&str; 2] = ["leases", "events"];

/// Time for writes in progress to finish. Virtual time passes only when all tasks are idle, so any duration is
/// enough.
const CARRIED_OUT: Duration = Duration::from_millis(1);

/// Write at which an agent loses its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Number of the write, from 1.
    pub write: usize,
    /// Moment of the cut, relative to the commit of the write.
    pub side: Side,
}

/// Moment relative to the commit of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The write does not reach the server.
    Before,
    /// The write does not reach the server. Concurrent writes do, but the agent gets no answer to them.
    Overtaken,
    /// The write reaches the server, but the agent gets no answer.
    After,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Before, Self::Overtaken, Self::After];
}

/// Connection of one agent to all of its clusters. Clones share the same state.
#[derive(Clone, Debug)]
pub struct Line(Arc<State>);

#[derive(Debug)]
struct State {
    count: Mutex<Count>,
    passes: watch::Sender<Passes>,
}

/// Traffic that a connection lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passes {
    Everything,
    /// Requests, but no answers.
    Requests,
    Nothing,
}

#[derive(Debug, Default)]
struct Count {
    written: usize,
    cut: Option<Cut>,
}

impl Default for Line {
    fn default() -> Self {
        Self(Arc::new(State { count: Mutex::default(), passes: watch::Sender::new(Passes::Everything) }))
    }
}

impl Line {
    /// Resets the count of writes, and plans a cut at one of the next writes.
    pub fn arm(&self, cut: Option<Cut>) {
        *self.0.count.lock() = Count { written: 0, cut };
    }

    /// Returns the number of writes since [`Line::arm`].
    #[must_use]
    pub fn written(&self) -> usize {
        self.0.count.lock().written
    }

    /// Waits until the connection is cut. After that no traffic passes in either direction.
    pub fn is_cut(&self) -> impl Future<Output = ()> + Send + use<> {
        self.is_at(Passes::Nothing)
    }

    fn is_at(&self, wanted: Passes) -> impl Future<Output = ()> + Send + use<> {
        let mut passes = self.0.passes.subscribe();
        async move {
            if passes.wait_for(|passes| *passes == wanted).await.is_err() {
                // The sender is gone, so no agent uses this connection any more.
                pending::<()>().await;
            }
        }
    }

    /// Wraps a service so that its traffic passes through this connection.
    #[must_use]
    pub fn to(&self, service: Service) -> Wired {
        Wired { service, line: self.clone() }
    }

    /// Counts a write. Returns the moment of the cut if this write is the planned one.
    fn count(&self) -> Option<Side> {
        let mut count = self.0.count.lock();
        count.written += 1;
        let cut = count.cut?;
        (cut.write == count.written).then_some(cut.side)
    }

    async fn sever(&self) -> ! {
        self.0.passes.send_replace(Passes::Nothing);
        pending().await
    }

    /// Cuts the connection after concurrent writes are finished.
    async fn sever_behind_others(&self) -> ! {
        self.0.passes.send_replace(Passes::Requests);
        sleep(CARRIED_OUT).await;
        self.sever().await
    }
}

/// Server behind a connection that can be cut.
#[derive(Clone, Debug)]
pub struct Wired {
    service: Service,
    line: Line,
}

impl tower::Service<Request<Sent>> for Wired {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let (mut service, line) = (self.service.clone(), self.line.clone());
        Box::pin(async move {
            if *line.0.passes.borrow() == Passes::Nothing {
                return pending().await;
            }
            let side = if is_counted(&request) { line.count() } else { None };
            match side {
                Some(Side::Before) => line.sever().await,
                Some(Side::Overtaken) => line.sever_behind_others().await,
                Some(Side::After) | None => {}
            }
            let answer = tokio::select! {
                biased;
                answer = tower::Service::call(&mut service, request) => answer,
                () = line.is_cut() => pending().await,
            };
            if side == Some(Side::After) {
                line.sever().await;
            }
            if *line.0.passes.borrow() != Passes::Everything {
                return pending().await;
            }
            answer
        })
    }
}

fn is_counted(request: &Request<Sent>) -> bool {
    let of_agents = request.uri().path().split('/').any(|segment| NOT_COUNTED.contains(&segment));
    !of_agents && !matches!(*request.method(), Method::GET | Method::HEAD)
}
