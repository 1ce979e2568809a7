//! The hub's side of leaving: the member's namespace and everything in it.

use super::contents::{self, Contents, ListedObject, api, without_ours};
use super::log::Log;
use crate::cli::contexts::connect::Cluster;
use crate::cli::exit::{Exit, Stop};
use crate::cli::objects::{Action, Reference, write_failed};
use crate::limits::POLL;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Kind that stays while the agents still work: the member's heartbeat.
const HEARTBEAT: &str = "MemberAgent";
/// Kind that the hub agent deletes itself when its claim or its export is gone.
const DISTRIBUTED: &str = "EndpointSliceImport";
/// Kind that the hub agent makes for each Service of the standard API.
const MERGED: &str = "MergedServiceImport";
/// Kinds in the order in which access ends: first the rights, so that an agent that still runs writes nothing new.
const ACCESS: [&str; 5] = ["RoleBinding", "Role", "ServiceAccount", "Secret", "ResourceQuota"];

/// Waits until the agents have removed the member's exports, claims and slices from the hub.
pub(super) async fn wait_for_agents(
    hub: &Cluster,
    namespace: &str,
    log: &mut Log<'_>,
    end: Instant,
) -> Result<(), Stop> {
    if log.is_dry_run {
        return Ok(());
    }
    loop {
        let contents = contents::read(hub, namespace).await?;
        let left = counts(contents.fleet.iter().filter(|found| is_waited_for(found)));
        if left.is_empty() {
            return Ok(());
        }
        log.progress.step(&format!("{}: waiting for the agents to remove {left}", hub.context));
        if Instant::now() >= end {
            return Err(Stop::timeout(format!(
                "context {}: namespace {namespace} still has {left}: look at the hub agent, and run the command again",
                hub.context
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// True if the agents still have to remove an object. The hub agent keeps a MergedServiceImport for each Service while
/// the member agent runs. It waits for nothing but the finalizer of the member agent.
fn is_waited_for(found: &ListedObject) -> bool {
    match found.object.kind.as_str() {
        HEARTBEAT => false,
        MERGED => without_ours(&found.metadata).is_some(),
        _ => true,
    }
}

/// Deletes the member's access, its MemberAgent and its namespace. A namespace with foreign objects stays.
pub(super) async fn remove(hub: &Cluster, namespace: &str, log: &mut Log<'_>, end: Instant) -> Result<Exit, Stop> {
    let contents = contents::read(hub, namespace).await?;
    for kind in ACCESS {
        for found in contents.access.iter().filter(|found| found.object.kind == kind) {
            delete(hub, found, log).await?;
        }
    }
    for found in &contents.fleet {
        delete(hub, found, log).await?;
    }
    remove_namespace(hub, namespace, &contents, log).await?;
    if log.is_dry_run || contents.obstacle().is_some() {
        return Ok(exit_of(&contents));
    }
    if !is_gone(hub, namespace, log, end).await? {
        return Err(Stop::timeout(format!("context {}: {}", hub.context, still_there(hub, namespace).await?)));
    }
    Ok(Exit::Healthy)
}

/// Takes a member out with the hub alone. The hub agent gets the time of `--wait` to withdraw the exports and to end
/// the claims. Then the finalizers that are left are removed, because nobody else will.
pub(super) async fn force(hub: &Cluster, namespace: &str, log: &mut Log<'_>, wait: Duration) -> Result<Exit, Stop> {
    let contents = contents::read(hub, namespace).await?;
    for kind in ACCESS {
        for found in contents.access.iter().filter(|found| found.object.kind == kind) {
            delete(hub, found, log).await?;
        }
    }
    if contents.obstacle().is_some() {
        // The hub agent removes the distributed slices itself after the claims.
        for found in contents.fleet.iter().filter(|found| found.object.kind != DISTRIBUTED) {
            delete(hub, found, log).await?;
        }
    } else {
        for found in &contents.fleet {
            log.add(found.object.clone(), &hub.context, Action::Deleted, "with its namespace");
        }
    }
    remove_namespace(hub, namespace, &contents, log).await?;
    if log.is_dry_run || is_clean(hub, namespace, &contents, log, Instant::now() + wait).await? {
        return Ok(exit_of(&contents));
    }
    for found in contents::read(hub, namespace).await?.fleet {
        release(hub, found, log).await?;
    }
    if !is_clean(hub, namespace, &contents, log, Instant::now() + wait).await? {
        return Err(Stop::timeout(format!("context {}: {}", hub.context, still_there(hub, namespace).await?)));
    }
    Ok(exit_of(&contents))
}

/// A namespace that stays because its contents are not known is not a complete answer.
fn exit_of(contents: &Contents) -> Exit {
    if contents.foreign.is_empty() && !contents.unknown.is_empty() { Exit::Incomplete } else { Exit::Healthy }
}

async fn delete(hub: &Cluster, found: &ListedObject, log: &mut Log<'_>) -> Result<(), Stop> {
    if !log.is_dry_run {
        let preconditions = Some(Preconditions { uid: found.metadata.uid.clone(), resource_version: None });
        let parameters = DeleteParams { preconditions, ..DeleteParams::background() };
        let deleted = hub.find(api(hub, found).delete(&found.object.name, &parameters)).await;
        match deleted {
            // The object is gone, and an agent has made another one of this name. The next run finds it.
            Err(failure) if failure.status == 409 => return Ok(()),
            deleted => deleted.map_err(|failure| write_failed(failure, "delete", &found.object))?,
        };
    }
    log.add(found.object.clone(), &hub.context, Action::Deleted, "");
    Ok(())
}

async fn remove_namespace(hub: &Cluster, namespace: &str, contents: &Contents, log: &mut Log<'_>) -> Result<(), Stop> {
    let object = Reference::new("Namespace", "", namespace);
    if let Some(why) = contents.obstacle() {
        log.add(object, &hub.context, Action::Kept, &why);
        return Ok(());
    }
    if !log.is_dry_run {
        let namespaces: Api<Namespace> = Api::all(hub.client.clone());
        let deleted = hub.find(namespaces.delete(namespace, &DeleteParams::background())).await;
        deleted.map_err(|failure| write_failed(failure, "delete", &object))?;
    }
    log.add(object, &hub.context, Action::Deleted, "");
    Ok(())
}

/// Removes the finalizers of fleetnet from an object. An object that is not being deleted yet is deleted first.
async fn release(hub: &Cluster, mut found: ListedObject, log: &mut Log<'_>) -> Result<(), Stop> {
    if found.metadata.deletion_timestamp.is_none() {
        delete(hub, &found, log).await?;
        let now = hub.find(api(hub, &found).get_metadata(&found.object.name)).await?;
        let Some(now) = now.filter(|now| now.metadata.uid == found.metadata.uid) else { return Ok(()) };
        found.metadata = now.metadata;
    }
    let Some(finalizers) = without_ours(&found.metadata) else { return Ok(()) };
    // The resourceVersion in the patch prevents that a finalizer that somebody adds now is lost.
    let metadata = json!({"finalizers": finalizers, "resourceVersion": found.metadata.resource_version});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    let patched = hub.find(api(hub, &found).patch(&found.object.name, &PatchParams::default(), &patch)).await;
    match patched {
        // Changed in between: an agent works on it.
        Err(failure) if failure.status == 409 => return Ok(()),
        patched => patched.map_err(|failure| write_failed(failure, "remove the finalizers of", &found.object))?,
    };
    log.add(found.object, &hub.context, Action::Released, "no agent removed its finalizers in time");
    Ok(())
}

/// Waits until the namespace is gone. If it stays for its foreign objects, waits until fleetnet's objects are gone.
async fn is_clean(
    hub: &Cluster,
    namespace: &str,
    before: &Contents,
    log: &Log<'_>,
    end: Instant,
) -> Result<bool, Stop> {
    if before.obstacle().is_none() {
        return is_gone(hub, namespace, log, end).await;
    }
    loop {
        let contents = contents::read(hub, namespace).await?;
        if contents.fleet.is_empty() {
            return Ok(true);
        }
        log.progress.step(&format!(
            "{}: waiting for the hub agent to remove {}",
            hub.context,
            counts(contents.fleet.iter())
        ));
        if Instant::now() >= end {
            return Ok(false);
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn is_gone(hub: &Cluster, namespace: &str, log: &Log<'_>, end: Instant) -> Result<bool, Stop> {
    let namespaces: Api<Namespace> = Api::all(hub.client.clone());
    loop {
        if hub.find(namespaces.get(namespace)).await?.is_none() {
            return Ok(true);
        }
        log.progress.step(&format!("{}: waiting until namespace {namespace} is gone", hub.context));
        if Instant::now() >= end {
            return Ok(false);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Returns what keeps a namespace.
async fn still_there(hub: &Cluster, namespace: &str) -> Result<String, Stop> {
    let contents = contents::read(hub, namespace).await?;
    let left = counts(contents.fleet.iter().chain(&contents.access).chain(&contents.foreign));
    let left = if left.is_empty() { "no objects, only the namespace itself".to_owned() } else { left };
    Ok(format!("namespace {namespace} is not gone yet, it has {left}: see its status, and run the command again"))
}

/// Returns the numbers of objects by kind, such as `2 EndpointSliceExport, 1 MemberAgent`.
fn counts<'a>(found: impl Iterator<Item = &'a ListedObject>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for found in found {
        *counts.entry(&found.object.kind).or_default() += 1;
    }
    counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}
