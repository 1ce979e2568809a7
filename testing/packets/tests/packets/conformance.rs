//! Specs 17 to 27 of the conformance suite of `sigs.k8s.io/mcs-api`: DNS and connections. Commands in pods ask for
//! names with `nslookup` and open connections with `nc`, as the suite does. Each spec has a namespace of its own.
//! docs/contributors/conformance.md lists all specs.

use anyhow::{Context as _, ensure};
use fleetnet_api::crd::mcs::ServiceImport;
use futures::future::{join_all, try_join_all};
use harness::coredns::CLUSTERSET;
use harness::eventually::{self, Deadline};
use harness::kubectl::Kubectl;
use harness::user::User;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt as _;
use kube::api::WatchParams;
use packets::fleet::Agents;
use packets::{Fleet, Settings, workload};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::pin::Pin;

/// Name of the exported Service, and of its Deployment.
const HELLO: &str = "hello";
/// Pod of each cluster in which the commands run.
const REQUEST: &str = "request";
/// Number of requests that must not reach a Service that is not exported, as in the suite.
const REFUSED: usize = 20;
/// Number of requests in a row that the right cluster must answer, as in the suite.
const IN_A_ROW: usize = 10;

/// Steps of a spec.
type Steps<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// Two clusters of the suite. The first one exports in all specs.
struct Clusters {
    kubectls: Vec<Kubectl>,
    _agents: Agents,
    fleet: Fleet,
}

impl Clusters {
    async fn start() -> anyhow::Result<Self> {
        let fleet = Fleet::start(Settings::default()).await?;
        let agents = fleet.start_agents().await?;
        let members = fleet.servers.members.iter();
        let kubectls = members.map(async |member| Kubectl::with(member.control_plane.admin_kubeconfig()?).await);
        Ok(Self { kubectls: try_join_all(kubectls).await?, _agents: agents, fleet })
    }
}

/// Namespace of one spec, in all clusters.
struct Spec<'a> {
    clusters: &'a Clusters,
    namespace: String,
    /// Users of the namespace, in the order of the clusters.
    users: Vec<User>,
}

/// Returns the Service of the suite with another value of some fields of its spec.
fn service(change: &Value) -> Value {
    let spec = json!({
        "selector": {"app": HELLO}, "ipFamilyPolicy": "PreferDualStack",
        "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}},
        "ports": [{"name": "tcp", "port": 42, "protocol": "TCP"}, {"name": "udp", "port": 42, "protocol": "UDP"}],
    });
    json!({"metadata": {"name": HELLO}, "spec": workload::with(spec, change)})
}

/// Returns the change of [`service`] that makes it headless.
fn headless() -> Value {
    json!({"clusterIP": "None", "sessionAffinity": null, "sessionAffinityConfig": null})
}

/// Returns the change of [`service`] that leaves one port, which leads to the port 42 of the pods.
fn only_port(name: &str) -> Value {
    json!({"ports": [{"name": name, "port": 4242, "targetPort": 42, "protocol": "TCP"}]})
}

/// Returns the spec of a Deployment or StatefulSet whose pods answer each line with their IPv4 address.
fn servers(replicas: u8) -> Value {
    // The suite's servers do not read the line. Then socat sometimes fails to write it, and ends without the answer.
    let answer = "SYSTEM:read line && echo pod ip $(POD_IP)";
    let container = json!({
        "name": HELLO, "image": "socat", "command": ["socat", "TCP6-LISTEN:42,reuseaddr,fork,ipv6only=0", answer],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    });
    json!({
        "replicas": replicas, "selector": {"matchLabels": {"app": HELLO}},
        "template": {"metadata": {"labels": {"app": HELLO}}, "spec": {"containers": [container]}},
    })
}

