//! Faults planted in memkube, each of which the table must notice: what is not noticed is not tested.

mod door;
mod rules;
mod watch;

use super::servers;
use kube::Client;
use memkube::{MemKube, User};
use std::sync::Arc;

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
    /// In what memkube takes of a request.
    Door(door::Change),
    /// In what its watches and reads show.
    Seen(watch::Slip),
}

/// All of them.
#[must_use]
pub fn all() -> Vec<Plant> {
    let rules = rules::ALL.iter().map(|(name, theme, slip)| Plant { name, theme, kind: Kind::Rules(*slip) });
    let door = door::ALL.iter().map(|(name, theme, change)| Plant { name, theme, kind: Kind::Door(*change) });
    let seen = watch::ALL.iter().map(|(name, theme, slip)| Plant { name, theme, kind: Kind::Seen(*slip) });
    rules.chain(door).chain(seen).collect()
}

impl Plant {
    /// A client of a memkube that has the fault.
    ///
    /// # Errors
    /// Where memkube does not start.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let server: MemKube = servers::ours().await?;
        let admin = User::new("admin");
        Ok(match self.kind {
            Kind::Rules(slip) => {
                server.wrap_rules(|definition, rules| rules::slipping(slip, definition, rules));
                server.client(admin)
            }
            Kind::Door(change) => Client::new(door::Door::new(server.service(admin), change), "default"),
            Kind::Seen(slip) => {
                server.set_faults(Some(Arc::new(watch::Slipping(slip))));
                server.client(admin)
            }
        })
    }
}
