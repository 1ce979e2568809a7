//! Command `fleetnet join`: prints or applies what a hub and a member need for the member to be part of the fleet.
//!
//! ```text
//! deploy/hub-member.yaml ──> manifests ──> text            (default: printed)
//!                                └──────> decide ──> hub   (--apply: get, then create or replace)
//! TokenRequest ──> secret ──> member                       (--apply with the context of the member)
//! ```

pub(crate) mod manifests;
pub(crate) mod secret;
mod target;
pub(crate) mod text;
pub(crate) mod token;
mod wait;

use super::contexts::connect::Cluster;
use super::contexts::{ClusterFlags, Contexts, duration};
use super::exit::{Exit, Stop};
use super::objects::decide::{Decision, Differences, decide};
use super::objects::{Action, Changes, Done, Reference, api_of, write_failed};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::{self, Format, OutputFlags};
use crate::limits::APPLY_TRIES;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use diagnosis::agents::Agent;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use kube::core::DynamicObject;
use secret::Hub;
use serde_json::{Value, json};
use std::time::Duration;
use text::Subject;
use token::Life;

/// ConfigMap with the certificate authority of a cluster, which Kubernetes writes into each namespace.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Manifests for the hub.
    Hub,
    /// Commands that make the token and the Secret of the member.
    Member,
    /// Values of the chart fleetnet-member-agent.
    Values,
}

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Id of the member: a DNS label of at most 50 characters. Do not change it while the cluster is a member.
    #[arg(value_name = "MEMBER", value_parser = member_id)]
    member: String,

    /// Apply the objects to the hub. With --context, also write the Secret fleetnet-hub with a token into the member. A
    /// second run changes nothing, and repairs what is broken.
    #[arg(long)]
    apply: bool,

    /// Replace values that differ, such as a raised quota. By default they stay and are named. Needs --apply.
    #[arg(long, requires = "apply")]
    overwrite: bool,

    /// URL of the hub's API server for the pods of the member. Default: the server of the hub's context.
    #[arg(long, value_name = "URL", value_parser = url)]
    hub_server: Option<String>,

    /// Life of the token, or none for a token that does not expire [default: 720h, or what the hub grants].
    #[arg(long, value_name = "DURATION|none", value_parser = token::life)]
    token_ttl: Option<Life>,

    /// Print only this part.
    #[arg(long, value_name = "PART", value_enum, conflicts_with = "apply")]
    print: Option<Part>,

    /// Wait until the member's agent writes its heartbeat to the hub [default time limit: 5m]. Needs --apply.
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "5m",
          requires = "apply", value_parser = duration)]
    wait: Option<Duration>,

    /// The hub's cluster is also the member: --context may lead to the hub. Needs --apply.
    #[arg(long, requires = "apply")]
    hub_is_member: bool,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Checks the id of a member: a DNS label whose namespace in the hub has a valid name.
pub(crate) fn member_id(written: &str) -> Result<String, String> {
    let is_label = !written.is_empty()
        && written.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !written.starts_with('-')
        && !written.ends_with('-');
    if is_label && fleetnet_core::names::is_cluster_id(written) {
        return Ok(written.to_owned());
    }
    Err("use at most 50 lower-case letters, digits and dashes, with a letter or digit first and last".to_owned())
}

pub(crate) fn url(written: &str) -> Result<String, String> {
    let uri: http::Uri = written.parse().map_err(|_| "use a URL such as https://hub.example:6443".to_owned())?;
    match (uri.scheme_str(), uri.host()) {
        (Some("https" | "http"), Some(_)) => Ok(written.trim_end_matches('/').to_owned()),
        _ => Err("use a URL such as https://hub.example:6443".to_owned()),
    }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    if options.clusters.context.len() > 1 {
        return Err(Stop::usage("join takes one --context, that of the member"));
    }
    if options.apply { apply(&options).await } else { print(&options) }
}