impl<'a> Spec<'a> {
    /// Makes the namespace in all clusters, with a pod for the commands.
    async fn begin(clusters: &'a Clusters, number: u8) -> anyhow::Result<Self> {
        let namespace = format!("mcs-conformance-{number}");
        let mut users = Vec::new();
        for (index, member) in clusters.fleet.servers.members.iter().enumerate() {
            member.control_plane.create_namespace(&namespace).await?;
            users.push(clusters.fleet.user(index, &namespace));
        }
        let container = json!({"name": REQUEST, "image": "shell", "command": ["sleep", "infinity"]});
        let pod = json!({"metadata": {"name": REQUEST}, "spec": {"containers": [container]}});
        try_join_all(users.iter().map(|user| user.create::<Pod>(pod.clone()))).await?;
        for user in &users {
            eventually::object(&user.api(), REQUEST, "the pod for commands to be ready", is_ready).await?;
        }
        Ok(Self { clusters, namespace, users })
    }

    /// Creates servers and their Service in a cluster. `change` has fields of the Service's spec.
    async fn serve(&self, cluster: usize, replicas: u8, change: &Value) -> anyhow::Result<()> {
        let servers = json!({"metadata": {"name": HELLO}, "spec": servers(replicas)});
        self.users[cluster].create::<Deployment>(servers).await?;
        self.users[cluster].create::<Service>(service(change)).await.map(drop)
    }

    async fn export(&self, cluster: usize) -> anyhow::Result<()> {
        self.users[cluster].export_mcs(HELLO, json!({})).await.map(drop)
    }

    /// Creates the Service in the second cluster, and exports it in both clusters. The hub knows the first export
    /// before the second one.
    async fn export_both(&self, change: &Value) -> anyhow::Result<()> {
        self.serve(0, 1, &json!({})).await?;
        self.export(0).await?;
        self.users[0].sees_service_import(HELLO, "to exist", |_| true).await?;
        self.serve(1, 1, change).await?;
        self.export(1).await
    }

    /// Waits until a cluster has this number of servers and all are ready. Returns their pods.
    async fn pods(&self, cluster: usize, number: usize) -> anyhow::Result<Vec<Pod>> {
        let selection = WatchParams::default().labels(&format!("app={HELLO}"));
        let what = format!("{number} servers in {}", self.namespace);
        let are_ready = |pods: &BTreeMap<String, Pod>| pods.len() == number && pods.values().all(is_ready);
        let pods = eventually::objects(&self.users[cluster].api::<Pod>(), &selection, &what, are_ready).await?;
        Ok(pods.into_values().collect())
    }

    /// Waits until a cluster has one server and it is ready. Returns the answer of the server.
    async fn answer_of(&self, cluster: usize) -> anyhow::Result<String> {
        let pods = self.pods(cluster, 1).await?;
        let [address, _] = &addresses_of(&pods[0])[..] else { anyhow::bail!("not two addresses: {pods:?}") };
        Ok(format!("pod ip {address}"))
    }

    /// Returns the name of the Service in the fleet. With the dot at the end, no domain is searched.
    fn name(&self) -> String {
        format!("{HELLO}.{}.svc.{CLUSTERSET}.", self.namespace)
    }

    /// Runs a command of the shell in the pod of a cluster. Returns its output, also if it fails.
    async fn execute(&self, cluster: usize, command: &str) -> anyhow::Result<String> {
        let words = ["exec", "-n", &self.namespace, REQUEST, "--", "sh", "-c", command];
        Ok(self.clusters.kubectls[cluster].run(&words, "").await?.out)
    }

    /// Repeats a command in the pod of a cluster until `read` returns the expected values of its output, in any order.
    async fn shows(
        &self,
        cluster: usize,
        command: &str,
        read: impl Fn(&str) -> Vec<String>,
        expected: &[String],
    ) -> anyhow::Result<()> {
        let mut expected = expected.to_vec();
        expected.sort();
        let deadline = Deadline::start();
        loop {
            let output = self.execute(cluster, command).await?;
            let mut values = read(&output);
            values.sort();
            if values == expected {
                return Ok(());
            }
            let what = || format!("cluster {cluster}: `{command}` must show {expected:?}, not {values:?}\n{output}");
            deadline.pause(what).await?;
        }
    }

