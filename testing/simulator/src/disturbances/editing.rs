//! Somebody edits objects of the agents in one cluster: their labels, annotations or content. Agents restore what they
//! wrote.

use super::{Dice, Disturbance, Kind, a_place};
use crate::users::merge;
use crate::world::World;
use fastrand::Rng;
use fleetnet_core::model::{Kind as ObjectKind, Object};
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("editing", 4, 1..=5, make).changing();

#[derive(Clone, Copy, Debug)]
enum What {
    Labels,
    Annotations,
    Content,
}

#[derive(Debug)]
struct Editing {
    place: Place,
    what: What,
    /// True to edit all objects of the kind.
    is_whole: bool,
    dice: Dice,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let what = [What::Labels, What::Annotations, What::Content][rng.usize(..3)];
    Arc::new(Editing { place: a_place(rng), what, is_whole: rng.bool(), dice: Dice::new(rng) })
}

/// Returns a patch, and the subresource that it is for.
fn edit(what: What, kind: ObjectKind) -> (&'static str, Value) {
    match (what, kind) {
        (What::Labels, _) => ("", json!({"metadata": {"labels": null}})),
        (What::Annotations, _) => ("", json!({"metadata": {"annotations": null}})),
        (What::Content, ObjectKind::EndpointSlice) => ("", json!({"endpoints": []})),
        (What::Content, ObjectKind::EndpointSliceExport | ObjectKind::EndpointSliceImport) => {
            ("", json!({"spec": {"endpoints": []}}))
        }
        (What::Content, ObjectKind::Service | ObjectKind::InternalServiceExport) => {
            ("", json!({"spec": {"ports": [{"name": "edited", "port": 1, "protocol": "TCP", "targetPort": 1}]}}))
        }
        (What::Content, _) => ("status", json!({"status": {"clusters": [], "ports": []}})),
    }
}

impl Disturbance for Editing {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let all = world.objects_of_agents(self.place);
            let Some(first) = self.dice.fork().choice(&all).cloned() else { return Ok(()) };
            let same = |object: &&Object| {
                object.kind() == first.kind() && (self.is_whole || object.meta().name == first.meta().name)
            };
            for object in all.iter().filter(same) {
                let name = &object.meta().name;
                let (subresource, patch) = edit(self.what, object.kind());
                merge(world, self.place, object.kind(), &name.to_string(), subresource, patch).await?;
            }
            Ok(())
        })
    }
}
