//! Known Nodes of a cluster and their zones: [`NodeZones`].

use crate::model::Node;
use crate::text::Text;
use hashbrown::HashMap;

/// Known Nodes of a cluster by name, with their zones. All Services can share one instance.
#[derive(Clone, Debug, Default)]
pub struct NodeZones(HashMap<Text, Option<Text>>);

/// Known Node, returned by [`NodeZones::find`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KnownNode<'a> {
    /// Zone of the Node, if it has one.
    pub zone: Option<&'a Text>,
}

impl NodeZones {
    /// Returns the Node with this name, if it is known.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<KnownNode<'_>> {
        self.0.get(name).map(|zone| KnownNode { zone: zone.as_ref() })
    }

    /// Records `node`. Returns true if endpoints may change, because the Node is new or its zone changed.
    pub fn insert(&mut self, node: &Node) -> bool {
        let zone = node.zone().cloned();
        self.0.insert(node.metadata.name.clone(), zone.clone()) != Some(zone)
    }

    /// Forgets the Node with this name. Returns true if the Node was known.
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