/// Prints the manifests and commands. Sends no request.
fn print(options: &Options) -> Result<Exit, Stop> {
    let life = options.token_ttl.unwrap_or(secret::DEFAULT_LIFE);
    let objects = manifests::of_member(&options.member, life.kind());
    // The kubeconfig only serves to name the context in the commands, so a missing one is no error.
    let contexts = Contexts::read(&options.clusters).unwrap_or_default();
    let hub_context = contexts.hub(&options.clusters).unwrap_or_else(|_| "hub".to_owned());
    let subject = Subject {
        member: &options.member,
        hub_context: &hub_context,
        member_context: options.clusters.context.first().unwrap_or(&options.member),
        agents: options.clusters.agents().members,
        server: options.hub_server.as_deref(),
        token: life.kind(),
        life: written(life),
    };
    let text = match (options.print, options.output.output) {
        (Some(Part::Member), _) => text::member(&subject),
        (Some(Part::Values), Format::Json) => json_line(&text::values(&options.member)),
        (Some(Part::Values), _) => Safe::yaml(&text::values(&options.member)),
        (_, Format::Json) => json_line(&json!({"apiVersion": "v1", "kind": "List", "items": objects})),
        (_, Format::Name) => {
            Safe::block(&objects.iter().map(|object| format!("{}\n", Reference::of(object))).collect::<String>())
        }
        (Some(Part::Hub), _) => text::hub(&objects),
        (None, _) => text::all(&subject, &objects),
    };
    output::write(&text)?;
    Ok(Exit::Healthy)
}

fn json_line(value: &Value) -> Safe {
    let mut text = Safe::json(value);
    text.push_own("\n");
    text
}

/// Returns the life of a token as kubectl reads it.
pub(crate) fn written(life: Life) -> String {
    match life {
        Life::For(life) if life.as_secs().is_multiple_of(3600) => format!("{}h", life.as_secs() / 3600),
        Life::For(life) => format!("{}s", life.as_secs()),
        Life::Unlimited => String::new(),
    }
}

async fn apply(options: &Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let contexts = Contexts::read(&options.clusters)?;
    contexts.warnings.iter().for_each(|warning| progress.note(warning));
    let limit = options.clusters.request_timeout;
    let hub_context = contexts.hub(&options.clusters)?;
    progress.step(&format!("connecting to {hub_context}"));
    let hub = Cluster::connect(&contexts, &hub_context, Agent::Hub, limit).await?;
    // Connect to the member before anything is written, so that a wrong context leaves nothing half done.
    let member = match options.clusters.context.first() {
        Some(context) => Some(Cluster::connect(&contexts, context, Agent::Member, limit).await?),
        None => None,
    };
    if let Some(member) = member.as_ref().filter(|_| !options.hub_is_member) {
        progress.step(&format!("comparing {} with {}", member.context, hub.context));
        target::is_not_the_hub(&hub, member).await?;
    }
    let mut done = Vec::new();
    let applied = apply_all(options, &hub, member.as_ref(), &progress, &mut done).await;
    let waited = match options.wait {
        Some(limit) if applied.is_ok() => {
            let agents = options.clusters.agents();
            wait::until_heard(&hub, &options.member, &agents.members, limit, &progress).await
        }
        _ => Ok(()),
    };
    let is_alone = member.is_none();
    drop(progress);
    // After an error too: the user must see what has changed.
    if !done.is_empty() {
        let report = Changes { kind: "Join", member: options.member.clone(), is_dry_run: false, done };
        output::print(&report, options.output)?;
    }
    applied?;
    if is_alone {
        output::note(
            "no --context: the Secret of the member is not written, and gets no new token. Name the member's context with \
             --context, or see fleetnet join MEMBER --print member",
        );
    }
    waited.map(|()| Exit::Healthy)
}

/// Brings all objects of hub and member up to date. Adds each to `done`.
async fn apply_all(
    options: &Options,
    hub: &Cluster,
    member: Option<&Cluster>,
    progress: &Progress,
    done: &mut Vec<Done>,
) -> Result<(), Stop> {
    let differences = if options.overwrite { Differences::Overwrite } else { Differences::Keep };
    let life = options.token_ttl.unwrap_or(secret::DEFAULT_LIFE);
    for object in manifests::of_member(&options.member, life.kind()) {
        progress.step(&format!("{}: {}", hub.context, Reference::of(&object)));
        done.push(apply_one(hub, &object, differences).await?);
    }
    if let Some(member) = member {
        progress.step(&format!("{}: Secret {}", member.context, secret::NAME));
        let settings = settings(hub, &options.member, options.hub_server.as_deref()).await?;
        warn_of_loopback(&settings.url, progress);
        done.extend(
            secret::apply(hub, member, &options.member, &settings, options.token_ttl, differences, None).await?,
        );
    }
    Ok(())
}

