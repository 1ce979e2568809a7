//! Numbers of ready endpoints that members export, for each Service and address type.

use super::value::Value;
use crate::model::{AddressType, HubSlice};
use fleetnet_types::{MemberNamespace, ObjectName};
use std::collections::BTreeMap;

/// For each Service and address type: the number of ready endpoints in the exported slices of each member, by its
/// member namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EndpointCounts(BTreeMap<(ObjectName, AddressType), BTreeMap<MemberNamespace, usize>>);

/// Service and address type of an exported slice, and its number of ready endpoints.
pub(super) type Counted = ((ObjectName, AddressType), usize);

pub(super) fn counted(slice: &HubSlice) -> Counted {
    let content = &slice.spec.content;
    let is_counted = usize::from(!slice.meta.deleting);
    ((slice.spec.owner.clone(), content.address_type.clone()), is_counted * content.endpoints.len())
}

impl EndpointCounts {
    /// Counts an exported slice of a member, which was `before` and is `after` now. Returns the values that changed.
    pub(super) fn count(
        &mut self,
        namespace: &MemberNamespace,
        before: Option<Counted>,
        after: Option<Counted>,
    ) -> Vec<Value> {
        let mut values = Vec::new();
        // Slices without ready endpoints do not count.
        let [before, after] = [before, after].map(|it| it.filter(|(_, number)| *number > 0));
        if before == after {
            return values;
        }
        if let Some((of, number)) = before {
            if let Some(members) = self.0.get_mut(&of) {
                let count = members.entry(namespace.clone()).or_default();
                *count = count.saturating_sub(number);
                if *count == 0 {
                    members.remove(namespace);
                }
                if members.is_empty() {
                    self.0.remove(&of);
                }
            }
            values.push(Value::EndpointCounts(of.0));
        }
        if let Some((of, number)) = after {
            *self.0.entry(of.clone()).or_default().entry(namespace.clone()).or_default() += number;
            values.push(Value::EndpointCounts(of.0));
        }
        values
    }

    /// Returns the member namespaces that export ready endpoints of a Service with this address type, with their
    /// numbers.
    pub(super) fn of<'a>(
        &'a self,
        service: &ObjectName,
        address_type: &AddressType,
    ) -> impl Iterator<Item = (&'a MemberNamespace, usize)> + use<'a> {
        let members = self.0.get(&(service.clone(), address_type.clone()));
        members.into_iter().flatten().map(|(namespace, number)| (namespace, *number))
    }
}
