//! Contexts of the kubeconfigs: which clusters a command can reach, and which of them is the hub.

pub(crate) mod connect;
pub(crate) mod failure;
pub(crate) mod hub;
pub(crate) mod hub_members;
mod lost;
pub(crate) mod members;
pub(crate) mod proof;

use diagnosis::agents::{AgentNamespace, AgentNamespaces};
use failure::{Class, Failure};
use fleetnet_runtime::io::client::kubeconfig_problem;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the context for a pod's service account. It is the only context if there is no kubeconfig.
pub(crate) const IN_CLUSTER: &str = "in-cluster";

/// Heading of the options that many commands have. `-h` leaves them out, so that it shows what is special.
pub(crate) const HEADING: &str = "Common options";

/// Flags that choose the clusters.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterFlags {
    /// Kubeconfig with contexts. Repeat the flag for several files. Default: the files in KUBECONFIG, else
    /// ~/.kube/config, else the service account of this pod.
    #[arg(long, value_name = "FILE", help_heading = HEADING, hide_short_help = true)]
    pub(crate) kubeconfig: Vec<PathBuf>,

    /// Context of the hub. Default: the current context of the first kubeconfig.
    #[arg(long, value_name = "NAME", help_heading = HEADING, hide_short_help = true)]
    pub(crate) hub_context: Option<String>,

    /// Context of a member. Repeat the flag for several members. Default: all contexts whose cluster is a member of the
    /// hub; for join, none.
    #[arg(long, value_name = "NAME", help_heading = HEADING, hide_short_help = true)]
    pub(crate) context: Vec<String>,

    /// Namespace of the agents in all clusters: of their Deployments, Leases and Secrets, and of derived Services.
    #[arg(long, value_name = "NAMESPACE", default_value_t, help_heading = HEADING, hide_short_help = true)]
    pub(crate) agent_namespace: AgentNamespace,

    /// Namespace of the hub agent. Default: that of --agent-namespace.
    #[arg(long, value_name = "NAMESPACE", help_heading = HEADING, hide_short_help = true)]
    pub(crate) hub_agent_namespace: Option<AgentNamespace>,

    /// Time limit of one request.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration, help_heading = HEADING,
          hide_short_help = true)]
    pub(crate) request_timeout: Duration,

    /// Print each step to standard error.
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = HEADING, hide_short_help = true)]
    pub(crate) verbose: u8,
}

impl ClusterFlags {
    /// Returns the namespaces of the agents.
    pub(crate) fn agents(&self) -> AgentNamespaces {
        let members = self.agent_namespace.clone();
        AgentNamespaces { hub: self.hub_agent_namespace.clone().unwrap_or_else(|| members.clone()), members }
    }
}

/// Parses a duration that is longer than zero, such as `500ms`, `5s` or `1m30s`.
pub(crate) fn duration(written: &str) -> Result<Duration, String> {
    match fleetnet_agent::go_flags::parse_duration(written)? {
        Duration::ZERO => Err("use a duration longer than 0, such as 5s".to_owned()),
        duration => Ok(duration),
    }
}

/// All contexts of the kubeconfigs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contexts {
    files: Vec<Kubeconfig>,
    /// Place of each context: its name and its file.
    found: Vec<(String, usize)>,
    current: Option<String>,
    is_in_cluster: bool,
    /// Namespaces of the agents in the clusters.
    agents: AgentNamespaces,
    /// Warnings for the user, such as a name that two files have.
    pub(crate) warnings: Vec<String>,
}

impl Contexts {
    /// Reads the kubeconfigs that the flags, the environment or the defaults name.
    ///
    /// # Errors
    /// If a named file cannot be read, or there is none.
    pub(crate) fn read(flags: &ClusterFlags) -> Result<Self, Failure> {
        Ok(Self { agents: flags.agents(), ..Self::of_flags(flags)? })
    }

