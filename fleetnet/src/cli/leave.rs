//! Command `fleetnet leave`: takes a member out of the fleet. Nothing of the fleet is left behind, and nothing foreign is deleted.
//!
//! ```text
//! member: exports, imports, labels ──> wait for its agent ──> Secret      (without --force)
//! hub:    wait for the agents ──> access, MemberAgent, namespace
//! hub:    namespace ──> wait for the hub agent ──> release what is left   (--force)
//! ```

mod contents;
mod hub;
mod member;
mod standard;

use super::contexts::connect::Cluster;
use super::contexts::{ClusterFlags, Contexts, duration};
use super::exit::{Exit, Stop};
use super::fleet::no_members;
use super::join::{manifests, member_id};
use super::objects::{Action, Changes, Done, Reference};
use super::output::OutputFlags;
use super::output::progress::Progress;
use fleetnet_api::crd::MemberAgent;
use fleetnet_core::names::cluster_of;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use std::time::Duration;
use tokio::time::Instant;

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of the member.
    #[arg(value_name = "MEMBER", value_parser = member_id)]
    member: String,

    /// Only show what would be done.
    #[arg(long)]
    dry_run: bool,

    /// The member is gone: use the hub only. Finalizers that no agent removes within the time of --wait are removed.
    #[arg(long, conflicts_with = "context")]
    force: bool,

    /// Time limit for the agents to remove what they made.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    wait: Duration,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// What the command has done so far. It is printed also if the command fails later.
struct Log<'a> {
    done: Vec<Done>,
    is_dry_run: bool,
    progress: &'a Progress,
}

impl Log<'_> {
    fn add(&mut self, object: Reference, cluster: &str, action: Action, note: &str) {
        self.progress.step(&format!("{cluster}: {object}"));
        self.done.push(Done { object, cluster: cluster.to_owned(), action, note: note.to_owned() });
    }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    if options.clusters.context.len() > 1 {
        return Err(Stop::usage("leave takes one --context, that of the member"));
    }
    let progress = Progress::new(options.clusters.verbose);
    let contexts = Contexts::read(&options.clusters)?;
    contexts.warnings.iter().for_each(|warning| progress.note(warning));
    let hub_context = contexts.hub(&options.clusters)?;
    let hub = Cluster::connect(&contexts, &hub_context, options.clusters.request_timeout).await?;
    let mut log = Log { done: Vec::new(), is_dry_run: options.dry_run, progress: &progress };
    let left = Box::pin(leave(&options, &contexts, &hub, &mut log)).await;
    let done = log.done;
    drop(progress);
    Changes { kind: "Leave", member: options.member, is_dry_run: options.dry_run, done }.print(options.output, left)
}

async fn leave(options: &Options, contexts: &Contexts, hub: &Cluster, log: &mut Log<'_>) -> Result<Exit, Stop> {
    let id = &options.member;
    let namespace = manifests::namespace(id);
    let namespaces: Api<Namespace> = Api::all(hub.client.clone());
    if hub.find(namespaces.get(&namespace)).await?.is_none() {
        let members = members(hub).await?;
        if members.is_empty() {
            return Err(no_members(hub));
        }
        log.progress.note(&format!("the hub has no member {id}: its members are {}", members.join(", ")));
        log.add(Reference::new("Namespace", "", &namespace), &hub.context, Action::Absent, "");
        return Ok(Exit::Healthy);
    }
    if options.force {
        return hub::force(hub, &namespace, log, options.wait).await;
    }
    let end = Instant::now() + options.wait;
    let agents: Api<MemberAgent> = Api::namespaced(hub.client.clone(), &namespace);
    let agent = hub.find(agents.get(id)).await?;
    let member = member::connect(contexts, &options.clusters, id, agent.as_ref()).await.map_err(|mut stop| {
        if member::is_out_of_reach(&stop) {
            stop.why.push_str(", or use --force if the member is gone");
        }
        stop
    })?;
    member::withdraw(&member, log).await?;
    standard::withdraw(hub, &namespace, &member, log).await?;
    member::wait_for_agent(&member, agent.as_ref(), log, end).await?;
    hub::wait_for_agents(hub, &namespace, log, end).await?;
    member::forget(&member, log).await?;
    let exit = hub::remove(hub, &namespace, log, end).await?;
    log.progress.note(&format!(
        "remove the agent of {id}: helm --kube-context {0} -n fleet-system uninstall fleetnet-member-agent, or kubectl \
         --context {0} delete -f deploy/member-agent.yaml",
        member.context
    ));
    Ok(exit)
}

/// Returns the members that the hub knows.
async fn members(hub: &Cluster) -> Result<Vec<String>, Stop> {
    let namespaces: Api<Namespace> = Api::all(hub.client.clone());
    let list = hub.ask(namespaces.list_metadata(&ListParams::default())).await?;
    Ok(list.items.iter().filter_map(|namespace| Some(cluster_of(&namespace.name_any())?.to_string())).collect())
}
