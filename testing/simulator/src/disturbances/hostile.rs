//! A member whose credentials are stolen. Somebody writes a forged object to its namespace in the hub: the copy of an
//! export, a claim or an exported slice of any member, with other content. In the end the forged object is deleted.

use super::{Dice, Disturbance, Kind};
use crate::world::{World, hub_namespace};
use fastrand::Rng;
use fleetnet_core::model::Kind as ObjectKind;
use futures::future::LocalBoxFuture;
use histories::users::MEMBERS;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
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
pub const FORGED: &str = "forged-";

/// Kinds of the forged objects: all kinds that the role of a member agent can write, except MemberAgent.
const KINDS: [ObjectKind; 3] =
    [ObjectKind::EndpointSliceExport, ObjectKind::InternalServiceExport, ObjectKind::InternalServiceImport];

/// Replaces the content of an object.
fn forge(kind: ObjectKind, object: &mut Value, rng: &mut Rng) {
    match kind {
        ObjectKind::EndpointSliceExport => {
            object["spec"]["endpoints"] = json!([{"addresses": [format!("10.66.0.{}", rng.u8(1..))]}]);
        }
        ObjectKind::InternalServiceExport => {
            object["spec"]["ports"] = json!([{"name": "forged", "port": 66, "protocol": "TCP", "targetPort": 66}]);
        }
        // The copy of a claim, in the namespace of another member, is forged already.
        _ => {}
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
}

impl Disturbance for Hostile {
    fn begin<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let mut rng = self.dice.fork();
            let objects = world.objects(Place::Hub);
            let exports: Vec<_> = objects.iter().filter(|object| KINDS.contains(&object.kind())).collect();
            let Some(victim) = rng.choice(&exports) else { return Ok(()) };
            // A copy of somebody's object in the member's own namespace, under the same name or another one.
            let (kind, name) = (victim.kind(), &victim.meta().name);
            let Some(mut forged) = world.api(Place::Hub, kind, &name.namespace).get_opt(&name.name).await? else {
                return Ok(());
            };
            let forged_name = if rng.bool() { name.name.to_string() } else { format!("{FORGED}{}", rng.u16(..)) };
            forged.metadata = kube::api::ObjectMeta {
                name: Some(forged_name),
                annotations: Some([("forged".to_owned(), "true".to_owned())].into()),
                ..Default::default()
            };
            forge(kind, &mut forged.data, &mut rng);
            let own = world.api(Place::Hub, kind, &hub_namespace(self.member));
            match own.create(&PostParams::default(), &forged).await {
                // The object exists, or the namespace is gone or being deleted.
                Err(kube::Error::Api(status)) if [403, 404, 409].contains(&status.code) => Ok(()),
                answer => Ok(answer.map(drop)?),
            }
        })
    }

    fn end<'a>(&'a self, world: &'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            for kind in KINDS {
                let own = world.api(Place::Hub, kind, &hub_namespace(self.member));
                for object in own.list(&Default::default()).await? {
                    let is_forged = object.metadata.annotations.is_some_and(|all| all.contains_key("forged"));
                    if let (true, Some(name)) = (is_forged, object.metadata.name) {
                        match own.delete(&name, &DeleteParams::default()).await {
                            Err(kube::Error::Api(status)) if status.code == 404 => {}
                            answer => drop(answer?),
                        }
                    }
                }
            }
            Ok(())
        })
    }
}
