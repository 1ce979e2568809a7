//! Properties of this cluster, merged from all sources.

use crate::limits::{PROPERTIES_MAX, PROPERTY_BYTES_MAX};
use crate::model::Properties;
use crate::names;
use fleetnet_types::{ClusterId, Text};
use std::collections::BTreeSet;

/// Label of a Node for its region, and the property of a cluster whose Nodes are all in one region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Label of a Node for its zone, and the property of a cluster whose Nodes are all in one zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// Properties of a cluster, and those that exceed a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) properties: Properties,
    pub(crate) left_out: BTreeSet<Text>,
}

/// Merges the properties of a cluster. The later one of two sources with the same name wins, and the id over all.
pub(crate) fn merge(id: &ClusterId, sources: impl Iterator<Item = (Text, Text)>) -> Merged {
    let mut properties: Properties = sources.filter(|(name, _)| &**name != names::CLUSTER_ID_PROPERTY).collect();
    let too_long = |(name, value): (&Text, &Text)| (value.len() > PROPERTY_BYTES_MAX).then(|| name.clone());
    let mut left_out: BTreeSet<Text> = properties.iter().filter_map(too_long).collect();
    properties.retain(|name, _| !left_out.contains(name));
    left_out.extend(properties.keys().skip(PROPERTIES_MAX - 1).cloned()); // one place is for the id
    properties.retain(|name, _| !left_out.contains(name));
    properties.insert(names::CLUSTER_ID_PROPERTY.into(), id.into());
    Merged { properties, left_out }
}

/// Returns the value that all Nodes have. `None` if a Node has another one or none.
pub(crate) fn agreed<'a>(mut values: impl Iterator<Item = Option<&'a Text>>) -> Option<&'a Text> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{agreed, merge};
    use fleetnet_types::Text;

    /// Rule CS4: The properties of a cluster come from several sources
    /// Then: The id of the cluster wins over a ClusterProperty, a ClusterProperty over the flag, and the flag over the
    /// region and the zone, which count if all Nodes have the same. Of more than 64, the first 64 by name count, with
    /// the id. A value of more than 256 bytes does not count. What does not count is reported
    #[test]
    fn a_later_source_wins_and_what_exceeds_a_limit_is_left_out() {
        let pair = |name: &str, value: &str| (Text::from(name), Text::from(value));
        let sources = [pair("a", "1"), pair("b", "1"), pair("b", "2"), pair("cluster.clusterset.k8s.io", "east")];
        let merged = merge(&"west".into(), sources.into_iter());
        let expected = [pair("a", "1"), pair("b", "2"), pair("cluster.clusterset.k8s.io", "west")];
        assert_eq!((merged.properties, merged.left_out.len()), (expected.into(), 0));

        let many = (10..75).map(|number| pair(&format!("p{number}"), ""));
        let long = pair("long", &"x".repeat(257));
        let merged = merge(&"west".into(), many.chain([long]));
        assert_eq!(merged.properties.len(), 64);
        assert!(merged.properties.contains_key("p72") && merged.properties.contains_key("cluster.clusterset.k8s.io"));
        assert_eq!(merged.left_out, ["long", "p73", "p74"].map(Text::from).into());
    }

    /// Also rule CS4.
    #[test]
    fn a_region_counts_if_all_nodes_have_it() {
        let (north, south) = (Text::from("north"), Text::from("south"));
        let table: [(&[Option<&Text>], _); 6] = [
            (&[], None),
            (&[None], None),
            (&[Some(&north)], Some(&north)),
            (&[Some(&north), Some(&north)], Some(&north)),
            (&[Some(&north), None], None),
            (&[Some(&north), Some(&south)], None),
        ];
        for (values, expected) in table {
            assert_eq!(agreed(values.iter().copied()), expected, "{values:?}");
        }
    }
}