    /// Waits until a name has exactly these addresses in a cluster.
    async fn resolves(&self, cluster: usize, name: &str, addresses: &[String]) -> anyhow::Result<()> {
        let command = format!("nslookup -type=A {name}; nslookup -type=AAAA {name}");
        self.shows(cluster, &command, addresses_in, addresses).await
    }

    /// Waits until requests in a row from all clusters get this answer. Each family has this number of requests.
    ///
    /// # Errors
    /// If there is another answer: it would be of a wrong cluster.
    async fn all_reach(&self, port: u16, answer: &str, in_a_row: usize) -> anyhow::Result<()> {
        let [four, six] = ["-4", "-6"].map(|family| requests(&format!("{family} {}", self.name()), port, in_a_row));
        for cluster in 0..self.users.len() {
            let deadline = Deadline::start();
            loop {
                let answers = answers_in(&self.execute(cluster, &format!("{four} && {six}")).await?);
                let wrong = answers.iter().find(|it| *it != answer);
                ensure!(wrong.is_none(), "cluster {cluster}: not {answer}, but {wrong:?} answers at port {port}");
                if answers.len() == 2 * in_a_row {
                    break;
                }
                let what = || format!("cluster {cluster} has {} answers in a row at port {port}", answers.len());
                deadline.pause(what).await?;
            }
        }
        Ok(())
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the addresses of a pod, the IPv4 address first.
fn addresses_of(pod: &Pod) -> Vec<String> {
    let addresses = pod.status.iter().flat_map(|status| status.pod_ips.iter().flatten());
    addresses.map(|address| address.ip.clone()).collect()
}

/// Returns a command that opens connections one after the other, and prints the answers. It ends with the first
/// failure.
fn requests(name: &str, port: u16, number: usize) -> String {
    format!("for each in $(seq {number}); do echo hi | nc -w 2 {name} {port} || exit; done")
}

fn answers_in(output: &str) -> Vec<String> {
    output.lines().map(|line| line.trim().to_owned()).collect()
}

/// Returns the addresses that `nslookup` prints after the name they belong to. The address of the server is not among
/// them.
fn addresses_in(output: &str) -> Vec<String> {
    let lines: Vec<&str> = output.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0].starts_with("Name:"));
    pairs.filter_map(|pair| Some(pair[1].strip_prefix("Address:")?.trim().to_owned())).collect()
}

/// Returns the SRV records that `nslookup` prints, as `port target`. The priority and the weight come before the port.
fn services_in(output: &str) -> Vec<String> {
    let records = output.lines().filter_map(|line| line.split_once("service = "));
    records.filter_map(|(_, record)| Some(record.splitn(3, ' ').nth(2)?.trim().to_owned())).collect()
}

/// 17: The name of an imported Service has the addresses of its ServiceImport.
async fn a_name_has_the_addresses_of_the_import(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 17).await?;
    spec.serve(0, 1, &json!({})).await?;
    spec.export(0).await?;
    for (cluster, user) in spec.users.iter().enumerate() {
        let has_both = |import: &ServiceImport| import.spec.ips.iter().flatten().count() == 2;
        let import = user.sees_service_import(HELLO, "to have addresses of both families", has_both).await?;
        spec.resolves(cluster, &spec.name(), &import.spec.ips.unwrap_or_default()).await?;
    }
    Ok(())
}

/// 18: An imported Service has an SRV record for its port.
async fn a_name_has_the_port_of_the_service(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 18).await?;
    spec.serve(0, 1, &json!({})).await?;
    spec.export(0).await?;
    for cluster in 0..spec.users.len() {
        let expected = [format!("42 {}", spec.name())];
        spec.shows(cluster, &format!("nslookup -type=SRV {}", spec.name()), services_in, &expected).await?;
    }
    Ok(())
}

