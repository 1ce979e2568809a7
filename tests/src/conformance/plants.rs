//! Faults planted in memkube or at its door, each of which the table must notice: what is not noticed is not tested.

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
    /// What is wrong with a server that has it.
    pub name: &'static str,
    /// The theme of the table that is played first: there it should be noticed.
    pub theme: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// In the rules of the kinds.
    Rules(rules::Slip),
    /// In what its watches and reads show.
    Seen(watch::Slip),
    /// In that it never forgets, where the others do.
    Remembers,
    /// In that it does not clean up as the others do.
    Cleaning(Cleaning),
    /// In what memkube takes of a request.
    Door(door::Change),
    /// In what a client gets of its answer.
    Answer(answer::Change),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cleaning {
    KeepsNamespaces,
    KeepsGarbage,
    LosesDeletions,
}

/// Faults of what cleans up.
const CLEANING: [(&str, Cleaning); 3] = [
    ("deleted namespaces stay", Cleaning::KeepsNamespaces),
    ("what has no owner stays", Cleaning::KeepsGarbage),
    ("what is cleaned up is not told", Cleaning::LosesDeletions),
];

/// On which servers a fault is to be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// Those that run alone.
    Usual,
    /// Those that forget what was soon.
    Forgetful,
    /// Those beside which controllers delete.
    Cleaned,
}

/// All of them.
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
    /// Where it is to be noticed.
    #[must_use]
    pub fn servers(&self) -> Servers {
        match self.kind {
            Kind::Remembers => Servers::Forgetful,
            Kind::Cleaning(_) => Servers::Cleaned,
            _ => Servers::Usual,
        }
    }

    /// What is changed, for people: memkube itself, or what goes through its door.
    #[must_use]
    pub fn place(&self) -> &'static str {
        match self.kind {
            Kind::Rules(_) | Kind::Seen(_) | Kind::Remembers | Kind::Cleaning(_) => "in memkube",
            Kind::Door(_) => "in the request at its door",
            Kind::Answer(_) => "in the answer at its door",
        }
    }

    /// A client of a memkube that has the fault.
    ///
    /// # Errors
    /// Where memkube does not start.
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
