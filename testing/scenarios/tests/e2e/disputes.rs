//! Tests of other writers that undo the agents' writes. Only real API servers record writers in
//! `metadata.managedFields`.

use fleetnet_api::crd::MultiClusterService;
use harness::eventually::{self, Deadline};
use harness::fleet::FLEET_SYSTEM;
use harness::limits::POLL;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{Patch, PatchParams};
use scenarios::environment::{Environment, FleetSpec, OnProcesses};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// Returns reason and message of the condition `Disputed`; `None` if its status is not True.
fn dispute_of(import: &MultiClusterService) -> Option<(&str, &str)> {
    let conditions = import.status.as_ref()?.conditions.as_ref()?;
    let disputed = conditions.iter().find(|condition| condition.type_ == "Disputed" && condition.status == "True")?;
    Some((&disputed.reason, &disputed.message))
}

/// Also rule R15.
#[test]
fn a_repeated_editor_of_an_imported_slice_is_named_by_field_manager_and_field() -> anyhow::Result<()> {
    harness::run(async {
        let env = Environment::<OnProcesses>::create(FleetSpec::of(2)).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        let importer = env.user(1);
        let imported = importer.sees("app", &["10.1.0.1"]).await?;
        let name = imported.into_values().next().and_then(|slice| slice.metadata.name).expect("one slice");
        let slices: Api<EndpointSlice> = Api::namespaced(env.members[1].client.clone(), FLEET_SYSTEM);
        let hints = json!({"forZones": [{"name": "zone-9"}]});
        let theirs = Patch::Merge(json!({"endpoints": [{"addresses": ["10.1.0.1"], "hints": hints}]}));
        let has_hints = |slice: &EndpointSlice| slice.endpoints.iter().flatten().any(|it| it.hints.is_some());

        // Undo each repair by the agent until the agent pauses its repairs.
        let deadline = Deadline::start();
        let mut repairs = 0;
        loop {
            slices
                .patch(&name, &PatchParams { field_manager: Some("rival".to_owned()), ..Default::default() }, &theirs)
                .await?;
            let undone = Deadline::after(Duration::from_secs(5));
            while has_hints(&slices.get(&name).await?) && undone.check().is_ok() {
                sleep(POLL).await;
            }
            if has_hints(&slices.get(&name).await?) {
                break;
            }
            repairs += 1;
            deadline.check()?;
        }
        // The agent pauses after 10 counted repairs. A repair counts if it has the same content as the agent's previous
        // write to the slice. The first repair may not count, because the agent's previous write is the create of the
        // slice. So there are 10 or 11 repairs.
        assert!((10..=11).contains(&repairs), "{repairs} repairs");

        let imports = importer.api::<MultiClusterService>();
        let import =
            eventually::object(&imports, "app", "what is disputed", |import| dispute_of(import).is_some()).await?;
        let (reason, message) = dispute_of(&import).expect("it was seen");
        let expected = format!(
            "another writer undoes the agent's writes to EndpointSlice fleet-system/{name} of cluster member, so the \
             agent repairs it once a minute only: field manager \"rival\" (endpoints). Stop that writer"
        );
        assert_eq!((reason, message), ("WritesUndone", &*expected));
        assert_eq!(importer.sees_event("MultiClusterService", "WritesUndone", &expected).await?, 1);

        // The test makes no more changes. So the agent's next repair, a minute after its last one, stays.
        let repaired = |slice: &EndpointSlice| !has_hints(slice);
        eventually::object(&slices, &name, "the hints to be gone", repaired).await.map(drop)
    })
}
