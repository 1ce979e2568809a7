//! Life of one pod: [`run`].

use super::container::Container;
use super::node::Node;
use super::place::Place;
use super::state::Status;
use super::status::Reporter;
use crate::limits::RETRY;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// State of a pod in the API server.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    Present(Arc<Pod>),
    Gone,
}

impl Seen {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// Returns the time that the pod has to end; `None` if it may go on.
    fn grace(&self) -> Option<Duration> {
        match self {
            Self::Gone => Some(Duration::ZERO),
            Self::Present(pod) => {
                pod.metadata.deletion_timestamp.as_ref()?;
                let seconds = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
                Some(Duration::from_secs(seconds.try_into().unwrap_or(0)))
            }
        }
    }
}

/// Runs a pod until it is deleted.
pub(super) async fn run(node: Arc<Node>, pod: Arc<Pod>, mut seen: watch::Receiver<Seen>) {
    if seen.borrow().grace().is_none() {
        run_containers(&node, &pod, &mut seen).await;
    }
    if !seen.borrow().is_gone() {
        remove_object(&node, &pod).await;
    }
}

async fn run_containers(node: &Arc<Node>, pod: &Arc<Pod>, seen: &mut watch::Receiver<Seen>) {
    let number = node.numbers.lock().take();
    let folder = node.settings.folder.join(pod.uid().unwrap_or_default());
    let place = Place {
        number,
        folder,
        pod: Arc::clone(pod),
        node: Arc::clone(node),
        statuses: watch::Sender::new(vec![Status::default(); pod.spec.iter().flat_map(|it| &it.containers).count()]),
    };
    let place = Arc::new(place);
    if let Err(error) = place.make().await {
        eprintln!("{} cannot start: {error:#}", place.name());
    }
    let (stop, stopping) = watch::channel(None);
    let mut containers = JoinSet::new();
    for index in 0..place.containers().len() {
        containers.spawn(Container::new(&place, index).supervise(stopping.clone()));
    }
    let mut reporter = Reporter::new(&place);
    tokio::select! {
        never = reporter.follow() => match never {},
        () = ends(seen) => {}
    }
    reporter.pod_ends();
    tokio::select! {
        never = reporter.follow() => match never {},
        () = end(containers, stop, seen) => {}
    }
    if !seen.borrow().is_gone() {
        reporter.report().await;
    }
    place.remove().await;
}

/// Waits until the pod must end.
async fn ends(seen: &mut watch::Receiver<Seen>) {
    // An error means that the object is gone.
    let _ = seen.wait_for(|seen| seen.grace().is_some()).await;
}

/// Stops the containers. Another deletion with less grace, or the end of the object, shortens the time that they have.
async fn end(mut containers: JoinSet<()>, stop: watch::Sender<Option<Instant>>, seen: &mut watch::Receiver<Seen>) {
    let grace = seen.borrow_and_update().grace().unwrap_or_default();
    stop.send_replace(Some(Instant::now() + grace));
    loop {
        tokio::select! {
            ended = containers.join_next() => if ended.is_none() { return },
            Ok(()) = seen.changed() => {
                let grace = seen.borrow_and_update().grace().unwrap_or_default();
                stop.send_if_modified(|deadline| shorten(deadline, Instant::now() + grace));
            }
        }
    }
}

/// Moves a deadline to an earlier time. Returns true if it was later.
fn shorten(deadline: &mut Option<Instant>, sooner: Instant) -> bool {
    let is_later = deadline.is_none_or(|deadline| sooner < deadline);
    if is_later {
        *deadline = Some(sooner);
    }
    is_later
}

/// Completes the deletion of a pod in the API server.
async fn remove_object(node: &Node, pod: &Pod) {
    let pods: Api<Pod> = Api::namespaced(node.client.clone(), &pod.namespace().unwrap_or_default());
    let this_one = Preconditions { uid: pod.uid(), resource_version: None };
    let parameters = DeleteParams::default().grace_period(0).preconditions(this_one);
    loop {
        match pods.delete(&pod.name_any(), &parameters).await {
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => return,
            Err(error) => eprintln!("{} cannot be removed: {error}", pod.name_any()),
            Ok(_) => return,
        }
        tokio::time::sleep(RETRY).await;
    }
}
