//! Command `fleetnet rotate`: revokes all tokens of a member for the hub, and gives the member a new one.
//!
//! ```text
//! hub:    ServiceAccount, deleted and created again ──> new token
//! member: Secret with the new token                                 (without --hub-only)
//! ```
//!
//! A token names the UID of its ServiceAccount, so no token of the deleted account is valid. Roles are bound by name,
//! so they stay.

use super::contexts::connect::Cluster;
use super::contexts::hub::require as require_hub;
use super::contexts::hub_members::HubMembers;
use super::contexts::proof::{self, Proven};
use super::contexts::{ClusterFlags, Contexts};
use super::exit::{Exit, Stop};
use super::join::manifests::{self, ACCOUNT, TOKEN_SECRET, Token};
use super::join::text::{self, Subject};
use super::join::token::{self, Life};
use super::join::{apply_one, member_id, secret, settings, url, written};
use super::objects::decide::Differences;
use super::objects::{Action, Changes, Done, Reference, write_failed};
use super::output::progress::Progress;
use super::output::{self, OutputFlags};
use crate::limits::{POLL, TOKEN_WAIT};
use diagnosis::agents::Agent;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};
use tokio::time::{Instant, sleep};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of the member.
    #[arg(value_name = "MEMBER", value_parser = member_id)]
    member: String,

    /// Revoke the tokens in the hub only, and print the commands that give the member a new one.
    #[arg(long, conflicts_with = "context")]
    hub_only: bool,

    /// URL of the hub's API server for the pods of the member. Default: the URL in the member's Secret, else the server
    /// of the hub's context.
    #[arg(long, value_name = "URL", value_parser = url)]
    hub_server: Option<String>,

    /// Life of the new token, or none for a token that does not expire [default: 720h, or what the hub grants].
    #[arg(long, value_name = "DURATION|none", value_parser = token::life)]
    token_ttl: Option<Life>,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    if options.clusters.context.len() > 1 {
        return Err(Stop::usage("rotate takes one --context, that of the member"));
    }
    let progress = Progress::new(options.clusters.verbose);
    let contexts = Contexts::read(&options.clusters)?;
    contexts.warnings.iter().for_each(|warning| progress.note(warning));
    let hub_context = contexts.hub(&options.clusters)?;
    let hub = Cluster::connect(&contexts, &hub_context, Agent::Hub, options.clusters.request_timeout).await?;
    require_hub(&contexts, &hub).await?;
    // The member is found before anything is written, so that a wrong context or namespace locks nobody out.
    let member = if options.hub_only { None } else { Some(member(&options, &contexts, &hub).await?) };
    let mut done = Vec::new();
    let rotated = rotate(&options, &hub, member.as_ref(), &progress, &mut done).await;
    drop(progress);
    let is_revoked = done.iter().any(|done| done.action == Action::Created);
    let exit = Changes { kind: "Rotate", member: options.member.clone(), is_dry_run: false, done }
        .print(options.output, rotated.map(|()| Exit::Healthy));
    if member.is_none() && is_revoked {
        print_commands(&options, &hub);
    }
    exit
}

/// Returns the cluster of the member whose Secret gets the new token.
async fn member(options: &Options, contexts: &Contexts, hub: &Cluster) -> Result<Cluster, Stop> {
    let id = &options.member;
    let known = HubMembers::of(hub).await?;
    let otherwise = "use --hub-only, which prints the commands for the member";
    let Proven { cluster, others, holder, has_agent } =
        proof::find(contexts, &options.clusters, &known, id, otherwise).await?;
    if !has_agent {
        return Err(Stop::usage(format!(
            "context {}: the namespace {} has neither the Secret {} nor the Deployment of {id}: name the namespace of its agent with \
             --agent-namespace, or {otherwise}",
            cluster.context,
            cluster.agent_namespace,
            secret::NAME
        )));
    }
    match holder.filter(|holder| holder != id) {
        Some(holder) => Err(Stop::fault(format!(
            "context {}: the Secret {} has a token of the member {holder}, and the cluster is also the member {}: {otherwise}",
            cluster.context,
            secret::NAME,
            proof::list(&others)
        ))),
        None => Ok(cluster),
    }
}

async fn rotate(
    options: &Options,
    hub: &Cluster,
    member: Option<&Cluster>,
    progress: &Progress,
    done: &mut Vec<Done>,
) -> Result<(), Stop> {
    let id = &options.member;
    progress.step(&format!("{}: revoking the tokens of {id}", hub.context));
    revoke(hub, id, done).await?;
    if options.token_ttl == Some(Life::Unlimited) {
        let objects = manifests::of_member(id, Token::NeverExpires);
        let stored = objects.iter().find(|object| Reference::of(object).kind == "Secret");
        let stored = stored.ok_or_else(|| Stop::fault("there is no manifest of a stored token"))?;
        done.push(apply_one(hub, stored, Differences::Keep).await?);
    }
    if let Some(member) = member {
        progress.step(&format!("{}: Secret {}", member.context, secret::NAME));
        let settings = settings(hub, id, options.hub_server.as_deref()).await?;
        let revoked = Some("the old token was revoked".to_owned());
        let life = options.token_ttl;
        done.extend(secret::apply(hub, member, id, &settings, life, Differences::Keep, revoked).await?);
    }
    Ok(())
}

