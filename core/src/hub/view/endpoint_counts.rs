//! Numbers of ready endpoints that members export, for each Service and address type.

use super::value::Value;
use super::{Effects, View};
use crate::model::{AddressType, HubSlice};
use fleetnet_types::{ObjectName, Text};
use std::collections::BTreeMap;

/// For each Service and address type: the number of ready endpoints in the exported slices of each member, by its
/// member namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EndpointCounts(BTreeMap<(ObjectName, AddressType), BTreeMap<Text, usize>>);

/// Service and address type of an exported slice, and its number of ready endpoints.
pub(super) type Counted = ((ObjectName, AddressType), usize);

pub(super) fn counted(slice: &HubSlice) -> Counted {
    let content = &slice.spec.content;
    let is_counted = usize::from(!slice.meta.deleting);
    ((slice.spec.owner.clone(), content.address_type.clone()), is_counted * content.endpoints.len())
}

impl View {
    /// Counts an exported slice of a member, which was `before` and is `after` now.
    pub(super) fn count_endpoints(
        &mut self,
        namespace: &Text,
        before: Option<Counted>,
        after: Option<Counted>,
        effects: &mut Effects,
    ) {
        // Slices without ready endpoints do not count.
        let [before, after] = [before, after].map(|it| it.filter(|(_, number)| *number > 0));
        if before == after {
            return;
        }
        if let Some((of, number)) = before {
            if let Some(members) = self.endpoint_counts.0.get_mut(&of) {
                let count = members.entry(namespace.clone()).or_default();
                *count = count.saturating_sub(number);
                if *count == 0 {
                    members.remove(namespace);
                }
                if members.is_empty() {
                    self.endpoint_counts.0.remove(&of);
                }
            }
            effects.values.push(Value::EndpointCounts(of.0));
        }
        if let Some((of, number)) = after {
            *self.endpoint_counts.0.entry(of.clone()).or_default().entry(namespace.clone()).or_default() += number;
            effects.values.push(Value::EndpointCounts(of.0));
        }
    }

    /// Returns the member namespaces that export ready endpoints of a Service with this address type, with their
    /// numbers.
    pub(super) fn endpoint_counts<'a>(
        &'a self,
        service: &ObjectName,
        address_type: &AddressType,
    ) -> impl Iterator<Item = (&'a Text, usize)> + use<'a> {
        let members = self.endpoint_counts.0.get(&(service.clone(), address_type.clone()));
        members.into_iter().flatten().map(|(namespace, number)| (namespace, *number))
    }
}
