//! [`NodeZones`]: which Nodes there are, and the zone of each.

use crate::model::Node;
use crate::text::Text;
use hashbrown::HashMap;

/// The Nodes of a cluster by name. One of these serves all Services.
#[derive(Clone, Debug, Default)]
pub struct NodeZones(HashMap<Text, Option<Text>>);

/// A Node that is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KnownNode<'a> {
    /// Its zone, if it has one.
    pub zone: Option<&'a Text>,
}

impl NodeZones {
    /// The Node of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<KnownNode<'_>> {
        self.0.get(name).map(|zone| KnownNode { zone: zone.as_ref() })
    }

    /// Takes note of `node`, and answers whether its endpoints may now be others: it is new, or its zone changed.
    pub fn insert(&mut self, node: &Node) -> bool {
        let zone = node.zone().cloned();
        self.0.insert(node.metadata.name.clone(), zone.clone()) != Some(zone)
    }

    /// Forgets the Node of that name, and answers whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }
}

impl<'a> FromIterator<&'a Node> for NodeZones {
    fn from_iter<I: IntoIterator<Item = &'a Node>>(nodes: I) -> Self {
        let mut zones = Self::default();
        for node in nodes {
            zones.insert(node);
        }
        zones
    }
}