/// 19: A name in `cluster.local` has only the addresses of the Service of its own cluster.
async fn a_local_name_is_of_its_own_cluster(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 19).await?;
    spec.serve(0, 1, &json!({})).await?;
    spec.export(0).await?;
    let has_derived = |import: &ServiceImport| import.spec.ips.iter().flatten().count() > 0;
    spec.users[1].sees_service_import(HELLO, "to have addresses", has_derived).await?;
    let local = format!("{HELLO}.{}.svc.cluster.local.", spec.namespace);
    let own = spec.users[0].api::<Service>().get(HELLO).await?.spec.and_then(|it| it.cluster_ips).unwrap_or_default();
    spec.resolves(0, &local, &own).await?;
    spec.resolves(1, &local, &[]).await
}

/// 20: The name of a headless Service has the addresses of all ready endpoints.
async fn a_headless_name_has_all_endpoints(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 20).await?;
    spec.serve(0, 2, &headless()).await?;
    spec.export(0).await?;
    let addresses: Vec<String> = spec.pods(0, 2).await?.iter().flat_map(addresses_of).collect();
    for cluster in 0..spec.users.len() {
        spec.resolves(cluster, &spec.name(), &addresses).await?;
    }
    Ok(())
}

/// 21: Each pod of a StatefulSet has a name with the id of its cluster.
async fn a_pod_has_a_name_with_its_cluster(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 21).await?;
    let mut set = json!({"metadata": {"name": "hello-ss"}, "spec": servers(2)});
    set["spec"]["serviceName"] = json!(HELLO);
    spec.users[0].create::<StatefulSet>(set).await?;
    spec.users[0].create::<Service>(service(&headless())).await?;
    spec.export(0).await?;
    let id = &clusters.fleet.servers.members[0].cluster_id;
    for pod in spec.pods(0, 2).await? {
        let name = format!("{}.{id}.{}", pod.name_any(), spec.name());
        for cluster in 0..spec.users.len() {
            spec.resolves(cluster, &name, &addresses_of(&pod)).await?;
        }
    }
    Ok(())
}

/// 22: A headless Service has an SRV record for each endpoint. Its target is the address with dashes, in the cluster of
/// the pod.
async fn a_headless_name_has_a_port_for_each_endpoint(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 22).await?;
    spec.serve(0, 2, &headless()).await?;
    spec.export(0).await?;
    let id = &clusters.fleet.servers.members[0].cluster_id;
    let addresses = spec.pods(0, 2).await?.iter().flat_map(addresses_of).collect::<Vec<_>>();
    let target = |address: &String| format!("42 {}.{id}.{}", address.replace(['.', ':'], "-"), spec.name());
    let expected: Vec<String> = addresses.iter().map(target).collect();
    ensure!(expected.len() == 4, "{expected:?}");
    for cluster in 0..spec.users.len() {
        spec.shows(cluster, &format!("nslookup -type=SRV {}", spec.name()), services_in, &expected).await?;
    }
    Ok(())
}

/// 23: A Service that is not exported cannot be reached by its name in the fleet.
async fn a_service_that_is_not_exported_cannot_be_reached(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 23).await?;
    spec.serve(0, 1, &json!({})).await?;
    let answer = spec.answer_of(0).await?;
    let local = requests(&format!("{HELLO}.{}.svc.cluster.local.", spec.namespace), 42, 1);
    spec.shows(0, &local, answers_in, &[answer]).await.context("the Service of the own cluster")?;
    for cluster in 0..spec.users.len() {
        let command = format!("for each in $(seq {REFUSED}); do echo hi | nc -w 2 {} 42; done", spec.name());
        let output = spec.execute(cluster, &command).await?;
        ensure!(output.is_empty(), "cluster {cluster} has answers: {output}");
    }
    Ok(())
}

