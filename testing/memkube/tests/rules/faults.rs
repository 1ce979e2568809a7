//! Tests of faults that tests inject.

use crate::support::{CONFIG_MAPS, Server, WIDGETS, Watch};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use memkube::faults::{Answer, Fate, Fault, Faults, WatchFaults, WatchedEvent};
use memkube::{Call, Status, Verb};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// Implementation of [`Faults`] that returns the same fault for each request of a verb.
struct On(Verb, Fault);

impl Faults for On {
    fn request(&self, call: &Call) -> Fault {
        if call.verb == self.0 { self.1.clone() } else { Fault::default() }
    }
}

fn asking(verb: Verb, fault: Fault) -> Server {
    let server = Server::new();
    server.memkube.set_faults(Some(Arc::new(On(verb, fault))));
    server
}

#[tokio::test(start_paused = true)]
async fn a_request_can_be_refused_without_effect() {
    let refuse = Some(Status::too_many_requests(7));
    let server = asking(Verb::Create, Fault { refuse, ..Fault::default() });
    let answer = server.config_map("a").await;
    assert_eq!((answer.code, &answer.body["details"]["retryAfterSeconds"]), (429, &json!(7)));
    assert!(server.get(CONFIG_MAPS).await.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_request_can_take_effect_and_be_answered_otherwise() {
    let answer = Answer::Replaced(Box::new(Status::internal("lost")));
    let server = asking(Verb::Create, Fault { answer, ..Fault::default() });
    assert_eq!(server.config_map("a").await.refusal(), (500, "Internal error occurred: lost"));
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_can_break_after_the_effect() {
    let server = asking(Verb::Create, Fault { answer: Answer::Cut, ..Fault::default() });
    let request = http::Request::post(CONFIG_MAPS).body(r#"{"metadata":{"name":"a"}}"#.as_bytes().to_vec().into());
    assert!(matches!(server.send(request.unwrap()).await, Err(kube::Error::Service(_))));
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_never_come() {
    let server = asking(Verb::Create, Fault { answer: Answer::Never, ..Fault::default() });
    let day = Duration::from_secs(86_400);
    assert!(timeout(day, server.config_map("a")).await.is_err());
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_can_be_slow_before_and_after_its_effect() {
    let fault = Fault { delay_before: Duration::from_secs(2), delay_after: Duration::from_secs(3), ..Fault::default() };
    let server = asking(Verb::Create, fault);
    let begin = Instant::now();
    let mut slow = Box::pin(server.config_map("a"));
    assert!(timeout(Duration::from_secs(1), &mut slow).await.is_err());
    assert!(server.get(CONFIG_MAPS).await.names().is_empty());
    assert!(timeout(Duration::from_secs(2), &mut slow).await.is_err());
    assert_eq!(server.get(CONFIG_MAPS).await.names(), ["a"]);
    slow.await;
    assert_eq!(begin.elapsed(), Duration::from_secs(5));
}

/// Faults of watch events. The name of the object selects the fault.
struct Named {
    fate: fn(&str) -> Fate,
    cut: Arc<Notify>,
    silence: Arc<Notify>,
}

impl Faults for Named {
    fn watch(&self, _: &Call) -> Option<Box<dyn WatchFaults>> {
        let Self { fate, cut, silence } = self;
        Some(Box::new(Self { fate: *fate, cut: Arc::clone(cut), silence: Arc::clone(silence) }))
    }
}

impl WatchFaults for Named {
    fn event(&mut self, event: &WatchedEvent) -> Fate {
        (self.fate)(&event.name)
    }

    fn cut(&self) -> BoxFuture<'static, ()> {
        let cut = Arc::clone(&self.cut);
        async move { cut.notified().await }.boxed()
    }

    fn silence(&self) -> BoxFuture<'static, ()> {
        let silence = Arc::clone(&self.silence);
        async move { silence.notified().await }.boxed()
    }
}

struct Watched {
    server: Server,
    watch: Watch,
    cut: Arc<Notify>,
    silence: Arc<Notify>,
}

async fn watched(fate: fn(&str) -> Fate) -> Watched {
    let server = Server::new();
    let (cut, silence) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let faults = Named { fate, cut: Arc::clone(&cut), silence: Arc::clone(&silence) };
    server.memkube.set_faults(Some(Arc::new(faults)));
    let watch = server.watch(&format!("{WIDGETS}?watch=true&allowWatchBookmarks=true&resourceVersion=5")).await;
    Watched { server, watch, cut, silence }
}

#[tokio::test(start_paused = true)]
async fn events_can_be_lost_repeated_and_held_back() {
    let Watched { server, mut watch, .. } = watched(|name| match name {
        "lost" => Fate::Lose,
        "repeated" => Fate::Repeat(1),
        "held" => Fate::Hold(Duration::from_secs(9)),
        _ => Fate::Deliver,
    })
    .await;
    let begin = Instant::now();
    for name in ["lost", "repeated", "held", "plain"] {
        server.widget(name, json!({})).await;
    }
    assert_eq!(watch.next().await, "ADDED repeated");
    assert_eq!(watch.next().await, "ADDED repeated");
    assert_eq!(watch.next().await, "ADDED held");
    assert_eq!(begin.elapsed(), Duration::from_secs(9));
    assert_eq!(watch.next().await, "ADDED plain");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_held_back_for_as_long_as_is_asked_bookmarks_or_not() {
    let fate: fn(&str) -> Fate = |_| Fate::Hold(Duration::from_secs(200));
    let Watched { server, mut watch, .. } = watched(fate).await;
    let begin = Instant::now();
    server.widget("held", json!({})).await;
    // The bookmark is sent after the delayed event, not before it.
    assert_eq!(watch.next().await, "ADDED held");
    assert_eq!(begin.elapsed(), Duration::from_secs(200));
    let Watched { server, mut watch, cut, .. } = watched(fate).await;
    server.widget("held", json!({})).await;
    assert!(timeout(Duration::from_secs(100), watch.try_event()).await.is_err());
    cut.notify_one();
    assert!(watch.try_event().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_held_back_for_ever_ends_with_its_watch() {
    let Watched { server, mut watch, .. } = watched(|_| Fate::Hold(Duration::MAX)).await;
    server.widget("held", json!({})).await;
    assert_eq!(watch.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_event_can_break_its_watch() {
    let Watched { server, mut watch, .. } = watched(|_| Fate::Cut).await;
    server.widget("w", json!({})).await;
    assert!(watch.try_event().await.is_err());
    let Watched { server, mut watch, .. } = watched(|_| Fate::Fail(Box::new(Status::expired("gone")))).await;
    server.widget("w", json!({})).await;
    let event = watch.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(watch.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_be_cut_while_nothing_happens() {
    let Watched { mut watch, cut, .. } = watched(|_| Fate::Deliver).await;
    watch.is_silent().await;
    cut.notify_one();
    assert!(watch.try_event().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_stays_open_and_says_nothing_not_even_bookmarks() {
    let Watched { server, mut watch, silence, cut } = watched(|_| Fate::Deliver).await;
    silence.notify_one();
    watch.is_silent().await;
    server.widget("w", json!({})).await;
    let day = Duration::from_secs(86_400);
    assert!(timeout(day, watch.try_event()).await.is_err());
    cut.notify_one();
    assert!(watch.try_event().await.is_err());
    let Watched { server, mut watch, .. } = watched(|_| Fate::Silence).await;
    server.widget("w", json!({})).await;
    assert!(timeout(day, watch.try_event()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_that_is_dropped_is_closed() {
    let Watched { server, mut watch, .. } = watched(|_| Fate::Silence).await;
    server.widget("w", json!({})).await;
    watch.is_silent().await;
    assert_eq!(server.memkube.open_watches(), 1);
    drop(watch);
    assert_eq!(server.memkube.open_watches(), 0);
}
