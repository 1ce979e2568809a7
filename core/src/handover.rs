//! Handover: make-before-break between two slices of a Service. Endpoints of a Service can move to another slice:
//! Kubernetes replaces slices if the ports change, and moves endpoints between slices. During the move no endpoint may
//! be missing.
//!
//! So an agent removes a slice only after the other slices of the same Service and exporter are written in the same
//! cluster. If a server rejects these writes, the old slice stays. The agents of exporter, hub and importer each apply
//! this rule independently. Only removals wait, and they wait only for additions, so there is no deadlock. A limit of
//! additions must let a replacement pass.

use crate::model::{Address, Endpoint, SliceContent};
use crate::work;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// True while the replacement slice does not yet have the endpoints of the slice being removed. `present` is the
/// content that the replacement has now, `None` if it does not exist. `desired` is the content that it will have, and
/// `removed` is the content of the slice being removed.
pub(crate) fn replacement_pending<'a>(
    present: Option<&'a SliceContent>,
    desired: &'a SliceContent,
    removed: &'a SliceContent,
) -> bool {
    if removed.endpoints.is_empty() || desired.endpoints.is_empty() || removed.address_type != desired.address_type {
        return false;
    }
    let Some(present) = present else { return true };
    if present.endpoints.is_empty() {
        return true;
    }
    if present.endpoints == desired.endpoints {
        return false;
    }
    // Only endpoints that move count: they are in the slice being removed and in the desired content of the
    // replacement. Other endpoints may change often, and must not delay the removal.
    let addresses = |content: &'a SliceContent| content.endpoints.iter().map(Addresses::of).collect::<BTreeSet<_>>();
    let (removed, present) = (addresses(removed), addresses(present));
    desired.endpoints.iter().map(Addresses::of).any(|it| removed.contains(&it) && !present.contains(&it))
}

/// Addresses of an endpoint, used as its identity. Ordered for a fast lookup, because a member can export very many
/// endpoints.
#[derive(PartialEq, Eq)]
struct Addresses<'a>(&'a [Address]);

impl<'a> Addresses<'a> {
    fn of(endpoint: &'a Endpoint) -> Self {
        Self(&endpoint.addresses)
    }
}

impl Ord for Addresses<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        work::step();
        self.0.cmp(other.0)
    }
}

impl PartialOrd for Addresses<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// True if the change from `present` to `desired` removes the slice's last endpoint.
pub(crate) fn empties(present: &SliceContent, desired: &SliceContent) -> bool {
    desired.endpoints.is_empty() && !present.endpoints.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AddressType;

    fn content(addresses: &[&str]) -> SliceContent {
        let endpoint = |address: &&str| Endpoint { addresses: vec![(*address).into()], ..Endpoint::default() };
        let endpoints = addresses.iter().map(endpoint).collect();
        SliceContent { address_type: AddressType::IPv4, endpoints, draining: Vec::new(), ports: Vec::new() }
    }

    /// Rule F10: An agent must remove a slice of one address family and add a slice of the other address family
    /// Then: The removal and the addition do not wait for each other, because no endpoint moves between the two
    /// families
    #[test]
    fn a_slice_of_the_other_address_family_takes_nothing_over() {
        let six = SliceContent { address_type: AddressType::IPv6, ..content(&["b"]) };
        assert!(!replacement_pending(None, &six, &content(&["a"])));
        assert!(replacement_pending(None, &content(&["b"]), &content(&["a"])));
    }

    #[test]
    fn only_a_slice_with_endpoints_is_emptied() {
        for (present, desired, expected) in
            [(&["a"][..], &[][..], true), (&[], &[], false), (&["a"], &["b"], false), (&[], &["b"], false)]
        {
            assert_eq!(empties(&content(present), &content(desired)), expected, "{present:?} {desired:?}");
        }
    }

    #[test]
    fn endpoints_are_equal_if_their_addresses_are_equal() {
        let mut moving = content(&["a", "b"]);
        moving.endpoints[0].zone = Some("zone-1".into());
        assert!(replacement_pending(Some(&content(&["b"])), &moving, &content(&["a"])));
    }

    #[test]
    fn a_replacement_is_pending_until_it_has_the_endpoints() {
        type Case<'a> = (Option<&'a [&'a str]>, &'a [&'a str], &'a [&'a str], bool, &'a str);
        let table: [Case<'_>; 8] = [
            (None, &["b"], &["a"], true, "it does not stand yet"),
            (Some(&[]), &["b"], &["a"], true, "it stands and says nothing yet"),
            (Some(&["b"]), &["a", "b"], &["a"], true, "it is to take the endpoint over"),
            (Some(&["a", "b"]), &["a", "b"], &["a"], false, "it has taken it over"),
            (Some(&["b"]), &["b", "c"], &["a"], false, "its other endpoints are its own business"),
            (None, &[], &["a"], false, "it is to say nothing"),
            (None, &["b"], &[], false, "nothing goes"),
            (Some(&["a", "c"]), &["b", "a"], &["a"], false, "it says already what goes"),
        ];
        for (present, desired, removed, expected, why) in table {
            let present = present.map(content);
            assert_eq!(replacement_pending(present.as_ref(), &content(desired), &content(removed)), expected, "{why}");
        }
    }
}