/// 24: Pods of all clusters reach an exported Service.
async fn all_clusters_reach_an_exported_service(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 24).await?;
    spec.serve(0, 1, &json!({})).await?;
    spec.export(0).await?;
    spec.all_reach(42, &spec.answer_of(0).await?, 1).await
}

/// 25: Of a Service that two clusters have and one exports, only the pods of the exporting cluster answer.
async fn only_the_exporting_cluster_answers(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 25).await?;
    spec.serve(0, 1, &json!({})).await?;
    spec.serve(1, 1, &json!({})).await?;
    spec.export(0).await?;
    spec.answer_of(1).await?;
    spec.all_reach(42, &spec.answer_of(0).await?, IN_A_ROW).await
}

/// 26: If two exports have another number for one port, the cluster with the number of the import answers.
async fn only_the_cluster_with_the_number_answers(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 26).await?;
    spec.export_both(&only_port("tcp")).await?;
    spec.users[1].sees_service_import(HELLO, "of both clusters", of_both).await?;
    spec.answer_of(1).await?;
    spec.all_reach(42, &spec.answer_of(0).await?, IN_A_ROW).await
}

/// 27: Of two exports with different ports, the cluster that has the port answers at each port.
async fn only_the_cluster_with_the_port_answers(clusters: &Clusters) -> anyhow::Result<()> {
    let spec = Spec::begin(clusters, 27).await?;
    spec.export_both(&only_port("tcp2")).await?;
    spec.users[1].sees_service_import(HELLO, "of both clusters", of_both).await?;
    spec.all_reach(42, &spec.answer_of(0).await?, IN_A_ROW).await?;
    spec.all_reach(4242, &spec.answer_of(1).await?, IN_A_ROW).await
}

fn of_both(import: &ServiceImport) -> bool {
    import.status.as_ref().is_some_and(|status| status.clusters.iter().flatten().count() == 2)
}

#[test]
fn the_specs_of_dns_and_connections_pass() -> anyhow::Result<()> {
    packets::inside_with(&["nslookup", "nc", "socat"], async || {
        let clusters = &Clusters::start().await?;
        let specs: Vec<(&str, Steps<'_>)> = vec![
            ("17, name of a ClusterSetIP Service", Box::pin(a_name_has_the_addresses_of_the_import(clusters))),
            ("18, SRV record of a ClusterSetIP Service", Box::pin(a_name_has_the_port_of_the_service(clusters))),
            ("19, name in the own cluster", Box::pin(a_local_name_is_of_its_own_cluster(clusters))),
            ("20, name of a headless Service", Box::pin(a_headless_name_has_all_endpoints(clusters))),
            ("21, names of the pods of a StatefulSet", Box::pin(a_pod_has_a_name_with_its_cluster(clusters))),
            ("22, SRV records of a headless Service", Box::pin(a_headless_name_has_a_port_for_each_endpoint(clusters))),
            ("23, not exported", Box::pin(a_service_that_is_not_exported_cannot_be_reached(clusters))),
            ("24, exported", Box::pin(all_clusters_reach_an_exported_service(clusters))),
            ("25, in two clusters, exported from one", Box::pin(only_the_exporting_cluster_answers(clusters))),
            ("26, one port name, two numbers", Box::pin(only_the_cluster_with_the_number_answers(clusters))),
            ("27, two port names", Box::pin(only_the_cluster_with_the_port_answers(clusters))),
        ];
        // At the same time, because most specs wait.
        let outcomes = specs.into_iter().map(async |(name, steps)| {
            let outcome = steps.await;
            eprintln!("spec {name}: {}", if outcome.is_ok() { "passed" } else { "failed" });
            outcome.err().map(|error| format!("spec {name}: {error:#}"))
        });
        let failed: Vec<String> = join_all(outcomes).await.into_iter().flatten().collect();
        ensure!(failed.is_empty(), "{}", failed.join("\n"));
        Ok(())
    })
}
