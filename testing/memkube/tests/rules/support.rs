//! Server with a custom kind, and requests to this server, for the tests.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use memkube::clock::TokioClock;
use memkube::{Definition, MemKube, Options, Scope, Strategy, Subresource, User, Version};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Clock that starts at 2026-01-01T00:00:00Z.
pub(crate) fn clock() -> Arc<TokioClock> {
    Arc::new(TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()))
}

/// A server under test and one user's client.
pub(crate) struct Server {
    pub(crate) memkube: MemKube,
    pub(crate) client: kube::Client,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// Status code, and the message of the Status in the body. If the body is not a Status, the message is `no status`.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.code, self.body["message"].as_str().unwrap_or("no status"))
    }

    /// Status code, and the fields of the causes of the error.
    pub(crate) fn fields(&self) -> (u16, Vec<&str>) {
        let causes = self.body["details"]["causes"].as_array().into_iter().flatten();
        (self.code, causes.map(|cause| cause["field"].as_str().unwrap_or_default()).collect())
    }

    /// resourceVersion of the object in the response.
    pub(crate) fn version(&self) -> u64 {
        self.body["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    }

    /// Names of the items of a list.
    pub(crate) fn names(&self) -> Vec<&str> {
        let items = self.body["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(Options::new(clock(), 1))
    }

    pub(crate) fn with(options: Options) -> Self {
        let memkube = MemKube::new(options);
        memkube.register(widgets(), Box::new(Widget));
        let client = memkube.client(User::new("tester"));
        Self { memkube, client }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Answer, kube::Error> {
        let response = self.client.send(request).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Ok(Answer { code, body })
    }

    pub(crate) async fn call(&self, method: Method, path: &str, content_type: &str, body: impl Into<Bytes>) -> Answer {
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        self.send(request.body(Body::from(body.into())).unwrap()).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.call(Method::PUT, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, content_type: &str, body: Value) -> Answer {
        self.call(Method::PATCH, path, content_type, body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> Answer {
        let body = if options.is_null() { String::new() } else { options.to_string() };
        self.call(Method::DELETE, path, "application/json", body).await
    }

    pub(crate) async fn config_map(&self, name: &str) -> Answer {
        self.post(CONFIG_MAPS, json!({"metadata": {"name": name}})).await
    }

    pub(crate) async fn widget(&self, name: &str, rest: Value) -> Answer {
        let mut widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}});
        merge(&mut widget, &rest);
        self.post(WIDGETS, widget).await
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = self.client.send(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Watch { body: response.into_body(), read: Vec::new() }
    }
}

pub(crate) struct Watch {
    body: Body,
    read: Vec<u8>,
}

impl Watch {
    /// Returns the next event as `TYPE name`. Waits for up to a day of the paused clock.
    pub(crate) async fn next(&mut self) -> String {
        let event = self.event().await;
        let event = event.expect("the watch ended");
        format!("{} {}", event["type"].as_str().unwrap(), event["object"]["metadata"]["name"].as_str().unwrap_or("-"))
    }

    /// Returns the next event, or `None` at the end of the watch.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        let day = Duration::from_secs(86_400);
        tokio::time::timeout(day, self.try_event()).await.expect("nothing came within a day").unwrap()
    }

    /// Returns the next event, or the error of the connection. `None` is the end of the watch.
    pub(crate) async fn try_event(&mut self) -> Result<Option<Value>, kube::Error> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line).unwrap()));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => self.read.extend(frame?.into_data().unwrap()),
            }
        }
    }

    /// Asserts that no event arrives within a second of the paused clock.
    pub(crate) async fn is_silent(&mut self) {
        let event = tokio::time::timeout(Duration::from_secs(1), self.try_event()).await;
        assert!(event.is_err(), "an event came: {event:?}");
    }
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => from.clone_into(into),
    }
}

/// Definition of a custom kind with a status.
fn widgets() -> Definition {
    Definition {
        group: "ex.io".to_owned(),
        kind: "Widget".to_owned(),
        list_kind: "WidgetList".to_owned(),
        plural: "widgets".to_owned(),
        singular: "widget".to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: Scope::Namespaced,
        versions: vec![Version { name: "v1".to_owned(), served: true, storage: true }],
        subresources: vec![Subresource::Status],
        custom: true,
        verbs: memkube::Verb::ALL.to_vec(),
    }
}

struct Widget;

impl Strategy for Widget {}
