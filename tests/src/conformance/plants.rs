//! Faults in memkube or in its transport, each of which the table must detect: a fault that is not detected shows a gap in the
//! table.

mod answer;
mod door;
mod rules;
mod watch;

use super::servers;
use kube::Client;
use memkube::MemKube;
use std::sync::Arc;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A fault.
#[derive(Clone, Copy, Debug)]
pub struct Plant {
    /// Description of the fault.
    pub name: &'static str,
    /// Theme of the table that is played first, because it should detect the fault.
    pub theme: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Fault in the rules of the kinds.
    Rules(rules::Slip),
    /// Fault in what watches and reads show.
    Seen(watch::Slip),
    /// The server never drops its history.
    Remembers,
    /// The server does not clean up.
    Cleaning(Cleaning),
    /// Fault in how memkube reads a request.
    Door(door::Change),
    /// Fault in the answer that a client gets.
    Answer(answer::Change),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleaning {
    KeepsNamespaces,
    KeepsGarbage,
    LosesDeletions,
}

/// Faults of the controllers that clean up.
const CLEANING: [(&str, Cleaning); 3] = [
    ("deleted namespaces stay", Cleaning::KeepsNamespaces),
    ("what has no owner stays", Cleaning::KeepsGarbage),
    ("what is cleaned up is not told", Cleaning::LosesDeletions),
];

/// Servers on which a fault must be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// Servers that run alone.
    Usual,
    /// Servers that soon drop their history.
    Forgetful,
    /// Servers beside which controllers delete objects.
    Cleaned,
}

#[must_use]
pub fn all() -> Vec<Plant> {
    let rules = rules::ALL.iter().map(|(name, theme, slip)| Plant { name, theme, kind: Kind::Rules(*slip) });
    let seen = watch::ALL.iter().map(|(name, theme, slip)| Plant { name, theme, kind: Kind::Seen(*slip) });
    let remembers = Plant { name: "nothing is ever gone", theme: "expired", kind: Kind::Remembers };
    let door = door::ALL.iter().map(|(name, theme, change)| Plant { name, theme, kind: Kind::Door(*change) });
    let answer = answer::ALL.iter().map(|(name, theme, change)| Plant { name, theme, kind: Kind::Answer(*change) });
    let cleaning = CLEANING.map(|(name, slip)| Plant { name, theme: "cleaned", kind: Kind::Cleaning(slip) });
    rules.chain(seen).chain([remembers]).chain(cleaning).chain(door).chain(answer).collect()
}

impl Plant {
    /// Servers on which the table must detect it.
    #[must_use]
    pub fn servers(&self) -> Servers {
        match self.kind {
            Kind::Remembers => Servers::Forgetful,
            Kind::Cleaning(_) => Servers::Cleaned,
            _ => Servers::Usual,
        }
    }

    /// Part that has the fault, for messages: memkube itself, or its transport.
    #[must_use]
    pub fn place(&self) -> &'static str {
        match self.kind {
            Kind::Rules(_) | Kind::Seen(_) | Kind::Remembers | Kind::Cleaning(_) => "in memkube",
            Kind::Door(_) => "in the request at its door",
            Kind::Answer(_) => "in the answer at its door",
        }
    }

    /// A client of a memkube that has the fault.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let server: MemKube = match self.kind {
            Kind::Cleaning(slip) => {
                servers::ours_cleaned_by(slip != Cleaning::KeepsNamespaces, slip != Cleaning::KeepsGarbage).await?
            }
            _ => servers::ours().await?,
        };
        let admin = servers::admin();
        Ok(match self.kind {
            Kind::Rules(slip) => {
                server.wrap_rules(|definition, rules| rules::slipping(slip, definition, rules));
                server.client(admin)
            }
            Kind::Seen(slip) => {
                server.set_faults(Some(Arc::new(watch::Slipping(slip))));
                server.client(admin)
            }
            Kind::Cleaning(Cleaning::LosesDeletions) => {
                server.set_faults(Some(Arc::new(watch::Slipping(watch::Slip::LosesDeletions))));
                server.client(admin)
            }
            Kind::Remembers | Kind::Cleaning(_) => server.client(admin),
            Kind::Door(change) => Client::new(door::Door::new(server.service(admin), change), "default"),
            Kind::Answer(change) => Client::new(answer::Door::new(server.service(admin), change), "default"),
        })
    }
}
