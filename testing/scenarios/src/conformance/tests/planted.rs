//! Faults planted in memkube or in its transport. The cases in `table/` must detect each fault. An undetected fault
//! shows that a case is missing.

mod answer;
mod request;
mod rules;
mod watch;

use crate::conformance::servers;
use kube::Client;
use memkube::MemKube;
use std::sync::Arc;

/// Fault that the tests plant, to check that the cases in `table/` detect it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlantedFault {
    pub(super) name: &'static str,
    /// File in `table/` that should detect the fault. The cases of this file run first.
    pub(super) theme: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Fault in the rules of memkube's kinds.
    Rules(rules::RuleFault),
    /// Fault in memkube's watches and reads.
    Seen(watch::WatchFault),
    /// Fault: the server keeps its watch history, so no watch gets a 410.
    Remembers,
    /// Fault: the server does not empty namespaces that are being deleted, or does not collect garbage.
    Cleaning(Cleaning),
    /// Fault in decoding a request.
    Request(request::Change),
    /// Fault in the response that a client gets from memkube.
    Answer(answer::Change),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleaning {
    KeepsNamespaces,
    KeepsGarbage,
    LosesDeletions,
}

/// Faults of the controllers that empty namespaces and collect garbage.
const CLEANING: [(&str, Cleaning); 3] = [
    ("deleted namespaces stay", Cleaning::KeepsNamespaces),
    ("what has no owner stays", Cleaning::KeepsGarbage),
    ("cleaned-up objects cause no events", Cleaning::LosesDeletions),
];

/// Kind of server on which a fault must be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Servers {
    /// Servers without controllers.
    Usual,
    /// Servers that soon drop their watch history.
    Forgetful,
    /// Servers with controllers that delete objects.
    Cleaned,
}

pub(super) fn all() -> Vec<PlantedFault> {
    let rules = rules::ALL.iter().map(|(name, theme, fault)| PlantedFault { name, theme, kind: Kind::Rules(*fault) });
    let seen = watch::ALL.iter().map(|(name, theme, fault)| PlantedFault { name, theme, kind: Kind::Seen(*fault) });
    let remembers = PlantedFault { name: "nothing is ever gone", theme: "expired", kind: Kind::Remembers };
    let request =
        request::ALL.iter().map(|(name, theme, change)| PlantedFault { name, theme, kind: Kind::Request(*change) });
    let answer =
        answer::ALL.iter().map(|(name, theme, change)| PlantedFault { name, theme, kind: Kind::Answer(*change) });
    let cleaning = CLEANING.map(|(name, fault)| PlantedFault { name, theme: "cleaned", kind: Kind::Cleaning(fault) });
    rules.chain(seen).chain([remembers]).chain(cleaning).chain(request).chain(answer).collect()
}

impl PlantedFault {
    /// Returns the kind of server on which the cases must detect the fault.
    pub(super) fn servers(&self) -> Servers {
        match self.kind {
            Kind::Remembers => Servers::Forgetful,
            Kind::Cleaning(_) => Servers::Cleaned,
            _ => Servers::Usual,
        }
    }

    /// Returns the place of the fault for messages: memkube's rules, the request or the response.
    pub(super) fn place(&self) -> &'static str {
        match self.kind {
            Kind::Rules(_) | Kind::Seen(_) | Kind::Remembers | Kind::Cleaning(_) => "in memkube",
            Kind::Request(_) => "in the request",
            Kind::Answer(_) => "in the answer",
        }
    }

    /// Returns a client of a memkube that has the fault.
    pub(super) async fn client(&self) -> anyhow::Result<Client> {
        let server: MemKube = match self.kind {
            Kind::Cleaning(fault) => {
                servers::ours_cleaned_by(servers::Cleaners {
                    namespaces: fault != Cleaning::KeepsNamespaces,
                    garbage: fault != Cleaning::KeepsGarbage,
                })
                .await?
            }
            _ => servers::ours().await?,
        };
        let admin = servers::admin();
        Ok(match self.kind {
            Kind::Rules(fault) => {
                server.wrap_rules(|definition, rules| rules::with_fault(fault, definition, rules));
                server.client(admin)
            }
            Kind::Seen(fault) => {
                server.set_faults(Some(Arc::new(watch::FaultyWatches(fault))));
                server.client(admin)
            }
            Kind::Cleaning(Cleaning::LosesDeletions) => {
                server.set_faults(Some(Arc::new(watch::FaultyWatches(watch::WatchFault::LosesDeletions))));
                server.client(admin)
            }
            Kind::Remembers | Kind::Cleaning(_) => server.client(admin),
            Kind::Request(change) => {
                Client::new(request::FaultyRequests::new(server.service(admin), change), "default")
            }
            Kind::Answer(change) => Client::new(answer::FaultyAnswers::new(server.service(admin), change), "default"),
        })
    }
}
