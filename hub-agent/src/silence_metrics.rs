//! Metric of the members whose endpoints importers do not use as usual.

use crate::metrics::SILENT;
use fleetnet_core::model::MemberAgent;
use fleetnet_core::names;
use fleetnet_types::{ClusterId, ObjectName};
use prometheus::{GaugeVec, Registry};
use std::collections::BTreeMap;

/// State of each member, and the metric that shows it.
#[derive(Debug)]
pub(crate) struct SilenceMetrics {
    members: BTreeMap<ClusterId, f64>,
    /// True if this replica leads. Only the leader exports the metric, so that each member has one series.
    leads: bool,
    gauges: GaugeVec,
}

impl SilenceMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self { members: BTreeMap::new(), leads: false, gauges: SILENT.float_gauges(registry)? })
    }

    /// Handles the newest state of a MemberAgent.
    pub(crate) fn seen(&mut self, agent: &MemberAgent) {
        let Some(member) = names::member_of_agent(&agent.meta.name) else { return };
        if agent.meta.deleting {
            return self.forget(&member);
        }
        let is_silent = agent.status.silence.is_some_and(|silence| silence.phase.treatment().is_some());
        self.members.insert(member.clone(), if is_silent { 1.0 } else { 0.0 });
        self.show(&member);
    }

    /// Handles the removal of a MemberAgent.
    pub(crate) fn gone(&mut self, name: &ObjectName) {
        if let Some(member) = names::member_of_agent(name) {
            self.forget(&member);
        }
    }

    /// Starts to export the metric, when this replica starts to lead.
    pub(crate) fn lead(&mut self) {
        self.leads = true;
        self.members.keys().for_each(|member| self.show(member));
    }

    /// Ends the metric, when this replica does not lead any more.
    pub(crate) fn follow(&mut self) {
        self.leads = false;
        self.gauges.reset();
    }

    fn show(&self, member: &ClusterId) {
        if let Some(value) = self.members.get(member).filter(|_| self.leads) {
            self.gauges.with_label_values(&[&**member]).set(*value);
        }
    }

    fn forget(&mut self, member: &ClusterId) {
        if self.members.remove(member).is_some() {
            // Fails if there is no series, because this replica does not lead.
            let _ = self.gauges.remove_label_values(&[&**member]);
        }
    }
}
