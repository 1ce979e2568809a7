//! Command `fleetnet version`: versions of this program and of the agents that the hub knows.

use super::contexts::connect::Cluster;
use super::contexts::failure::Class;
use super::contexts::{ClusterFlags, Contexts};
use super::exit::{Exit, Stop};
use super::output::safe::Safe;
use super::output::table::{Table, column};
use super::output::{self, Format, OutputFlags, Paint, Report};
use diagnosis::agents::Agent;
use fleetnet_api::crd::MemberAgent;
use fleetnet_core::names::cluster_of;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// Show the version of this program only, without a request to the hub.
    #[arg(long)]
    client: bool,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Version of one program or server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Component {
    component: &'static str,
    cluster: String,
    version: String,
}

struct Versions(Vec<Component>);

impl Report for Versions {
    fn kind(&self) -> &'static str {
        "Versions"
    }

    fn document(&self) -> Map<String, Value> {
        let versions = self.0.iter().map(|Component { component, cluster, version }| {
            let mut entry = json!({"component": component, "version": version});
            if !cluster.is_empty() {
                entry["cluster"] = json!(cluster);
            }
            entry
        });
        Map::from_iter([("versions".to_owned(), versions.collect())])
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let mut table = Table::new(&[column("COMPONENT"), column("CLUSTER"), column("VERSION")]);
        for Component { component, cluster, version } in &self.0 {
            let cluster = if cluster.is_empty() { "–" } else { cluster };
            table.row([(*component).into(), cluster.into(), version.as_str().into()]);
        }
        table.render(format, has_headers, paint)
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().map(|Component { component, version, .. }| format!("{component}/{version}")).collect()
    }
}

/// Prints the versions. Without a kubeconfig, only that of this program is known.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let own =
        Component { component: "fleetnet", cluster: String::new(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let mut versions = Versions(vec![own]);
    let mut exit = Exit::Healthy;
    if !options.client {
        match of_hub(&options.clusters).await {
            Ok(found) => versions.0.extend(found),
            Err(stop) => {
                output::note(&format!("versions of the agents are not known: {stop}"));
                exit = stop.exit;
            }
        }
    }
    output::print(&versions, options.output)?;
    Ok(exit)
}

/// Returns the versions of the hub's API server, and of the agents in its MemberAgents.
async fn of_hub(flags: &ClusterFlags) -> Result<Vec<Component>, Stop> {
    let contexts = match Contexts::read(flags) {
        Err(failure) if failure.class == Class::Kubeconfig && flags.kubeconfig.is_empty() => return Ok(Vec::new()),
        contexts => contexts?,
    };
    let hub = Cluster::connect(&contexts, &contexts.hub(flags)?, Agent::Hub, flags.request_timeout).await?;
    let agents: Api<MemberAgent> = Api::all(hub.client.clone());
    let agents = hub.find(agents.list(&ListParams::default())).await?.map(|list| list.items).unwrap_or_default();
    let server = Component { component: "kube-apiserver", cluster: hub.context.clone(), version: hub.version.clone() };
    Ok(std::iter::once(server).chain(of_agents(&agents, &hub.context)).collect())
}

/// Returns the versions in MemberAgents. Each distinct version of the hub agent is listed once: after an upgrade, some
/// members may not have an answer of the new version yet.
fn of_agents(agents: &[MemberAgent], hub: &str) -> Vec<Component> {
    let of_hub: BTreeSet<&String> = agents.iter().filter_map(|agent| agent.status.as_ref()?.version.as_ref()).collect();
    let component = |component, cluster: &str, version: &str| Component {
        component,
        cluster: cluster.to_owned(),
        version: version.to_owned(),
    };
    let hub = of_hub.into_iter().map(|version| component("hub-agent", hub, version));
    let member = |agent: &MemberAgent| {
        // The namespace is the hub's word, the name of the object is the member's.
        let cluster = cluster_of(&agent.namespace()?)?;
        Some(component("member-agent", &cluster, &agent.spec.version))
    };
    let mut members: Vec<Component> = agents.iter().filter_map(member).collect();
    members.sort();
    hub.chain(members).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::render;

    fn agent(namespace: &str, version: &str, hub: Option<&str>) -> MemberAgent {
        serde_json::from_value(json!({
            "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MemberAgent",
            "metadata": {"namespace": namespace, "name": "any"},
            "spec": {"version": version, "renewTime": "2026-11-22T03:48:02.123456Z"},
            "status": hub.map(|version| json!({"version": version})),
        }))
        .unwrap()
    }

    #[test]
    fn versions_are_those_of_member_agents_by_their_namespace() {
        let agents = [
            agent("fleet-member-west", "0.2.0", Some("0.1.0")),
            agent("fleet-member-east", "0.1.0\x1b", Some("0.1.0")),
            agent("elsewhere", "9", None),
        ];
        let report = Versions(of_agents(&agents, "hub"));
        let shown =
            |output| render(&report, OutputFlags { output, ..OutputFlags::default() }, Paint::Plain).to_string();
        assert_eq!(
            shown(Format::Table),
            "COMPONENT     CLUSTER  VERSION\nhub-agent     hub      0.1.0\nmember-agent  east     0.1.0\\u{1b}\n\
             member-agent  west     0.2.0\n"
        );
        assert_eq!(shown(Format::Name), "hub-agent/0.1.0\nmember-agent/0.1.0\\u{1b}\nmember-agent/0.2.0\n");
        let json: Value = serde_json::from_str(&shown(Format::Json)).unwrap();
        assert_eq!((&json["apiVersion"], &json["kind"]), (&json!("cli.fleetnet/v1"), &json!("Versions")));
        assert_eq!(json["versions"][2], json!({"component": "member-agent", "cluster": "west", "version": "0.2.0"}));
    }
}
