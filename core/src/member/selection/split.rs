//! Split of a port's traffic by weights. kube-proxy chooses evenly among all endpoints, so a cluster gets its share if
//! it has its share of the endpoints. Each importer takes other endpoints of a cluster, by rendezvous hashing, so that
//! all of them get load.

use crate::limits::SPLIT_SUMS;
use crate::model::{Address, Endpoint};
use crate::names::spread;
use fleetnet_types::ClusterId;

/// Place of an endpoint in the order in which an importer takes the endpoints of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(i64, Address);

impl Rank {
    /// Returns the rank of an endpoint; `None` without an address.
    pub(crate) fn of(importer: &ClusterId, endpoint: &Endpoint) -> Option<Self> {
        let address = endpoint.addresses.first()?;
        let hash = spread(&[importer.as_bytes(), address.to_string().as_bytes()], i64::MAX);
        Some(Self(hash, address.clone()))
    }
}

/// Returns how many endpoints of each cluster serve. `all` has the weight of each cluster, above 0, and its number of
/// endpoints, above 0. Each cluster has one at least.
pub(crate) fn sizes(all: &[(usize, usize)]) -> Vec<usize> {
    let total: usize = all.iter().map(|(weight, _)| *weight).sum();
    // So many endpoints of a cluster take part that none lacks some.
    let most = all.iter().map(|(weight, endpoints)| endpoints * total / weight).min().unwrap_or_default();
    let of = |sum: usize| all.iter().map(|(weight, _)| ((2 * sum * weight + total) / (2 * total)).max(1)).collect();
    let fits = |sizes: &Vec<usize>| sizes.iter().zip(all).all(|(size, (_, endpoints))| size <= endpoints);
    let error = |sizes: &Vec<usize>| {
        let sum: usize = sizes.iter().sum();
        let off = |(size, (weight, _)): (&usize, &(usize, usize))| (size * total).abs_diff(weight * sum);
        // Compared as a part of the sum, in millionths.
        sizes.iter().zip(all).map(off).max().unwrap_or_default() * 1_000_000 / (sum * total).max(1)
    };
    let smallest = most.saturating_sub(SPLIT_SUMS).max(1);
    let candidates = (smallest..=most.max(1)).rev().map(of).filter(fits);
    candidates.min_by_key(error).unwrap_or_else(|| vec![1; all.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;

    /// Also rule CS19.
    #[test]
    fn sizes_are_the_best_that_the_endpoints_allow() {
        property::for_any(property::cases(300), 30, &vec((1..1_000_usize, 1..60_usize), 1..5), |all| {
            let sizes = sizes(&all);
            assert!(sizes.iter().zip(&all).all(|(size, (_, endpoints))| (1..=*endpoints).contains(size)), "{sizes:?}");
            let (total, sum): (usize, usize) = (all.iter().map(|(weight, _)| weight).sum(), sizes.iter().sum());
            let off =
                |(size, (weight, _)): (&usize, &(usize, usize))| (100 * size / sum).abs_diff(100 * weight / total);
            let worst = sizes.iter().zip(&all).map(off).max().unwrap();
            let is_large = all.iter().all(|(weight, endpoints)| endpoints * total >= 20 * weight * all.len());
            assert!(worst <= 6 || !is_large, "{worst} points: {all:?} {sizes:?}");
            [(is_large, "many endpoints"), (!is_large, "few endpoints")]
        });
    }

    #[test]
    fn importers_take_endpoints_in_different_orders() {
        let endpoints: Vec<Endpoint> = (1..=20)
            .map(|pod| Endpoint { addresses: vec![format!("10.0.0.{pod}").as_str().into()], ..Endpoint::default() })
            .collect();
        let first = |importer: &str| {
            let ranks = endpoints.iter().filter_map(|it| Rank::of(&importer.into(), it));
            ranks.min().expect("there are endpoints")
        };
        let importers: Vec<String> = (0..100).map(|number| format!("member-{number}")).collect();
        let mut firsts: Vec<Rank> = importers.iter().map(|importer| first(importer)).collect();
        assert_eq!(firsts[0], first("member-0"));
        firsts.iter_mut().for_each(|rank| rank.0 = 0);
        firsts.sort();
        firsts.dedup();
        assert!(firsts.len() > 15, "{} of 20 endpoints are the first of an importer", firsts.len());
    }
}
