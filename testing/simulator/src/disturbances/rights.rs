//! A namespace of the hub whose annotations allow only some members to export or import, for a while or until the end.

use super::{Disturbance, Kind};
use crate::users::merge;
use crate::world::{WORK, World};
use fastrand::Rng;
use fleetnet_api::names::annotations;
use fleetnet_core::model::Kind as ObjectKind;
use futures::future::LocalBoxFuture;
use histories::users::MEMBERS;
use serde_json::{Value, json};
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("rights", 2, 5..=120, make).changing();

#[derive(Debug)]
struct Rights {
    annotation: &'static str,
    allowed: String,
    /// True if nobody removes the annotation again.
    stays: bool,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let annotation = if rng.bool() { annotations::EXPORTERS } else { annotations::IMPORTERS };
    let allowed = (1..=MEMBERS).filter(|_| rng.bool()).map(|number| format!("member-{number}"));
    let allowed = allowed.collect::<Vec<_>>().join(",");
    Arc::new(Rights { annotation, allowed, stays: rng.usize(..3) == 0 })
}

impl Rights {
    async fn set(&self, world: &World, value: Value) -> anyhow::Result<()> {
        let patch = json!({"metadata": {"annotations": {self.annotation: value}}});
        merge(world, Place::Hub, ObjectKind::Namespace, &format!("/{WORK}"), "", patch).await
    }
}

impl Disturbance for Rights {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(self.set(world, self.allowed.as_str().into()))
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async { if self.stays { Ok(()) } else { self.set(world, Value::Null).await } })
    }
}
