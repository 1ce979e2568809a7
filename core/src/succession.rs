//! Make before break: what one source says of one Service may take another shape (its slices are made anew with other
//! ports, its endpoints move from one slice to another), and at no moment may less of it stand than before and after.
//!
//! So a slice's withdrawal waits while another slice of the same Service and source is still to be written on the same
//! side, and stays away where that is refused. Each hop keeps to this by itself: the exporter, the hub for each importer,
//! the importer. Only what takes away waits, and only for what adds, so nothing ever waits in a circle.

use crate::model::{Endpoint, SliceContent};

/// Whether a slice that is to say `wanted` and says `held` (nothing where it does not stand) has still to take over from
/// one that says `going` and is to say nothing.
pub(crate) fn awaited(held: Option<&SliceContent>, wanted: &SliceContent, going: &SliceContent) -> bool {
    if going.endpoints.is_empty() || wanted.endpoints.is_empty() || going.address_type != wanted.address_type {
        return false;
    }
    let Some(held) = held else { return true };
    if held.endpoints.is_empty() {
        return true;
    }
    // Other endpoints of it come and go without delaying the withdrawal, however often that is.
    let says = |list: &[Endpoint], endpoint: &Endpoint| list.iter().any(|other| other.addresses == endpoint.addresses);
    let moves = |endpoint: &Endpoint| says(&going.endpoints, endpoint) && !says(&held.endpoints, endpoint);
    held.endpoints != wanted.endpoints && wanted.endpoints.iter().any(moves)
}

/// Whether a change takes away all that stands.
pub(crate) fn empties(held: &SliceContent, wanted: &SliceContent) -> bool {
    wanted.endpoints.is_empty() && !held.endpoints.is_empty()
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

    #[test]
    fn a_slice_of_the_other_address_family_takes_nothing_over() {
        let six = SliceContent { address_type: AddressType::IPv6, ..content(&["b"]) };
        assert!(!awaited(None, &six, &content(&["a"])));
        assert!(awaited(None, &content(&["b"]), &content(&["a"])));
    }

    #[test]
    fn an_endpoint_is_the_same_whatever_is_said_of_it_beside_its_addresses() {
        let mut moving = content(&["a", "b"]);
        moving.endpoints[0].zone = Some("zone-1".into());
        assert!(awaited(Some(&content(&["b"])), &moving, &content(&["a"])));
    }

    #[test]
    fn a_slice_is_awaited_until_it_has_taken_over() {
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
        for (held, wanted, going, expected, why) in table {
            let held = held.map(content);
            assert_eq!(awaited(held.as_ref(), &content(wanted), &content(going)), expected, "{why}");
        }
    }
}
