//! Cluster selection: the hub agent evaluates the cluster selectors of a Service for each importer, by the properties
//! of the clusters. So an importer does not learn the properties of other clusters.
//!
//! A result lists the exporting clusters that match. It does not depend on their endpoints.

use crate::hub::view::reader::{PropertiesUnknown, Reader};
use crate::model::{
    ClusterSelection, ClusterSelector, InternalServiceExport, Operator, Properties, Requirement, SAME_AS_IMPORTER,
};
use crate::names;
use crate::plan::BlockingReason;
use crate::reasons::Reason;
use fleetnet_types::{ClusterId, MemberNamespace, Text};
use std::collections::BTreeMap;

/// True if a cluster meets the requirement. If the importer lacks a property that the requirement compares with, no
/// cluster meets it.
fn is_met(requirement: &Requirement, of: &Properties, importer: &Properties) -> bool {
    let Requirement { key, operator, values } = requirement;
    let wanted = |value: &Text| match &**value {
        SAME_AS_IMPORTER => importer.get(key).cloned(),
        _ => Some(value.clone()),
    };
    let Some(values) = values.iter().map(wanted).collect::<Option<Vec<Text>>>() else { return false };
    let value = of.get(key);
    match operator {
        Operator::In => value.is_some_and(|value| values.contains(value)),
        Operator::NotIn => value.is_none_or(|value| !values.contains(value)),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
    }
}

/// Returns the result of each selector: the clusters that match, in the order of `clusters`.
fn results(
    selectors: &[ClusterSelector],
    importer: &Properties,
    clusters: &[(&ClusterId, Properties)],
) -> Vec<Vec<ClusterId>> {
    let matches = |selector: &ClusterSelector, of: &Properties| {
        !selector.requirements.is_empty() && selector.requirements.iter().all(|it| is_met(it, of, importer))
    };
    let result = |selector| {
        let matching = clusters.iter().filter(|(_, properties)| matches(selector, properties));
        matching.map(|(cluster, _)| (*cluster).clone()).collect()
    };
    selectors.iter().map(result).collect()
}

/// Returns the weights of exports that are not 1, by their clusters.
pub(super) fn weights<'a>(exports: impl Iterator<Item = &'a InternalServiceExport>) -> BTreeMap<ClusterId, i64> {
    let weight = |export: &InternalServiceExport| {
        Some((names::cluster_of(&export.meta.name.namespace)?, export.weight.filter(|weight| *weight != 1)?))
    };
    exports.filter_map(weight).collect()
}

fn blocking_reason(unknown: PropertiesUnknown) -> Option<BlockingReason> {
    match unknown {
        PropertiesUnknown::NotListed => None,
        PropertiesUnknown::Broken(message) => Some(BlockingReason { reason: Reason::PropertiesUnknown, message }),
    }
}

/// Request for a selection.
pub(super) struct Request<'a> {
    pub(super) selectors: &'a [ClusterSelector],
    pub(super) clusters: &'a [&'a ClusterId],
    pub(super) weights: &'a BTreeMap<ClusterId, i64>,
}

impl Request<'_> {
    /// Returns the selection for an importer. The results stay as they are at present while the properties of a cluster
    /// are unknown; then also returns what an operator must do about it.
    pub(super) fn select(
        &self,
        view: Reader<'_>,
        importer: &MemberNamespace,
        present: &ClusterSelection,
    ) -> (ClusterSelection, Option<BlockingReason>) {
        let weights = self.weights.iter().filter(|(cluster, _)| self.clusters.contains(cluster));
        let weights = weights.map(|(cluster, weight)| (cluster.clone(), *weight)).collect();
        match self.results(view, importer) {
            Ok(results) => (ClusterSelection { results, weights }, None),
            Err(unknown) => (ClusterSelection { results: present.results.clone(), weights }, blocking_reason(unknown)),
        }
    }

    fn results(&self, view: Reader<'_>, importer: &MemberNamespace) -> Result<Vec<Vec<ClusterId>>, PropertiesUnknown> {
        if self.selectors.is_empty() {
            return Ok(Vec::new());
        }
        let of = |cluster: &&ClusterId| view.properties_of(&names::member_namespace(cluster));
        let clusters = self.clusters.iter().map(|cluster| Ok((*cluster, of(cluster)?)));
        let clusters = clusters.collect::<Result<Vec<_>, PropertiesUnknown>>()?;
        Ok(results(self.selectors, &view.properties_of(importer)?, &clusters))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(of: &[(&str, &str)]) -> Properties {
        of.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn requires(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement { key: key.into(), operator, values: values.iter().map(|value| (*value).into()).collect() }
    }

    fn matching(importer: &[(&str, &str)], requirements: Vec<Requirement>) -> Vec<String> {
        let clusters = [
            ("west-1", &[("region", "west"), ("zone", "a")][..]),
            ("west-2", &[("region", "west"), ("zone", "b")]),
            ("east-1", &[("region", "east")]),
            ("bare", &[]),
        ];
        let clusters = clusters.map(|(id, of)| (ClusterId::from(id), properties(of)));
        let clusters: Vec<_> = clusters.iter().map(|(id, of)| (id, of.clone())).collect();
        let results = results(&[ClusterSelector { requirements }], &properties(importer), &clusters);
        results[0].iter().map(|cluster| cluster.to_string()).collect()
    }

    /// Rule CS6: The hub agent evaluates a cluster selector for an importer
    /// Then: The result lists the exporting clusters that meet all requirements of the selector, also those without
    /// endpoints. `@SameAsImporter@` stands for the importer's own value of the property; if the importer lacks it, no
    /// cluster matches
    #[test]
    fn a_selector_matches_clusters_by_their_properties() {
        use Operator::{DoesNotExist, Exists, In, NotIn};
        let west = &[("region", "west")][..];
        let same = SAME_AS_IMPORTER;
        type Case<'a> = (&'a [(&'a str, &'a str)], Vec<Requirement>, &'a [&'a str]);
        let table: [Case<'_>; 11] = [
            (&[], vec![requires("region", In, &["west"])], &["west-1", "west-2"]),
            (&[], vec![requires("region", In, &["north", "east"])], &["east-1"]),
            (&[], vec![requires("region", NotIn, &["west"])], &["east-1", "bare"]),
            (&[], vec![requires("zone", Exists, &[])], &["west-1", "west-2"]),
            (&[], vec![requires("region", DoesNotExist, &[])], &["bare"]),
            (&[], vec![requires("region", In, &["west"]), requires("zone", NotIn, &["a"])], &["west-2"]),
            (west, vec![requires("region", In, &[same])], &["west-1", "west-2"]),
            (west, vec![requires("region", NotIn, &[same])], &["east-1", "bare"]),
            (&[], vec![requires("region", In, &[same])], &[]),
            (&[], vec![requires("region", NotIn, &[same])], &[]),
            (west, vec![], &[]),
        ];
        for (importer, requirements, expected) in table {
            assert_eq!(matching(importer, requirements.clone()), expected, "{importer:?} {requirements:?}");
        }
    }
}
