//! What goes wrong at one server, and what the agents ask of it meanwhile.

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

/// How long a server takes to refuse.
const REFUSAL: Duration = Duration::from_millis(1);

/// What befalls the requests that are made while it lasts.
type Storm = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;
/// What befalls an event of a watch.
type Blow = Arc<dyn Fn(&Call, &WatchedEvent) -> Fate + Send + Sync>;
/// Alters an object before it is stored.
type Webhook = Arc<dyn Fn(&Call, &mut Object) + Send + Sync>;

/// The weather at one server. Clones are the same. It is fair at first.
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

/// What befalls the watches that are open, of the users whose names hold this.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lines {
    #[default]
    Fair,
    /// They are cut off.
    Cut(&'static str),
    /// They say nothing more and stay open.
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
    /// From now on, what befalls the requests of agents.
    pub(crate) fn requests(&self, storm: impl Fn(&Call) -> Fault + Send + Sync + 'static) {
        *self.0.storm.lock() = Some(Arc::new(storm));
    }

    /// From now on, what befalls the events of agents' watches.
    pub(crate) fn events(&self, blow: impl Fn(&Call, &WatchedEvent) -> Fate + Send + Sync + 'static) {
        *self.0.blow.lock() = Some(Arc::new(blow));
    }

    /// From now on, a mutating webhook for all writers.
    pub(crate) fn webhook(&self, webhook: impl Fn(&Call, &mut Object) + Send + Sync + 'static) {
        *self.0.webhook.lock() = Some(Arc::new(webhook));
    }

    /// From now on, what befalls open watches.
    pub(crate) fn watches(&self, lines: Lines) {
        self.0.lines.send_replace(lines);
    }

    /// All is well again. A watch that fell silent stays so.
    pub(crate) fn clears(&self) {
        *self.0.storm.lock() = None;
        *self.0.blow.lock() = None;
        *self.0.webhook.lock() = None;
        self.0.lines.send_replace(Lines::Fair);
    }

    /// The objects that agents have asked for since `begun`, as resource and name.
    pub(crate) fn objects_asked_for(
        &self,
        begun: Instant,
        wanted: impl Fn(&Call) -> bool,
    ) -> BTreeSet<(String, String)> {
        let asked = self.0.asked.lock();
        let since = asked.iter().filter(|asked| asked.at >= begun && wanted(&asked.call));
        since.map(|asked| (asked.call.target.resource.to_string(), asked.call.target.name.to_string())).collect()
    }

    /// How many requests of agents there were in each minute since `begun`, Leases and Events left out.
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

    /// How long after `begun` each request came.
    pub(crate) fn asked_after(&self, begun: Instant, wanted: impl Fn(&Call) -> bool) -> Vec<Duration> {
        let asked = self.0.asked.lock();
        let since = asked.iter().filter(|asked| asked.at >= begun && wanted(&asked.call));
        since.map(|asked| asked.at.duration_since(begun)).collect()
    }
}

fn is_of_agent(call: &Call) -> bool {
    call.user.name.contains("agent")
}

/// Neither leader election nor Events.
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
            // A refusal takes time, so that the next plan is made at another time.
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

/// An open watch.
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

/// In the first minute at most `first` requests, in every later one at most `later`.
pub(crate) fn ever_more_seldom(asked: &[usize], first: usize, later: usize) -> anyhow::Result<()> {
    println!("requests by minute: {asked:?}");
    ensure!(asked.iter().sum::<usize>() > 0, "nothing was asked");
    ensure!(asked[0] <= first && asked[1..].iter().all(|asked| *asked <= later), "requests by minute: {asked:?}");
    Ok(())
}
