//! Set of distinct lists of ports ([`PortKeys`]), so that pods and slices with equal lists share one allocation.

use crate::limits::UNUSED_PORT_LISTS;
use crate::ports::PortKey;
use std::collections::BTreeSet;

/// Distinct lists of ports of one Service's pods and slices. Unused lists are removed when the set grows. So the set
/// has at most twice as many lists as are in use, plus `UNUSED_PORT_LISTS`.
#[derive(Debug, Default)]
pub(super) struct PortKeys {
    known: BTreeSet<PortKey>,
    /// Number of lists that were in use when unused lists were last removed.
    used: usize,
}

impl PortKeys {
    /// Returns the list of the set that equals `key`. Adds `key` if there is no such list.
    pub(super) fn one_of(&mut self, key: PortKey) -> PortKey {
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= UNUSED_PORT_LISTS + 2 * self.used {
            self.known.retain(PortKey::is_shared);
            self.used = self.known.len();
        }
        self.known.insert(key.clone());
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::incremental::Incremental;
    use crate::model::{EndpointPort, Node, Pod, Service};
    use crate::nodes::NodeZones;
    use serde_json::{Value, from_value, json};
    use std::sync::Arc;

    fn key(port: i32) -> PortKey {
        PortKey::from(&[EndpointPort { port: Some(port), ..EndpointPort::default() }][..])
    }

    #[test]
    fn equal_lists_are_one() {
        let mut keys = PortKeys::default();
        let first = keys.one_of(key(1));
        assert!(keys.one_of(key(1)).is_same(&first));
    }

    #[test]
    fn lists_that_nobody_has_any_more_take_no_room_without_end() {
        let mut keys = PortKeys::default();
        let used: Vec<_> = (0..100).map(|port| keys.one_of(key(port))).collect();
        for port in 100..100_000 {
            keys.one_of(key(port));
            assert!(keys.known.len() <= 2 * used.len() + UNUSED_PORT_LISTS, "{}", keys.known.len());
        }
        assert!(used.iter().enumerate().all(|(port, used_key)| {
            let port = i32::try_from(port).expect("it is small");
            keys.one_of(key(port)).is_same(used_key)
        }));
    }

    #[test]
    fn a_pod_whose_named_port_changes_all_the_time_leaves_nothing_behind() {
        let named = json!({"name": "http", "targetPort": "http"});
        let spec = json!({"ipFamilies": ["IPv4"], "selector": {"a": "b"}, "ports": [named]});
        let service: Service = from_value(json!({"metadata": {"name": "web"}, "spec": spec})).expect("a Service");
        let node: Node = from_value(json!({"metadata": {"name": "node-1"}})).expect("a Node");
        let nodes: NodeZones = [&node].into_iter().collect();
        let pod = |port: Value| -> Pod {
            let containers = json!([{"ports": [{"name": "http", "containerPort": port}]}]);
            from_value(json!({
                "metadata": {"name": "web-1"}, "spec": {"nodeName": "node-1", "containers": containers},
                "status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
            }))
            .expect("a pod")
        };
        let mut state = Incremental::new(Arc::new(service), Arc::new(Config::default()));
        for port in 1..1_000 {
            state.set_pod(&pod(port.into()), &nodes);
            assert!(state.keys.known.len() <= UNUSED_PORT_LISTS + 2, "{}", state.keys.known.len());
        }
    }
}
