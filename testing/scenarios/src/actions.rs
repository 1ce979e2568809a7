//! Actions of users for tests that cause faults while an action runs.

use crate::environment::{Backend, Environment};
use crate::handover::{recreate_slices, slices_are_left_in_the_hub};
use crate::{rich, trust};
use fleetnet_api::crd::{MultiClusterService, ServiceExport};
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;

/// Action of a user, with a preparation before it and a visible result after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Export,
    Import,
    Change,
    PortChange,
    RecreateSlices,
    Unexport,
    DeleteImport,
    Enrich,
    TurnHeadless,
    ForbidExport,
    AllowExport,
    ForbidImport,
    AllowImport,
}

impl Action {
    /// Actions of the main job: export, import and their changes.
    pub const ALL: [Self; 7] = [
        Self::Export,
        Self::Import,
        Self::Change,
        Self::PortChange,
        Self::RecreateSlices,
        Self::Unexport,
        Self::DeleteImport,
    ];

    /// Creates the objects that the action needs. After the return, the agents may still make writes for these objects.
    pub async fn prepare(self, env: &Environment<impl Backend>) -> anyhow::Result<()> {
        match self {
            Self::Export => Ok(()),
            Self::Import => env.export(&["10.1.0.1"]).await,
            Self::AllowExport | Self::AllowImport => {
                env.export_and_import(&["10.1.0.1"]).await?;
                let forbid = if self == Self::AllowExport { Self::ForbidExport } else { Self::ForbidImport };
                forbid.act(env).await?;
                forbid.is_visible(env).await
            }
            _ => env.export_and_import(&["10.1.0.1"]).await,
        }
    }

    pub async fn act(self, env: &Environment<impl Backend>) -> anyhow::Result<()> {
        let (exporter, importer) = (env.user(0), env.user(1));
        match self {
            Self::Export => exporter.export_new("app", &["10.1.0.1"]).await,
            Self::Import => importer.import("app", "app", Consume::LoadBalancer).await.map(drop),
            Self::Change => exporter.set_endpoints("app-1", &["10.1.0.2", "10.1.0.3"]).await,
            Self::PortChange => change_ports(&exporter).await,
            Self::RecreateSlices => recreate_slices(&exporter, "app-1", "app-2", "10.1.0.2", 8081).await,
            Self::Unexport => exporter.delete::<ServiceExport>("app").await,
            Self::DeleteImport => importer.delete::<MultiClusterService>("app").await,
            Self::Enrich => rich::enrich(&exporter, "app-1").await,
            Self::TurnHeadless => turn_headless(&exporter).await,
            Self::ForbidExport => trust::name(env, "exporters", Some("")).await,
            Self::AllowExport => trust::name(env, "exporters", None).await,
            Self::ForbidImport => trust::name(env, "importers", Some("")).await,
            Self::AllowImport => trust::name(env, "importers", None).await,
        }
    }

    /// Waits until the result of the action is visible to a user.
    pub async fn is_visible(self, env: &Environment<impl Backend>) -> anyhow::Result<()> {
        let (exporter, importer) = (env.user(0), env.user(1));
        match self {
            Self::Export => exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await,
            Self::Import => importer.sees("app", &["10.1.0.1"]).await.map(drop),
            Self::Change => importer.sees("app", &["10.1.0.2", "10.1.0.3"]).await.map(drop),
            Self::PortChange => {
                importer.sees_derived_port("app", 81).await?;
                importer.sees_slice_port("app", 8081).await
            }
            Self::RecreateSlices => {
                importer.sees("app", &["10.1.0.2"]).await?;
                slices_are_left_in_the_hub(env, 1).await
            }
            Self::Unexport => {
                importer.no_derived_service("app").await?;
                env.hub_is_empty(0).await
            }
            Self::DeleteImport => {
                importer.no_derived_service("app").await?;
                env.hub_is_empty(1).await
            }
            Self::Enrich => {
                rich::arrives(&importer, &rich::imported()).await?;
                importer.sees_derived("app", "to have session affinity", rich::is_sticky).await.map(drop)
            }
            Self::TurnHeadless => {
                importer.sees_derived("app", "to be headless", is_headless).await?;
                importer.sees("app", &["10.1.0.1"]).await.map(drop)
            }
            Self::ForbidExport => {
                exporter.sees_export("app", "Valid", "False", "ExporterNotAllowed").await?;
                importer.no_derived_service("app").await?;
                env.hub_has_no_slices(0).await
            }
            Self::ForbidImport => {
                importer.no_derived_service("app").await?;
                env.hub_has_no_slices(1).await
            }
            Self::AllowExport | Self::AllowImport => {
                exporter.sees_export("app", "Valid", "True", "ServiceIsValid").await?;
                importer.sees("app", &["10.1.0.1"]).await?;
                importer.sees_import("app", "True").await
            }
        }
    }
}

/// Makes a Service headless. An existing Service cannot become headless, so it is deleted and created again.
async fn turn_headless(exporter: &User) -> anyhow::Result<()> {
    exporter.merge::<ServiceExport>("app", rich::export_headless()).await?;
    exporter.delete::<Service>("app").await?;
    exporter.create::<Service>(rich::headless_service("app")).await.map(drop)
}

fn is_headless(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None")
}

async fn change_ports(exporter: &User) -> anyhow::Result<()> {
    let ports = json!({"spec": {"ports": [{"name": "http", "port": 81, "targetPort": 8081}]}});
    exporter.merge::<Service>("app", ports).await?;
    let ports = json!({"ports": [{"name": "http", "port": 8081, "protocol": "TCP"}]});
    exporter.merge::<EndpointSlice>("app-1", ports).await
}
