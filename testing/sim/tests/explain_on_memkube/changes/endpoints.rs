//! Endpoints that users want, from their objects only, and those that importers serve, from what kube-proxy and DNS
//! read.

use crate::world::{NAMESPACE, World};
use diagnosis::report::Api;
use fleetnet_api::crd::{MultiClusterService, ServiceExport, mcs};
use fleetnet_core::names::mcs_derived;
use harness::user::User;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt as _;
use kube::api::ListParams;
use std::collections::BTreeSet;

/// Addresses with port numbers and names.
type Endpoints = BTreeSet<String>;

/// Difference between the endpoints that users want and those that importers serve.
#[derive(Debug)]
pub(super) struct Difference {
    /// `None` if there is no difference.
    pub(super) text: Option<String>,
    /// Cluster ids of the members that export no endpoint.
    pub(super) without_endpoints: BTreeSet<String>,
    /// True if nobody exports endpoints, or nobody imports.
    pub(super) is_nothing_wanted: bool,
}

impl Difference {
    pub(super) fn is_none(&self) -> bool {
        self.text.is_none() && !self.is_nothing_wanted
    }
}

/// Returns the difference in a fleet.
pub(super) async fn difference(world: &World) -> anyhow::Result<Difference> {
    let members = 0..world.fleet.members.len();
    let (mut wanted, mut is_headless, mut without) = (Endpoints::new(), false, BTreeSet::new());
    for member in members.clone() {
        let (of_member, is) = exported(world.api, &world.user(member)).await?;
        if of_member.is_empty() {
            without.insert(world.fleet.members[member].name.clone());
        }
        wanted.extend(of_member);
        is_headless |= is;
    }
    let mut found = Difference { text: None, without_endpoints: without, is_nothing_wanted: wanted.is_empty() };
    let mut importers = 0;
    for member in members {
        let user = world.user(member);
        let is_importer = imports(world.api, &user, world.fleet.members[member].server.admin()).await?;
        let served = match world.api {
            Api::Fleet => served_by_fleet_api(&user, &world.in_system(member)).await?,
            Api::Mcs => served_by_mcs_api(&user, is_headless).await?,
        };
        let wanted = if is_importer { wanted.clone() } else { Endpoints::new() };
        importers += usize::from(is_importer);
        if served != wanted {
            let missing: Vec<&String> = wanted.difference(&served).collect();
            let excess: Vec<&String> = served.difference(&wanted).collect();
            found.text = Some(format!("member-{} lacks {missing:?} and has {excess:?}", member + 1));
        }
    }
    found.is_nothing_wanted |= importers == 0;
    Ok(found)
}

/// Returns what a member exports, and if its Service is headless.
async fn exported(api: Api, user: &User) -> anyhow::Result<(Endpoints, bool)> {
    let none = (Endpoints::new(), false);
    let service = user.api::<Service>().get_opt("app").await?;
    let Some(service) = service.filter(|service| service.metadata.deletion_timestamp.is_none()) else {
        return Ok(none);
    };
    let spec = service.spec.clone().unwrap_or_default();
    let is_headless = spec.cluster_ip.as_deref() == Some("None");
    let is_exported = match api {
        Api::Fleet => {
            let export = user.api::<ServiceExport>().get_opt("app").await?;
            export.filter(|export| export.metadata.deletion_timestamp.is_none()).is_some_and(|export| {
                let annotation = |name: &str| {
                    export.annotations().get(&format!("networking.fleet.azure.com/{name}")).map(String::as_str)
                };
                annotation("weight") != Some("0") && (!is_headless || annotation("export-headless") == Some("true"))
            })
        }
        Api::Mcs => {
            let export = user.api::<mcs::ServiceExport>().get_opt("app").await?;
            export.is_some_and(|export| export.metadata.deletion_timestamp.is_none())
        }
    };
    if !is_exported || spec.type_.as_deref() == Some("ExternalName") {
        return Ok(none);
    }
    let label = ListParams::default().labels("kubernetes.io/service-name=app");
    let slices = user.api::<EndpointSlice>().list(&label).await?.items;
    let is_own = |slice: &&EndpointSlice| {
        !slice.labels().contains_key("multicluster.kubernetes.io/service-name")
            && slice.metadata.deletion_timestamp.is_none()
    };
    Ok((slices.iter().filter(is_own).flat_map(|slice| reach(slice, Some(&service))).collect(), is_headless))
}

