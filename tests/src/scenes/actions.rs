//! What users do, for tests in which something goes wrong meanwhile.

use crate::scenes::succession::{make_slices_anew, slices_are_left_in_the_hub};
use crate::stage::{Ground, Stage};
use crate::user::{Consume, User};
use fleetnet_api::crd::{MultiClusterService, ServiceExport};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;

/// What users do, after what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Action {
    Export,
    Import,
    Change,
    PortChange,
    MakeAnew,
    Unexport,
    DeleteImport,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Export,
        Self::Import,
        Self::Change,
        Self::PortChange,
        Self::MakeAnew,
        Self::Unexport,
        Self::DeleteImport,
    ];

    /// Does what has to be done before; it has settled once the agents are quiet.
    ///
    /// # Errors
    /// Where a server refuses, or what should come does not; so of all that follows.
    pub async fn prepare(self, stage: &Stage<impl Ground>) -> anyhow::Result<()> {
        match self {
            Self::Export => Ok(()),
            Self::Import => stage.export(&["10.1.0.1"]).await,
            Self::Change | Self::PortChange | Self::MakeAnew | Self::Unexport | Self::DeleteImport => {
                stage.export_and_import(&["10.1.0.1"]).await
            }
        }
    }

    /// Does it.
    #[allow(clippy::missing_errors_doc)]
    pub async fn act(self, stage: &Stage<impl Ground>) -> anyhow::Result<()> {
        let (exporter, importer) = (stage.user(0), stage.user(1));
        match self {
            Self::Export => {
                exporter.create_service("app").await?;
                exporter.create_slice("app", "app-1", &["10.1.0.1"]).await?;
                exporter.export("app").await.map(drop)
            }
            Self::Import => importer.import("app", "app", Consume::LoadBalancer).await.map(drop),
            Self::Change => exporter.set_endpoints("app-1", &["10.1.0.2", "10.1.0.3"]).await,
            Self::PortChange => change_ports(&exporter).await,
            Self::MakeAnew => make_slices_anew(&exporter, "app-1", "app-2", "10.1.0.2", 8081).await,
            Self::Unexport => exporter.delete::<ServiceExport>("app").await,
            Self::DeleteImport => importer.delete::<MultiClusterService>("app").await,
        }
    }

    /// Waits until it has come to what it was done for, as a user sees it.
    #[allow(clippy::missing_errors_doc)]
    pub async fn came_true(self, stage: &Stage<impl Ground>) -> anyhow::Result<()> {
        let (exporter, importer) = (stage.user(0), stage.user(1));
        match self {
            Self::Export => exporter.sees_export("app", "Conflict", "False", "NoConflictFound").await,
            Self::Import => importer.sees("app", &["10.1.0.1"]).await.map(drop),
            Self::Change => importer.sees("app", &["10.1.0.2", "10.1.0.3"]).await.map(drop),
            Self::PortChange => {
                importer.sees_derived_port("app", 81).await?;
                importer.sees_slice_port("app", 8081).await
            }
            Self::MakeAnew => {
                importer.sees("app", &["10.1.0.2"]).await?;
                slices_are_left_in_the_hub(stage, 1).await
            }
            Self::Unexport => {
                importer.no_derived_service("app").await?;
                stage.hub_is_empty(0).await
            }
            Self::DeleteImport => {
                importer.no_derived_service("app").await?;
                stage.hub_is_empty(1).await
            }
        }
    }
}

async fn change_ports(exporter: &User) -> anyhow::Result<()> {
    let ports = json!({"spec": {"ports": [{"name": "http", "port": 81, "targetPort": 8081}]}});
    exporter.merge::<Service>("app", ports).await?;
    let ports = json!({"ports": [{"name": "http", "port": 8081, "protocol": "TCP"}]});
    exporter.merge::<EndpointSlice>("app-1", ports).await
}
