//! Tests of the Helm charts in `deploy/charts`: what they render, what real API servers accept, and what `helm` does
//! with them.

mod difference;
mod helm_guide;
mod objects;
mod observed;
mod on_servers;
mod renamed;
mod rendered;
mod rules;
mod values;

use anyhow::Context as _;
use harness::helm::Helm;
use objects::{Objects, by_name};
use std::fmt;

/// Value that the charts of both agents require.
const REGISTRY: &str = "--set=image.registry=registry.example.com";

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
        let sets = match self {
            Self::Crds => &["minimal", "everything"][..],
            Self::HubAgent | Self::MemberAgent => &["default", "minimal", "everything", "renamed"],
        };
        let default = matches!(self, Self::Crds).then(Vec::new);
        default.into_iter().chain(sets.iter().map(|set| vec![self.file(set)])).collect()
    }

    /// Returns the option of Helm for a file in the folder `ci` of the chart.
    fn file(self, set: &str) -> String {
        format!("--values={self}/ci/{set}-values.yaml")
    }

    /// Returns these options, with [`REGISTRY`] if the chart requires it and no file of values may set it.
    fn options<'a>(self, options: &[&'a str]) -> Vec<&'a str> {
        let needs_registry = !matches!(self, Self::Crds) && !options.iter().any(|it| it.starts_with("--values="));
        options.iter().copied().chain(needs_registry.then_some(REGISTRY)).collect()
    }
}

impl fmt::Display for Chart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Runs a test with Helm.
fn with_helm(test: impl AsyncFnOnce(Helm) -> anyhow::Result<()>) -> anyhow::Result<()> {
    harness::run(async { test(Helm::find().await?).await })
}

/// Returns what a chart renders with these options, by name, without the objects of `helm test`.
async fn rendered(helm: &Helm, chart: Chart, options: &[&str]) -> anyhow::Result<Objects> {
    let options = [&chart.options(options)[..], &["--skip-tests"]].concat();
    by_name(helm.objects(chart.name(), &options).await?).with_context(|| chart.to_string())
}
