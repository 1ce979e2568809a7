//! Secret `fleetnet-hub` in a member: address of the hub, its certificate authority, and the token.

use super::token::{self, Life};
use crate::cli::contexts::connect::{self, Cluster};
use crate::cli::contexts::failure::Class;
use crate::cli::exit::Stop;
use crate::cli::objects::decide::Differences;
use crate::cli::objects::{Action, Done, Reference, write_failed};
use fleetnet_runtime::clock::{Clock, to_jiff};
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::PostParams;
use kube::{Api, Config};
use std::collections::BTreeMap;
use std::time::Duration;

/// Name of the Secret.
pub(crate) const NAME: &str = "fleetnet-hub";
/// Keys of the Secret. `certificate-authority` is the base64 text of the PEM.
const URL: &str = "url";
const AUTHORITY: &str = "certificate-authority";
pub(crate) const TOKEN: &str = "token";

/// What the Secret must say about the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hub {
    pub(crate) url: String,
    /// True if the user named the URL (`--hub-server`). It then replaces another URL.
    pub(crate) is_url_explicit: bool,
    /// Base64 text of the PEM.
    pub(crate) authority: String,
}

/// Plan for the Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Values to write.
    pub(crate) set: BTreeMap<&'static str, String>,
    /// Values that differ and stay.
    pub(crate) kept: Vec<String>,
    /// Reasons for the values to write.
    pub(crate) reasons: Vec<String>,
}

/// Plans the URL and the authority. An existing value that differs may be the user's, such as the hub's address inside
/// a private network, so it stays.
pub(crate) fn plan(present: &BTreeMap<String, String>, hub: &Hub, differences: Differences) -> Plan {
    let mut plan = Plan::default();
    let wanted = [(URL, &hub.url, hub.is_url_explicit), (AUTHORITY, &hub.authority, false)];
    for (key, value, is_explicit) in wanted {
        match present.get(key).map(|present| present.trim()).filter(|present| !present.is_empty()) {
            Some(present) if present == value => {}
            Some(_) if !is_explicit && differences == Differences::Keep => {
                let shown = if key == URL { format!("{key} is not {value}") } else { format!("{key} is another") };
                plan.kept.push(format!("{shown}: use --overwrite to replace"));
            }
            present => {
                plan.reasons.push(format!("{key} {}", if present.is_some() { "replaced" } else { "was missing" }));
                plan.set.insert(key, value.clone());
            }
        }
    }
    plan
}

/// Brings the Secret of a member up to date, and its namespace. A token that the hub accepts stays, unless it has a
/// `defect` that the caller knows. An API server may accept a revoked token for some seconds more.
pub(crate) async fn apply(
    hub: &Cluster,
    member: &Cluster,
    id: &str,
    settings: &Hub,
    asked: Option<Life>,
    differences: Differences,
    defect: Option<String>,
) -> Result<Vec<Done>, Stop> {
    let mut done = vec![namespace(member).await?];
    let secrets: Api<Secret> = Api::namespaced(member.client.clone(), &member.agent_namespace);
    let object = Reference::new("Secret", &member.agent_namespace, NAME);
    let present = member.find(secrets.get(NAME)).await.map_err(|failure| write_failed(failure, "read", &object))?;
    let text = |value: &ByteString| String::from_utf8_lossy(&value.0).into_owned();
    let data = present.iter().flat_map(|secret| secret.data.iter().flatten());
    let data: BTreeMap<String, String> = data.map(|(key, value)| (key.clone(), text(value))).collect();
    let mut plan = plan(&data, settings, differences);

    let token = data.get(TOKEN).map(String::as_str).unwrap_or_default();
    let now = to_jiff(Clock::system().now());
    let defect = match defect.or_else(|| token::defect(token, id, now, asked)) {
        Some(defect) => Some(defect),
        None => refusal(hub, token, id).await?,
    };
    if let Some(defect) = defect {
        let granted = token::get(hub, id, asked.unwrap_or(DEFAULT_LIFE)).await?;
        plan.set.insert(TOKEN, granted.token);
        plan.reasons.extend((present.is_some()).then_some(defect));
        plan.reasons.push(granted.remark);
    }
    let action = match (&present, plan.set.is_empty(), plan.kept.is_empty()) {
        (Some(_), true, true) => Action::Unchanged,
        (Some(_), true, false) => Action::Kept,
        (Some(_), false, _) => Action::Updated,
        (None, ..) => Action::Created,
    };
    write(member, &secrets, present, &plan, &object).await?;
    let note = plan.reasons.into_iter().chain(plan.kept).collect::<Vec<_>>().join("; ");
    done.push(Done { object, cluster: member.context.clone(), action, note });
    Ok(done)
}