/// Replaces the ServiceAccount of a member by another one with the same name.
async fn revoke(hub: &Cluster, id: &str, done: &mut Vec<Done>) -> Result<(), Stop> {
    let namespace = manifests::namespace(id);
    let accounts: Api<ServiceAccount> = Api::namespaced(hub.client.clone(), &namespace);
    let object = Reference::new("ServiceAccount", &namespace, ACCOUNT);
    let old = hub.find(accounts.get(ACCOUNT)).await.map_err(|failure| write_failed(failure, "read", &object))?;
    let old = old.ok_or_else(|| {
        Stop::fault(format!("context {}: there is no {object}: fleetnet join {id} --apply creates it", hub.context))
    })?;
    let add = |done: &mut Vec<Done>, object: &Reference, action, note: &str| {
        done.push(Done { object: object.clone(), cluster: hub.context.clone(), action, note: note.to_owned() });
    };
    let of_uid = |uid: Option<String>| DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::default()
    };
    let deleted = hub.find(accounts.delete(ACCOUNT, &of_uid(old.uid()))).await;
    deleted.map_err(|failure| write_failed(failure, "delete", &object))?;
    add(done, &object, Action::Deleted, "its tokens are no longer valid");
    create(hub, &accounts, &old, &object).await?;
    add(done, &object, Action::Created, "");

    // kube-controller-manager deletes the Secret too, but only later. Its token must not be taken for one of the new
    // account.
    let secrets: Api<Secret> = Api::namespaced(hub.client.clone(), &namespace);
    let object = Reference::new("Secret", &namespace, TOKEN_SECRET);
    let stored = hub.find(secrets.get_metadata(TOKEN_SECRET)).await;
    if let Some(stored) = stored.map_err(|failure| write_failed(failure, "read", &object))? {
        let deleted = hub.find(secrets.delete(TOKEN_SECRET, &of_uid(stored.uid()))).await;
        deleted.map_err(|failure| write_failed(failure, "delete", &object))?;
        add(done, &object, Action::Deleted, "");
    }
    Ok(())
}

/// Creates the successor of an account. Waits while the old one is not gone yet, for example because of a finalizer.
async fn create(
    hub: &Cluster,
    accounts: &Api<ServiceAccount>,
    old: &ServiceAccount,
    object: &Reference,
) -> Result<(), Stop> {
    let end = Instant::now() + TOKEN_WAIT;
    let new = successor(old);
    loop {
        let failure = match hub.ask(accounts.create(&PostParams::default(), &new)).await {
            Ok(_) => return Ok(()),
            Err(failure) => failure,
        };
        if failure.status != 409 || Instant::now() >= end {
            return Err(write_failed(failure, "create", object));
        }
        let present = hub.find(accounts.get(ACCOUNT)).await?;
        if present.is_some_and(|present| present.uid() != old.uid()) {
            return Ok(()); // somebody else was faster
        }
        sleep(POLL).await;
    }
}

/// Returns an account with all that users wrote into another one.
fn successor(old: &ServiceAccount) -> ServiceAccount {
    let metadata = ObjectMeta {
        name: old.metadata.name.clone(),
        labels: old.metadata.labels.clone(),
        annotations: old.metadata.annotations.clone(),
        owner_references: old.metadata.owner_references.clone(),
        ..ObjectMeta::default()
    };
    ServiceAccount { metadata, secrets: None, ..old.clone() }
}

/// Prints the commands that give the member a new token.
fn print_commands(options: &Options, hub: &Cluster) {
    let life = options.token_ttl.unwrap_or(secret::DEFAULT_LIFE);
    let id = &options.member;
    let subject = Subject {
        member: id,
        hub_context: &hub.context,
        member_context: id,
        agents: options.clusters.agents().members,
        server: options.hub_server.as_deref(),
        token: life.kind(),
        life: written(life),
    };
    output::note(&format!("the agent of {id} has no access to the hub until you replace its token:"));
    for line in text::replace(&subject).as_str().lines() {
        output::note(line);
    }
}

#[cfg(test)]
mod tests {
    use super::successor;
    use k8s_openapi::api::core::v1::ServiceAccount;
    use serde_json::json;

    #[test]
    fn the_new_account_has_what_users_wrote_and_nothing_of_the_old_identity() {
        let old: ServiceAccount = serde_json::from_value(json!({
            "metadata": {
                "name": "member-agent", "namespace": "fleet-member-west", "uid": "1", "resourceVersion": "2",
                "creationTimestamp": "2026-11-23T06:00:00Z", "finalizers": ["example.com/keep"],
                "labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "hub"},
            },
            "automountServiceAccountToken": false, "imagePullSecrets": [{"name": "registry"}], "secrets": [{"name": "old"}],
        }))
        .unwrap();
        let expected: ServiceAccount = serde_json::from_value(json!({
            "metadata": {
                "name": "member-agent", "labels": {"app.kubernetes.io/managed-by": "Helm"},
                "annotations": {"meta.helm.sh/release-name": "hub"},
            },
            "automountServiceAccountToken": false, "imagePullSecrets": [{"name": "registry"}],
        }))
        .unwrap();
        assert_eq!(successor(&old), expected);
    }
}
