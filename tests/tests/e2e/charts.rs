//! Tests of the Helm charts in `deploy/charts`: what they render, what real API servers accept, and what `helm` does with them.

mod difference;
mod helm_guide;
mod objects;
mod on_servers;
mod rendered;
mod values;

use std::fmt;

/// Chart in `deploy/charts`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chart {
    Crds,
    HubAgent,
    MemberAgent,
}

impl Chart {
    const ALL: [Self; 3] = [Self::Crds, Self::HubAgent, Self::MemberAgent];

    fn name(self) -> &'static str {
        match self {
            Self::Crds => "fleetnet-crds",
            Self::HubAgent => "fleetnet-hub-agent",
            Self::MemberAgent => "fleetnet-member-agent",
        }
    }

    /// Returns the sets of values in the folder `ci` of the chart, each as an option of Helm.
    fn sets(self) -> Vec<Vec<String>> {
        let files = ["minimal", "everything"].map(|set| format!("--values={self}/ci/{set}-values.yaml"));
        let default = match self {
            Self::Crds | Self::HubAgent => Vec::new(),
            Self::MemberAgent => vec![format!("--values={self}/ci/default-values.yaml")],
        };
        [vec![default], files.map(|file| vec![file]).to_vec()].concat()
    }
}

impl fmt::Display for Chart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