async fn write(
    member: &Cluster,
    secrets: &Api<Secret>,
    present: Option<Secret>,
    plan: &Plan,
    object: &Reference,
) -> Result<(), Stop> {
    if plan.set.is_empty() {
        return Ok(());
    }
    let is_new = present.is_none();
    let mut secret = present.unwrap_or_default();
    secret.metadata.name = Some(NAME.to_owned());
    let data = secret.data.get_or_insert_default();
    data.extend(plan.set.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.clone().into_bytes()))));
    let parameters = PostParams::default();
    let (verb, written) = if is_new {
        ("create", member.ask(secrets.create(&parameters, &secret)).await)
    } else {
        // The resourceVersion in the object prevents that a change in between is lost.
        ("update", member.ask(secrets.replace(NAME, &parameters, &secret)).await)
    };
    written.map(drop).map_err(|failure| write_failed(failure, verb, object))
}

/// Creates the namespace of the agent in the member, if it is not there.
async fn namespace(member: &Cluster) -> Result<Done, Stop> {
    let namespaces: Api<Namespace> = Api::all(member.client.clone());
    let object = Reference::new("Namespace", "", &member.agent_namespace);
    let done = |action| Done { object: object.clone(), cluster: member.context.clone(), action, note: String::new() };
    let present = member.find(namespaces.get(&member.agent_namespace)).await;
    if present.map_err(|failure| write_failed(failure, "read", &object))?.is_some() {
        return Ok(done(Action::Unchanged));
    }
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(member.agent_namespace.to_string());
    let made = member.ask(namespaces.create(&PostParams::default(), &namespace)).await;
    made.map_err(|failure| write_failed(failure, "create", &object))?;
    Ok(done(Action::Created))
}

/// Asks the hub who the bearer of the token is. Returns the reason if the hub refuses the token.
async fn refusal(hub: &Cluster, token: &str, id: &str) -> Result<Option<String>, Stop> {
    let mut config = Config::new(hub.url().clone());
    config.root_cert.clone_from(&hub.config.root_cert);
    config.accept_invalid_certs = hub.config.accept_invalid_certs;
    config.tls_server_name.clone_from(&hub.config.tls_server_name);
    config.proxy_url.clone_from(&hub.config.proxy_url);
    config.auth_info.token = Some(token.trim().to_owned().into());
    let client = connect::client(&hub.context, &config, hub.request_timeout)?;
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let asked = hub.ask(reviews.create(&PostParams::default(), &SelfSubjectReview::default())).await;
    match asked {
        Err(failure) if failure.class == Class::Unauthorized => Ok(Some("the hub refused the token".to_owned())),
        Err(failure) => Err(failure.into()),
        Ok(review) => {
            let user = review.status.and_then(|status| status.user_info?.username).unwrap_or_default();
            Ok((user != token::user(id)).then(|| format!("the token was that of {user}")))
        }
    }
}

/// Life of a token if the user asks for none: 30 days.
pub(crate) const DEFAULT_LIFE: Life = Life::For(Duration::from_secs(30 * 24 * 3600));

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(is_url_explicit: bool) -> Hub {
        Hub { url: "https://hub.test:6443".to_owned(), is_url_explicit, authority: "QQ==".to_owned() }
    }

    fn data(url: &str, authority: &str) -> BTreeMap<String, String> {
        [(URL, url), (AUTHORITY, authority)].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn a_new_secret_gets_url_and_authority() {
        let plan = plan(&BTreeMap::new(), &hub(false), Differences::Keep);
        assert_eq!(plan.set, [(URL, "https://hub.test:6443".to_owned()), (AUTHORITY, "QQ==".to_owned())].into());
        assert_eq!(plan.reasons, ["url was missing", "certificate-authority was missing"]);
    }

    #[test]
    fn values_that_fit_are_not_written() {
        assert_eq!(plan(&data("https://hub.test:6443\n", "QQ=="), &hub(true), Differences::Keep), Plan::default());
    }

    #[test]
    fn other_values_stay_unless_the_user_says_otherwise() {
        let own = data("https://10.0.0.1", "Qg==");
        let kept = plan(&own, &hub(false), Differences::Keep);
        assert!(kept.set.is_empty() && kept.kept.len() == 2, "{kept:?}");
        assert_eq!(kept.kept[0], "url is not https://hub.test:6443: use --overwrite to replace");
        let explicit = plan(&own, &hub(true), Differences::Keep);
        assert_eq!(explicit.set.keys().collect::<Vec<_>>(), [&URL]);
        assert_eq!(plan(&own, &hub(false), Differences::Overwrite).set.len(), 2);
    }
}
