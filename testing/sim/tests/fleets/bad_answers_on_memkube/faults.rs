//! Faults of one simulated server, and a record of the agents' requests during the faults.

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

/// Time until a faulty server rejects a request.
const REJECTION_DELAY: Duration = Duration::from_millis(1);

/// Function that returns the fault of each request.
type RequestFault = Arc<dyn Fn(&Call) -> Fault + Send + Sync>;
/// Function that returns the fault of each event of a watch.
type EventFault = Arc<dyn Fn(&Call, &WatchedEvent) -> Fate + Send + Sync>;
/// Mutating webhook: changes an object before the server stores the object.
type Webhook = Arc<dyn Fn(&Call, &mut Object) + Send + Sync>;

/// Faults of one server. A new value has no faults. Clones share the faults.
#[derive(Clone)]
pub(crate) struct ServerFaults(Arc<State>);

struct State {
    request_fault: Mutex<Option<RequestFault>>,
    event_fault: Mutex<Option<EventFault>>,
    webhook: Mutex<Option<Webhook>>,
    open_watches: watch::Sender<OpenWatches>,
    requests: Mutex<Vec<SentRequest>>,
}

/// Request of an agent, with or without a response.
#[derive(Clone)]
pub(crate) struct SentRequest {
    at: Instant,
    call: Call,
}

/// Fault of the watches that are open. The text in a variant selects users by a part of their names.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OpenWatches {
    #[default]
    Healthy,
    /// The connections of the watches are closed.
    Cut(&'static str),
    /// The connections of the watches stay open, but deliver no events.
    Silent(&'static str),
}

impl Default for ServerFaults {
    fn default() -> Self {
        let (request_fault, event_fault, webhook, open_watches, requests) = Default::default();
        Self(Arc::new(State {
            request_fault,
            event_fault,
            webhook,
            open_watches: watch::Sender::new(open_watches),
            requests,
        }))
    }
}

impl fmt::Debug for ServerFaults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ServerFaults")
    }
}

impl ServerFaults {
    /// Sets the fault of agents' requests, until the next call.
    pub(crate) fn requests(&self, request_fault: impl Fn(&Call) -> Fault + Send + Sync + 'static) {
        *self.0.request_fault.lock() = Some(Arc::new(request_fault));
    }

    /// Sets the fault of agents' watch events, until the next call.
    pub(crate) fn events(&self, event_fault: impl Fn(&Call, &WatchedEvent) -> Fate + Send + Sync + 'static) {
        *self.0.event_fault.lock() = Some(Arc::new(event_fault));
    }

    /// Sets a mutating webhook for all writers, until the next call.
    pub(crate) fn webhook(&self, webhook: impl Fn(&Call, &mut Object) + Send + Sync + 'static) {
        *self.0.webhook.lock() = Some(Arc::new(webhook));
    }

    /// Sets the fault of open watches, until the next call.
    pub(crate) fn watches(&self, open_watches: OpenWatches) {
        self.0.open_watches.send_replace(open_watches);
    }

    /// Ends all faults of this server. A watch that is already silent remains silent.
    pub(crate) fn end(&self) {
        *self.0.request_fault.lock() = None;
        *self.0.event_fault.lock() = None;
        *self.0.webhook.lock() = None;
        self.0.open_watches.send_replace(OpenWatches::Healthy);
    }

    /// Returns the resource and the name of each object in agents' requests since `begun`.
    pub(crate) fn objects_requested(
        &self,
        begun: Instant,
        wanted: impl Fn(&Call) -> bool,
    ) -> BTreeSet<(String, String)> {
        let requests = self.0.requests.lock();
        let since = requests.iter().filter(|request| request.at >= begun && wanted(&request.call));
        since.map(|request| (request.call.target.resource.to_string(), request.call.target.name.to_string())).collect()
    }

