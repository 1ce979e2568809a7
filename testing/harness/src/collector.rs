//! Collector of traces under test: [`Collector`]. A real OpenTelemetry Collector if `FLEETNET_COLLECTOR` names one,
//! else a server in this process that takes the same requests.

use crate::eventually::Deadline;
use crate::process::Process;
use crate::served::{self, Server};
use anyhow::Context as _;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// Span that a collector has taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub name: String,
    pub trace: String,
    pub id: String,
    /// Trace and id of each span that this one is linked to.
    pub links: Vec<(String, String)>,
    /// Nanoseconds since 1970.
    pub start: u64,
    pub end: u64,
    /// Attributes of the span and of its resource.
    pub attributes: BTreeMap<String, String>,
}

/// Running collector.
#[derive(Debug)]
pub struct Collector {
    /// Value of `--tracing-endpoint`.
    pub endpoint: String,
    taken: Taken,
}

#[derive(Debug)]
enum Taken {
    /// By this process: requests as JSON.
    Here { requests: Arc<Mutex<Vec<Value>>>, _server: JoinSet<()> },
    /// By a process: one request on each line of a file.
    There { file: PathBuf, _folder: TempDir, _process: Process },
}

impl Collector {
    /// Starts a collector on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If the collector does not start.
    pub async fn start() -> anyhow::Result<Self> {
        match programs::collector::named()? {
            Some(program) => Self::process(program).await,
            None => Self::here().await,
        }
    }

    async fn here() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let service = TraceServiceServer::new(Here(Arc::clone(&requests)));
        let serving = tonic::transport::Server::builder().add_service(service);
        let mut server = JoinSet::new();
        server.spawn(async move {
            // A failure shows as missing spans.
            let _ = serving.serve_with_incoming(TcpIncoming::from(listener)).await;
        });
        Ok(Self { endpoint, taken: Taken::Here { requests, _server: server } })
    }

    async fn process(program: PathBuf) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("fleetnet-traces-")?;
        let file = folder.path().join("traces.json");
        let server = Server {
            name: "collector",
            file: program,
            arguments: &["--config"],
            configuration: &|port| configuration(port, &file).to_string(),
            listens: "Everything is ready",
            port_is_taken: "address already in use",
        };
        let (process, port) = served::start(server).await?;
        let endpoint = format!("http://127.0.0.1:{port}");
        Ok(Self { endpoint, taken: Taken::There { file, _folder: folder, _process: process } })
    }

    /// Waits until `find` finds something in the spans of the collector.
    ///
    /// # Errors
    /// If it takes too long. The error has `awaited` and the spans.
    pub async fn find<T>(&self, awaited: &str, find: impl Fn(&[Span]) -> Option<T>) -> anyhow::Result<T> {
        let deadline = Deadline::start();
        loop {
            let spans = self.spans()?;
            if let Some(found) = find(&spans) {
                return Ok(found);
            }
            deadline.pause(|| format!("no {awaited} among the spans {spans:#?}")).await?;
        }
    }

    fn spans(&self) -> anyhow::Result<Vec<Span>> {
        let requests: Vec<Value> = match &self.taken {
            Taken::Here { requests, .. } => requests.lock().clone(),
            Taken::There { file, .. } => {
                let text = fs::read_to_string(file).unwrap_or_default();
                // The last line may be unfinished.
                text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
            }
        };
        requests.iter().flat_map(of_request).collect()
    }
}

/// Returns the configuration of a collector that listens on this port and writes to this file. JSON is YAML.
fn configuration(port: u16, file: &Path) -> Value {
    json!({
        "receivers": { "otlp": { "protocols": { "grpc": { "endpoint": format!("127.0.0.1:{port}") } } } },
        "exporters": { "file": { "path": file, "flush_interval": "100ms" } },
        "service": {
            "telemetry": { "metrics": { "level": "none" } },
            "pipelines": { "traces": { "receivers": ["otlp"], "exporters": ["file"] } },
        },
    })
}

/// Returns the spans of a request in OTLP's JSON form.
fn of_request(request: &Value) -> Vec<anyhow::Result<Span>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut spans = Vec::new();
    for of_resource in list(&request["resourceSpans"]) {
        for scope in list(&of_resource["scopeSpans"]) {
            for span in list(&scope["spans"]) {
                let attributes = [&of_resource["resource"]["attributes"], &span["attributes"]];
                spans.push(self::span(&span, attributes.into_iter().flat_map(list).collect()));
            }
        }
    }
    spans
}

fn span(span: &Value, attributes: Vec<Value>) -> anyhow::Result<Span> {
    let text = |value: &Value| value.as_str().map(str::to_owned).with_context(|| format!("no text in {span:#}"));
    let nanos = |value: &Value| {
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        number.with_context(|| format!("no time in {span:#}"))
    };
    let links = span["links"].as_array().into_iter().flatten();
    let attributes = attributes.iter().map(|it| Ok((text(&it["key"])?, text(&it["value"]["stringValue"])?)));
    Ok(Span {
        name: text(&span["name"])?,
        trace: text(&span["traceId"])?,
        id: text(&span["spanId"])?,
        links: links
            .map(|link| Ok((text(&link["traceId"])?, text(&link["spanId"])?)))
            .collect::<anyhow::Result<_>>()?,
        start: nanos(&span["startTimeUnixNano"])?,
        end: nanos(&span["endTimeUnixNano"])?,
        attributes: attributes.collect::<anyhow::Result<_>>()?,
    })
}

#[derive(Debug)]
struct Here(Arc<Mutex<Vec<Value>>>);

#[tonic::async_trait]
impl TraceService for Here {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let request = serde_json::to_value(request.into_inner());
        self.0.lock().push(request.map_err(|error| Status::internal(error.to_string()))?);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
