//! Cache of hints ([`HintInterner`]), so that all endpoints of a zone or Node share the allocation of their hints.

use crate::limits::{HINT_NODES_MAX, HINT_ZONES_MAX};
use crate::model::Hints;
use crate::text::Text;
use hashbrown::HashMap;
use std::sync::Arc;

/// Cache of hints, so that a plan reuses the hints that an earlier plan allocated. A clone shares the cache until the
/// clone or the original adds a zone or Node.
#[derive(Clone, Debug, Default)]
pub(super) struct HintInterner {
    zones: Arc<HashMap<Text, Arc<Hints>>>,
    /// Hints of endpoints on each Node: for clients on the Node, and in the zone that the Node had when the hints were
    /// created.
    nodes: Arc<HashMap<Text, Arc<Hints>>>,
}

impl HintInterner {
    /// Returns the hints for clients in `zone`.
    pub(super) fn zone(&mut self, zone: &Text) -> Arc<Hints> {
        if let Some(hints) = self.zones.get(zone) {
            return Arc::clone(hints);
        }
        let hints = Arc::new(Hints { for_zones: vec![zone.clone()], for_nodes: Vec::new() });
        remember(&mut self.zones, HINT_ZONES_MAX, zone, &hints);
        hints
    }

    /// Returns the hints for clients on `node`, and also in `zone` if the endpoint has a zone.
    pub(super) fn node(&mut self, node: &Text, zone: Option<&Text>) -> Arc<Hints> {
        if let Some(hints) = self.nodes.get(node).filter(|hints| hints.for_zones.first() == zone) {
            return Arc::clone(hints);
        }
        let hints = Arc::new(Hints { for_zones: zone.cloned().into_iter().collect(), for_nodes: vec![node.clone()] });
        remember(&mut self.nodes, HINT_NODES_MAX, node, &hints);
        hints
    }
}

fn remember(places: &mut Arc<HashMap<Text, Arc<Hints>>>, max: usize, place: &Text, hints: &Arc<Hints>) {
    let places = Arc::make_mut(places);
    if places.len() >= max {
        places.clear();
    }
    places.insert(place.clone(), Arc::clone(hints));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_one_place_share_their_hints() {
        let mut interner = HintInterner::default();
        let (zone, node): (Text, Text) = ("zone-a".into(), "node-1".into());
        assert!(Arc::ptr_eq(&interner.zone(&zone), &interner.zone(&"zone-a".into())));
        assert!(Arc::ptr_eq(&interner.node(&node, Some(&zone)), &interner.node(&node, Some(&zone))));
    }

    #[test]
    fn a_node_that_changed_its_zone_gets_other_hints() {
        let mut interner = HintInterner::default();
        let (zone, node): (Text, Text) = ("zone-a".into(), "node-1".into());
        assert_eq!(interner.node(&node, None).for_zones, Vec::<Text>::new());
        assert_eq!(interner.node(&node, Some(&zone)).for_zones, ["zone-a"]);
        assert_eq!(interner.node(&node, None).for_zones, Vec::<Text>::new());
    }

    #[test]
    fn nodes_that_came_and_went_are_not_remembered_for_ever() {
        let mut interner = HintInterner::default();
        for number in 0..3 * HINT_NODES_MAX {
            interner.node(&format!("node-{number}").into(), None);
        }
        assert!(interner.nodes.len() <= HINT_NODES_MAX);
    }
}
