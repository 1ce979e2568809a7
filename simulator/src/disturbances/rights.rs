//! A namespace of the hub whose annotations allow only some members to export or import. In the end it allows all.

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

pub(crate) const KIND: Kind =
    Kind { name: "rights", weight: 2, seconds: 5..=120, make, is_slow: false, is_change: true };

#[derive(Debug)]
struct Rights {
    annotation: &'static str,
    allowed: String,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let annotation = if rng.bool() { annotations::EXPORTERS } else { annotations::IMPORTERS };
    let allowed = (1..=MEMBERS).filter(|_| rng.bool()).map(|number| format!("member-{number}"));
    Arc::new(Rights { annotation, allowed: allowed.collect::<Vec<_>>().join(",") })
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
        Box::pin(self.set(world, Value::Null))
    }
}
