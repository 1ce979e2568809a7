//! Several clusters export one Service: users see the winner, and a conflict ends with its cause.

#![allow(missing_docs, clippy::missing_errors_doc, reason = "the name of a scene says what must hold")]

use crate::scenes::ledger::counts;
use crate::scenes::rich;
use crate::stage::{Ground, Stage};
use crate::user::User;
use fleetnet_api::crd::ServiceExport;
use k8s_openapi::api::core::v1::Service;
use serde_json::json;
use std::collections::BTreeMap;

pub async fn a_conflict_is_told_with_its_winner_and_clears_on_the_event_that_ends_it(
    stage: Stage<impl Ground>,
) -> anyhow::Result<()> {
    let (first, second) = (stage.user(0), stage.user(1));
    let [one, other] = [&stage.members[0].cluster_id, &stage.members[1].cluster_id];
    stage.export_and_import(&["10.1.0.1"]).await?;

    let mark = stage.ground.mark().await?;
    second.create_service_with_port("app", 81).await?;
    second.create_slice("app", "app-1", &["10.2.0.1"]).await?;
    second.export("app").await?;
    second.sees_export("app", "Conflict", "True", "ConflictFound").await?;
    let in_hub = User::new(stage.ground.hub(), &stage.members[1].hub_namespace);
    let why = format!("only {other} offers http 81/TCP; only {one} offers http 80/TCP");
    assert_eq!(in_hub.is_told("InternalServiceExport", "ConflictFound", &why).await?, 1);
    assert_eq!(second.is_told("ServiceExport", "ConflictFound", "the winner").await?, 1);
    first.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    second.sees("app", &["10.1.0.1"]).await?;
    assert_eq!(stage.ledger(&mark).await?, conflict(&stage));

    // The loser gives way: it changes to the winner's port.
    let offer = |port: u16| json!({"spec": {"ports": [{"name": "http", "port": port, "targetPort": 8080}]}});
    second.merge::<Service>("app", offer(80)).await?;
    second.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    second.sees("app", &["10.1.0.1", "10.2.0.1"]).await?;

    // The export that changed last is in conflict until the other is removed. The mark lets time pass on a paused clock: two
    // changes at the same moment would tie.
    let _ = stage.ground.mark().await?;
    first.merge::<Service>("app", offer(82)).await?;
    first.sees_export("app", "Conflict", "True", "ConflictFound").await?;
    second.sees("app", &["10.2.0.1"]).await?;
    second.sees_derived_port("app", 80).await?;
    second.delete::<ServiceExport>("app").await?;
    first.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    second.sees_derived_port("app", 82).await?;
    second.sees("app", &["10.1.0.1"]).await?;

    // Exports of a headless and of another Service conflict too.
    second.delete::<Service>("app").await?;
    let mut headless = rich::headless_service("app");
    headless["spec"]["ports"][0]["port"] = json!(82);
    second.create::<Service>(headless).await?;
    let mut export = rich::export_headless();
    export["metadata"]["name"] = json!("app");
    second.create::<ServiceExport>(export).await?;
    second.sees_export("app", "Conflict", "True", "ConflictFound").await?;
    let why = format!("{other}'s is headless, {one}'s is not headless");
    assert_eq!(in_hub.is_told("InternalServiceExport", "ConflictFound", &why).await?, 1);
    first.delete::<ServiceExport>("app").await?;
    second.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    second.sees("app", &["10.2.0.1"]).await.map(drop)
}

/// Costs of an export that is in conflict from the start.
fn conflict<G>(stage: &Stage<G>) -> [BTreeMap<String, usize>; 3] {
    let (loser, user) = (&stage.members[1].hub_namespace, &stage.namespace);
    let of_hub = counts(&[
        (1, format!("create internalserviceexports in {loser} by member-agent")),
        (1, format!("patch internalserviceexports in {loser} by hub-agent")),
        (1, format!("patch internalserviceexports/status in {loser} by hub-agent")),
    ]);
    let of_loser = counts(&[
        (2, format!("patch serviceexports/status in {user} by member-agent")),
        (1, format!("patch serviceexports in {user} by member-agent")),
    ]);
    [of_hub, counts(&[]), of_loser]
}
