//! The events of a watch, one JSON document a line.

use anyhow::{Context as _, bail};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use std::time::Duration;

/// What has come of a watch and was not taken yet.
pub(super) struct Events {
    body: Body,
    read: Vec<u8>,
}

impl Events {
    pub(super) fn new(body: Body) -> Self {
        Self { body, read: Vec::new() }
    }

    /// All until the server ends it. A connection that breaks is shown as an event of its own.
    pub(super) async fn rest(&mut self, patience: Duration) -> anyhow::Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(event) =
            tokio::time::timeout(patience, self.next()).await.context("the watch does not end")??
        {
            events.push(event);
        }
        Ok(events)
    }

    /// So many, or fewer where no more come in time.
    pub(super) async fn take(&mut self, count: usize, patience: Duration) -> anyhow::Result<Vec<Value>> {
        let mut events = Vec::new();
        while events.len() < count {
            match tokio::time::timeout(patience, self.next()).await {
                Ok(Ok(Some(event))) => events.push(event),
                Ok(Ok(None)) => bail!("the watch ended after {} of {count} events: {events:?}", events.len()),
                Ok(Err(error)) => return Err(error),
                Err(_) => bail!("{} of {count} events came: {events:?}", events.len()),
            }
        }
        Ok(events)
    }

    /// All up to the first about an object of that name.
    pub(super) async fn until(&mut self, name: &str, patience: Duration) -> anyhow::Result<Vec<Value>> {
        let mut events = Vec::new();
        loop {
            let Ok(event) = tokio::time::timeout(patience, self.next()).await else {
                bail!("nothing is told of {name}: {events:?}")
            };
            let event = event?.with_context(|| format!("the watch ended before {name}: {events:?}"))?;
            let is_last = event["object"]["metadata"]["name"] == name;
            events.push(event);
            if is_last {
                return Ok(events);
            }
        }
    }

    async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let Some(frame) = self.body.frame().await else {
                // What is no watch need not end in a line's end.
                let rest = std::mem::take(&mut self.read);
                return if rest.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&rest)?)) };
            };
            let frame = frame.map_err(|error| anyhow::anyhow!("the watch broke: {error}"))?;
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }
}
