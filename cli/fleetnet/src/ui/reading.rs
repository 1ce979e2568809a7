//! Reads the fleet again and again while somebody looks at the page.

use super::agent_events::AgentEvents;
use super::happened::Seen;
use super::source::Finder;
use super::state::{Reading, Round, State, now};
use super::visits::Visits;
use diagnosis::Snapshot;
use diagnosis::read::Scope;
use diagnosis::snapshot::Reached;
use fleetnet_runtime::clock::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Reads the fleet once, and then while a page is connected. After a reading, waits for this interval, or as long as
/// the reading took, so that slow API servers have a rest. The start of the sandbox does not count: it takes half a
/// minute.
pub(super) async fn keep_reading(
    finder: Arc<Finder>,
    states: watch::Sender<Arc<State>>,
    visits: Visits,
    interval: Duration,
    clock: Clock,
    events: watch::Receiver<Arc<AgentEvents>>,
) {
    let mut seen = Seen::default();
    loop {
        finder.started().await;
        let begun = Instant::now();
        let (reading, time) = (read(&finder).await, now(&clock));
        let events = Arc::clone(&events.borrow());
        states.send_modify(|state| {
            let state = Arc::make_mut(state);
            state.take(reading, &mut seen, &time);
            state.take_events(events);
            state.read = Some(Instant::now());
        });
        sleep(interval.max(begun.elapsed())).await;
        visits.any().await;
    }
}

/// Reads the fleet once.
async fn read(finder: &Finder) -> Reading {
    match round(finder).await {
        Ok(round) => Reading::Read(Box::new(round)),
        Err(why) => Reading::NotRead(why),
    }
}

async fn round(finder: &Finder) -> Result<Round, String> {
    let clusters = finder.search().await.map_err(|stop| stop.why)?;
    let for_status = reached(clusters.snapshot(&Scope::Status).await)?;
    let for_services = reached(clusters.snapshot(&Scope::Services).await)?;
    Ok(Round::of(&for_status, &for_services, clusters.remarks()))
}

/// Returns a snapshot if the hub was reached.
fn reached(snapshot: Snapshot) -> Result<Snapshot, String> {
    hub_failure(&snapshot).map_or(Ok(snapshot), Err)
}

/// Returns the reason why the hub was not reached; `None` if it was.
fn hub_failure(snapshot: &Snapshot) -> Option<String> {
    if snapshot.hub.connection.reached == Reached::Yes {
        return None;
    }
    let hub = snapshot.not_reached().into_iter().find(|it| it.cluster == "hub");
    Some(hub.map_or_else(|| "not reached".to_owned(), |it| format!("{}; {}", it.why, it.remedy)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::agent_events::keep_reading_events;
    use crate::ui::source::{Source, Targets};
    use diagnosis::snapshot::{Failure, FailureClass};
    use fleetnet_types::Timestamp;
    use tokio::task::JoinSet;

    #[tokio::test(start_paused = true)]
    async fn a_slow_start_of_the_clusters_does_not_lengthen_the_pause() {
        const START: Duration = Duration::from_secs(30);
        const INTERVAL: Duration = Duration::from_secs(1);
        let source = watch::Sender::new(None);
        let finder = Arc::new(Finder::new(Source::Sandbox(source.subscribe())));
        let (states, events) = (watch::Sender::new(Arc::new(State::default())), watch::Sender::default());
        let (mut state, mut event) = (states.subscribe(), events.subscribe());
        let (visits, clock) = (Visits::new(), Clock::virtual_at(Timestamp(0)));
        let _visit = visits.begin();
        let mut tasks = JoinSet::new();
        let of_events = events.subscribe();
        tasks.spawn(keep_reading(finder.clone(), states, visits.clone(), INTERVAL, clock.clone(), of_events));
        tasks.spawn(keep_reading_events(finder, events, visits, INTERVAL, clock));
        sleep(START).await;
        source.send_replace(Some(Arc::new(Targets::unreachable())));
        let begun = Instant::now();
        for number in 0..3 {
            let (one, other) = tokio::join!(state.changed(), event.changed());
            assert_eq!((one.is_ok(), other.is_ok()), (true, true));
            assert!(begun.elapsed() < INTERVAL * number + INTERVAL, "reading {number} after {:?}", begun.elapsed());
        }
    }

    #[test]
    fn a_failure_of_the_hub_says_why_and_what_to_do() {
        let mut snapshot = Snapshot::default();
        snapshot.hub.connection.reached = Reached::Yes;
        assert_eq!(hub_failure(&snapshot), None);
        let detail = "refused".to_owned();
        let failure = Failure { class: FailureClass::Tcp, host: String::new(), port: None, detail };
        snapshot.hub.connection.reached = Reached::No(failure);
        let why =
            "not reached (TCP): refused; check that the server runs and that a firewall lets this machine through";
        assert_eq!(hub_failure(&snapshot).as_deref(), Some(why));
    }
}
