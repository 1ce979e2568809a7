//! Command `fleetnet migrate to-go`: prepares the return of one cluster to Go agents.
//!
//! ```text
//! read ──> changes (diagnosis) ──> heartbeat ──> apply ──> delete MemberAgent ──> wait for the Go form
//!   ^── somebody changed an object, or the member is silent ──┘
//! ```

use crate::cli::contexts::connect::Cluster;
use crate::cli::contexts::failure::Failure;
use crate::cli::contexts::{ClusterFlags, duration};
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet::{Breadth, Fleet, no_members};
use crate::cli::join::{manifests, member_id};
use crate::cli::objects::{Action, Changes, Done, Reference, write_failed};
use crate::cli::output::OutputFlags;
use crate::cli::output::progress::Progress;
use crate::limits::{APPLY_TRIES, POLL};
use diagnosis::migrate::{Change, Object, Refused, Rollback, is_go_export, is_go_form, of_hub, of_member, write};
use diagnosis::read::Scope;
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceImport, InternalServiceImport, ServiceImportType};
use fleetnet_runtime::clock::{Clock, to_jiff};
use k8s_openapi::NamespaceResourceScope;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::Instant;

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("cluster").required(true).args(["member", "hub"]))]
pub(super) struct Options {
    /// Id of the member.
    #[arg(value_name = "MEMBER", value_parser = member_id)]
    member: Option<String>,

    /// The hub returns to the Go hub agent.
    #[arg(long)]
    hub: bool,

    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,

    /// Time limit for the other agents to write the Go form.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    wait: Duration,

    /// Time limit for reading the clusters once.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Runs the command.
pub(super) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let breadth = if options.hub { Breadth::Named } else { Breadth::All };
    let mut fleet = Fleet::find(&options.clusters, breadth, options.timeout, &progress).await?;
    fleet.only(options.member.as_deref());
    if let Some(member) = &options.member {
        fleet.prove(member, &options.clusters).await?;
    }
    let mut done = Vec::new();
    let result = return_to_go(&options, &fleet, &progress, &mut done).await;
    drop(progress);
    let member = options.member.unwrap_or_else(|| "hub".to_owned());
    Changes { kind: "MigrateToGo", member, is_dry_run: options.dry_run, done }.print(options.output, result)
}

async fn return_to_go(
    options: &Options,
    fleet: &Fleet,
    progress: &Progress,
    done: &mut Vec<Done>,
) -> Result<Exit, Stop> {
    let end = Instant::now() + options.wait;
    for _ in 0..APPLY_TRIES {
        let rollback = prepared(options, fleet, progress, end).await?;
        let mut is_complete = true;
        for change in rollback.changes {
            is_complete &= apply(options, fleet, change, progress, done).await?;
        }
        if !is_complete {
            continue;
        }
        if let Some(agent) = rollback.agent
            && !forget(options, fleet.hub(), &agent, done).await?
        {
            continue;
        }
        if !options.dry_run {
            wait_for_go_form(options, fleet, progress).await?;
            progress.note("start the Go agents now");
        }
        return Ok(Exit::Healthy);
    }
    Err(Stop::fault(format!(
        "objects changed {APPLY_TRIES} times while the command ran: check that no fleetnet agent of this cluster runs, and run the \
         command again"
    )))
}

/// Reads the fleet and returns the changes. Sends a heartbeat in place of the stopped member agent. Then the hub agent
/// does not judge the member in between. If it already has, waits until it trusts the member again.
async fn prepared(options: &Options, fleet: &Fleet, progress: &Progress, end: Instant) -> Result<Rollback, Stop> {
    loop {
        let snapshot = fleet.snapshot(&Scope::Migration, progress).await;
        let rollback = match &options.member {
            Some(_) if snapshot.members.is_empty() => return Err(no_members(fleet.hub())),
            Some(member) => of_member(&snapshot, member),
            None => of_hub(&snapshot),
        };
        let rollback = rollback.map_err(|refused| match refused {
            Refused::First(why) => Stop::fault(why),
            Refused::NotKnown(why) => Stop::not_known(why),
        })?;
        if options.dry_run {
            return Ok(rollback);
        }
        if let Some(agent) = &rollback.agent {
            let hub = fleet.hub();
            let renewed = hub.find(write::renew(&hub.client, agent, to_jiff(Clock::system().now()))).await;
            outcome(renewed, Action::Updated, "update", &reference(agent))?;
        }
        if !rollback.is_silent {
            return Ok(rollback);
        }
        if rollback.agent.is_none() || Instant::now() >= end {
            return Err(Stop::timeout(
                "the hub agent treats the member as silent, and Go agents send no heartbeat that ends this: start the fleetnet agent \
                 of the member until fleetnet status shows Ready, stop it, and run the command again",
            ));
        }
        progress.step("waiting until the hub agent no longer treats the member as silent");
        tokio::time::sleep(POLL).await;
    }
}

