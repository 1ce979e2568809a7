//! Addresses of the importing cluster itself: those of its Services and of its API server, and the ranges that its
//! operator names. A client of an imported Service must not reach them under the name of another cluster's Service.

pub(crate) use super::special::translated;
use crate::ranges::{self, IpNet};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Use of the rule about the importing cluster's own addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnRanges {
    /// Slices of other clusters may have all addresses of this cluster.
    Off,
    /// Slices of other clusters have no addresses of this cluster's Services and API server, and none in these ranges.
    LeftOut(Vec<IpNet>),
}

impl Default for OwnRanges {
    fn default() -> Self {
        Self::LeftOut(Vec::new())
    }
}

/// Addresses of this cluster's Services and of its API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnAddresses {
    /// For each address: number of Services and of endpoints of the API server with this address.
    numbers: BTreeMap<IpAddr, u32>,
}

impl OwnAddresses {
    /// Replaces the addresses of an object. Returns the addresses that are new, and those that no object has any more.
    pub(crate) fn replace(&mut self, before: &[IpAddr], after: &[IpAddr]) -> Vec<IpAddr> {
        let mut turned = Vec::new();
        for address in after {
            let number = self.numbers.entry(*address).or_default();
            *number += 1;
            turned.extend((*number == 1).then_some(*address));
        }
        for address in before {
            let number = self.numbers.entry(*address).or_default();
            *number = number.saturating_sub(1);
            if *number == 0 {
                self.numbers.remove(address);
                turned.push(*address);
            }
        }
        turned
    }

    /// True if an address of another cluster's slice is one of this cluster.
    pub(crate) fn contains(&self, ranges: &OwnRanges, address: IpAddr) -> bool {
        let OwnRanges::LeftOut(ranges) = ranges else { return false };
        let address = translated(address);
        self.numbers.contains_key(&address) || ranges.iter().any(|range| ranges::contains(range, address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_own_while_any_object_has_it() {
        let (mut own, address) = (OwnAddresses::default(), [IpAddr::from([10, 0, 0, 1])]);
        let steps: [(&[IpAddr], &[IpAddr], bool, bool); 4] = [
            (&[], &address, true, true),
            (&[], &address, false, true), // a second object
            (&address, &[], false, true),
            (&address, &[], true, false),
        ];
        for (before, after, turned, is_own) in steps {
            let expected = if turned { address.to_vec() } else { Vec::new() };
            assert_eq!(own.replace(before, after), expected);
            assert_eq!(own.contains(&OwnRanges::default(), address[0]), is_own);
        }
    }
}