/// Brings one object of the hub up to date.
pub(crate) async fn apply_one(hub: &Cluster, wanted: &Value, differences: Differences) -> Result<Done, Stop> {
    let (api, object) = (api_of(hub, wanted), Reference::of(wanted));
    let done = |action, note| Done { object: object.clone(), cluster: hub.context.clone(), action, note };
    for _ in 0..APPLY_TRIES {
        let present =
            hub.find(api.get(&object.name)).await.map_err(|failure| write_failed(failure, "read", &object))?;
        let present = present.map(|present| serde_json::to_value(present).unwrap_or_default());
        let (verb, written, result) = match decide(present.as_ref(), wanted, differences) {
            Decision::Unchanged => return Ok(done(Action::Unchanged, String::new())),
            Decision::Keep(why) => return Ok(done(Action::Kept, why)),
            Decision::Impossible(why) => {
                return Err(Stop::fault(format!("context {}: {object}: {why}", hub.context)));
            }
            Decision::Create => {
                let made = hub.ask(api.create(&PostParams::default(), &dynamic(wanted)?)).await;
                ("create", made, done(Action::Created, String::new()))
            }
            Decision::Update(next, why) => {
                let replaced = hub.ask(api.replace(&object.name, &PostParams::default(), &dynamic(&next)?)).await;
                ("update", replaced, done(Action::Updated, why))
            }
        };
        match written {
            Ok(_) => return Ok(result),
            // Somebody else was faster: look again.
            Err(failure) if failure.status == 409 => {}
            Err(failure) => return Err(write_failed(failure, verb, &object)),
        }
    }
    Err(Stop::fault(format!("context {}: {object} changes all the time: run the command again", hub.context)))
}

fn dynamic(object: &Value) -> Result<DynamicObject, Stop> {
    serde_json::from_value(object.clone()).map_err(|error| Stop::fault(format!("{}: {error}", Reference::of(object))))
}

/// Returns the hub's address and certificate authority for the Secret of the member.
pub(crate) async fn settings(hub: &Cluster, member: &str, server: Option<&str>) -> Result<Hub, Stop> {
    let url = server.map_or_else(|| hub.url().to_string().trim_end_matches('/').to_owned(), str::to_owned);
    let authority = match &hub.config.root_cert {
        Some(certificates) if !certificates.is_empty() => pem(certificates),
        // The kubeconfig trusts the authorities of this machine, and the agent has none of them.
        _ => authority_of_cluster(hub, member).await?,
    };
    Ok(Hub { url, is_url_explicit: server.is_some(), authority: STANDARD.encode(authority) })
}

/// Returns the certificate authority that Kubernetes writes into the member's namespace of the hub.
async fn authority_of_cluster(hub: &Cluster, member: &str) -> Result<String, Stop> {
    let maps: Api<ConfigMap> = Api::namespaced(hub.client.clone(), &manifests::namespace(member));
    let map = hub.find(maps.get(ROOT_CA)).await?;
    map.and_then(|map| map.data?.get("ca.crt").cloned()).ok_or_else(|| {
        Stop::fault(format!(
            "context {}: the kubeconfig names no certificate authority, and ConfigMap/{}/{ROOT_CA} has none either: add \
             certificate-authority-data to the kubeconfig",
            hub.context,
            manifests::namespace(member)
        ))
    })
}

/// Returns certificates as PEM.
pub(crate) fn pem(certificates: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        // Base64 is ASCII, so each piece is text.
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

/// Warns of an address that leads each pod to itself.
fn warn_of_loopback(url: &str, progress: &Progress) {
    let host = url.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    if host == "localhost" || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified()) {
        progress.note(&format!("{url} is an address of this machine, and pods cannot reach it: use --hub-server URL"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_member_is_a_dns_label_whose_namespace_has_a_valid_name() {
        let longest = "a".repeat(50);
        for id in ["west", "w", "1", "west-1", "a--b", longest.as_str()] {
            assert_eq!(member_id(id), Ok(id.to_owned()));
        }
        let long = "a".repeat(51);
        for id in ["", "-a", "a-", "West", "we.st", "we_st", "größe", "a b", "a\n", long.as_str()] {
            assert!(member_id(id).unwrap_err().contains("50"), "{id:?}");
        }
    }

    #[test]
    fn urls_have_a_scheme_and_a_host() {
        assert_eq!(url("https://hub.test:6443/"), Ok("https://hub.test:6443".to_owned()));
        for wrong in ["", "hub.test", "hub.test:6443", "ftp://hub.test", "https://", "https:// x"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn certificates_become_pem() {
        assert_eq!(
            pem(&[vec![0; 60]]),
            format!("-----BEGIN CERTIFICATE-----\n{}\n{}\n-----END CERTIFICATE-----\n", "A".repeat(64), "A".repeat(16))
        );
    }
}
