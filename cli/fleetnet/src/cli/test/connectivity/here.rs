//! Connections from this machine.

use super::pod::INTERRUPTED;
use crate::limits::{CONNECT, CONNECTIONS_AT_ONCE};
use diagnosis::connectivity::{Outcome, Outcomes, Target, parse};
use fleetnet_runtime::process::shutdown::Shutdown;
use futures::StreamExt as _;
use std::io::{Error, ErrorKind};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Connects to all targets, until a signal stops the command.
pub(super) async fn connect(targets: &[Target], shutdown: &Shutdown) -> Outcomes {
    let tried = targets.iter().map(async |target| {
        tokio::select! {
            biased;
            () = shutdown.requested() => None,
            outcome = one(target) => Some((target.clone(), outcome)),
        }
    });
    let tried = futures::stream::iter(tried).buffer_unordered(CONNECTIONS_AT_ONCE);
    let mut outcomes: Outcomes = tried.filter_map(async |tried| tried).collect().await;
    for (target, missing) in parse("", targets, INTERRUPTED) {
        outcomes.entry(target).or_insert(missing);
    }
    outcomes
}

async fn one(target: &Target) -> Outcome {
    match timeout(CONNECT, TcpStream::connect((target.host.as_str(), target.port))).await {
        Ok(Ok(_)) => Outcome::Connected,
        Ok(Err(error)) => outcome(&error),
        Err(_) => Outcome::TimedOut,
    }
}

fn outcome(error: &Error) -> Outcome {
    match error.kind() {
        ErrorKind::ConnectionRefused => Outcome::Refused,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable => Outcome::NoRoute,
        ErrorKind::TimedOut => Outcome::TimedOut,
        _ => Outcome::NotTested(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnosis::connectivity::By;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn targets_of_this_machine_connect_refuse_or_are_not_tested_after_a_signal() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let target =
            |port| Target { by: By::Address, host: "127.0.0.1".to_owned(), port, port_names: [String::new()].into() };
        let targets = [target(listener.local_addr().unwrap().port()), target(1)];
        let (trigger, shutdown) = Shutdown::new();
        let outcomes = connect(&targets, &shutdown).await;
        assert_eq!([&outcomes[&targets[0]], &outcomes[&targets[1]]], [&Outcome::Connected, &Outcome::Refused]);
        trigger.request();
        let outcomes = connect(&targets, &shutdown).await;
        assert!(
            outcomes.values().all(|outcome| *outcome == Outcome::NotTested(INTERRUPTED.to_owned())),
            "{outcomes:?}"
        );
    }

    #[test]
    fn errors_have_outcomes() {
        let table = [
            (ErrorKind::HostUnreachable, Outcome::NoRoute),
            (ErrorKind::NetworkUnreachable, Outcome::NoRoute),
            (ErrorKind::AddrNotAvailable, Outcome::NoRoute),
            (ErrorKind::ConnectionRefused, Outcome::Refused),
            (ErrorKind::TimedOut, Outcome::TimedOut),
        ];
        for (kind, expected) in table {
            assert_eq!(outcome(&Error::from(kind)), expected);
        }
        assert!(matches!(outcome(&Error::from(ErrorKind::PermissionDenied)), Outcome::NotTested(_)));
    }
}