    fn of_flags(flags: &ClusterFlags) -> Result<Self, Failure> {
        let variable = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
        if !flags.kubeconfig.is_empty() {
            return Self::of_files(&flags.kubeconfig);
        }
        if let Some(variable) = variable {
            // kubectl skips files of KUBECONFIG that do not exist, and so do we.
            let files: Vec<PathBuf> = std::env::split_paths(&variable).filter(|path| path.exists()).collect();
            if files.is_empty() {
                let shown = variable.to_string_lossy().into_owned();
                return Err(Failure::new(Class::Kubeconfig, &format!("KUBECONFIG={shown}: no such file")));
            }
            return Self::of_files(&files);
        }
        let home = std::env::home_dir().map(|home| home.join(".kube/config")).filter(|path| path.exists());
        if let Some(home) = home {
            return Self::of_files(&[home]);
        }
        if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
            return Ok(Self { is_in_cluster: true, current: Some(IN_CLUSTER.to_owned()), ..Self::default() });
        }
        Err(Failure::new(Class::Kubeconfig, "no kubeconfig: use --kubeconfig FILE, or set KUBECONFIG"))
    }

    /// Reads these kubeconfigs.
    fn of_files(paths: &[PathBuf]) -> Result<Self, Failure> {
        let read = |path: &PathBuf| {
            // kube's error names the file for some errors only.
            Kubeconfig::read_from(path).map_err(|error| {
                Failure::new(Class::Kubeconfig, &format!("{}: {}", path.display(), kubeconfig_problem(&error)))
            })
        };
        let files = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Self::merge(files, paths))
    }

    /// Merges kubeconfigs. If two files have a context of the same name, the first one counts, as in kubectl.
    fn merge(files: Vec<Kubeconfig>, paths: &[PathBuf]) -> Self {
        let mut merged = Self::default();
        for (index, file) in files.iter().enumerate() {
            merged.current = merged.current.or_else(|| file.current_context.clone().filter(|name| !name.is_empty()));
            for NamedContext { name, .. } in &file.contexts {
                match merged.found.iter().find(|(known, _)| known == name) {
                    None => merged.found.push((name.clone(), index)),
                    Some((_, first)) if *first != index => {
                        let path = |index: usize| paths.get(index).map_or(Path::new("?"), PathBuf::as_path).display();
                        merged.warnings.push(format!(
                            "context {name} of {} is not used, because {} has a context of the same name: rename one with \
                             kubectl config rename-context",
                            path(index),
                            path(*first)
                        ));
                    }
                    Some(_) => {}
                }
            }
        }
        merged.files = files;
        merged
    }

    /// Names of all contexts, in the order of the files.
    pub(crate) fn names(&self) -> Vec<String> {
        if self.is_in_cluster {
            return vec![IN_CLUSTER.to_owned()];
        }
        self.found.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Name of the hub's context.
    ///
    /// # Errors
    /// If no flag and no kubeconfig names it.
    pub(crate) fn hub(&self, flags: &ClusterFlags) -> Result<String, Failure> {
        flags.hub_context.clone().or_else(|| self.current.clone()).ok_or_else(|| {
            let why = format!(
                "no context of the hub: use --hub-context NAME with one of {}, because no kubeconfig has a current context",
                list(&self.names())
            );
            Failure::new(Class::Kubeconfig, &why)
        })
    }

    /// Returns the name of the cluster that a context names in its kubeconfig.
    fn cluster_of(&self, context: &str) -> Option<String> {
        let (_, index) = self.found.iter().find(|(name, _)| name == context)?;
        let contexts = &self.files.get(*index)?.contexts;
        let found = contexts.iter().find(|named| named.name == context)?;
        Some(found.context.as_ref()?.cluster.clone())
    }

    /// Returns the connection settings of a context.
    ///
    /// # Errors
    /// If the context does not exist, or its cluster, its user or their files are not usable.
    pub(crate) async fn config(&self, context: &str) -> Result<Config, Failure> {
        if self.is_in_cluster && context == IN_CLUSTER {
            return Config::incluster().map_err(|error| Failure::new(Class::Kubeconfig, &failure::causes(&error)));
        }
        let Some((_, index)) = self.found.iter().find(|(name, _)| name == context) else {
            let why = format!("no kubeconfig has this context: use one of {}", list(&self.names()));
            return Err(Failure::new(Class::NoContext, &why));
        };
        let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(self.seen_from(*index), &options).await;
        config.map_err(|error| Failure::new(Class::Kubeconfig, &failure::causes(&error)))
    }

    /// Returns the kubeconfig as a context of this file sees it: the clusters and users of its own file come before
    /// those of other files. So two files may both have a user `admin`, and a context may also use a cluster of another
    /// file.
    fn seen_from(&self, index: usize) -> Kubeconfig {
        let order = std::iter::once(index).chain((0..self.files.len()).filter(|other| *other != index));
        let files: Vec<&Kubeconfig> = order.filter_map(|index| self.files.get(index)).collect();
        let clusters: Vec<NamedCluster> = files.iter().flat_map(|file| file.clusters.clone()).collect();
        let auth_infos: Vec<NamedAuthInfo> = files.iter().flat_map(|file| file.auth_infos.clone()).collect();
        let contexts = files.iter().flat_map(|file| file.contexts.clone()).collect();
        Kubeconfig { clusters, auth_infos, contexts, ..Kubeconfig::default() }
    }
}