/// Makes a change. Returns false if the object has changed since it was read.
async fn apply(
    options: &Options,
    fleet: &Fleet,
    change: Change,
    progress: &Progress,
    done: &mut Vec<Done>,
) -> Result<bool, Stop> {
    let (cluster, object, note) = match &change {
        Change::Annotate(slice) => {
            let member = options.member.as_deref().and_then(|id| fleet.member(id));
            let member = member.ok_or_else(|| Stop::not_known("no context leads to the member"))?;
            (member, Reference::new("EndpointSlice", &slice.namespace, &slice.name), "")
        }
        Change::Delete { object, why } | Change::Keep { object, why } => (fleet.hub(), reference(object), *why),
        Change::Revoke(object) => (fleet.hub(), reference(object), OTHERS_FOLLOW),
    };
    progress.step(&format!("{}: {object}", cluster.context));
    let (action, verb) = match change {
        Change::Keep { .. } => (Action::Kept, "keep"),
        Change::Delete { .. } => (Action::Deleted, "delete"),
        Change::Annotate(_) => (Action::Updated, "annotate"),
        Change::Revoke(_) => (Action::Updated, "update"),
    };
    let action = if options.dry_run || action == Action::Kept {
        Some(action)
    } else {
        outcome(cluster.find(Box::pin(write::make(change, &cluster.client))).await, action, verb, &object)?
    };
    let Some(action) = action else { return Ok(false) };
    add(done, Done { object, cluster: cluster.context.clone(), action, note: note.to_owned() });
    Ok(true)
}

/// Adds what was done with an object. A second attempt does not list the object again.
fn add(done: &mut Vec<Done>, new: Done) {
    if !done.iter().any(|old| old.object == new.object) {
        done.push(new);
    }
}

/// Deletes the MemberAgent, unless the hub agent has judged the member in between. Returns false if the MemberAgent has
/// changed.
async fn forget(options: &Options, hub: &Cluster, agent: &Object, done: &mut Vec<Done>) -> Result<bool, Stop> {
    let action = if options.dry_run {
        Some(Action::Deleted)
    } else {
        match hub.find(Box::pin(write::forget(&hub.client, agent))).await {
            Ok(Some(false)) => None,
            answer => outcome(answer, Action::Deleted, "delete", &reference(agent))?,
        }
    };
    let Some(action) = action else { return Ok(false) };
    add(done, Done { object: reference(agent), cluster: hub.context.clone(), action, note: OTHERS_FOLLOW.to_owned() });
    Ok(true)
}

const OTHERS_FOLLOW: &str = "so that other agents write the Go form";

fn reference(object: &Object) -> Reference {
    Reference::new(&object.kind, &object.namespace, &object.name)
}

/// Returns the outcome of a write; `None` if the object has changed since it was read.
fn outcome<T>(
    answer: Result<Option<T>, Failure>,
    action: Action,
    verb: &str,
    object: &Reference,
) -> Result<Option<Action>, Stop> {
    match answer {
        Ok(Some(_)) => Ok(Some(action)),
        Ok(None) => Ok(Some(Action::Absent)),
        Err(failure) if failure.status == 409 => Ok(None),
        Err(failure) => Err(write_failed(failure, verb, object)),
    }
}

/// Waits until the hub agent writes the objects for a member in the Go form; for the hub, until the members do.
async fn wait_for_go_form(options: &Options, fleet: &Fleet, progress: &Progress) -> Result<(), Stop> {
    let (hub, end) = (fleet.hub(), Instant::now() + options.wait);
    loop {
        let (others, left) = match &options.member {
            Some(member) => {
                let namespace = Some(manifests::namespace(member));
                let mut left =
                    left(hub, namespace.as_deref(), |slice: &EndpointSliceImport| is_go_form(&slice.spec.slice))
                        .await?;
                left.extend(self::left(hub, namespace.as_deref(), |claim| !is_headless_claim(claim)).await?);
                ("the hub agent", left)
            }
            None => {
                let mut left = left(hub, None, |slice: &EndpointSliceExport| is_go_form(&slice.spec)).await?;
                left.extend(self::left(hub, None, is_go_export).await?);
                ("the member agents", left)
            }
        };
        if left.is_empty() {
            return Ok(());
        }
        progress.step(&format!("{}: {} objects are not in the Go form yet", hub.context, left.len()));
        if Instant::now() >= end {
            let namespaces: BTreeSet<&str> = left.iter().map(String::as_str).collect();
            return Err(Stop::timeout(format!(
                "context {}: {others} did not write {} objects in the Go form within {:?}, in {}: check that the agents run, and run \
                 the command again",
                hub.context,
                left.len(),
                options.wait,
                namespaces.into_iter().collect::<Vec<_>>().join(", ")
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn is_headless_claim(claim: &InternalServiceImport) -> bool {
    claim.status.as_ref().is_some_and(|status| status.type_ == Some(ServiceImportType::Headless))
}

/// Returns the namespaces of the objects with content that Go agents do not have, one for each object. An object that
/// is being deleted waits for the Go agents.
async fn left<K>(hub: &Cluster, namespace: Option<&str>, is_go_form: impl Fn(&K) -> bool) -> Result<Vec<String>, Stop>
where
    K: Clone + Debug + DeserializeOwned + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let client = hub.client.clone();
    let api: Api<K> = namespace.map_or_else(|| Api::all(client.clone()), |it| Api::namespaced(client.clone(), it));
    let list = hub.find(api.list(&ListParams::default())).await?.map(|list| list.items).unwrap_or_default();
    let left = list.iter().filter(|object| object.meta().deletion_timestamp.is_none() && !is_go_form(object));
    Ok(left.filter_map(ResourceExt::namespace).collect())
}
