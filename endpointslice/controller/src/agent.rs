//! Agent of a process that runs the EndpointSlice controller ([`EndpointsAgent`]): one run after the other, each with
//! the watches that the controller then needs.

use super::serving::Serving;
use super::settings::Settings;
use super::source::sources;
use fleetnet_runtime::ResponseSink;
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_runtime::engine::sources::SourceStatus;
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::manager::{Finished, ProcessContext, Stop};
use fleetnet_runtime::process::shutdown::Shutdown;
use prometheus::Registry;
use std::sync::Arc;
use tokio::sync::watch;

/// Value of the metric label `controller`.
const CONTROLLER: &str = "endpointslice";

/// EndpointSlice controller of a cluster, ready to run.
pub struct EndpointsAgent {
    serving: Serving,
    settings: Settings,
    cluster: Arc<Cluster>,
    response_sink: Option<ResponseSink>,
    status: watch::Sender<Vec<SourceStatus>>,
}

impl EndpointsAgent {
    /// Returns an inactive controller.
    ///
    /// # Errors
    /// If the registry already has a metric of the controller.
    pub fn new(settings: Settings, cluster: Arc<Cluster>, registry: &Registry) -> Result<Self, prometheus::Error> {
        let serving = Serving::new(&settings, registry)?;
        Ok(Self { serving, settings, cluster, response_sink: None, status: watch::Sender::new(Vec::new()) })
    }

    /// Shows the responses to the controller's writes to the agent that exports the slices.
    #[must_use]
    pub fn with_response_sink(mut self, sink: Option<ResponseSink>) -> Self {
        self.response_sink = sink;
        self
    }

    /// Returns a channel with the state of each watch, updated at each change. Empty until [`EndpointsAgent::run`].
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Vec<SourceStatus>> {
        self.status.subscribe()
    }

    /// Runs the controller until a stop is requested. Begins a new run each time that the controller
    /// becomes active or inactive.
    pub async fn run(
        mut self,
        process: ProcessContext,
        leadership: watch::Receiver<Leadership>,
        shutdown: Shutdown,
    ) -> Finished {
        let process = ProcessContext { metrics: process.metrics.of_controller(CONTROLLER), ..process };
        loop {
            let (end_of_run, ends) = Shutdown::new();
            self.serving.begin_run(end_of_run.clone());
            let serves = self.serving.serves();
            let sources = sources(&self.cluster, &self.settings, serves, self.response_sink.as_ref());
            let runner = process.runner(self.serving, sources).with_status(self.status.clone());
            let mut run = Box::pin(runner.run(leadership.clone(), ends));
            let (serving, finished) = tokio::select! {
                biased;
                ended = &mut run => ended,
                () = shutdown.requested() => {
                    end_of_run.request();
                    run.await
                }
            };
            if finished.stop != Stop::Requested || shutdown.is_requested() {
                return finished;
            }
            self.serving = serving;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mode;
    use fleetnet_runtime::clock::{Clock, to_jiff};
    use fleetnet_runtime::metrics::Metrics;
    use fleetnet_runtime::{SourceSpec, Undecodable};
    use fleetnet_types::Timestamp;
    use http::Request;
    use memkube::{MemKube, Options, User};
    use serde_json::{Value, json};
    use std::time::Duration;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    const NOON: Timestamp = Timestamp::from_seconds(1_800_000_000);
    /// Maximum virtual time of each wait.
    const LIMIT: Duration = Duration::from_secs(60);

    async fn send(client: &kube::Client, method: &str, path: &str, object: &Value) {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).expect("a request");
        client.request::<Value>(request).await.expect("memkube stores the object");
    }

    /// Returns a client of a cluster with a Service that has a ready pod.
    async fn cluster_with_a_ready_pod() -> kube::Client {
        let client = MemKube::new(Options::new(Arc::new(|| to_jiff(NOON)), 1)).client(User::new("admin"));
        let pod = json!({
            "metadata": {"name": "pod1", "labels": {"foo": "bar"}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "web", "image": "web"}]},
            "status": {
                "phase": "Running", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        let spec = json!({"selector": {"foo": "bar"}, "ports": [{"port": 80}]});
        let service = json!({"metadata": {"name": "web"}, "spec": spec});
        for (method, path, object) in [
            ("POST", "/api/v1/namespaces", &json!({"metadata": {"name": "testing"}})),
            ("POST", "/api/v1/nodes", &json!({"metadata": {"name": "node-1"}})),
            ("POST", "/api/v1/namespaces/testing/services", &service),
            ("POST", "/api/v1/namespaces/testing/pods", &pod),
            ("PUT", "/api/v1/namespaces/testing/pods/pod1/status", &pod),
        ] {
            send(&client, method, path, object).await;
        }
        client
    }

    /// Also rule V11.
    #[tokio::test(start_paused = true)]
    async fn the_agent_of_a_process_makes_slices_and_shows_its_writes_to_another_agent() {
        let client = cluster_with_a_ready_pod().await;
        let cluster = Arc::new(Cluster::from_clients("member", client.clone(), client));
        let (clock, metrics) = (Clock::virtual_at(NOON), Metrics::unregistered());
        let process = ProcessContext { identity: "agent".to_owned(), clock, metrics };
        let settings = Settings::with_mode(Mode::On);
        let (shown, mut responses) = mpsc::unbounded_channel();
        let [slices] = sources::<Serving>(&cluster, &settings, false, None).try_into().expect("only slices");
        let (source, show) = (slices.source, move |json: &[u8]| {
            shown.send(serde_json::from_slice::<Value>(json).expect("a slice")).expect("the test waits");
            Err(Undecodable::default())
        });
        let exporter = Serving::new(&settings, &Registry::new()).expect("a registry of its own");
        let exporter = process.runner(exporter, vec![SourceSpec { decode: Arc::new(show), ..slices }]);

        let agent = EndpointsAgent::new(settings, cluster, &Registry::new()).expect("a registry of its own");
        let agent = agent.with_response_sink(exporter.response_sink(source));
        let mut status = agent.status();
        let (trigger, shutdown) = Shutdown::new();
        let manager = process.manager().with(|leadership, shutdown| agent.run(process, leadership, shutdown));
        let running = tokio::spawn(manager.run(shutdown));

        let settled = |watches: &Vec<SourceStatus>| watches.len() == 4 && watches.iter().all(SourceStatus::is_settled);
        drop(timeout(LIMIT, status.wait_for(settled)).await.expect("all four inputs are listed").expect("it runs"));
        let slice = timeout(LIMIT, responses.recv()).await.expect("the response to a write is shown").expect("it runs");
        assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "web");
        assert_eq!(slice["endpoints"][0]["addresses"], json!(["10.1.0.1"]), "{slice}");
        trigger.request();
        let ended = timeout(LIMIT, running).await.expect("the process ends").expect("no panic");
        ended.expect("a requested stop");
    }
}