/// Returns names as a list for a message.
fn list(names: &[String]) -> String {
    if names.is_empty() { "(the kubeconfigs have no contexts)".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn file(current: &str, contexts: &[(&str, &str)]) -> Kubeconfig {
        let contexts: Vec<_> = contexts
            .iter()
            .map(|(name, cluster)| json!({"name": name, "context": {"cluster": cluster, "user": "admin"}}))
            .collect();
        serde_json::from_value(json!({
            "current-context": current,
            "contexts": contexts,
            "clusters": [{"name": "here", "cluster": {"server": format!("https://{current}.test")}}],
            "users": [{"name": "admin", "user": {"token": format!("of-{current}")}}],
        }))
        .unwrap()
    }

    fn merged() -> Contexts {
        let files =
            vec![file("hub", &[("hub", "here")]), file("west", &[("west", "here"), ("hub", "here"), ("odd", "away")])];
        Contexts::merge(files, &["a".into(), "b".into()])
    }

    #[test]
    fn the_first_file_with_a_context_counts_and_the_other_is_named() {
        let contexts = merged();
        assert_eq!(contexts.names(), ["hub", "west", "odd"]);
        assert_eq!(contexts.current.as_deref(), Some("hub"));
        assert_eq!(
            contexts.warnings,
            ["context hub of b is not used, because a has a context of the same name: rename one with kubectl config \
              rename-context"]
        );
    }

    #[tokio::test]
    async fn clusters_and_users_of_the_own_file_come_first() {
        let contexts = merged();
        for (context, url) in [("hub", "https://hub.test/"), ("west", "https://west.test/")] {
            assert_eq!(contexts.config(context).await.unwrap().cluster_url.to_string(), url);
        }
        let of_west = contexts.seen_from(1);
        let token = of_west.auth_infos[0].auth_info.as_ref().and_then(|user| user.token.as_ref());
        assert_eq!(serde_json::to_value(of_west.auth_infos.first()).unwrap()["user"]["token"], "of-west", "{token:?}");
    }

    #[tokio::test]
    async fn a_context_that_does_not_exist_or_has_no_cluster_is_named() {
        let contexts = merged();
        let missing = contexts.config("east").await.unwrap_err();
        assert_eq!(missing.class, Class::NoContext);
        assert_eq!(missing.detail, "no kubeconfig has this context: use one of hub, west, odd");
        let broken = contexts.config("odd").await.unwrap_err();
        assert_eq!((broken.class, broken.detail.contains("away")), (Class::Kubeconfig, true), "{broken:?}");
    }

    #[test]
    fn a_time_limit_is_longer_than_zero() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("0").is_err() && duration("0s").is_err() && duration("5").is_err());
    }
}
