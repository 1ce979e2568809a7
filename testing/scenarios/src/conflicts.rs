//! Scenarios of several clusters that export one Service. Users see the accepted export, and a conflict ends when its
//! cause ends.

use crate::environment::{Backend, Environment};
use crate::ledger::counts;
use crate::rich;
use fleetnet_api::crd::ServiceExport;
use harness::user::User;
use k8s_openapi::api::core::v1::Service;
use serde_json::json;
use std::collections::BTreeMap;

/// Also rules F6, H8, H10.
pub async fn a_conflict_is_reported_with_its_winner_and_clears_on_the_event_that_ends_it(
    env: Environment<impl Backend>,
) -> anyhow::Result<()> {
    let (first, second) = (env.user(0), env.user(1));
    let [one, other] = [&env.members[0].cluster_id, &env.members[1].cluster_id];
    env.export_and_import(&["10.1.0.1"]).await?;

    let mark = env.backend.mark().await?;
    second.create_service_with_port("app", 81).await?;
    second.create_slice("app", "app-1", &["10.2.0.1"]).await?;
    second.export("app").await?;
    second.sees_export("app", "Conflict", "True", "ConflictFound").await?;
    let in_hub = User::new(env.backend.hub(), &env.members[1].hub_namespace);
    let why = format!("only {other} exports http 81/TCP; only {one} exports http 80/TCP");
    assert_eq!(in_hub.sees_event("InternalServiceExport", "ConflictFound", &why).await?, 1);
    assert_eq!(second.sees_event("ServiceExport", "ConflictFound", "the winner").await?, 1);
    first.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    second.sees("app", &["10.1.0.1"]).await?;
    assert_eq!(env.ledger(&mark).await?, conflict(&env));

    // Change the port of the conflicted export to the accepted export's port: the conflict ends.
    let with_port = |port: u16| json!({"spec": {"ports": [{"name": "http", "port": port, "targetPort": 8080}]}});
    second.merge::<Service>("app", with_port(80)).await?;
    second.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    second.sees("app", &["10.1.0.1", "10.2.0.1"]).await?;

    // Let time pass, so that the two changes of ports have different times: on a paused clock, the call of `mark`
    // advances the clock. The export whose ports changed last is conflicted until the other export is removed.
    let _ = env.backend.mark().await?;
    first.merge::<Service>("app", with_port(82)).await?;
    first.sees_export("app", "Conflict", "True", "ConflictFound").await?;
    second.sees("app", &["10.2.0.1"]).await?;
    second.sees_derived_port("app", 80).await?;
    second.delete::<ServiceExport>("app").await?;
    first.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    second.sees_derived_port("app", 82).await?;
    second.sees("app", &["10.1.0.1"]).await?;

    // An export of a headless Service conflicts with an export of an ordinary Service.
    second.delete::<Service>("app").await?;
    let mut headless = rich::headless_service("app");
    headless["spec"]["ports"][0]["port"] = json!(82);
    second.create::<Service>(headless).await?;
    let mut export = rich::export_headless();
    export["metadata"]["name"] = json!("app");
    second.create::<ServiceExport>(export).await?;
    second.sees_export("app", "Conflict", "True", "ConflictFound").await?;
    let why = format!("{other}'s is headless, {one}'s is not headless");
    assert_eq!(in_hub.sees_event("InternalServiceExport", "ConflictFound", &why).await?, 1);
    first.delete::<ServiceExport>("app").await?;
    second.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
    second.sees("app", &["10.2.0.1"]).await.map(drop)
}

/// Returns the expected writes if the second member's export is conflicted from the start. The array has the writes in
/// the hub, in the first member and in the second member.
fn conflict<B>(env: &Environment<B>) -> [BTreeMap<String, usize>; 3] {
    let (loser, user) = (&env.members[1].hub_namespace, &env.namespace);
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
