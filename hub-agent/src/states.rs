//! Numbers of exports and claims by state, as metrics. Each change of an object changes the numbers by one, so a change
//! costs the same with many objects.

use crate::metrics::{EXPORTS, IMPORTS};
use fleetnet_core::hub::Planner;
use fleetnet_core::model::{ClaimState, ExportState, Kind};
use fleetnet_core::names;
use fleetnet_types::ObjectName;
use prometheus::{IntGaugeVec, Registry};

/// Metrics of the numbers of exports and claims.
#[derive(Debug)]
pub(crate) struct States {
    exports: IntGaugeVec,
    imports: IntGaugeVec,
}

/// State of an export or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Export(ExportState),
    Claim(ClaimState),
}

impl State {
    /// Returns the state of an object in the view. `None` if the object does not exist, is being deleted, or is not
    /// counted.
    pub(crate) fn of(view: &Planner, kind: Kind, name: &ObjectName) -> Option<Self> {
        let state = match kind {
            Kind::InternalServiceExport => Self::Export(view.internal_exports.get(name)?.state()?),
            Kind::InternalServiceImport => Self::Claim(view.claims.get(name)?.state()?),
            _ => return None,
        };
        // The hub agent ignores exports and claims outside of the member namespaces.
        names::cluster_of(&name.namespace).map(|_| state)
    }
}

impl States {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let states = Self { exports: EXPORTS.gauges(registry)?, imports: IMPORTS.gauges(registry)? };
        let of_exports = ExportState::ALL.map(State::Export);
        let of_claims = ClaimState::ALL.map(State::Claim);
        of_exports.into_iter().chain(of_claims).for_each(|state| states.change(state, 0));
        Ok(states)
    }

    /// Counts the change of an object from one state to another.
    pub(crate) fn changed(&self, before: Option<State>, after: Option<State>) {
        if before == after {
            return;
        }
        before.into_iter().for_each(|state| self.change(state, -1));
        after.into_iter().for_each(|state| self.change(state, 1));
    }

    fn change(&self, state: State, by: i64) {
        match state {
            State::Export(state) => self.exports.with_label_values(&[state.as_str()]).add(by),
            State::Claim(state) => self.imports.with_label_values(&[state.as_str()]).add(by),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::TextEncoder;

    /// Also rule G7.
    #[test]
    fn each_object_counts_in_one_state_and_states_without_objects_are_0() {
        let registry = Registry::new();
        let states = States::new(&registry).expect("a new registry");
        let [accepted, pending] = [ExportState::Accepted, ExportState::Pending].map(|state| Some(State::Export(state)));
        let granted = Some(State::Claim(ClaimState::Granted));
        states.changed(None, pending);
        states.changed(None, pending);
        states.changed(pending, accepted);
        states.changed(pending, pending);
        states.changed(accepted, None);
        states.changed(None, granted);
        let text = TextEncoder::new().encode_to_string(&registry.gather()).expect("metrics are text");
        let samples: Vec<&str> = text.lines().filter(|line| line.starts_with("fleetnet_")).collect();
        let expected = [
            r#"fleetnet_exports{state="accepted"} 0"#,
            r#"fleetnet_exports{state="conflicted"} 0"#,
            r#"fleetnet_exports{state="denied"} 0"#,
            r#"fleetnet_exports{state="pending"} 1"#,
            r#"fleetnet_imports{state="granted"} 1"#,
            r#"fleetnet_imports{state="pending"} 0"#,
        ];
        assert_eq!(samples, expected);
    }
}
