//! Faults of one server, and a record of what the agents request meanwhile.

use anyhow::ensure;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use memkube::faults::{Fate, Fault, Faults, WatchFaults, WatchedEvent};
use memkube::{Call, Object};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fmt;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time that a server takes to reject a request.
const REFUSAL: Duration = Duration::from_millis(1);

/// Fault of each request.
type Storm = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;
/// Fault of each event of a watch.
type Blow = Arc<dyn Fn(&Call, &WatchedEvent) -> Fate + Send + Sync>;
/// Alters an object before it is stored.
type Webhook = Arc<dyn Fn(&Call, &mut Object) + Send + Sync>;

/// Faults of one server, none at first. Clones share them.
#[derive(Clone)]
pub(crate) struct Weather(Arc<State>);

struct State {
    storm: Mutex<Option<Storm>>,
    blow: Mutex<Option<Blow>>,
    webhook: Mutex<Option<Webhook>>,
    lines: watch::Sender<Lines>,
    asked: Mutex<Vec<Asked>>,
}

/// A request of an agent, answered or not.
#[derive(Clone)]
pub(crate) struct Asked {
    at: Instant,
    call: Call,
}

/// Fault of open watches, for the users whose names contain the text.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lines {
    #[default]
    Fair,
    /// The connection is closed.
    Cut(&'static str),
    /// The connection stays open without events.
    Silent(&'static str),
}

impl Default for Weather {
    fn default() -> Self {
        let (storm, blow, webhook, lines, asked) = Default::default();
        Self(Arc::new(State { storm, blow, webhook, lines: watch::Sender::new(lines), asked }))
    }
}

impl fmt::Debug for Weather {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Weather")
    }
}

impl Weather {
    /// Sets the fault of agents' requests from now on.
    pub(crate) fn requests(&self, storm: impl Fn(&Call) -> Fault + Send + Sync + 'static) {
        *self.0.storm.lock() = Some(Arc::new(storm));
    }

    /// Sets the fault of agents' watch events from now on.
    pub(crate) fn events(&self, blow: impl Fn(&Call, &WatchedEvent) -> Fate + Send + Sync + 'static) {
        *self.0.blow.lock() = Some(Arc::new(blow));
    }

    /// Sets a mutating webhook for all writers from now on.
    pub(crate) fn webhook(&self, webhook: impl Fn(&Call, &mut Object) + Send + Sync + 'static) {
        *self.0.webhook.lock() = Some(Arc::new(webhook));
    }

    /// Sets the fault of open watches from now on.
    pub(crate) fn watches(&self, lines: Lines) {
        self.0.lines.send_replace(lines);
    }

    /// Ends all faults. A watch that is silent stays silent.
    pub(crate) fn clears(&self) {
        *self.0.storm.lock() = None;
        *self.0.blow.lock() = None;
        *self.0.webhook.lock() = None;
        self.0.lines.send_replace(Lines::Fair);
    }

    /// Resource and name of the objects that agents have requested since `begun`.
    pub(crate) fn objects_asked_for(
        &self,
        begun: Instant,
        wanted: impl Fn(&Call) -> bool,
    ) -> BTreeSet<(String, String)> {
        let asked = self.0.asked.lock();
        let since = asked.iter().filter(|asked| asked.at >= begun && wanted(&asked.call));
        since.map(|asked| (asked.call.target.resource.to_string(), asked.call.target.name.to_string())).collect()
    }

    /// Number of requests of agents in each minute since `begun`, without Leases and Events.
    pub(crate) fn asked_by_minute(&self, begun: Instant, wanted: impl Fn(&Call) -> bool) -> Vec<usize> {
        let minutes = begun.elapsed().as_secs().div_ceil(60);
        let asked = self.0.asked.lock();
        let of_minute = |minute: u64| {
            let from = begun + Duration::from_secs(60 * minute);
            let until = from + Duration::from_secs(60);
            asked.iter().filter(|asked| asked.at >= from && asked.at < until && wanted(&asked.call)).count()
        };
        (0..minutes).map(of_minute).collect()
    }

    /// Time of each request after `begun`.
    pub(crate) fn asked_after(&self, begun: Instant, wanted: impl Fn(&Call) -> bool) -> Vec<Duration> {
        let asked = self.0.asked.lock();
        let since = asked.iter().filter(|asked| asked.at >= begun && wanted(&asked.call));
        since.map(|asked| asked.at.duration_since(begun)).collect()
    }
}

fn is_of_agent(call: &Call) -> bool {
    call.user.name.contains("agent")
}

/// True for requests of objects other than Leases and Events.
pub(crate) fn is_about_objects(call: &Call) -> bool {
    !matches!(&*call.target.resource, "leases" | "events")
}

pub(crate) fn is_heartbeat(call: &Call) -> bool {
    &*call.target.resource == "memberagents"
}

impl Faults for Weather {
    fn request(&self, call: &Call) -> Fault {
        if !is_of_agent(call) {
            return Fault::default();
        }
        if is_about_objects(call) {
            self.0.asked.lock().push(Asked { at: Instant::now(), call: call.clone() });
        }
        let storm = self.0.storm.lock().clone();
        let mut fault = storm.map_or_else(Fault::default, |storm| storm(call));
        if fault.refuse.is_some() {
            // A rejection takes time, so that the next plan is made at another time.
            fault.delay_before = fault.delay_before.max(REFUSAL);
        }
        fault
    }

    fn mutate(&self, call: &Call, object: &mut Object) {
        let webhook = self.0.webhook.lock().clone();
        if let Some(webhook) = webhook {
            webhook(call, object);
        }
    }

    fn watch(&self, call: &Call) -> Option<Box<dyn WatchFaults>> {
        is_of_agent(call).then(|| Box::new(Exposed { weather: self.clone(), call: call.clone() }) as _)
    }
}

/// A watch that is open.
struct Exposed {
    weather: Weather,
    call: Call,
}

impl Exposed {
    fn when(&self, wanted: impl Fn(Lines) -> Option<&'static str> + Send + Sync + 'static) -> BoxFuture<'static, ()> {
        let mut lines = self.weather.0.lines.subscribe();
        let user = Arc::clone(&self.call.user.name);
        async move {
            let concerned = |lines: &Lines| wanted(*lines).is_some_and(|name| user.contains(name));
            if lines.wait_for(concerned).await.is_err() {
                pending::<()>().await;
            }
        }
        .boxed()
    }
}

impl WatchFaults for Exposed {
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        let blow = self.weather.0.blow.lock().clone();
        blow.map_or(Fate::Deliver, |blow| blow(&self.call, event))
    }

    fn cut(&self) -> BoxFuture<'static, ()> {
        self.when(|lines| if let Lines::Cut(name) = lines { Some(name) } else { None })
    }

    fn silence(&self) -> BoxFuture<'static, ()> {
        self.when(|lines| if let Lines::Silent(name) = lines { Some(name) } else { None })
    }
}

/// Asserts at most `first` requests in the first minute, and at most `later` in every later one.
/// Limits are about 1.5 times what was measured, because the back-off is random; a retry without back-off makes thousands.
pub(crate) fn ever_more_seldom(asked: &[usize], first: usize, later: usize) -> anyhow::Result<()> {
    println!("requests by minute: {asked:?}");
    ensure!(asked.iter().sum::<usize>() > 0, "nothing was asked");
    ensure!(asked[0] <= first && asked[1..].iter().all(|asked| *asked <= later), "requests by minute: {asked:?}");
    Ok(())
}
