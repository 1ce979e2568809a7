//! Actions of a user of the standard API, `multicluster.x-k8s.io`.

use super::{User, addresses_of};
use crate::eventually;
use anyhow::Context as _;
use fleetnet_api::crd::mcs::{ServiceExport, ServiceImport};
use fleetnet_api::names::labels;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl User {
    /// Sets or removes the label with which the user's namespace imports Services.
    pub async fn label_namespace(&self, value: Option<&str>) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({"metadata": {"labels": {labels::IMPORT: value}}}));
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.patch(&self.namespace, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Creates a ServiceExport of the standard API for the Service with this name.
    pub async fn export_mcs(&self, service: &str, spec: Value) -> anyhow::Result<ServiceExport> {
        self.create(json!({"metadata": {"name": service}, "spec": spec})).await
    }

    /// Waits until the conditions of a ServiceExport have these values, as `type=status reason`, and no other
    /// conditions exist.
    pub async fn sees_conditions(&self, service: &str, expected: &[&str]) -> anyhow::Result<ServiceExport> {
        let has_them = |export: &ServiceExport| {
            let conditions = export.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let mut shown: Vec<String> = conditions.map(shown).collect();
            shown.sort();
            shown == expected
        };
        let what = format!("the export of {service} to show {expected:?}");
        eventually::object(&self.api::<ServiceExport>(), service, &what, has_them).await
    }

    /// Waits until the ServiceImport of a Service exists and fulfils `condition`.
    pub async fn sees_service_import(
        &self,
        service: &str,
        what: &str,
        condition: impl FnMut(&ServiceImport) -> bool,
    ) -> anyhow::Result<ServiceImport> {
        let what = format!("the ServiceImport {service} {what}");
        eventually::object(&self.api::<ServiceImport>(), service, &what, condition).await
    }

    /// Waits until the ServiceImport of a Service is ready, with these exporting clusters.
    pub async fn sees_ready_import(&self, service: &str, clusters: &[&str]) -> anyhow::Result<ServiceImport> {
        let is_ready = |import: &ServiceImport| {
            let status = import.status.clone().unwrap_or_default();
            let is_ready = status.conditions.iter().flatten().any(|it| shown(it) == "Ready=True Ready");
            is_ready && status.clusters.iter().flatten().map(|it| &*it.cluster).eq(clusters.iter().copied())
        };
        self.sees_service_import(service, &format!("to be ready, of {clusters:?}"), is_ready).await
    }

    /// Waits until the Service that is derived for an imported Service exists and fulfils `condition`.
    pub async fn sees_derived_by_mcs_api(
        &self,
        service: &str,
        what: &str,
        condition: impl Fn(&Service) -> bool,
    ) -> anyhow::Result<Service> {
        let is_it = |objects: &BTreeMap<String, Service>| objects.len() == 1 && objects.values().all(&condition);
        let what = format!("the Service derived for {service} {what}");
        let found = eventually::objects(&self.api::<Service>(), &of_service(service), &what, is_it).await?;
        found.into_values().next().context("a derived Service")
    }

    /// Waits until the imported slices of a Service in the user's namespace have these endpoints, as `cluster address`.
    pub async fn sees_mcs_slices(
        &self,
        service: &str,
        expected: &[&str],
    ) -> anyhow::Result<BTreeMap<String, EndpointSlice>> {
        let have_them = |objects: &BTreeMap<String, EndpointSlice>| {
            let endpoints = objects.values().flat_map(|slice| {
                let cluster = slice.labels().get(labels::SOURCE_CLUSTER).cloned().unwrap_or_default();
                addresses_of(slice).map(move |address| format!("{cluster} {address}"))
            });
            let mut endpoints: Vec<String> = endpoints.collect();
            endpoints.sort();
            endpoints == expected && objects.is_empty() == expected.is_empty()
        };
        let what = format!("the slices of {service} to have {expected:?}");
        eventually::objects(&self.api::<EndpointSlice>(), &of_service(service), &what, have_them).await
    }
}

impl User {
    /// Waits until a gateway finds these endpoints of a ServiceImport, as `cluster address`.
    pub async fn sees_gateway_endpoints(&self, service: &str, expected: &[&str]) -> anyhow::Result<()> {
        let endpoints = |slice: &EndpointSlice| {
            let cluster = slice.labels().get(labels::SOURCE_CLUSTER).cloned().unwrap_or_default();
            addresses_of(slice).map(|address| format!("{cluster} {address}")).collect::<Vec<_>>()
        };
        self.sees_read("a gateway", expected, |slice| {
            filed_under_import(slice).filter(|import| *import == service).map(|_| endpoints(slice))
        })
        .await
    }

    /// Waits until kube-proxy finds these addresses of derived Services.
    pub async fn sees_derived_endpoints(&self, expected: &[&str]) -> anyhow::Result<()> {
        self.sees_read("kube-proxy", expected, |slice| {
            let is_hidden = slice.labels().contains_key(labels::HEADLESS);
            let is_bound = slice.labels().get(labels::SERVICE_NAME).is_some_and(|name| name.starts_with("derived-"));
            (is_bound && !is_hidden).then(|| addresses_of(slice).map(|address| address.to_owned()).collect())
        })
        .await
    }

    async fn sees_read(
        &self,
        reader: &str,
        expected: &[&str],
        read: impl Fn(&EndpointSlice) -> Option<Vec<String>>,
    ) -> anyhow::Result<()> {
        let have_them = |objects: &BTreeMap<String, EndpointSlice>| {
            let mut found: Vec<String> = objects.values().filter_map(&read).flatten().collect();
            found.sort();
            found == expected
        };
        let what = format!("the slices that {reader} reads to have {expected:?}");
        eventually::objects(&self.api::<EndpointSlice>(), &WatchParams::default(), &what, have_them).await.map(drop)
    }
}

/// Returns the ServiceImport under which Envoy Gateway 1.7 and later files a slice. It files a slice with the label of
/// a Service only under that Service.
fn filed_under_import(slice: &EndpointSlice) -> Option<&String> {
    let is_of_service = slice.labels().contains_key(labels::SERVICE_NAME);
    slice.labels().get(labels::MCS_SERVICE_NAME).filter(|_| !is_of_service)
}

/// Selects the objects that agents write for an imported Service.
fn of_service(service: &str) -> WatchParams {
    WatchParams::default().labels(&format!("{}={service}", labels::MCS_SERVICE_NAME))
}

/// Returns a condition as `type=status reason`.
fn shown(condition: &Condition) -> String {
    format!("{}={} {}", condition.type_, condition.status, condition.reason)
}
