//! Spans to a collector: OTLP over gRPC.

use super::{Service, Sink, Span};
use crate::limits::{SPAN_BATCH, SPAN_BATCH_DELAY, SPAN_EXPORT_TIMEOUT, SPAN_QUEUE};
use crate::metrics::SPANS;
use anyhow::Context as _;
use fleetnet_types::{Timestamp, Traceparent};
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanExporter, SpanLinks, SpanProcessor as _,
};
use prometheus::{IntCounter, Registry};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;
use tracing::{info, warn};

/// Sends spans to a collector in the background. Dropping this value sends the last ones.
#[derive(Debug)]
pub(super) struct Otlp {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
}

impl Otlp {
    /// Starts to send spans to a collector at this URL. The connection belongs to `runtime`.
    ///
    /// # Errors
    /// If the URL is malformed, or the registry already has the metric.
    pub(super) fn start(
        endpoint: &str,
        service: Service<'_>,
        registry: &Registry,
        runtime: &Handle,
    ) -> anyhow::Result<Self> {
        let sent = SPANS.counters(registry)?;
        let entered = runtime.enter();
        let exporter = OtlpExporter::builder().with_tonic().with_endpoint(endpoint).with_timeout(SPAN_EXPORT_TIMEOUT);
        let exporter = exporter.build().with_context(|| format!("--tracing-endpoint {endpoint:?}"))?;
        drop(entered);
        let mut exporter = Counted {
            exporter,
            ok: sent.with_label_values(&["ok"]),
            failed: sent.with_label_values(&["failed"]),
            is_failing: AtomicBool::new(false),
        };
        let version = env!("CARGO_PKG_VERSION");
        let resource = Resource::builder_empty().with_service_name(service.name.to_owned()).with_attributes([
            KeyValue::new("service.version", version),
            KeyValue::new("service.instance.id", service.instance.to_owned()),
            KeyValue::new("k8s.cluster.name", service.cluster.to_owned()),
        ]);
        exporter.set_resource(&resource.build());
        let limits = BatchConfigBuilder::default()
            .with_max_queue_size(SPAN_QUEUE)
            .with_max_export_batch_size(SPAN_BATCH)
            .with_scheduled_delay(SPAN_BATCH_DELAY);
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(limits.build()).build();
        info!(%endpoint, "sending spans");
        let scope = InstrumentationScope::builder("fleetnet").with_version(version).build();
        Ok(Self { processor, scope })
    }
}

impl Sink for Otlp {
    fn take(&self, span: Span, end: Timestamp) {
        let Span { name, context, link, change: _, start, attributes } = span;
        let mut links = SpanLinks::default();
        links.links.extend(link.map(|link| Link::new(self::context(link, true), Vec::new(), 0)));
        self.processor.on_end(SpanData {
            span_context: self::context(context, false),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time: time(start),
            // The clock may have been set back since the start.
            end_time: time(end.max(start)),
            attributes: attributes.into_iter().map(|(key, value)| KeyValue::new(key, value.to_string())).collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        });
    }
}

impl Drop for Otlp {
    fn drop(&mut self) {
        // An error is not possible to handle here: the process ends, and spans are no part of its work.
        let _ = self.processor.shutdown_with_timeout(SPAN_EXPORT_TIMEOUT);
    }
}

fn context(Traceparent { trace, span }: Traceparent, is_remote: bool) -> SpanContext {
    let (trace, span) = (TraceId::from(trace.get()), SpanId::from(span.get()));
    SpanContext::new(trace, span, TraceFlags::SAMPLED, is_remote, TraceState::NONE)
}

fn time(Timestamp(micros): Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// Exporter that counts spans, and logs when the collector stops to take them and when it takes them again.
#[derive(Debug)]
struct Counted {
    exporter: OtlpExporter,
    ok: IntCounter,
    failed: IntCounter,
    is_failing: AtomicBool,
}

impl SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let result = self.exporter.export(batch).await;
        let was_failing = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match &result {
            Ok(()) => self.ok.inc_by(spans),
            Err(_) => self.failed.inc_by(spans),
        }
        match &result {
            Ok(()) if was_failing => info!("the collector takes spans again"),
            Err(error) if !was_failing => warn!(%error, "the collector takes no spans; check --tracing-endpoint"),
            Ok(()) | Err(_) => {}
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
