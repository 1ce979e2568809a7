//! Command `fleetnet ui`: a page for a browser that shows a fleet. The sandbox serves the same page.
//!
//! ```text
//! Source (kubeconfigs or sandbox) <── Finder (clusters, found again after a while)
//!                                       ^               ^
//!          keep_reading (each interval) ┘               └ Answers (one Service, on request)
//!            │ while a Visit lasts                          │
//!            │ <── keep_reading_events (AgentEvents) ────> ┤
//!            v                                              │
//!   (requests) ──> State (documents, lines) ───> events ────┤ server <── guard (token, Host) <── browser
//!                                                   assets ─┘
//! ```
//!
//! Invariant: everything here only reads the clusters. `guard`, `state`, `happened` and `Sent` do no I/O.

mod agent_events;
mod assets;
mod events;
mod guard;
mod happened;
mod reading;
pub(crate) mod requests;
mod server;
mod service;
mod side;
pub(crate) mod source;
mod state;
mod visits;

use crate::cli::contexts::{ClusterFlags, duration};
use crate::cli::exit::{Exit, Stop};
use crate::cli::output;
use crate::cli::output::progress::Progress;
use crate::cli::output::safe::Safe;
use crate::limits::{UI_EVENTS_INTERVALS, UI_HEADER, UI_STALL};
use crate::random;
use agent_events::keep_reading_events;
use fleetnet_runtime::clock::Clock;
use guard::Guard;
use reading::keep_reading;
use requests::{Requests, Traffic};
use server::{Server, accept};
use service::Answers;
use source::{Finder, Source};
use state::{State, json, now};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use visits::Visits;

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Address and port of the page. Port 0 is a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// Time between two readings of the fleet.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    interval: Duration,

    #[command(flatten)]
    clusters: ClusterFlags,
}

/// Page that is served. Dropping this value ends it.
pub(crate) struct Page {
    /// URL of the page, with its token.
    pub(crate) url: String,
    states: watch::Sender<Arc<State>>,
    clock: Clock,
    _tasks: JoinSet<()>,
}

impl Page {
    /// Starts to serve a page.
    ///
    /// # Errors
    /// If the listener has failed, or the operating system gives no random bytes.
    pub(crate) fn open(listener: std::net::TcpListener, source: Source, interval: Duration) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Self::serve(TcpListener::from_std(listener)?, Arc::new(Finder::new(source)), interval)
    }

    fn serve(listener: TcpListener, finder: Arc<Finder>, interval: Duration) -> io::Result<Self> {
        let guard = Guard::new(listener.local_addr()?, random::bytes()?);
        let url = guard.url();
        let (states, visits) = (watch::Sender::new(Arc::new(State::default())), Visits::new());
        let (clock, events) = (Clock::system(), watch::Sender::default());
        let answers = Answers::new(events.subscribe());
        let mut tasks = JoinSet::new();
        let read = events.subscribe();
        tasks.spawn(keep_reading(finder.clone(), states.clone(), visits.clone(), interval, clock.clone(), read));
        let interval = interval.saturating_mul(UI_EVENTS_INTERVALS);
        tasks.spawn(keep_reading_events(finder.clone(), events, visits.clone(), interval, clock.clone()));
        let server = Server {
            guard,
            finder,
            states: states.clone(),
            visits,
            answers,
            clock: clock.clone(),
            header: UI_HEADER,
            stall: UI_STALL,
        };
        tasks.spawn(accept(Arc::new(server), listener));
        Ok(Self { url, states, clock, _tasks: tasks })
    }

    /// Shows that there is a client from now on.
    pub(crate) fn show_traffic(&self, traffic: &Traffic<'_>) {
        self.states.send_modify(|state| Arc::make_mut(state).traffic = Some(json(traffic)));
    }

    /// Adds the requests of a second.
    pub(crate) fn add_requests(&self, requests: &Requests<'_>) {
        self.states.send_modify(|state| Arc::make_mut(state).add(requests));
    }

    /// Returns the present time, as in all messages to the page.
    pub(crate) fn now(&self) -> String {
        now(&self.clock)
    }
}

/// Runs the command until Ctrl-C.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let Options { listen, interval, clusters } = options;
    // From here on, Ctrl-C ends the command with its own exit code.
    let interrupts = signal(SignalKind::interrupt());
    let mut interrupts =
        interrupts.map_err(|error| Stop::fault(format!("signal handlers cannot be installed: {error}")))?;
    tokio::select! {
        _ = interrupts.recv() => Ok(Exit::Healthy),
        ended = serve(listen, interval, clusters) => ended.map(|never| match never {}),
    }
}

/// Serves the page without end.
async fn serve(
    listen: SocketAddr,
    interval: Duration,
    clusters: ClusterFlags,
) -> Result<std::convert::Infallible, Stop> {
    let progress = Progress::new(clusters.verbose);
    let finder = Arc::new(Finder::new(Source::Kubeconfigs(Box::new(clusters))));
    finder.begin(&progress).await?;
    drop(progress);
    let page = TcpListener::bind(listen).await.and_then(|listener| Page::serve(listener, finder, interval));
    let page = page.map_err(|error| Stop::fault(format!("--listen {listen}: cannot serve the page: {error}")))?;
    if !listen.ip().is_loopback() {
        output::note(&format!(
            "--listen {listen}: everybody who reaches this address and knows the URL can read the page"
        ));
    }
    let mut line = Safe::line(&page.url);
    line.push_own("\n");
    output::write(&line)?;
    std::future::pending().await
}
