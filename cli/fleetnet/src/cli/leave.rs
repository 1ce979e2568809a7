//! Command `fleetnet leave`: takes a member out of the fleet. Nothing of the fleet is left behind, and nothing foreign
//! is deleted.
//!
//! ```text
//! member: exports, imports, labels ──> wait for its agent ──> Secret      (without --force)
//! hub:    wait for the agents ──> access, MemberAgent, namespace
//! hub:    namespace ──> wait for the hub agent ──> release what is left   (--force)
//! ```

mod contents;
mod hub;
mod log;
mod mcs;
mod member;
mod objects;

use log::Log;

use super::contexts::connect::Cluster;
use super::contexts::hub::require as require_hub;
use super::contexts::hub_members::HubMembers;
use super::contexts::proof::{self, Proven};
use super::contexts::{ClusterFlags, Contexts, duration};
use super::exit::{Exit, Stop};
use super::fleet::no_members;
use super::join::{manifests, member_id};
use super::objects::{Action, Changes, Done, Reference};
use super::output::progress::Progress;
use super::output::{self, OutputFlags};
use diagnosis::agents::Agent;
use fleetnet_api::crd::MemberAgent;
use fleetnet_core::names::cluster_of;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use std::collections::BTreeMap;
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

    /// Do not ask before objects are deleted. Needed if standard input is no terminal.
    #[arg(long)]
    yes: bool,

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

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    if options.clusters.context.len() > 1 {
        return Err(Stop::usage("leave takes one --context, that of the member"));
    }
    let is_asking = !options.dry_run && !options.yes;
    if is_asking && !output::can_ask() {
        return Err(Stop::usage(
            "leave deletes objects and asks before it does, but standard input is no terminal: use --yes, or --dry-run to only see \
             the objects",
        ));
    }
    let progress = Progress::new(options.clusters.verbose);
    let contexts = Contexts::read(&options.clusters)?;
    contexts.warnings.iter().for_each(|warning| progress.note(warning));
    let hub_context = contexts.hub(&options.clusters)?;
    let hub = Cluster::connect(&contexts, &hub_context, Agent::Hub, options.clusters.request_timeout).await?;
    require_hub(&contexts, &hub).await?;
    drop(progress);
    if is_asking {
        let (planned, servers, outcome) = attempt(&options, &contexts, &hub, true).await;
        let exit = outcome?;
        if !planned.iter().any(|done| done.action.is_write()) {
            return Changes { kind: "Leave", member: options.member, is_dry_run: false, done: planned }
                .print(options.output, Ok(exit));
        }
        if !output::ask(&question(&options.member, &planned, &servers))? {
            return Err(Stop::fault("nothing was changed"));
        }
    }
    let (done, _, left) = attempt(&options, &contexts, &hub, options.dry_run).await;
    Changes { kind: "Leave", member: options.member, is_dry_run: options.dry_run, done }.print(options.output, left)
}

/// Takes the member out, or plans it. Returns also what was done before an error.
async fn attempt(
    options: &Options,
    contexts: &Contexts,
    hub: &Cluster,
    is_dry_run: bool,
) -> (Vec<Done>, BTreeMap<String, String>, Result<Exit, Stop>) {
    let progress = Progress::new(options.clusters.verbose);
    let mut log = Log { done: Vec::new(), servers: BTreeMap::new(), is_dry_run, progress: &progress };
    let left = Box::pin(leave(options, contexts, hub, &mut log)).await;
    (log.done, log.servers, left)
}

/// Returns the question before objects are deleted: the number of objects in each cluster, with its server.
fn question(member: &str, planned: &[Done], servers: &BTreeMap<String, String>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for done in planned.iter().filter(|done| done.action.is_write()) {
        *counts.entry(&done.cluster).or_default() += 1;
    }
    let counts = counts.iter().map(|(context, count)| {
        let server = servers.get(*context).map_or("", String::as_str);
        format!("{count} objects of context {context} ({server})")
    });
    let counts = counts.collect::<Vec<_>>().join(" and ");
    format!("Take the member {member} out? This deletes or changes {counts}. --dry-run lists them. [y/N]")
}

async fn leave(options: &Options, contexts: &Contexts, hub: &Cluster, log: &mut Log<'_>) -> Result<Exit, Stop> {
    let id = &options.member;
    log.servers.insert(hub.context.clone(), hub.url().to_string());
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
    let known = HubMembers::of(hub).await?;
    let proven = proof::find(contexts, &options.clusters, &known, id, "use --force, which uses the hub only").await;
    let Proven { cluster: member, others, holder, .. } = proven.map_err(|mut stop| {
        if member::is_out_of_reach(&stop) {
            stop.why.push_str(", or use --force if the member is gone");
        }
        stop
    })?;
    log.servers.insert(member.context.clone(), member.url().to_string());
    if !others.is_empty() {
        // Each agent of the cluster serves all its ServiceExports and MultiClusterServices, so they are not of one
        // member only.
        log.progress.note(&format!(
            "the cluster of context {} is also the member {}: its ServiceExports and MultiClusterServices stay, and only what {id} has \
             in the hub is removed. If that is wrong, take the other member out first, with --force",
            member.context,
            proof::list(&others)
        ));
        if holder.as_ref() == Some(id) {
            member::forget(&member, log).await?;
        }
        return hub::force(hub, &namespace, log, options.wait).await;
    }
    let agents: Api<MemberAgent> = Api::namespaced(hub.client.clone(), &namespace);
    let agent = hub.find(agents.get(id)).await?;
    member::withdraw(&member, log).await?;
    mcs::withdraw(hub, &namespace, &member, log).await?;
    member::wait_for_agent(&member, agent.as_ref(), log, end).await?;
    hub::wait_for_agents(hub, &namespace, log, end).await?;
    member::forget(&member, log).await?;
    let exit = hub::remove(hub, &namespace, log, end).await?;
    if !log.is_dry_run {
        log.progress.note(&format!(
            "remove the agent of {id}: helm --kube-context {0} -n {1} uninstall fleetnet-member-agent, or kubectl --context {0} \
             delete -f deploy/member-agent.yaml",
            member.context, member.agent_namespace
        ));
    }
    Ok(exit)
}

/// Returns the members that the hub knows.
async fn members(hub: &Cluster) -> Result<Vec<String>, Stop> {
    let namespaces: Api<Namespace> = Api::all(hub.client.clone());
    let list = hub.ask(namespaces.list_metadata(&ListParams::default())).await?;
    Ok(list.items.iter().filter_map(|namespace| Some(cluster_of(&namespace.name_any())?.to_string())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_has_the_number_of_objects_of_each_cluster_with_its_server() {
        let done = |cluster: &str, action| Done {
            object: Reference::new("ServiceExport", "work", "app"),
            cluster: cluster.to_owned(),
            action,
            note: String::new(),
        };
        let planned = [
            done("hub", Action::Deleted),
            done("west", Action::Deleted),
            done("west", Action::Updated),
            done("west", Action::Absent),
        ];
        let servers = [("hub", "https://hub.test/"), ("west", "https://west.test/")];
        let servers = servers.map(|(context, url)| (context.to_owned(), url.to_owned())).into();
        assert_eq!(
            question("west", &planned, &servers),
            "Take the member west out? This deletes or changes 1 objects of context hub (https://hub.test/) and 2 objects of context \
             west (https://west.test/). --dry-run lists them. [y/N]"
        );
    }
}
