//! Scenario: exports a Service with different ports from two members. The first export is accepted. The second export
//! gets the condition Conflict, until its member changes the port. By the standard API, both exports get the condition,
//! and the first one decides the port.

use crate::args::{Api, Scenario};
use crate::limits::ARRIVAL;
use crate::sandbox::event::Export;
use crate::sandbox::observe::address;
use crate::sandbox::scene::{Scene, WELL};

const SERVICE: &str = "shop";
/// Lowest number of an endpoint that this scenario creates. The address of an endpoint contains its number.
const FIRST: u16 = 50;

pub(super) async fn play(scene: &mut Scene<'_>) -> anyhow::Result<Vec<String>> {
    let name = Scenario::Conflict.name();
    let (first, second) = (0, 1);
    export_service(scene, first, 80).await?;
    scene.import(second, SERVICE).await?;
    let mut wrong = scene.all_as_expected(ARRIVAL).await;
    scene
        .step(name, format!("{} exports {SERVICE} with port 80, {} imports it", scene.name(first), scene.name(second)))
        .await;

    export_service(scene, second, 81).await?;
    let conflicted = Export { conflict: Some(true), ..WELL };
    scene.expected.exports.insert((second, SERVICE.to_owned()), conflicted.clone());
    if scene.fleet.api == Api::Mcs {
        scene.expected.exports.insert((first, SERVICE.to_owned()), conflicted);
    }
    scene.step(name, format!("{} exports it with port 81", scene.name(second))).await;
    wrong.extend(scene.all_as_expected(ARRIVAL).await);
    if wrong.is_empty() {
        let (first, second) = (scene.name(first), scene.name(second));
        let text = match scene.fleet.api {
            Api::Fleet => format!("{second} has the condition Conflict, {first} keeps the Service"),
            Api::Mcs => {
                format!("both have the condition Conflict, and clients reach only {first}, whose export is older")
            }
        };
        scene.step(name, text).await;
    }

    scene.set_port(second, SERVICE, 80).await?;
    for member in [first, second] {
        scene.expected.exports.insert((member, SERVICE.to_owned()), WELL);
    }
    scene.step(name, format!("{} changes its port to 80", scene.name(second))).await;
    wrong.extend(scene.all_as_expected(ARRIVAL).await);
    if wrong.is_empty() {
        scene.step(name, "the conflict is over, and the endpoints of both are imported".to_owned()).await;
    }
    Ok(wrong)
}

async fn export_service(scene: &mut Scene<'_>, member: usize, port: u16) -> anyhow::Result<()> {
    scene.create_service(member, SERVICE, port).await?;
    scene.create_slice(member, SERVICE, "shop-1", vec![address(member, FIRST)]).await?;
    scene.export(member, SERVICE).await
}
