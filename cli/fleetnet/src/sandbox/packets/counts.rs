//! Outcomes of requests, by cluster: [`between`].

use crate::sandbox::event::Counts;
use ::packets::image::result::Totals;
use std::collections::BTreeMap;

/// Character between the name of a pod and its cluster, in the answers of the servers.
pub(super) const AT: char = '@';

/// Returns the outcomes between two counts of the same client.
pub(super) fn between(before: &Totals, after: &Totals) -> Counts {
    let mut answers_by_cluster = BTreeMap::new();
    for (name, server) in &after.servers {
        let earlier = before.servers.get(name).map_or(0, |server| server.answers);
        let cluster = name.rsplit_once(AT).map_or(name.as_str(), |(_, cluster)| cluster);
        *answers_by_cluster.entry(cluster.to_owned()).or_default() += server.answers - earlier;
    }
    let lost_by_kind = after.kinds.iter().map(|(kind, count)| {
        let earlier = before.kinds.get(kind).copied().unwrap_or_default();
        (kind.clone(), count - earlier)
    });
    Counts {
        requests: after.sent - before.sent,
        lost: after.lost - before.lost,
        lost_by_kind: lost_by_kind.filter(|(_, count)| *count > 0).collect(),
        answers_by_cluster,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::packets::image::result::Server;

    fn totals(lost: &[(&str, u64)], servers: &[(&str, u64)]) -> Totals {
        let kinds: BTreeMap<String, u64> = lost.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect();
        let answers = |count: u64| Server { answers: count, ..Server::default() };
        let servers: BTreeMap<_, _> =
            servers.iter().map(|(name, count)| ((*name).to_owned(), answers(*count))).collect();
        let lost = kinds.values().sum();
        let sent = lost + servers.values().map(|server| server.answers).sum::<u64>();
        Totals { sent, lost, kinds, servers, ..Totals::default() }
    }

    #[test]
    fn answers_count_for_the_cluster_of_their_pod() {
        let before = totals(&[("timeout", 2)], &[("app-1@member-1", 10), ("app-2@member-2", 10)]);
        let after = totals(
            &[("reset", 1), ("timeout", 2)],
            &[("app-1@member-1", 14), ("app-2@member-2", 10), ("app-3@member-1", 3)],
        );
        let expected = Counts {
            requests: 8,
            lost: 1,
            lost_by_kind: BTreeMap::from([("reset".to_owned(), 1)]),
            answers_by_cluster: BTreeMap::from([("member-1".to_owned(), 7), ("member-2".to_owned(), 0)]),
        };
        assert_eq!(between(&before, &after), expected);
        let none = Counts {
            answers_by_cluster: BTreeMap::from([("member-1".to_owned(), 0), ("member-2".to_owned(), 0)]),
            ..Counts::default()
        };
        assert_eq!(between(&after, &after), none);
    }
}
