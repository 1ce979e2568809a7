//! Changes of endpoints until the user stops the sandbox, and the keys with which a user breaks something meanwhile.

use super::{Scene, user};
use crate::limits::{PATIENCE, RESTART};
use crate::sandbox::event::Event;
use crate::sandbox::view::{Key, Keys};
use tokio::time::{Instant, sleep_until};

/// Name of the steps that keys cause.
const KEYS: &str = "keys";

/// Faults that a user has caused by keys.
#[derive(Default)]
struct Broken {
    is_paused: bool,
    is_hub_down: bool,
    /// Member whose agent is down, and the time of its restart.
    down: Option<(usize, Instant)>,
    /// Number of agents that were killed.
    kills: usize,
}

impl Scene<'_> {
    /// Changes endpoints until this future is dropped. Continues after a failure, because a user may change the same
    /// objects.
    pub(crate) async fn change_for_ever(&mut self, keys: &mut Keys) {
        self.patience = PATIENCE;
        let mut ticks = self.ticks();
        let mut broken = Broken::default();
        keys.forget();
        loop {
            let restart = broken.down;
            let done = tokio::select! {
                _ = ticks.tick(), if !broken.is_paused => self.next_change(broken.is_hub_down).await,
                key = keys.next() => self.press(key, &mut broken).await,
                () = sleep_until(restart.map_or_else(Instant::now, |(_, at)| at)), if restart.is_some() => {
                    broken.down = None;
                    match restart {
                        Some((member, _)) => self.fleet.restart_agent(member).await,
                        None => Ok(()),
                    }
                }
            };
            if let Err(error) = done {
                self.stage.emit(Event::Trouble { change: self.changes, why: user::describe_error(&error) }).await;
            }
        }
    }

    /// Makes the next change. While the hub is down it does not arrive, so nobody waits for it.
    async fn next_change(&mut self, is_hub_down: bool) -> anyhow::Result<()> {
        if is_hub_down {
            let (_, _, address) = self.begin_change().await?;
            self.watches.instruct(|world| world.take_arrivals(&address));
            return Ok(());
        }
        self.make_change().await.map(drop)
    }

    async fn press(&self, key: Key, broken: &mut Broken) -> anyhow::Result<()> {
        match key {
            Key::Pause => {
                broken.is_paused = !broken.is_paused;
                self.stage.emit(Event::Paused { paused: broken.is_paused }).await;
            }
            Key::Kill if broken.down.is_none() => {
                let member = self.members() - 1 - broken.kills % self.members();
                broken.kills += 1;
                broken.down = Some((member, Instant::now() + RESTART));
                self.fleet.kill_agent(member).await;
            }
            Key::Kill => {}
            Key::Hub if broken.is_hub_down => {
                broken.is_hub_down = false;
                self.fleet.mend_hub().await?;
            }
            Key::Hub => {
                broken.is_hub_down = true;
                self.fleet.cut_hub().await?;
                let text = "the hub is disconnected; changes go on, and arrive when it is back (key h)".to_owned();
                self.stage.emit(Event::Step { scenario: KEYS, text }).await;
            }
        }
        Ok(())
    }
}
