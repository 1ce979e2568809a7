//! Lines about the requests of `--packets`.

use crate::sandbox::event::{Counts, Traffic};

/// Describes the client and the Service that it uses.
pub(super) fn traffic(traffic: &Traffic) -> String {
    let Traffic { service, exporters, importer, address, client, requests_per_second, command } = traffic;
    let exporters = exporters.join(", ");
    let line = format!(
        "{importer} imports {service} of {exporters} at {address}; its pod {client} sends {requests_per_second} requests a second"
    );
    match command {
        Some(command) => format!("{line}\n  one more request: {command}"),
        None => line,
    }
}

/// Describes the outcomes of one second.
pub(super) fn second(requests_per_second: u64, lost_so_far: u64, counts: &Counts) -> String {
    format!("{requests_per_second} requests/s, lost {}, so far {lost_so_far}; {}", lost(counts), split(counts))
}

/// Describes the outcome of a run with `--once`.
pub(super) fn rollout(cluster: &str, passed: bool, counts: &Counts) -> String {
    let passed = if passed { "passed" } else { "FAILED" };
    let (requests, lost) = (counts.requests, lost(counts));
    format!("{passed}: in a rolling update of {cluster}, of {requests} requests lost {lost}; {}", split(counts))
}

fn lost(counts: &Counts) -> String {
    let Counts { lost, lost_by_kind, .. } = counts;
    let kinds: Vec<String> = lost_by_kind.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    if kinds.is_empty() { lost.to_string() } else { format!("{lost} ({})", kinds.join(", ")) }
}

/// Describes the part of each cluster in the answers, in percent.
fn split(counts: &Counts) -> String {
    let all: u64 = counts.answers_by_cluster.values().sum();
    if all == 0 {
        return "no answers".to_owned();
    }
    let part = |(cluster, answers): (&String, &u64)| {
        let thousandths = (2000 * answers + all) / (2 * all);
        format!("{cluster} {}.{} %", thousandths / 10, thousandths % 10)
    };
    counts.answers_by_cluster.iter().map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(lost: &[(&str, u64)], answers: &[(&str, u64)]) -> Counts {
        let by_name = |all: &[(&str, u64)]| all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let sum = |all: &[(&str, u64)]| all.iter().map(|(_, count)| count).sum::<u64>();
        let requests = sum(lost) + sum(answers);
        Counts { requests, lost: sum(lost), lost_by_kind: by_name(lost), answers_by_cluster: by_name(answers) }
    }

    #[test]
    fn a_second_shows_requests_losses_and_the_split_by_cluster() {
        let table = [
            (
                counts(&[], &[("member-1", 98), ("member-2", 102)]),
                "200 requests/s, lost 0, so far 4; member-1 49.0 %, member-2 51.0 %",
            ),
            (
                counts(&[("refused", 3), ("timeout", 1)], &[("member-1", 2), ("member-2", 1)]),
                "200 requests/s, lost 4 (refused 3, timeout 1), so far 4; member-1 66.7 %, member-2 33.3 %",
            ),
            (
                counts(&[("timeout", 4)], &[("member-1", 0), ("member-2", 0)]),
                "200 requests/s, lost 4 (timeout 4), so far 4; no answers",
            ),
            (counts(&[], &[]), "200 requests/s, lost 0, so far 4; no answers"),
        ];
        for (counts, expected) in table {
            assert_eq!(second(200, 4, &counts), expected);
        }
    }

    #[test]
    fn the_outcome_of_a_rolling_update_is_one_line() {
        let well = counts(&[], &[("member-1", 1000), ("member-2", 1000)]);
        assert_eq!(
            rollout("member-1", true, &well),
            "passed: in a rolling update of member-1, of 2000 requests lost 0; member-1 50.0 %, member-2 50.0 %"
        );
        let badly = counts(&[("reset", 1)], &[("member-2", 7)]);
        assert_eq!(
            rollout("member-1", false, &badly),
            "FAILED: in a rolling update of member-1, of 8 requests lost 1 (reset 1); member-2 100.0 %"
        );
    }

    #[test]
    fn the_first_line_names_the_service_the_client_and_a_command() {
        let mut shown = Traffic {
            service: "work/app".to_owned(),
            exporters: vec!["member-1".to_owned(), "member-2".to_owned()],
            importer: "member-3".to_owned(),
            address: "10.96.7.1".to_owned(),
            client: "work/client".to_owned(),
            requests_per_second: 200,
            command: None,
        };
        let line = "member-3 imports work/app of member-1, member-2 at 10.96.7.1; its pod work/client sends 200 requests a second";
        assert_eq!(traffic(&shown), line);
        shown.command = Some("kubectl version".to_owned());
        assert_eq!(traffic(&shown), format!("{line}\n  one more request: kubectl version"));
    }
}
