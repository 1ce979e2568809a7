//! Baseline: the writes and watches that an import and a change need, made by the bench without agents. The baseline
//! decodes, caches and plans nothing.

use crate::environment::{Environment, Role};
use crate::follow::Follow;
use crate::limits::CHANGE;
use crate::objects::{hub_endpoints, ready_endpoints, service_name, slice_name};
use crate::size::Size;
use crate::templates::Templates;
use crate::users::{Users, Written};
use crate::world::{BASELINE_GROUP, Kind, World};
use anyhow::Context as _;
use fleetnet_api::crds::{Form, all, yaml};
use futures::future::{try_join, try_join_all};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::{Instant, timeout};

/// State of the baseline: its clients, its watches, and the templates of its objects.
pub struct Baseline {
    /// Clients that make all writes of the baseline.
    pub users: Arc<Users>,
    size: Size,
    templates: Templates,
    follows: BTreeMap<Kind, Follow>,
}

/// Times of one change: the user's patch, and the times at which watches of the bench showed the change after each
/// step.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Time of the user's patch.
    pub sent: Instant,
    /// Time at which a watch showed the source slice in the exporter.
    pub changed: Instant,
    /// Time at which a watch showed the EndpointSliceExport in the hub.
    pub exported: Instant,
    /// Time at which a watch showed the EndpointSliceImport in the hub.
    pub distributed: Instant,
    /// Time at which a watch showed the imported slice in the importer.
    pub imported: Instant,
}

impl Baseline {
    /// Creates the CRDs, namespaces and watches of the baseline. Call this after the agents' import, because the
    /// agents' objects are the templates for the objects of the baseline.
    pub async fn prepare(environment: &Environment, agents: &Users, size: Size) -> anyhow::Result<Arc<Self>> {
        let documents: Vec<String> = all(Form::Full).into_iter().map(|it| yaml(&of_baseline(it))).collect();
        let world = World::of_baseline();
        for role in Role::ALL {
            let control_plane = environment.control_plane(role);
            control_plane.apply_definitions(&documents).await?;
            for namespace in world.namespaces() {
                control_plane.create_namespace(namespace).await?;
            }
        }
        let templates = Templates::read(agents).await?;
        let users = Users::of(environment, world).await?;
        let mut follows = BTreeMap::new();
        for kind in Kind::ALL {
            follows.insert(kind, Follow::start(users.client(kind), &users.world.collection(kind)).await?);
        }
        Ok(Arc::new(Self { users, size, templates, follows }))
    }

    /// Exports and imports all Services in the baseline, in parallel.
    pub async fn import_all(self: &Arc<Self>) -> anyhow::Result<()> {
        let one = |number| {
            let baseline = Arc::clone(self);
            async move { tokio::spawn(async move { baseline.import_one(number).await }).await? }
        };
        try_join_all((0..self.size.services).map(one)).await.map(drop)
    }

    async fn import_one(&self, number: u32) -> anyhow::Result<()> {
        let written = self.users.export_and_import(number, self.size).await?;
        let name = service_name(number);
        let (exported, claim) = try_join(self.export(number, &name, written), self.claim(&name, written)).await?;
        let granted = self.grant(&name, claim).await?;
        let distributed = try_join_all(exported.into_iter().enumerate().map(async |(index, export)| {
            let name = slice_name(number, u32::try_from(index)?);
            self.seen(Kind::EndpointSliceExport, export).await?;
            self.mark(Kind::EndpointSliceExport, &name, 1).await?;
            self.create_slice(Kind::EndpointSliceImport, number, index).await
        }));
        let ((), distributed) = try_join(self.bind(&name, granted), distributed).await?;
        let imported = distributed.into_iter().enumerate().map(async |(index, import)| {
            self.seen(Kind::EndpointSliceImport, import).await?;
            let imported = self.create_slice(Kind::ImportedSlice, number, index).await?;
            self.mark(Kind::EndpointSliceImport, &slice_name(number, u32::try_from(index)?), 1).await?;
            self.seen(Kind::ImportedSlice, imported).await
        });
        try_join_all(imported).await.map(drop)
    }

    /// Makes the exporter's and the hub's writes for the export of one Service. Returns the resourceVersions of the
    /// exported slices.
    async fn export(&self, number: u32, name: &str, written: Written) -> anyhow::Result<Vec<u64>> {
        self.seen(Kind::ServiceExport, written.export).await?;
        self.mark(Kind::ServiceExport, name, 1).await?;
        self.status(Kind::ServiceExport, name, true).await?;
        let created = self.create(Kind::InternalServiceExport, name).await?;
        self.seen(Kind::InternalServiceExport, created).await?;
        self.mark(Kind::InternalServiceExport, name, 1).await?;
        self.create(Kind::HubServiceImport, name).await?;
        self.status(Kind::HubServiceImport, name, false).await?;
        let judged = self.status(Kind::InternalServiceExport, name, false).await?;
        self.seen(Kind::InternalServiceExport, judged).await?;
        let slices = 0..usize::try_from(self.size.slices)?;
        let slices = slices.map(|index| self.create_slice(Kind::EndpointSliceExport, number, index));
        let (_, slices) = try_join(self.status(Kind::ServiceExport, name, false), try_join_all(slices)).await?;
        Ok(slices)
    }

