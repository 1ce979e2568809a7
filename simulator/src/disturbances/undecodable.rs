//! An object in the hub that the agents cannot decode for a while. In the end it is deleted, so that its agent writes it again.

use super::{Dice, Disturbance, Kind};
use crate::users::{delete, merge};
use crate::world::World;
use fastrand::Rng;
use fleetnet_core::model::{Kind as ObjectKind, Object};
use futures::future::LocalBoxFuture;
use memkube::{Call, Object as Json};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind =
    Kind { name: "undecodable", weight: 2, seconds: 5..=90, make, is_slow: true, is_change: true };

/// Annotation of the simulator's own patch, so that [`Disturbance::mutate`] breaks only this object.
const BREAK: &str = "simulator/break";

#[derive(Debug)]
struct Undecodable {
    kind: ObjectKind,
    dice: Dice,
    broken: Mutex<Option<String>>,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let kinds = [
        ObjectKind::EndpointSliceExport,
        ObjectKind::EndpointSliceImport,
        ObjectKind::InternalServiceExport,
        ObjectKind::InternalServiceImport,
    ];
    Arc::new(Undecodable { kind: kinds[rng.usize(..4)], dice: Dice::new(rng), broken: Mutex::default() })
}

/// Returns the field in `spec` that names the source object.
fn reference(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::InternalServiceExport => "serviceReference",
        ObjectKind::InternalServiceImport => "serviceImportReference",
        _ => "endpointSliceReference",
    }
}

impl Disturbance for Undecodable {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            // An object that is being deleted stays decodable.
            let may_break = |object: &Object| object.kind() == self.kind && !object.meta().deleting;
            let all: Vec<_> = world.objects(Place::Hub).into_iter().filter(may_break).collect();
            let Some(object) = self.dice.fork().choice(&all) else { return Ok(()) };
            let name = &object.meta().name;
            let path = format!("{}/{}", name.namespace, name.name);
            let patch = json!({"metadata": {"annotations": {BREAK: "true"}}});
            *self.broken.lock() = Some(path.clone());
            merge(world, Place::Hub, self.kind, &path, "", patch).await
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let Some(path) = self.broken.lock().clone() else { return Ok(()) };
            delete(world, Place::Hub, self.kind, &path).await
        })
    }

    fn mutate(&self, _: Place, _: &Call, object: &mut Json) -> bool {
        let annotations = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
        let marked = annotations.and_then(Value::as_object_mut).and_then(|annotations| annotations.remove(BREAK));
        if marked.is_none() {
            return false;
        }
        let field = object.get_mut("spec").and_then(|spec| spec.get_mut(reference(self.kind)));
        let Some(Value::Object(field)) = field else { return false };
        field.insert("name".to_owned(), "".into());
        true
    }
}
