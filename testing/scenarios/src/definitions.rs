//! Scenarios of the CRDs in `deploy/crds`. A server accepts these CRDs, also as an update of the Go agents' CRDs. The
//! server then rejects invalid objects.

mod cases;
mod objects;

use anyhow::{Context as _, ensure};
use fleetnet_api::crds::{self, Form};
use harness::eventually::{self, Deadline};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use objects::{KINDS, Kind};
use serde_json::{Value, json};

const NAMESPACE: &str = "default";

/// Applies the Go form of the CRDs to a new server, and then the full form, as in an upgrade. Creates a valid object of
/// each kind.
pub async fn upgrade(client: &Client) -> anyhow::Result<()> {
    for definition in crds::all(Form::Go) {
        apply(client, &definition).await?;
    }
    let go_form = create(client, &objects::MULTI_CLUSTER_SERVICE, cluster_ip()).await;
    let error = go_form.err().context("the Go form knows no type")?.to_string();
    ensure!(error.contains("unknown field \"spec.type\""), "{error}");
    for document in committed()? {
        apply(client, &serde_saphyr::from_str(&document)?).await?;
    }
    definitions_are_used(client).await?;
    for kind in &KINDS {
        create(client, kind, kind.valid()).await.with_context(|| kind.kind)?;
    }
    Ok(())
}

/// Creates a CRD or changes an existing one, as `kubectl apply` does.
async fn apply(client: &Client, definition: &CustomResourceDefinition) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition.metadata.name.as_deref().context("a definition has a name")?;
    match definitions.create(&PostParams::default(), definition).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let patched = definitions.patch(name, &PatchParams::default(), &Patch::Merge(definition)).await;
            patched.with_context(|| format!("the definition {name} cannot be changed"))?;
        }
        created => {
            created.with_context(|| format!("the definition {name} is refused"))?;
        }
    }
    eventually::usable(client, name).await
}

/// Returns the CRD files of `deploy/crds`.
fn committed() -> anyhow::Result<Vec<String>> {
    let folder = programs::root().join("deploy/crds");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        paths.push(entry?.path());
    }
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).with_context(|| path.display().to_string())).collect()
}

/// Waits until the server uses the new CRDs. The server needs a moment after the CRDs are applied.
async fn definitions_are_used(client: &Client) -> anyhow::Result<()> {
    let deadline = Deadline::start();
    while let Err(error) = create(client, &objects::MULTI_CLUSTER_SERVICE, cluster_ip()).await {
        deadline.pause(|| error.to_string()).await?;
    }
    let objects_with_type = api(client, &objects::MULTI_CLUSTER_SERVICE);
    objects_with_type.delete("with-type", &DeleteParams::default()).await.map(drop).context("cannot delete it")
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

/// Applies each invalid change to the kind's valid object, and compares the server's errors with the expected errors.
async fn rejects(client: Client, kind: &Kind, cases: &[cases::Case]) -> anyhow::Result<()> {
    assert!(cases.len() >= 5, "at least five bad objects per kind");
    let mut surprises = Vec::new();
    for case in cases {
        let outcome = attempt(&client, kind, case).await;
        let message = match &outcome {
            Err(kube::Error::Api(status)) => status.message.clone(),
            other => format!("not refused: {other:?}"),
        };
        if !message.contains(case.error) {
            surprises.push(format!("{}: {message}\n    does not contain: {}", case.change(), case.error));
        }
    }
    ensure!(surprises.is_empty(), "{}:\n{}", kind.kind, surprises.join("\n"));
    Ok(())
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

pub async fn the_committed_definitions_are_one_for_each_kind_and_take_valid_objects(
    client: Client,
) -> anyhow::Result<()> {
    let documents = committed()?;
    assert_eq!(documents.len(), KINDS.len());
    for kind in &KINDS {
        let line = format!("    kind: {}\n", kind.kind);
        assert_eq!(documents.iter().filter(|document| document.contains(&line)).count(), 1, "{}", kind.kind);
        api(&client, kind).get("valid").await.with_context(|| kind.kind)?;
    }
    Ok(())
}

pub async fn both_versions_of_service_export_are_served(client: Client) -> anyhow::Result<()> {
    let old = Kind { version: "v1alpha1", ..objects::SERVICE_EXPORT };
    let object = api(&client, &old).get("valid").await?;
    assert_eq!(object.types.map(|types| types.api_version).as_deref(), Some("networking.fleet.azure.com/v1alpha1"));
    Ok(())
}

pub async fn a_bad_multi_cluster_service_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::MULTI_CLUSTER_SERVICE, &cases::multi_cluster_service()).await
}

pub async fn a_bad_service_export_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::SERVICE_EXPORT, &cases::service_export()).await
}

pub async fn a_bad_service_import_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::SERVICE_IMPORT, &cases::service_import()).await
}

pub async fn a_bad_endpoint_slice_export_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::ENDPOINT_SLICE_EXPORT, &cases::endpoint_slice_export()).await
}

pub async fn a_bad_endpoint_slice_import_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::ENDPOINT_SLICE_IMPORT, &cases::endpoint_slice_import()).await
}

pub async fn a_bad_internal_service_export_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::INTERNAL_SERVICE_EXPORT, &cases::internal_service_export()).await
}

pub async fn a_bad_internal_service_import_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::INTERNAL_SERVICE_IMPORT, &cases::internal_service_import()).await
}

pub async fn a_bad_merged_service_import_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::MERGED_SERVICE_IMPORT, &cases::merged_service_import()).await
}

pub async fn a_bad_member_agent_is_rejected(client: Client) -> anyhow::Result<()> {
    rejects(client, &objects::MEMBER_AGENT, &cases::member_agent()).await
}