    /// Makes an importer's writes for its claim. Returns the resourceVersion of the claim.
    async fn claim(&self, name: &str, written: Written) -> anyhow::Result<u64> {
        self.seen(Kind::MultiClusterService, written.import).await?;
        self.mark(Kind::MultiClusterService, name, 1).await?;
        self.create(Kind::ServiceImport, name).await?;
        self.create(Kind::InternalServiceImport, name).await
    }

    /// Makes the writes with which the hub accepts a claim. Returns the claim's new resourceVersion.
    async fn grant(&self, name: &str, claim: u64) -> anyhow::Result<u64> {
        self.seen(Kind::InternalServiceImport, claim).await?;
        self.mark(Kind::InternalServiceImport, name, 1).await?;
        self.mark(Kind::HubServiceImport, name, 1).await?;
        self.status(Kind::InternalServiceImport, name, false).await
    }

    /// Makes the importer's writes after the hub has accepted the claim, such as the create of the derived Service.
    async fn bind(&self, name: &str, granted: u64) -> anyhow::Result<()> {
        self.seen(Kind::InternalServiceImport, granted).await?;
        self.status(Kind::ServiceImport, name, false).await?;
        self.create(Kind::DerivedService, name).await?;
        self.mark(Kind::MultiClusterService, name, 2).await?;
        self.status(Kind::MultiClusterService, name, true).await?;
        self.status(Kind::MultiClusterService, name, false).await.map(drop)
    }

    /// Changes the source slice, and then writes the copies of the slice in the hub and in the importer. As with
    /// agents, each write starts when a watch shows the write before. `marker` is the number that the bench finds again
    /// in each copy.
    pub async fn change(self: &Arc<Self>, slice: u32, marker: u32) -> anyhow::Result<Passed> {
        let name = slice_name(slice / self.size.slices, slice % self.size.slices);
        let count = self.size.endpoints;
        let ready = json!({"endpoints": ready_endpoints(marker, count)});
        let hub = json!({"spec": {
            "endpoints": hub_endpoints(marker, count), "endpointSliceReference": {"generation": marker},
        }});
        let annotations = json!({format!("{BASELINE_GROUP}/count"): marker.to_string()});
        let imported = json!({"metadata": {"annotations": annotations}, "endpoints": ready_endpoints(marker, count)});
        let sent = Instant::now();
        let changed = self.hop(Kind::Slice, &name, ready, marker).await?;
        let exported = self.hop(Kind::EndpointSliceExport, &name, hub.clone(), marker).await?;
        let distributed = self.hop(Kind::EndpointSliceImport, &name, hub, marker).await?;
        let imported = self.hop(Kind::ImportedSlice, &name, imported, marker).await?;
        Ok(Passed { sent, changed, exported, distributed, imported })
    }

    /// Patches one object (the source slice or a copy of it), and waits until a watch shows the patch. Returns the time
    /// at which the watch showed the patch.
    async fn hop(self: &Arc<Self>, kind: Kind, name: &str, body: Value, marker: u32) -> anyhow::Result<Instant> {
        let (baseline, named) = (Arc::clone(self), name.to_owned());
        let write = tokio::spawn(async move { baseline.users.patch(kind, &named, "", &body).await });
        match timeout(CHANGE, self.follows[&kind].marker(marker)).await {
            Ok(seen) => seen,
            Err(_) => Err(write.await?.err().with_context(|| format!("{kind:?} {name} was not seen in {CHANGE:?}"))?),
        }
    }

    async fn seen(&self, kind: Kind, version: u64) -> anyhow::Result<()> {
        self.follows[&kind].version(version).await.map(drop)
    }

    async fn create(&self, kind: Kind, name: &str) -> anyhow::Result<u64> {
        self.users.create(kind, &self.templates.create(kind, name)).await
    }

    async fn create_slice(&self, kind: Kind, number: u32, index: usize) -> anyhow::Result<u64> {
        let index = u32::try_from(index)?;
        let mut body = self.templates.create(kind, &slice_name(number, index));
        let marker = number * self.size.slices + index;
        match kind {
            Kind::ImportedSlice => body["endpoints"] = ready_endpoints(marker, self.size.endpoints),
            _ => body["spec"]["endpoints"] = hub_endpoints(marker, self.size.endpoints),
        }
        self.users.create(kind, &body).await
    }

    async fn mark(&self, kind: Kind, name: &str, count: u32) -> anyhow::Result<u64> {
        self.users.patch(kind, name, "", &self.templates.mark(kind, count)).await
    }

    async fn status(&self, kind: Kind, name: &str, first: bool) -> anyhow::Result<u64> {
        self.users.patch(kind, name, "/status", &self.templates.status(kind, first)).await
    }
}

/// Returns a CRD of the fleet, moved to the baseline's API group.
fn of_baseline(mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
    let plural = &definition.spec.names.plural;
    definition.metadata.name = Some(format!("{plural}.{BASELINE_GROUP}"));
    // Remove short names and categories. If two API groups define the same short name, kubectl cannot know which group
    // a command means.
    definition.spec.names.short_names = None;
    definition.spec.names.categories = None;
    definition.spec.group = BASELINE_GROUP.to_owned();
    definition
}
