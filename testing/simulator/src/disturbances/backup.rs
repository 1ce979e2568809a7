//! A hub that is restored from a backup while the agents run. The backup is made when the disturbance begins, and
//! restored when it ends. The resourceVersion is bumped in half of the cases. It is also bumped if agents could not
//! detect the restore otherwise (docs/contributors/reliability.md, "What is not promised"):
//!
//! - The hub was restored since the backup: agents may have seen the same resourceVersions with other changes.
//! - An agent cannot reach the hub now: it may reach the hub only when its resourceVersions are as high as before.

use super::{Disturbance, Kind, held};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use memkube::Backup;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("backup", 3, 5..=120, make);

struct OldHub {
    is_bumped: bool,
    /// Backup, and how often the hub had been restored before.
    backup: Mutex<Option<(Backup, u64)>>,
}

impl fmt::Debug for OldHub {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OldHub").field("is_bumped", &self.is_bumped).finish_non_exhaustive()
    }
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(OldHub { is_bumped: rng.bool(), backup: Mutex::default() })
}

impl Disturbance for OldHub {
    fn restores_the_hub(&self) -> bool {
        true
    }

    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async {
            *self.backup.lock() = Some((world.fleet.hub.memkube().backup(), world.restores));
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async {
            let backup = self.backup.lock().take();
            let hub = world.fleet.hub.memkube();
            let Some((backup, restores)) = backup else { return Ok(()) };
            if self.is_bumped || world.is_cut_off || world.restores > restores {
                hub.restore_bumped(&backup);
            } else {
                hub.restore(&backup);
            }
            world.restores += 1;
            held::release_hub(world).await
        })
    }
}
