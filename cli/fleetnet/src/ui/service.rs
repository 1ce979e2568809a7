//! Answers about one Service.

use super::agent_events::AgentEvents;
use super::source::Finder;
use crate::cli::exit::Stop;
use crate::cli::explain::Shown;
use crate::cli::output::document;
use crate::limits::{UI_ANSWER_AGE, UI_ANSWERS, UI_PAIRS, UI_READINGS, UI_SERVICE_EVENTS, UI_WAYS};
use bytes::Bytes;
use diagnosis::Snapshot;
use diagnosis::explain::Filter;
use diagnosis::objects::Objects;
use diagnosis::read::Scope;
use diagnosis::sides::{conflicts, endpoints};
use diagnosis::way::ways;
use fleetnet_types::ObjectName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Last answer about a Service, with the time of the page at which it was read.
type Answer = Arc<Mutex<Option<(Instant, Bytes)>>>;

/// Answers about Services. Pages that ask at the same time share one reading.
pub(super) struct Answers {
    answers: Mutex<BTreeMap<(String, String), Answer>>,
    /// Places for readings. A reading keeps its place until its answer is ready, because that needs memory and time.
    places: Arc<Semaphore>,
    events: watch::Receiver<Arc<AgentEvents>>,
}

impl Answers {
    pub(super) fn new(events: watch::Receiver<Arc<AgentEvents>>) -> Self {
        Self { answers: Mutex::default(), places: Arc::new(Semaphore::new(UI_READINGS)), events }
    }

    /// Returns the JSON text of the answer about a Service. `now` returns the time in the answer.
    ///
    /// # Errors
    /// As [`Finder::clusters`], or if the answer could not be computed.
    pub(super) async fn get(
        &self,
        finder: &Finder,
        service: &ObjectName,
        now: impl Fn() -> String,
    ) -> Result<Bytes, Stop> {
        let answer = self.answer(service).await;
        let mut last = answer.lock().await;
        if let Some((since, text)) = &*last
            && since.elapsed() < UI_ANSWER_AGE
        {
            return Ok(text.clone());
        }
        let place = Arc::clone(&self.places).acquire_owned().await;
        let snapshot = finder.clusters().await?.snapshot(&Scope::Service(service.clone())).await;
        let events = Arc::clone(&self.events.borrow());
        let (service, time) = (service.clone(), now());
        // The answer about thousands of pairs takes seconds. The place goes along, because a request that ends early
        // does not end the computation.
        let answer = move || {
            let _place = place;
            Bytes::from(json(&snapshot, &service, &events, &time).to_string())
        };
        let text = spawn_blocking(answer).await.map_err(|error| Stop::fault(error.to_string()))?;
        *last = Some((Instant::now(), text.clone()));
        Ok(text)
    }

    /// Returns the place of the answer about a Service. Drops answers that nobody reads, if there are many.
    async fn answer(&self, service: &ObjectName) -> Answer {
        let mut answers = self.answers.lock().await;
        if answers.len() >= UI_ANSWERS {
            answers.retain(|_, answer| Arc::strong_count(answer) > 1);
        }
        let key = (service.namespace.to_string(), service.name.to_string());
        Arc::clone(answers.entry(key).or_default())
    }
}

/// Returns the answer about a Service.
fn json(snapshot: &Snapshot, service: &ObjectName, events: &AgentEvents, time: &str) -> Value {
    let explanation = Shown::of(snapshot, service, &Filter::default()).shortened(UI_PAIRS);
    let (ways, ways_left_out) = ways(snapshot, service, UI_WAYS);
    json!({
        "time": time,
        "explanation": document(&explanation),
        "endpoints": endpoints(snapshot, service),
        "conflicts": conflicts(snapshot, service),
        "ways": ways,
        "waysLeftOut": ways_left_out,
        "events": events.about(&Objects::of(snapshot, service), UI_SERVICE_EVENTS),
        "eventsNotRead": events.not_read,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::source::{Source, Targets};

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_shared_for_a_second() {
        let source = watch::Sender::new(Some(Arc::new(Targets::unreachable())));
        let finder = Finder::new(Source::Sandbox(source.subscribe()));
        let answers = Answers::new(watch::Sender::default().subscribe());
        finder.search().await.unwrap();
        let service = ObjectName::new("shop", "web");
        let time = std::sync::atomic::AtomicU32::new(0);
        let now = || time.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
        let mut times = Vec::new();
        for pause in [0, 900, 200] {
            tokio::time::advance(std::time::Duration::from_millis(pause)).await;
            let answer: Value = serde_json::from_slice(&answers.get(&finder, &service, now).await.unwrap()).unwrap();
            assert_eq!(answer["explanation"]["kind"], "Explanation");
            for list in ["endpoints", "conflicts", "ways", "events"] {
                assert_eq!(answer[list], json!([]), "{list}");
            }
            times.push(answer["time"].clone());
        }
        assert_eq!(times, ["0", "0", "1"]);
    }
}
