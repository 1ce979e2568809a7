//! The controller as the engine runs it, and what a test sees of it ([`Spy`]).

use crate::controller::CacheSizes;
use crate::serving::Serving;
use crate::settings::Settings;
use crate::source::sources;
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::manager::{ProcessContext, Stop};
use fleetnet_runtime::process::shutdown::Shutdown;
use fleetnet_runtime::{Change, Event, Fight, Flow, Logic, Plan, ProcessNews, WatchNews, WriteNews};
use fleetnet_types::{ObjectName, Timestamp};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

type Source = <Serving as Logic>::Source;
type Key = <Serving as Logic>::Key;

/// Plans, Events and states of the controller that the spy has seen.
#[derive(Default)]
pub(crate) struct Seen {
    /// Services that were planned since a test took them last.
    pub(crate) planned: BTreeSet<ObjectName>,
    pub(crate) plans: usize,
    /// Largest number of writes of one plan.
    pub(crate) most_writes: usize,
    pub(crate) events: Vec<Event<Source>>,
    pub(crate) cache_sizes: CacheSizes,
    pub(crate) foreign_labels: usize,
    /// Time of the last foreign write.
    pub(crate) foreign_change: Option<Timestamp>,
}

pub(super) struct Spy {
    pub(super) serving: Serving,
    pub(super) seen: Arc<Mutex<Seen>>,
}

impl Spy {
    /// Runs the controller, as [`crate::EndpointsAgent::run`] does.
    pub(super) async fn run(
        mut self,
        settings: Settings,
        cluster: Arc<Cluster>,
        process: ProcessContext,
        leadership: watch::Receiver<Leadership>,
    ) {
        loop {
            let (end_of_run, ends) = Shutdown::new();
            self.serving.begin_run(end_of_run);
            let sources = sources(&cluster, &settings, self.serving.serves(), None);
            let (spy, finished) = process.runner(self, sources).run(leadership.clone(), ends).await;
            if finished.stop != Stop::Requested {
                return;
            }
            self = spy;
        }
    }

    fn look(&mut self) {
        let (controller, mut seen) = (&self.serving.controller, self.seen.lock());
        (seen.cache_sizes, seen.foreign_labels) = (controller.cache_sizes(), controller.foreign_labels());
        let foreign_change = self.serving.last_foreign_change.take();
        seen.foreign_change = seen.foreign_change.max(foreign_change);
    }
}

impl Logic for Spy {
    type Source = Source;
    type Object = <Serving as Logic>::Object;
    type Key = Key;
    type Receipt = <Serving as Logic>::Receipt;
    type Effect = <Serving as Logic>::Effect;
    type Message = <Serving as Logic>::Message;

    fn observe(&mut self, source: Source, change: Change<Self::Object>, at: Timestamp, requeue: &mut Vec<Key>) {
        self.serving.observe(source, change, at, requeue);
        self.look();
    }

    fn watch(&mut self, source: Source, news: WatchNews, at: Timestamp, requeue: &mut Vec<Key>) {
        self.serving.watch(source, news, at, requeue);
        self.look();
    }

    fn receive(&mut self, message: Self::Message, _: Timestamp, _: &mut Vec<Key>) {
        match message {}
    }

    fn process(&mut self, news: ProcessNews, at: Timestamp, requeue: &mut Vec<Key>) {
        self.serving.process(news, at, requeue);
    }

    fn plan(&self, key: &Key, now: Timestamp) -> Plan<Source, Self::Receipt, Self::Effect> {
        let (plan, again) = (self.serving.plan(key, now), self.serving.plan(key, now));
        assert_eq!(plan.writes, again.writes, "a plan changes nothing");
        let mut seen = self.seen.lock();
        if let Key::Service(service) = key {
            let is_ready = self.serving.controller.is_ready();
            assert!(is_ready || plan.writes.is_empty(), "an input is not known: {:?}", plan.writes);
            seen.planned.extend(is_ready.then(|| service.clone()));
            seen.plans += usize::from(is_ready);
            seen.most_writes = seen.most_writes.max(plan.writes.len());
        }
        seen.events.extend(plan.events.iter().cloned());
        plan
    }

    fn planned(&mut self, key: &Key, effect: Self::Effect, at: Timestamp) {
        self.serving.planned(key, effect, at);
        self.look();
    }

    fn flow(&self, key: &Key) -> Flow {
        self.serving.flow(key)
    }

    fn write(
        &mut self,
        key: &Key,
        news: WriteNews<'_, Source, Self::Receipt>,
        at: Timestamp,
        requeue: &mut Vec<Key>,
    ) -> Vec<Event<Source>> {
        let events = self.serving.write(key, news, at, requeue);
        self.look();
        self.seen.lock().events.extend(events.iter().cloned());
        events
    }

    fn fight(&mut self, key: &Key, fight: &Fight<Source>, requeue: &mut Vec<Key>) -> Vec<Event<Source>> {
        self.serving.fight(key, fight, requeue)
    }
}
