//! Activity of users in a fleet, so that each metric of a healthy fleet has samples: pods that come and go, first
//! imports, and changes of endpoints in both directions.

use harness::endpoints::{PodSketch, Workload};
use harness::fleet::Fleet;
use harness::user::{Consume, User};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde_json::json;

pub(super) struct Activity {
    /// Workload in the first member, whose agent makes the EndpointSlices.
    pods: Workload,
    /// User in the second member, who writes EndpointSlices.
    slices: User,
    round: u8,
    /// Pod and slice of the round before, which the next round removes.
    previous: Option<(String, String)>,
}

impl Activity {
    /// Exports the Service `app` from the first member to the second, and the Service `back` in the other direction.
    pub(super) async fn begin(fleet: &Fleet) -> anyhow::Result<Self> {
        let namespace = fleet.namespace("work").await?;
        let pods = Workload::begin(fleet.members[0].control_plane.admin(), &namespace).await?;
        let slices = User::new(fleet.members[1].control_plane.admin(), &namespace);
        pods.service("app").await?;
        slices.create_service("back").await?;
        slices.create_slice("back", "back-0", &["10.2.0.0"]).await?;
        for (exporter, importer, service) in [(&pods.user, &slices, "app"), (&slices, &pods.user, "back")] {
            // An import that waits for an export is a blocked object for a moment.
            importer.import(service, service, Consume::ClusterIp).await?;
            importer.sees_import(service, "Unknown").await?;
            exporter.export(service).await?;
            importer.sees_import(service, "True").await?;
        }
        Ok(Self { pods, slices, round: 0, previous: None })
    }

    /// Imports a Service for the second time in one namespace, so the import is blocked.
    pub(super) async fn import_twice(&self) -> anyhow::Result<()> {
        self.slices.import("again", "app", Consume::ClusterIp).await?;
        self.slices.sees_import("again", "Unknown").await
    }

    /// Changes a port of one Service and the endpoints of both, replaces a slice, and waits until the importers see
    /// all.
    pub(super) async fn go_on(&mut self) -> anyhow::Result<()> {
        self.round = self.round.wrapping_add(1);
        let (pod, slice) = (format!("app-{}", self.round), format!("back-new-{}", self.round));
        let (of_pod, of_slice) = (format!("10.1.0.{}", self.round), format!("10.2.1.{}", self.round));
        let changed = format!("10.2.0.{}", self.round);
        self.pods.pod(&PodSketch::new(&pod, "app", &[&of_pod])).await?;
        let ports =
            json!({"spec": {"ports": [{"name": "http", "port": 1000 + u16::from(self.round), "targetPort": 8080}]}});
        self.slices.merge::<Service>("back", ports).await?;
        self.slices.set_endpoints("back-0", &[&changed]).await?;
        self.slices.create_slice("back", &slice, &[&of_slice]).await?;
        if let Some((pod, slice)) = self.previous.replace((pod, slice)) {
            self.pods.remove_pod(&pod).await?;
            self.slices.delete::<EndpointSlice>(&slice).await?;
        }
        self.slices.sees("app", &[&of_pod]).await?;
        self.pods.user.sees("back", &[&changed, &of_slice]).await.map(drop)
    }
}
