//! Command `fleetnet migrate to-go`: prepares the return of one cluster to Go agents.
//!
//! ```text
//! read ──> changes (diagnosis) ──> apply ──> wait until the others write the Go form
//!   ^── somebody changed an object ──┘
//! ```

use crate::cli::contexts::connect::Cluster;
use crate::cli::contexts::{ClusterFlags, duration};
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet::{Breadth, Fleet};
use crate::cli::join::{manifests, member_id};
use crate::cli::objects::{Action, Changes, Done, Reference, write_failed};
use crate::cli::output::progress::Progress;
use crate::cli::output::{self, OutputFlags};
use crate::limits::{APPLY_TRIES, POLL};
use fleetnet_api::crd::{EndpointSliceExport, EndpointSliceExportSpec, EndpointSliceImport};
use fleetnet_api::names::{GROUP, VERSION};
use fleetnet_diagnosis::migrate::{Annotated, Change, Deleted, Refused, is_go_form, of_hub, of_member};
use fleetnet_diagnosis::read::Scope;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;
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

/// Outcome of one change.
enum Applied {
    /// Somebody changed the object since it was read.
    Outdated,
    Done(Action),
}

/// Runs the command.
pub(super) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let breadth = if options.hub { Breadth::Named } else { Breadth::All };
    let mut fleet = Fleet::find(&options.clusters, breadth, options.timeout, &progress).await?;
    fleet.only(options.member.as_deref());
    let mut done = Vec::new();
    let result = return_to_go(&options, &fleet, &progress, &mut done).await;
    drop(progress);
    if !done.is_empty() {
        let member = options.member.clone().unwrap_or_else(|| "hub".to_owned());
        let report = Changes { kind: "MigrateToGo", member, is_dry_run: options.dry_run, done };
        output::print(&report, options.output)?;
    }
    if options.dry_run && result.is_ok() {
        output::note("dry run: nothing was changed");
    }
    result
}

async fn return_to_go(
    options: &Options,
    fleet: &Fleet,
    progress: &Progress,
    done: &mut Vec<Done>,
) -> Result<Exit, Stop> {
    for _ in 0..APPLY_TRIES {
        let snapshot = fleet.snapshot(&Scope::ToGo, progress).await;
        let changes = match &options.member {
            Some(_) if snapshot.members.is_empty() => return Err(fleet.hub_without_members()),
            Some(member) => of_member(&snapshot, member),
            None => of_hub(&snapshot),
        };
        let changes = changes.map_err(|refused| match refused {
            Refused::First(why) => Stop::fault(why),
            Refused::NotKnown(why) => Stop::not_known(why),
        })?;
        if apply_all(options, fleet, changes, progress, done).await? {
            if !options.dry_run {
                wait_for_go_form(options, fleet, progress).await?;
                progress.note("start the Go agents now");
            }
            return Ok(Exit::Healthy);
        }
    }
    Err(Stop::fault(format!(
        "objects changed {APPLY_TRIES} times while the command ran: check that no fleetnet agent of this cluster runs, and run the \
         command again"
    )))
}

/// Makes the changes. Returns false if an object has changed since it was read.
async fn apply_all(
    options: &Options,
    fleet: &Fleet,
    changes: Vec<Change>,
    progress: &Progress,
    done: &mut Vec<Done>,
) -> Result<bool, Stop> {
    for change in changes {
        let (object, note, cluster) = match &change {
            Change::Annotate(slice) => (
                Reference::new("EndpointSlice", &slice.namespace, &slice.name),
                "",
                fleet.member().ok_or_else(|| Stop::not_known("no context leads to the member"))?,
            ),
            Change::Delete(object) => {
                (Reference::new(&object.kind, &object.namespace, &object.name), object.why, fleet.hub())
            }
        };
        progress.step(&format!("{}: {object}", cluster.context));
        let applied = match change {
            Change::Annotate(_) if options.dry_run => Applied::Done(Action::Updated),
            Change::Delete(_) if options.dry_run => Applied::Done(Action::Deleted),
            Change::Annotate(slice) => annotate(cluster, slice, &object).await?,
            Change::Delete(deleted) => delete(cluster, deleted, &object).await?,
        };
        match applied {
            Applied::Outdated => return Ok(false),
            Applied::Done(action) => {
                done.push(Done { object, cluster: cluster.context.clone(), action, note: note.to_owned() });
            }
        }
    }
    Ok(true)
}

async fn annotate(member: &Cluster, slice: Annotated, object: &Reference) -> Result<Applied, Stop> {
    let api: Api<EndpointSlice> = Api::namespaced(member.client.clone(), &slice.namespace);
    let metadata = json!({"resourceVersion": slice.resource_version, "annotations": slice.annotations});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    match member.find(api.patch(&slice.name, &PatchParams::default(), &patch)).await {
        Ok(Some(_)) => Ok(Applied::Done(Action::Updated)),
        Ok(None) => Ok(Applied::Done(Action::Absent)),
        Err(failure) if failure.status == 409 => Ok(Applied::Outdated),
        Err(failure) => Err(write_failed(failure, "annotate", object)),
    }
}

async fn delete(hub: &Cluster, deleted: Deleted, object: &Reference) -> Result<Applied, Stop> {
    let kind = GroupVersionKind::gvk(GROUP, VERSION, &deleted.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &deleted.plural);
    let api: Api<DynamicObject> = Api::namespaced_with(hub.client.clone(), &deleted.namespace, &resource);
    let preconditions = Some(Preconditions { uid: Some(deleted.uid), resource_version: None });
    let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
    match hub.find(api.delete(&deleted.name, &parameters)).await {
        Ok(Some(_)) => Ok(Applied::Done(Action::Deleted)),
        Ok(None) => Ok(Applied::Done(Action::Absent)),
        Err(failure) if failure.status == 409 => Ok(Applied::Outdated),
        Err(failure) => Err(write_failed(failure, "delete", object)),
    }
}

/// Waits until the hub agent writes the slices for a member in the Go form; for the hub, until the members do.
async fn wait_for_go_form(options: &Options, fleet: &Fleet, progress: &Progress) -> Result<(), Stop> {
    let (hub, end) = (fleet.hub(), Instant::now() + options.wait);
    loop {
        let (others, left) = match &options.member {
            Some(member) => {
                let slices: Api<EndpointSliceImport> =
                    Api::namespaced(hub.client.clone(), &manifests::namespace(member));
                let slices = hub.find(slices.list(&ListParams::default())).await?.map(|list| list.items);
                ("the hub agent", left(&slices.unwrap_or_default(), |slice| &slice.spec.slice))
            }
            None => {
                let slices: Api<EndpointSliceExport> = Api::all(hub.client.clone());
                let slices = hub.find(slices.list(&ListParams::default())).await?.map(|list| list.items);
                ("the member agents", left(&slices.unwrap_or_default(), |slice| &slice.spec))
            }
        };
        if left == 0 {
            return Ok(());
        }
        progress.step(&format!("{}: {left} slices are not in the Go form yet", hub.context));
        if Instant::now() >= end {
            return Err(Stop::timeout(format!(
                "context {}: {others} did not write {left} slices in the Go form within {:?}: check that they run, and run the \
                 command again",
                hub.context, options.wait
            )));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Returns the number of slices with content that Go agents do not have. A slice that is being deleted waits for the Go agents.
fn left<K: kube::Resource>(slices: &[K], content: fn(&K) -> &EndpointSliceExportSpec) -> usize {
    let is_left = |slice: &&K| slice.meta().deletion_timestamp.is_none() && !is_go_form(content(slice));
    slices.iter().filter(is_left).count()
}
