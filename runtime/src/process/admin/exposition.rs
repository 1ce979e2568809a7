//! Metrics in the text format of Prometheus, encoded at most once a second for all clients together.

use bytes::Bytes;
use prometheus::{Encoder as _, Registry, TextEncoder};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::limits::{METRICS_FRESH, METRICS_TEXTS};

/// Metrics with their latest texts.
#[derive(Debug)]
pub(super) struct Exposition {
    registry: Registry,
    /// Texts, the latest last, each with the time at which it was encoded. Older ones are those that clients still
    /// read.
    texts: Mutex<Vec<(Bytes, Instant)>>,
}

impl Exposition {
    pub(super) fn new(registry: Registry) -> Self {
        Self { registry, texts: Mutex::default() }
    }

    /// Returns the text of the metrics. All clients within a second get the same one. If clients that read slowly keep
    /// too many texts in memory, others get the latest of these.
    pub(super) async fn text(&self) -> Result<Bytes, prometheus::Error> {
        let (mut texts, now) = (self.texts.lock().await, Instant::now());
        let is_fresh = |encoded: &Instant| now < *encoded + METRICS_FRESH;
        texts.retain(|(text, encoded)| is_fresh(encoded) || !text.is_unique());
        let is_full = texts.len() >= METRICS_TEXTS;
        if let Some((text, _)) = texts.last().filter(|(_, encoded)| is_full || is_fresh(encoded)) {
            return Ok(text.clone());
        }
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        let text = Bytes::from(text);
        texts.push((text.clone(), now));
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::PullingGauge;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Returns an exposition of a metric that counts how often it was read.
    fn counting() -> Exposition {
        let (registry, reads) = (Registry::new(), Arc::new(AtomicU32::new(0)));
        let read = move || f64::from(reads.fetch_add(1, Ordering::Relaxed) + 1);
        registry.register(Box::new(PullingGauge::new("reads", "Reads.", Box::new(read)).unwrap())).unwrap();
        Exposition::new(registry)
    }

    /// Returns the number of reads in a text.
    fn reads(text: &Bytes) -> u32 {
        let text = std::str::from_utf8(text).unwrap();
        text.lines().find_map(|line| line.strip_prefix("reads ")).unwrap().parse().unwrap()
    }

    /// Also rule K14.
    #[tokio::test(start_paused = true)]
    async fn metrics_are_encoded_once_a_second_whatever_clients_ask() {
        let exposition = counting();
        for second in 1..=3 {
            for _ in 0..1_000 {
                assert_eq!(reads(&exposition.text().await.unwrap()), second);
            }
            tokio::time::advance(METRICS_FRESH).await;
        }
    }

    /// Also rule K14.
    #[tokio::test(start_paused = true)]
    async fn clients_that_read_slowly_keep_8_texts_in_memory_at_most() {
        let exposition = counting();
        let mut slow = Vec::new();
        for second in 1..=64 {
            slow.push(exposition.text().await.unwrap());
            assert_eq!(reads(slow.last().unwrap()), second.min(8));
            tokio::time::advance(METRICS_FRESH).await;
        }
        slow.remove(0);
        assert_eq!(reads(&exposition.text().await.unwrap()), 9, "one has ended");
    }
}
