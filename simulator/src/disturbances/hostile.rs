//! A member whose credentials are stolen: somebody writes forged objects to its namespace in the hub. In the end they are deleted.

use super::{Dice, Disturbance, Kind};
use crate::world::{World, hub_namespace};
use fastrand::Rng;
use fleetnet_core::model::{Kind as ObjectKind, Object};
use futures::future::LocalBoxFuture;
use histories::users::MEMBERS;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use sim::fleet::Place;
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("hostile", 2, 5..=120, make).changing();

#[derive(Debug)]
struct Hostile {
    member: usize,
    dice: Dice,
}

fn make(rng: &mut Rng) -> Arc<dyn Disturbance> {
    Arc::new(Hostile { member: rng.usize(..MEMBERS), dice: Dice::new(rng) })
}

/// Prefix of the names of forged objects.
const FORGED: &str = "forged-";

impl Disturbance for Hostile {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let mut rng = self.dice.fork();
            let exports: Vec<Object> = world.objects(Place::Hub);
            let exports: Vec<&Object> =
                exports.iter().filter(|object| object.kind() == ObjectKind::EndpointSliceExport).collect();
            let Some(victim) = rng.choice(&exports) else { return Ok(()) };
            // A copy of somebody's export in the member's own namespace, under the same name or another one.
            let name = &victim.meta().name;
            let victims = world.api(Place::Hub, ObjectKind::EndpointSliceExport, &name.namespace);
            let Some(mut forged) = victims.get_opt(&name.name).await? else { return Ok(()) };
            let forged_name = if rng.bool() { name.name.to_string() } else { format!("{FORGED}{}", rng.u16(..)) };
            forged.metadata = kube::api::ObjectMeta {
                name: Some(forged_name),
                annotations: Some([("forged".to_owned(), "true".to_owned())].into()),
                ..Default::default()
            };
            forged.data["spec"]["endpoints"] = json!([{"addresses": [format!("10.66.0.{}", rng.u8(1..))]}]);
            let own = world.api(Place::Hub, ObjectKind::EndpointSliceExport, &hub_namespace(self.member));
            match own.create(&PostParams::default(), &forged).await {
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                answer => Ok(answer.map(drop)?),
            }
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let own = world.api(Place::Hub, ObjectKind::EndpointSliceExport, &hub_namespace(self.member));
            for object in own.list(&Default::default()).await? {
                let is_forged = object.metadata.annotations.is_some_and(|all| all.contains_key("forged"));
                if let (true, Some(name)) = (is_forged, object.metadata.name) {
                    match own.delete(&name, &DeleteParams::default()).await {
                        Err(kube::Error::Api(status)) if status.code == 404 => {}
                        answer => drop(answer?),
                    }
                }
            }
            Ok(())
        })
    }
}
