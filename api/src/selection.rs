//! Cluster selection for an importer: the results of cluster selectors, and the weights of exporting clusters. A
//! MergedServiceImport has them in its fields, and a claim in an annotation.

use crate::crd::shared::Name;
use crate::lenient::{Few, Field, Shape, records};
use crate::wire::{Plain, Rule, Strict, Wire, elements};
use fleetnet_core::limits::{CLUSTER_SELECTORS_MAX, MERGED_CLUSTERS_MAX, WEIGHT_MAX};
use fleetnet_core::model::{self, ClusterSelection};
use fleetnet_types::{ClusterId, Text};
use serde::Deserialize;
use serde::de::{Error, MapAccess};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) type Results = Few<RawResult, CLUSTER_SELECTORS_MAX>;

/// Result of a cluster selector.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct RawResult {
    clusters: Field<Few<Name<ClusterId>, MERGED_CLUSTERS_MAX>>,
}

/// Value of the annotation `cluster-selection`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSelection {
    cluster_selector_results: Field<Results>,
    weights: Field<Weights>,
}

records!(RawResult, RawSelection);

impl Wire for RawResult {
    type Model = Vec<ClusterId>;

    fn model(self) -> Result<Vec<ClusterId>, &'static str> {
        Strict::<Plain<_>>::read(self.clusters, "clusters is not a list")
    }

    fn json(clusters: &Vec<ClusterId>) -> Value {
        json!({ "clusters": elements::<ClusterId>(clusters) })
    }
}

/// Weights of clusters. Those that are no weights are left out.
#[derive(Default)]
struct Weights(BTreeMap<ClusterId, i64>);

impl Shape for Weights {
    fn map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut weights = BTreeMap::new();
        while let Some((cluster, raw)) = map.next_entry::<Box<str>, Field<i64>>()? {
            weights.extend(weight(&raw).map(|weight| (ClusterId::from(&*cluster), weight)));
            if weights.len() > MERGED_CLUSTERS_MAX {
                return Err(A::Error::custom(format_args!("there are more than {MERGED_CLUSTERS_MAX} weights")));
            }
        }
        Ok(Some(Self(weights)))
    }
}

/// Returns the weight in a field. A weight out of range counts as absent.
pub(crate) fn weight(raw: &Field<i64>) -> Option<i64> {
    raw.as_value().copied().filter(|weight| (0..=WEIGHT_MAX).contains(weight))
}

/// Decodes the results of cluster selectors.
pub(crate) fn results(raw: Field<Results>) -> Result<Vec<Vec<ClusterId>>, &'static str> {
    Strict::<Plain<_>>::read(raw, "clusterSelectorResults is not a list")
}

/// Decodes the annotation `cluster-selection`. A malformed one counts as absent.
pub(crate) fn from_annotation(text: &str) -> Option<ClusterSelection> {
    let raw = serde_json::from_str::<Field<RawSelection>>(text).ok()?.value()?;
    let weights = raw.weights.or_default().0;
    Some(ClusterSelection { results: results(raw.cluster_selector_results).ok()?, weights })
}

/// Decodes the annotation `weights` of an importer's user. Each value must be a weight.
pub(crate) fn declared_weights(text: Option<&Text>) -> model::Weights {
    let Some(text) = text else { return Ok(BTreeMap::new()) };
    let weights: BTreeMap<String, i64> = serde_json::from_str(text)
        .map_err(|error| Text::from(format!("it is no JSON object with a whole number for each cluster: {error}")))?;
    match weights.iter().find(|(_, weight)| !(0..=WEIGHT_MAX).contains(*weight)) {
        Some((cluster, weight)) => {
            Err(format!("the weight {weight} of {cluster} is not from 0 to {WEIGHT_MAX}").into())
        }
        None if weights.len() > MERGED_CLUSTERS_MAX => {
            Err(format!("it has weights of more than {MERGED_CLUSTERS_MAX} clusters").into())
        }
        None => Ok(weights.into_iter().map(|(cluster, weight)| (ClusterId::from(&*cluster), weight)).collect()),
    }
}

/// Decodes the annotation `cluster-selector-results`. A malformed one counts as absent.
pub(crate) fn results_from_annotation(text: &str) -> Option<Vec<Vec<ClusterId>>> {
    results(serde_json::from_str(text).ok()?).ok()
}

/// Returns the value of the annotation `cluster-selector-results`. `None` without results.
pub(crate) fn results_annotation(results: &[Vec<ClusterId>]) -> Option<String> {
    (!results.is_empty()).then(|| Value::from(elements::<RawResult>(results)).to_string())
}

/// Returns the value of the annotation `cluster-selection`. `None` if the selection is empty.
pub(crate) fn annotation(selection: &ClusterSelection) -> Option<String> {
    let ClusterSelection { results, weights } = selection;
    let mut fields = Map::new();
    if !results.is_empty() {
        fields.insert("clusterSelectorResults".to_owned(), elements::<RawResult>(results).into());
    }
    if !weights.is_empty() {
        let weights = weights.iter().map(|(cluster, weight)| (cluster.to_string(), (*weight).into()));
        fields.insert("weights".to_owned(), Value::Object(weights.collect()));
    }
    (!fields.is_empty()).then(|| Value::Object(fields).to_string())
}
