//! A hub that is restored from a backup while the agents run, with or without a bumped resourceVersion. The backup is made when
//! the disturbance begins, and restored when it ends.

use super::{Disturbance, Kind};
use crate::world::World;
use fastrand::Rng;
use futures::future::LocalBoxFuture;
use memkube::Backup;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

pub(crate) const KIND: Kind =
    Kind { name: "backup", weight: 3, seconds: 5..=120, make, is_slow: false, is_change: false };

struct OldHub {
    is_bumped: bool,
    backup: Mutex<Option<Backup>>,
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
            *self.backup.lock() = Some(world.fleet.hub.memkube().backup());
            Ok(())
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async {
            let backup = self.backup.lock().take();
            let hub = world.fleet.hub.memkube();
            match backup {
                Some(backup) if self.is_bumped => hub.restore_bumped(&backup),
                Some(backup) => hub.restore(&backup),
                None => {}
            }
            Ok(())
        })
    }
}
