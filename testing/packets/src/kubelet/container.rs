//! Life of one container: [`Container`].

use super::hook;
use super::place::Place;
use super::probe::Probes;
use super::process::Process;
use super::state::{Ended, State, Status};
use crate::clock;
use crate::limits::{FIRST_RESTART, LAST_RESTART, LEAST_GRACE};
use k8s_openapi::api::core::v1::Container as Spec;
use rustix::process::Signal;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time at which a container must have ended; `None` while its pod may go on.
pub(super) type Stopping = watch::Receiver<Option<Instant>>;

/// Container of a pod.
pub(super) struct Container {
    place: Arc<Place>,
    index: usize,
}

impl Container {
    pub(super) fn new(place: &Arc<Place>, index: usize) -> Self {
        Self { place: Arc::clone(place), index }
    }

    /// Runs the container until its pod ends, again and again if its pod wants that.
    pub(super) async fn supervise(self, mut stopping: Stopping) {
        let mut pause = Duration::ZERO;
        while stopping.borrow().is_none() {
            let code = self.run(&mut stopping).await;
            let policy = self.place.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
            if policy == Some("Never") || policy == Some("OnFailure") && code == 0 {
                return;
            }
            if tokio::time::timeout(pause, stops(&mut stopping)).await.is_ok() {
                return;
            }
            pause = (2 * pause).clamp(FIRST_RESTART, LAST_RESTART);
            self.change(|status| {
                status.restarts += 1;
                if let State::Ended(ended) = &status.state {
                    status.last = Some(ended.clone());
                }
            });
        }
    }

    fn spec(&self) -> &Spec {
        &self.place.containers()[self.index]
    }

    fn change(&self, change: impl FnOnce(&mut Status)) {
        self.place.statuses.send_modify(|statuses| change(&mut statuses[self.index]));
    }

    /// Runs the container once. Returns its exit code.
    async fn run(&self, stopping: &mut Stopping) -> i32 {
        let mut process = match Process::start(&self.place, self.spec()) {
            Ok(process) => process,
            Err(error) => {
                self.change(|status| status.state = State::Failed(format!("{error:#}")));
                return 128;
            }
        };
        let started_at = clock::seconds();
        self.change(|status| status.state = State::Running(started_at.clone()));
        let code = self.until_ended(&mut process, stopping).await;
        self.change(|status| {
            status.is_ready = false;
            status.state = State::Ended(Ended { code, started_at, finished_at: clock::seconds() });
        });
        code
    }

    /// Follows the probes of a running container until it has ended. Stops it if it is not alive, or if its pod ends.
    async fn until_ended(&self, process: &mut Process, stopping: &mut Stopping) -> i32 {
        let probes = Probes::of(&self.place, self.spec());
        let set_ready = |is_ready| self.change(|status| status.is_ready = is_ready);
        if !probes.has_readiness() {
            set_ready(true);
        }
        let target = process.target();
        // The probe of readiness goes on while the pod ends, as in a kubelet. That of liveness does not.
        let readiness = probes.follow_readiness(&target, set_ready);
        let run = async {
            tokio::select! {
                code = process.wait() => return code,
                () = probes.dead(&target) => {}
                () = stops(stopping) => {}
            }
            self.stop(process, stopping).await
        };
        tokio::select! {
            code = run => code,
            never = readiness => match never {},
        }
    }

    /// Stops a container: preStop hook, SIGTERM, and SIGKILL at the end of the grace period.
    async fn stop(&self, process: &mut Process, stopping: &mut Stopping) -> i32 {
        let spec = self.place.pod.spec.as_ref();
        let grace = spec.and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
        // The end of the grace period if only the container ends, and not its pod.
        let own = Instant::now() + Duration::from_secs(grace.try_into().unwrap_or(0));
        if stopping.borrow().is_some_and(|deadline| deadline <= Instant::now()) {
            process.signal(Signal::KILL);
            return process.wait().await;
        }
        let target = process.target();
        if let Some(hook) = self.spec().lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref()) {
            tokio::select! {
                () = hook::run(&self.place, self.spec(), &target, hook) => {}
                code = process.wait() => return code,
                () = passed(stopping, own, Duration::ZERO) => {}
            }
        }
        process.signal(Signal::TERM);
        tokio::select! {
            code = process.wait() => code,
            () = passed(stopping, own, LEAST_GRACE) => {
                process.signal(Signal::KILL);
                process.wait().await
            }
        }
    }
}

/// Waits until the pod ends.
async fn stops(stopping: &mut Stopping) {
    // An error means that the pod has no task any more.
    let _ = stopping.wait_for(Option::is_some).await;
}

/// Waits until a container must have ended: at the deadline of its pod, or at its own if only the container ends. The
/// container has at least the time `least`.
async fn passed(stopping: &mut Stopping, own: Instant, least: Duration) {
    let earliest = Instant::now() + least;
    loop {
        let deadline = stopping.borrow_and_update().unwrap_or(own).max(earliest);
        tokio::select! {
            () = tokio::time::sleep_until(deadline) => return,
            Ok(()) = stopping.changed() => {}
        }
    }
}
