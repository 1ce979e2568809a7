//! The CustomResourceDefinitions of `deploy/crds` on a real API server: it takes them, and refuses what they forbid.

mod definitions {
    pub(crate) mod cases;
    pub(crate) mod objects;
}

use anyhow::{Context as _, ensure};
use definitions::cases;
use definitions::objects::{self, KINDS, Kind};
use fleetnet_api::crds::{Form, all, yaml};
use fleetnet_tests::control_plane::{ControlPlane, Options};
use fleetnet_tests::eventually::Deadline;
use fleetnet_tests::{limits, run};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// A server that had the Go form and was then given the full one, as a fleet that is upgraded has.
static UPGRADED: OnceCell<ControlPlane> = OnceCell::const_new();

const NAMESPACE: &str = "default";

async fn upgraded() -> anyhow::Result<&'static ControlPlane> {
    UPGRADED
        .get_or_try_init(|| async {
            let control_plane = ControlPlane::start(Options { name: "crds".to_owned(), ..Options::default() }).await?;
            control_plane.apply_definitions(&all(Form::Go).iter().map(yaml).collect::<Vec<_>>()).await?;
            let go_form = create(&control_plane.admin(), &objects::MULTI_CLUSTER_SERVICE, cluster_ip()).await;
            let refusal = go_form.err().context("the Go form knows no type")?.to_string();
            ensure!(refusal.contains("unknown field \"spec.type\""), "{refusal}");
            control_plane.apply_definitions(&committed()?).await?;
            heeded(&control_plane.admin()).await?;
            for kind in &KINDS {
                create(&control_plane.admin(), kind, kind.valid()).await.with_context(|| kind.kind)?;
            }
            anyhow::Ok(control_plane)
        })
        .await
}

/// The files of `deploy/crds`.
fn committed() -> anyhow::Result<Vec<String>> {
    let folder = xtask::root().join("deploy/crds");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        paths.push(entry?.path());
    }
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).with_context(|| path.display().to_string())).collect()
}

/// A server takes a moment to heed a definition that replaces another.
async fn heeded(client: &Client) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    while let Err(error) = create(client, &objects::MULTI_CLUSTER_SERVICE, cluster_ip()).await {
        deadline.check().with_context(|| error.to_string())?;
        tokio::time::sleep(limits::POLL).await;
    }
    let heeded = api(client, &objects::MULTI_CLUSTER_SERVICE);
    heeded.delete("with-type", &DeleteParams::default()).await.map(drop).context("cannot delete it")
}

fn cluster_ip() -> Value {
    json!({"metadata": {"name": "with-type"}, "spec": {"serviceImport": {"name": "app"}, "type": "ClusterIP"}})
}

fn api(client: &Client, kind: &Kind) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("networking.fleet.azure.com", kind.version, kind.kind);
    Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::from_gvk(&kind))
}

async fn create(client: &Client, kind: &Kind, value: Value) -> kube::Result<()> {
    let group_version = format!("networking.fleet.azure.com/{}", kind.version);
    let mut object = json!({"apiVersion": group_version, "kind": kind.kind});
    if let (Some(object), Value::Object(value)) = (object.as_object_mut(), value) {
        object.extend(value);
    }
    let path = format!("{}?fieldValidation=Strict", api(client, kind).resource_url());
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await.map(drop)
}

/// Tries each change of the kind's valid object, and compares why it is refused.
fn refuses(kind: &Kind, cases: &[cases::Case]) -> anyhow::Result<()> {
    assert!(cases.len() >= 5, "at least five bad objects per kind");
    run(async {
        let client = upgraded().await?.admin();
        let mut surprises = Vec::new();
        for case in cases {
            let outcome = attempt(&client, kind, case).await;
            let message = match &outcome {
                Err(kube::Error::Api(status)) => status.message.clone(),
                other => format!("not refused: {other:?}"),
            };
            if !message.contains(case.refusal) {
                surprises.push(format!("{}: {message}\n    does not contain: {}", case.change(), case.refusal));
            }
        }
        ensure!(surprises.is_empty(), "{}:\n{}", kind.kind, surprises.join("\n"));
        Ok(())
    })
}

async fn attempt(client: &Client, kind: &Kind, case: &cases::Case) -> kube::Result<()> {
    let api = api(client, kind);
    let dry_run = PatchParams::default().dry_run();
    match &case.change {
        cases::Change::Name(name) => {
            let mut object = kind.valid();
            object["metadata"]["name"] = json!(name);
            create(client, kind, object).await
        }
        cases::Change::Object(patch) => api.patch("valid", &dry_run, &Patch::Merge(patch)).await.map(drop),
        cases::Change::Status(patch) => {
            api.patch_status("valid", &dry_run, &Patch::Merge(json!({"status": patch}))).await.map(drop)
        }
    }
}

#[test]
fn there_is_one_committed_definition_for_each_kind() -> anyhow::Result<()> {
    let documents = committed()?;
    assert_eq!(documents.len(), KINDS.len());
    for kind in &KINDS {
        let line = format!("    kind: {}\n", kind.kind);
        assert_eq!(documents.iter().filter(|document| document.contains(&line)).count(), 1, "{}", kind.kind);
    }
    Ok(())
}

#[test]
fn the_committed_definitions_are_taken_over_those_of_the_go_agents_and_take_valid_objects() -> anyhow::Result<()> {
    run(async {
        let client = upgraded().await?.admin();
        for kind in &KINDS {
            api(&client, kind).get("valid").await.with_context(|| kind.kind)?;
        }
        Ok(())
    })
}

#[test]
fn both_versions_of_service_export_are_served() -> anyhow::Result<()> {
    run(async {
        let client = upgraded().await?.admin();
        let old = Kind { version: "v1alpha1", ..objects::SERVICE_EXPORT };
        let object = api(&client, &old).get("valid").await?;
        assert_eq!(object.types.map(|types| types.api_version).as_deref(), Some("networking.fleet.azure.com/v1alpha1"));
        Ok(())
    })
}

#[test]
fn a_bad_multi_cluster_service_is_refused() -> anyhow::Result<()> {
    refuses(&objects::MULTI_CLUSTER_SERVICE, &cases::multi_cluster_service())
}

#[test]
fn a_bad_service_export_is_refused() -> anyhow::Result<()> {
    refuses(&objects::SERVICE_EXPORT, &cases::service_export())
}

#[test]
fn a_bad_service_import_is_refused() -> anyhow::Result<()> {
    refuses(&objects::SERVICE_IMPORT, &cases::service_import())
}

#[test]
fn a_bad_endpoint_slice_export_is_refused() -> anyhow::Result<()> {
    refuses(&objects::ENDPOINT_SLICE_EXPORT, &cases::endpoint_slice_export())
}

#[test]
fn a_bad_endpoint_slice_import_is_refused() -> anyhow::Result<()> {
    refuses(&objects::ENDPOINT_SLICE_IMPORT, &cases::endpoint_slice_import())
}

#[test]
fn a_bad_internal_service_export_is_refused() -> anyhow::Result<()> {
    refuses(&objects::INTERNAL_SERVICE_EXPORT, &cases::internal_service_export())
}

#[test]
fn a_bad_internal_service_import_is_refused() -> anyhow::Result<()> {
    refuses(&objects::INTERNAL_SERVICE_IMPORT, &cases::internal_service_import())
}
