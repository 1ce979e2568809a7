//! Scenario to measure: a Service with its pods, Nodes and slices, stored in a file.

use anyhow::Context as _;
use endpointslice::hints::ServiceHints;
use endpointslice::model::{EndpointSlice, Node, Pod, Service};
use endpointslice::{Config, NodeZones};
use regex::Regex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Scenario to measure. If `services` is empty, the bench measures the reconcile of `service`. Otherwise, it measures
/// the search for the Services that select the first pod.
///
/// Objects have the JSON form of Kubernetes. Unknown fields are ignored.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scenario {
    pub name: String,
    pub max_endpoints_per_slice: usize,
    /// True if the cluster supports topology hints.
    #[serde(default)]
    pub topology_cache: bool,
    #[serde(default)]
    pub service: Service,
    /// Pods that the Service selects.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub pods: Vec<Pod>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub nodes: Vec<Node>,
    /// Slices that exist before the reconcile.
    #[serde(default, deserialize_with = "shared_slices", serialize_with = "write_shared_slices")]
    pub existing: Vec<Arc<EndpointSlice>>,
    /// Services of a namespace. Only for the measurement of the search for the Services that select a pod (mode
    /// `selected`).
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
}

impl Scenario {
    /// Reads a scenario from a file.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is no scenario", file.display()))
    }

    /// Returns the settings of the `endpointslice` library for this scenario.
    ///
    /// # Errors
    /// If the limit of endpoints per slice is out of range.
    pub fn config(&self) -> anyhow::Result<Config> {
        Ok(Config::default().with_max_endpoints_per_slice(self.max_endpoints_per_slice)?)
    }

    #[must_use]
    pub fn zones(&self) -> NodeZones {
        self.nodes.iter().collect()
    }

    /// Returns the state of topology hints in the `endpointslice` library, which persists between reconciles.
    #[must_use]
    pub fn hints(&self) -> ServiceHints {
        if !self.topology_cache {
            return ServiceHints { topology: None, ..ServiceHints::new() };
        }
        let mut hints = ServiceHints::new();
        // `set_nodes` returns the Services that must be planned again. Ignore them, because no Service was planned yet.
        let _ = hints.set_nodes(&self.nodes);
        hints
    }
}

/// Returns the scenario files of `folder` whose name without extension matches `only`, sorted by name.
pub fn files(folder: &Path, only: &Regex) -> anyhow::Result<Vec<PathBuf>> {
    let message = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(message)? {
        let path = entry.with_context(message)?.path();
        let is_scenario = path.extension().is_some_and(|ending| ending == "json");
        if is_scenario && path.file_stem().and_then(|name| name.to_str()).is_some_and(|name| only.is_match(name)) {
            files.push(path);
        }
    }
    anyhow::ensure!(!files.is_empty(), "{} has no scenario file that matches `{only}`", folder.display());
    files.sort_unstable();
    Ok(files)
}

fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn shared_slices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Arc<EndpointSlice>>, D::Error> {
    Ok(null_is_empty(deserializer)?.into_iter().map(Arc::new).collect())
}

fn write_shared_slices<S: Serializer>(slices: &[Arc<EndpointSlice>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(slices.iter().map(|slice| &**slice))
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Builders of scenarios for tests.

    use super::*;
    use crate::slices::full;
    use serde_json::{from_value, json};

    /// Returns a pod that the scenario's Service selects.
    pub(crate) fn pod(number: usize) -> Pod {
        from_value(json!({
            "metadata": {"namespace": "ns", "name": format!("pod-{number}"), "uid": format!("uid-{number}")},
            "spec": {"nodeName": "node"},
            "status": {
                "phase": "Running", "podIPs": [{"ip": format!("10.0.0.{}", 1 + number)}],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }))
        .unwrap()
    }

    /// Returns a scenario with a Service of `pods` pods and the slices that the Service should have.
    pub(crate) fn settled(pods: usize, max_endpoints_per_slice: usize) -> Scenario {
        let service = json!({
            "metadata": {"namespace": "ns", "name": "web", "uid": "service"},
            "spec": {
                "clusterIP": "10.9.9.9", "ipFamilies": ["IPv4"], "selector": {"app": "web"},
                "ports": [{"port": 80, "targetPort": 80}],
            },
        });
        let mut scenario = Scenario {
            name: "settled".to_owned(),
            max_endpoints_per_slice,
            service: from_value(service).unwrap(),
            pods: (0..pods).map(pod).collect(),
            nodes: vec![from_value(json!({"metadata": {"name": "node"}})).unwrap()],
            ..Scenario::default()
        };
        scenario.existing = full::reconcile(&scenario).unwrap().0;
        scenario
    }
}