    /// Returns the number of agents' requests in each minute since `begun`. Counts only requests for which `wanted` is
    /// true.
    pub(crate) fn requests_by_minute(&self, begun: Instant, wanted: impl Fn(&Call) -> bool) -> Vec<usize> {
        let minutes = begun.elapsed().as_secs().div_ceil(60);
        let requests = self.0.requests.lock();
        let of_minute = |minute: u64| {
            let from = begun + Duration::from_secs(60 * minute);
            let until = from + Duration::from_secs(60);
            requests.iter().filter(|request| request.at >= from && request.at < until && wanted(&request.call)).count()
        };
        (0..minutes).map(of_minute).collect()
    }

    /// Returns the times of agents' requests since `begun`. Includes only requests for which `wanted` is true.
    pub(crate) fn request_times(&self, begun: Instant, wanted: impl Fn(&Call) -> bool) -> Vec<Duration> {
        let requests = self.0.requests.lock();
        let since = requests.iter().filter(|request| request.at >= begun && wanted(&request.call));
        since.map(|request| request.at.duration_since(begun)).collect()
    }
}

fn is_of_agent(call: &Call) -> bool {
    call.user.name.contains("agent")
}

/// True for a request that is not about Leases or Events.
pub(crate) fn is_about_objects(call: &Call) -> bool {
    !matches!(&*call.target.resource, "leases" | "events")
}

pub(crate) fn is_heartbeat(call: &Call) -> bool {
    &*call.target.resource == "memberagents"
}

impl Faults for ServerFaults {
    fn request(&self, call: &Call) -> Fault {
        if !is_of_agent(call) {
            return Fault::default();
        }
        if is_about_objects(call) {
            self.0.requests.lock().push(SentRequest { at: Instant::now(), call: call.clone() });
        }
        let request_fault = self.0.request_fault.lock().clone();
        let mut fault = request_fault.map_or_else(Fault::default, |request_fault| request_fault(call));
        if fault.refuse.is_some() {
            // Delay the rejection, so that virtual time passes before the agent plans again. Otherwise the agent would
            // plan in an endless loop.
            fault.delay_before = fault.delay_before.max(REJECTION_DELAY);
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
        is_of_agent(call).then(|| Box::new(FaultyWatch { faults: self.clone(), call: call.clone() }) as _)
    }
}

/// Open watch with its faults.
struct FaultyWatch {
    faults: ServerFaults,
    call: Call,
}

impl FaultyWatch {
    fn when(
        &self,
        wanted: impl Fn(OpenWatches) -> Option<&'static str> + Send + Sync + 'static,
    ) -> BoxFuture<'static, ()> {
        let mut open_watches = self.faults.0.open_watches.subscribe();
        let user = Arc::clone(&self.call.user.name);
        async move {
            let concerned = |open_watches: &OpenWatches| wanted(*open_watches).is_some_and(|name| user.contains(name));
            if open_watches.wait_for(concerned).await.is_err() {
                pending::<()>().await;
            }
        }
        .boxed()
    }
}

impl WatchFaults for FaultyWatch {
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        let event_fault = self.faults.0.event_fault.lock().clone();
        event_fault.map_or(Fate::Deliver, |event_fault| event_fault(&self.call, event))
    }

    fn cut(&self) -> BoxFuture<'static, ()> {
        self.when(|open_watches| if let OpenWatches::Cut(name) = open_watches { Some(name) } else { None })
    }

    fn silence(&self) -> BoxFuture<'static, ()> {
        self.when(|open_watches| if let OpenWatches::Silent(name) = open_watches { Some(name) } else { None })
    }
}

/// Asserts that agents back off: at most `first` requests in the first minute, and at most `later` requests in each
/// later minute. The limits are about 1.5 times the measured numbers, because the back-off is random. Retries without
/// back-off would make thousands of requests.
pub(crate) fn assert_backs_off(requests: &[usize], first: usize, later: usize) -> anyhow::Result<()> {
    println!("requests by minute: {requests:?}");
    ensure!(requests.iter().sum::<usize>() > 0, "nothing was requested");
    ensure!(
        requests[0] <= first && requests[1..].iter().all(|count| *count <= later),
        "requests by minute: {requests:?}"
    );
    Ok(())
}
