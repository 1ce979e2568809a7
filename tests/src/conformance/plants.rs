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
    /// In what memkube takes of a request.
    Door(door::Change),
    /// In what a client gets of its answer.
    Answer(answer::Change),
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Plant> {
    let rules = rules::ALL.iter().map(|(name, theme, slip)| Plant { name, theme, kind: Kind::Rules(*slip) });
    let seen = watch::ALL.iter().map(|(name, theme, slip)| Plant { name, theme, kind: Kind::Seen(*slip) });
    let remembers = Plant { name: "nothing is ever gone", theme: "expired", kind: Kind::Remembers };
    let door = door::ALL.iter().map(|(name, theme, change)| Plant { name, theme, kind: Kind::Door(*change) });
    let answer = answer::ALL.iter().map(|(name, theme, change)| Plant { name, theme, kind: Kind::Answer(*change) });
    rules.chain(seen).chain([remembers]).chain(door).chain(answer).collect()
}

impl Plant {
    /// Whether it is to be noticed by what is asked of servers that forget what was soon.
    #[must_use]
    pub fn is_of_forgetful_servers(&self) -> bool {
        matches!(self.kind, Kind::Remembers)
    }

    /// What is changed, for people: memkube itself, or what goes through its door.
    #[must_use]
    pub fn place(&self) -> &'static str {
        match self.kind {
            Kind::Rules(_) | Kind::Seen(_) | Kind::Remembers => "in memkube",
            Kind::Door(_) => "in the request at its door",
            Kind::Answer(_) => "in the answer at its door",
        }
    }

    /// A client of a memkube that has the fault.
    ///
    /// # Errors
    /// Where memkube does not start.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let server: MemKube = servers::ours().await?;
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
            Kind::Remembers => server.client(admin),
            Kind::Door(change) => Client::new(door::Door::new(server.service(admin), change), "default"),
            Kind::Answer(change) => Client::new(answer::Door::new(server.service(admin), change), "default"),
        })
    }
}
