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
