//! The line between one agent and the API servers: it counts what the agent writes, and can be cut at any write.

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

/// Writes of leader election and Events do not count: the first have tests of their own, the second nobody waits for.
const NOT_COUNTED: [&str; 2] = ["leases", "events"];

/// In virtual time, which passes only when nobody has anything to do: what is under way is carried out by then.
const CARRIED_OUT: Duration = Duration::from_millis(1);

/// Where an agent is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The write, counted from 1.
    pub write: usize,
    /// On which side of its commit.
    pub side: Side,
}

/// A side of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The write is never carried out.
    Before,
    /// It is never carried out; those under way beside it are, and the agent hears of none of them.
    Overtaken,
    /// It is carried out, and the agent never hears of it.
    After,
}

impl Side {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Before, Self::Overtaken, Self::After];
}

/// The line of one agent, to all of its clusters. Clones are the same line.
#[derive(Clone, Debug)]
pub struct Line(Arc<State>);

#[derive(Debug)]
struct State {
    count: Mutex<Count>,
    passes: watch::Sender<Passes>,
}

/// What passes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passes {
    Everything,
    /// No answers.
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
    /// Counts writes from here on, and cuts the line at one of them.
    pub fn arm(&self, cut: Option<Cut>) {
        *self.0.count.lock() = Count { written: 0, cut };
    }

    /// How many writes there were since [`Line::arm`].
    #[must_use]
    pub fn written(&self) -> usize {
        self.0.count.lock().written
    }

    /// Ready once the line is cut. Nothing passes it then, in either direction.
    pub fn is_cut(&self) -> impl Future<Output = ()> + Send + use<> {
        self.is_at(Passes::Nothing)
    }

    fn is_at(&self, wanted: Passes) -> impl Future<Output = ()> + Send + use<> {
        let mut passes = self.0.passes.subscribe();
        async move {
            if passes.wait_for(|passes| *passes == wanted).await.is_err() {
                // The line is gone, and whoever used it.
                pending::<()>().await;
            }
        }
    }

    /// A service that is reached over this line.
    #[must_use]
    pub fn to(&self, service: Service) -> Wired {
        Wired { service, line: self.clone() }
    }

    /// Counts a write, and tells where it is cut if it is the one.
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

    /// Severs the line once what is under way is carried out.
    async fn sever_behind_others(&self) -> ! {
        self.0.passes.send_replace(Passes::Requests);
        sleep(CARRIED_OUT).await;
        self.sever().await
    }
}

/// A server at the other end of a line.
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
