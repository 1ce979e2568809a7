//! Reports a conflict about this cluster's id to operators: with Events on the namespace `kube-system`, and in the
//! readiness of the agent.

use fleetnet_core::model::Kind;
use fleetnet_core::plan::{BlockingReason, Event, event_about};
use fleetnet_core::reasons::Reason;
use fleetnet_types::{ObjectName, Uid};
use tokio::sync::watch;

const COMPONENT: &str = "member-agent";
const KUBE_SYSTEM: &str = "kube-system";
/// Reason why the agent is not ready. Anybody who reaches the agent can read it, so it has no UID of a cluster.
const NOT_READY: &str =
    "another cluster owns the id of this cluster; the Event ClusterIdInUse of the namespace kube-system has the remedy";

/// Blocking reasons about this cluster's id that were already reported.
#[derive(Debug)]
pub(crate) struct IdentityReport {
    leads: bool,
    emitted: Vec<BlockingReason>,
    blocked: watch::Sender<Option<String>>,
}

impl IdentityReport {
    pub(crate) fn new() -> Self {
        Self { leads: false, emitted: Vec::new(), blocked: watch::Sender::new(None) }
    }

    /// Returns a watch channel with the reason why this agent is not ready: another cluster owns this cluster's id. The
    /// value is `None` if no other cluster owns the id.
    pub(crate) fn blocked(&self) -> watch::Receiver<Option<String>> {
        self.blocked.subscribe()
    }

    pub(crate) fn is_leader(&self) -> bool {
        self.leads
    }

    /// Starts to emit Events. A new leader also emits Events for reasons that an earlier leader reported, because these
    /// reasons persist.
    pub(crate) fn leads(&mut self) {
        self.leads = true;
    }

    /// Stops to emit Events, because another process may lead. What a later leader reports counts as its first report.
    pub(crate) fn follows(&mut self) {
        self.leads = false;
        self.emitted.clear();
    }

    /// Returns an Event for each blocking reason about the cluster id that was not reported yet.
    pub(crate) fn events(&self, blocking_reasons: &[BlockingReason], cluster_uid: Option<&Uid>) -> Vec<Event> {
        let Some(uid) = cluster_uid.filter(|_| self.leads) else { return Vec::new() };
        let event = |BlockingReason { reason, message }: BlockingReason| {
            let about = (Kind::SystemNamespace, ObjectName::new("", KUBE_SYSTEM), uid.clone());
            event_about(about, COMPONENT, reason, message)
        };
        reported(blocking_reasons)
            .into_iter()
            .filter(|blocking_reason| !self.emitted.contains(blocking_reason))
            .map(event)
            .collect()
    }

    /// Records the blocking reasons of the newest plan as reported, and updates the readiness of the agent.
    pub(crate) fn note(&mut self, blocking_reasons: &[BlockingReason], cluster_uid: Option<&Uid>) {
        let in_use = blocking_reasons.iter().find(|blocking_reason| blocking_reason.reason == Reason::ClusterIdInUse);
        let blocked = in_use.map(|_| NOT_READY.to_owned());
        self.blocked.send_if_modified(|before| {
            let is_new = *before != blocked;
            *before = blocked;
            is_new
        });
        if self.leads && cluster_uid.is_some() {
            self.emitted = reported(blocking_reasons);
        }
    }
}

/// Returns the blocking reasons that need an Event. The first reports that another cluster owns this cluster's id.
/// After it comes the one that reports that two agents share the id.
fn reported(blocking_reasons: &[BlockingReason]) -> Vec<BlockingReason> {
    let of_reason =
        |reason: Reason| blocking_reasons.iter().filter(move |blocking_reason| blocking_reason.reason == reason);
    of_reason(Reason::ClusterIdInUse).chain(of_reason(Reason::ClusterIdShared)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also rule O2.
    #[test]
    fn a_leader_emits_one_event_for_each_change_and_every_replica_reports_why_it_is_not_ready() {
        let mut report = IdentityReport::new();
        let blocked = report.blocked();
        let uid = Uid::from("uid");
        let note = |report: &mut IdentityReport, blocking_reasons: &[BlockingReason]| {
            let events = report.events(blocking_reasons, Some(&uid));
            report.note(blocking_reasons, Some(&uid));
            events
        };
        let in_use = || vec![BlockingReason { reason: Reason::ClusterIdInUse, message: "owned by another".to_owned() }];
        let shared = || BlockingReason { reason: Reason::ClusterIdShared, message: "two leaders".to_owned() };
        let unchecked = || BlockingReason { reason: Reason::ClusterIdNotChecked, message: "off".to_owned() };
        assert_eq!(note(&mut report, &in_use()), [], "another leads and emits it");
        assert_eq!(blocked.borrow().as_deref(), Some(NOT_READY), "without the UIDs in the message");
        report.leads();
        let emitted = |events: Vec<Event>| {
            events.into_iter().map(|event| (event.reason.as_str(), event.name.to_string())).collect::<Vec<_>>()
        };
        let expected = [("ClusterIdInUse", KUBE_SYSTEM.to_owned())];
        assert_eq!(emitted(note(&mut report, &in_use())), expected);
        assert_eq!(note(&mut report, &in_use()), [], "no change");
        assert_eq!(note(&mut report, &[unchecked()]), [], "for the log only");
        assert_eq!(*blocked.borrow(), None);
        let again = [in_use(), vec![shared()]].concat();
        assert_eq!(note(&mut report, &again).len(), 2);
        assert_eq!(note(&mut report, &[shared()]), []);
        assert_eq!(*blocked.borrow(), None, "clones are not stopped");
    }
}