/// True if a member imports the Service.
async fn imports(api: Api, user: &User, admin: kube::Client) -> anyhow::Result<bool> {
    match api {
        Api::Fleet => Ok(import(user).await?.is_some()),
        Api::Mcs => {
            let namespace = kube::Api::<Namespace>::all(admin).get_opt(NAMESPACE).await?;
            Ok(namespace.is_some_and(|namespace| {
                namespace.metadata.deletion_timestamp.is_none()
                    && namespace.labels().get("fleetnet/import").is_some_and(|value| value == "true")
            }))
        }
    }
}

async fn import(user: &User) -> anyhow::Result<Option<MultiClusterService>> {
    let all = user.api::<MultiClusterService>().list(&ListParams::default()).await?;
    Ok(all.items.into_iter().find(|request| {
        request.metadata.deletion_timestamp.is_none()
            && request.spec.service_import.as_ref().is_some_and(|import| import.name == "app")
    }))
}

async fn served_by_fleet_api(user: &User, system: &User) -> anyhow::Result<Endpoints> {
    let Some(request) = import(user).await? else { return Ok(Endpoints::new()) };
    match request.labels().get("networking.fleet.azure.com/derived-service") {
        Some(derived) => of_service(system, derived).await,
        None => Ok(Endpoints::new()),
    }
}

async fn served_by_mcs_api(user: &User, is_headless: bool) -> anyhow::Result<Endpoints> {
    if !is_headless {
        return of_service(user, &mcs_derived(&crate::world::service("app")).name).await;
    }
    // A DNS server of the standard API reads these labels.
    let label = ListParams::default().labels("multicluster.kubernetes.io/service-name=app");
    let slices = user.api::<EndpointSlice>().list(&label).await?.items;
    Ok(slices.iter().flat_map(|slice| reach(slice, None)).collect())
}

/// Returns what kube-proxy serves at the address of a Service.
async fn of_service(user: &User, name: &str) -> anyhow::Result<Endpoints> {
    let Some(service) = user.api::<Service>().get_opt(name).await? else { return Ok(Endpoints::new()) };
    let label = ListParams::default().labels(&format!("kubernetes.io/service-name={name}"));
    let slices = user.api::<EndpointSlice>().list(&label).await?.items;
    Ok(slices.iter().flat_map(|slice| reach(slice, Some(&service))).collect())
}

/// Returns the ready endpoints of a slice, at the ports that its Service has.
fn reach(slice: &EndpointSlice, service: Option<&Service>) -> Endpoints {
    let spec = service.and_then(|service| service.spec.as_ref());
    let own = spec.filter(|spec| spec.cluster_ip.as_deref() != Some("None")).map(|spec| {
        let ports = spec.ports.iter().flatten();
        ports.map(|port| port.name.clone().unwrap_or_default()).collect::<BTreeSet<_>>()
    });
    let ports: Vec<(String, i32)> = slice
        .ports
        .iter()
        .flatten()
        .map(|port| (port.name.clone().unwrap_or_default(), port.port.unwrap_or_default()))
        .filter(|(name, _)| own.as_ref().is_none_or(|own| own.contains(name)))
        .collect();
    let families =
        spec.filter(|spec| spec.cluster_ip.as_deref() != Some("None")).and_then(|spec| spec.ip_families.clone());
    if slice.address_type == "FQDN" || families.is_some_and(|families| !families.contains(&slice.address_type)) {
        return Endpoints::new();
    }
    let is_ready = |endpoint: &&k8s_openapi::api::discovery::v1::Endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
    };
    let ready = slice.endpoints.iter().flatten().filter(is_ready);
    let addresses = ready.flat_map(|endpoint| endpoint.addresses.iter().take(8));
    let with_ports =
        |address: &String| -> Vec<String> { ports.iter().map(|(_, number)| format!("{address} {number}")).collect() };
    addresses.flat_map(with_ports).collect()
}
