//! Faults of the network that a test makes: requests fail, and arrive again afterwards.

use crate::connectivity::{Connectivity, export_wrong_port, outcomes};
use anyhow::ensure;
use harness::user::User;
use packets::disturbance::Disturbance;
use packets::image::result::Totals;
use packets::workload::{self, Client, Servers};
use packets::{Fleet, Settings};

const APP: Servers<'static> = Servers { name: "app", replicas: 1, pre_stop: None, probe_delay: 0 };

/// Returns a client with a target in the other cluster, after its first answers.
async fn client(user: &User, name: &str, address: &str) -> anyhow::Result<Client> {
    let client = Client::create(user, name, &format!("http://{address}:80"), &["--rate=50", "--timeout=500"]).await?;
    client.counts("answers", |totals| totals.sent > totals.lost).await?;
    Ok(client)
}

fn answers(totals: &Totals) -> u64 {
    totals.sent - totals.lost
}

/// Waits until a client has 20 more lost requests, and returns its counts.
async fn fails(client: &Client, why: &str) -> anyhow::Result<Totals> {
    let before = client.counts(&format!("its counts: {why}"), |_| true).await?;
    client.counts(&format!("lost requests: {why}"), |totals| totals.lost >= before.lost + 20).await
}

/// Waits until a client has 20 more answers.
async fn works(client: &Client, why: &str) -> anyhow::Result<Totals> {
    // After a fault of the client's own network, it may take a moment until it can be asked.
    let before = client.counts(&format!("its counts: {why}"), |_| true).await?;
    client.counts(&format!("answers: {why}"), |totals| answers(totals) >= answers(&before) + 20).await
}

#[test]
fn requests_fail_while_the_network_is_disturbed_and_arrive_again_afterwards() -> anyhow::Result<()> {
    packets::inside(async || {
        let fleet = Fleet::start(Settings::default()).await?;
        let namespace = fleet.servers.namespace("disturbed").await?;
        let _agents = fleet.start_agents().await?;
        let users = [0, 1].map(|index| fleet.user(index, &namespace));
        let nodes = [0, 1].map(|member| fleet.members[member].nodes[0].network);
        let mut clients = Vec::new();
        // Each cluster has a client of the other one.
        for (index, (user, name)) in users.iter().zip(["one", "two"]).enumerate() {
            let app = Servers { name, ..APP };
            app.create(user).await?;
            app.create_service(user).await?;
            let other = &users[1 - index];
            let cluster = &fleet.servers.members[index].cluster_id;
            let address = workload::export(user, cluster, other, name).await?;
            clients.push(client(other, &format!("client-of-{name}"), &address).await?);
        }
        let [to_first, to_second] = &clients[..] else { anyhow::bail!("two clients") };
        let both = [to_first, to_second];
        let connectivity = Connectivity::new(&fleet, &namespace, 0, 1).await?;
        let result = connectivity.gives("one", None, &[]).await?;
        ensure!(["address", "service", "name"].iter().all(|by| !outcomes(&result, by).is_empty()), "{result}");
        export_wrong_port(&users[0], &fleet.servers.members[0].cluster_id, &users[1], "wrong", "one").await?;
        connectivity.gives("wrong", Some("FN708"), &[]).await?;
        for (fault, seen) in [
            // The client that is behind the link cannot be asked.
            (Disturbance::LinkDown, &both[1..]),
            (Disturbance::NoRoute(nodes[0]), &both[..]),
            (Disturbance::Drop(1), &both[..]),
        ] {
            let why = format!("{fault:?}");
            fault.begin(nodes[1]).await?;
            for client in seen {
                fails(client, &why).await?;
            }
            if fault != Disturbance::LinkDown {
                let result = connectivity.gives("one", Some("FN704"), &[]).await?;
                // The kernel limits the rate of its answers about missing routes.
                let outcome = if fault == Disturbance::Drop(1) { "timedOut" } else { "noRoute" };
                ensure!(outcomes(&result, "address").iter().any(|it| it == outcome), "{why}: {result}");
            }
            if fault == Disturbance::Drop(1) {
                connectivity.is_interrupted("one").await?;
            }
            fault.end(nodes[1]).await?;
            for client in both {
                works(client, &why).await?;
            }
        }
        let fault = Disturbance::OneDirection(1);
        fault.begin(nodes[1]).await?;
        fails(to_second, "one direction").await?;
        let before = to_first.totals().await?;
        let after = works(to_first, "one direction").await?;
        ensure!(after.lost == before.lost, "the other direction works: {after:?}, before: {before:?}");
        fault.end(nodes[1]).await?;
        works(to_second, "one direction").await?;

        // 50 requests a second need more than 64 kbit/s.
        Disturbance::Slow.begin(nodes[1]).await?;
        fails(to_second, "a slow link").await?;
        Disturbance::Slow.end(nodes[1]).await?;
        works(to_second, "a slow link").await.map(drop)
    })
}

#[test]
fn pods_with_the_same_addresses_as_those_of_the_other_cluster_get_no_requests() -> anyhow::Result<()> {
    packets::inside(async || {
        let fleet = Fleet::start(Settings { same_pod_ranges: true, ..Settings::default() }).await?;
        let namespace = fleet.servers.namespace("same").await?;
        let _agents = fleet.start_agents().await?;
        // The bed itself reaches the pods of the first cluster only.
        let [importer, exporter] = [0, 1].map(|index| fleet.user(index, &namespace));
        APP.create(&exporter).await?;
        APP.create_service(&exporter).await?;
        let address = workload::export(&exporter, &fleet.servers.members[1].cluster_id, &importer, "app").await?;
        let target = format!("http://{address}:80");
        let client = Client::create(&importer, "client", &target, &["--rate=50", "--timeout=500"]).await?;
        let totals = client.counts("20 lost requests", |totals| totals.lost >= 20).await?;
        ensure!(totals.servers.is_empty(), "{totals:?}");
        let connectivity = Connectivity::new(&fleet, &namespace, 1, 0).await?;
        connectivity.gives("app", Some("FN707"), &[]).await.map(drop)
    })
}
