//! Tests of how the commands find the hub and the members: wrong contexts, lost members, and names that do not exist.

use crate::fleet::Fleet;
use crate::hub::{Cluster, folder};
use crate::program::run_with;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DeleteParams;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for the namespace of a member to go. Long enough for a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_not_the_hub_is_a_usage_error_that_names_the_contexts_of_hubs() {
    let folder = folder();
    let (west, hub) = (Cluster::https(folder.path(), "west").await, Cluster::https(folder.path(), "hub").await);
    let alone = [west.flag()];
    let both = [alone[0].clone(), hub.flag()];
    let verbs: [&[&str]; 10] = [
        &["status"],
        &["services"],
        &["explain", "work/app"],
        &["check"],
        &["latency"],
        &["leave", "west", "--yes"],
        &["rotate", "west", "--hub-only"],
        &["migrate", "check", "--to", "go"],
        &["migrate", "to-go", "west"],
        &["gather"],
    ];
    for verb in verbs {
        let ended = run_with(verb, &alone, &[]).await.expect(2);
        assert!(ended.errors.contains("context admin@west does not look like a hub"), "{ended:?}");
        assert!(ended.errors.contains("no other context leads to a hub"), "{ended:?}");
    }
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let ended = run_with(&["status"], &both, &[]).await.expect(2);
    assert!(ended.errors.contains("contexts that lead to a hub: admin@hub"), "{ended:?}");
    run_with(&["status"], &both, &["--hub-context=admin@hub"]).await.expect(1);
    // Before the installation, no cluster looks like a hub.
    run_with(&["check", "--pre"], &alone, &[]).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_namespace_is_gone_is_a_fault_in_each_view() {
    let fleet = Fleet::start(3).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2", "member-3"]);
    let namespaces: Api<Namespace> = Api::all(fleet.client("hub").await);
    namespaces.delete("fleet-member-member-3", &DeleteParams::default()).await.unwrap();
    let gone = async {
        loop {
            let ended = run_with(&["status"], &flags, &["-o", "json"]).await;
            let state = ended.json("Status")["members"][2]["state"].clone();
            if state == "NoNamespace" {
                return ended;
            }
            // While the namespace is being deleted, the state is a fault too.
            assert!(state != "Leaving" || ended.code == 1, "{ended:?}");
        }
    };
    timeout(LIMIT, gone).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the namespace to go")).expect(1);
    run_with(&["status"], &flags, &["--wait=100ms"]).await.expect(4);
    for (verb, more) in [
        (&["check"][..], &[][..]),
        (&["check"], &["--context=kubectl@member-3"]),
        (&["explain", "work/app"], &[]),
        (&["explain", "work/app"], &["--from=member-3"]),
    ] {
        let ended = run_with(verb, &flags, more).await.expect(1);
        assert!(ended.output.contains("FN201") && ended.output.contains("member-3"), "{ended:?}");
    }
    // The user may name the cluster of another fleet, which has no agent.
    let ended = run_with(&["check"], &flags, &["--context=kubectl@hub"]).await.expect(2);
    assert!(ended.errors.contains("not a member of this hub"), "{ended:?}");
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_and_explain_show_the_name_to_call() {
    let fleet = Fleet::start(2).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let explained = run_with(&["explain", "work/app"], &flags, &[]).await.expect(0);
    for part in [
        "member-1, member-2 → member-1, member-2: ok, 4 pairs\n",
        "importers in the hub: member-1, member-2\n",
        "  in member-1, member-2: work-app.fleet-system.svc (port 80/TCP; -o wide shows the addresses)\n",
    ] {
        assert!(explained.output.contains(part), "{part}: {explained:?}");
    }
    let json = run_with(&["explain", "work/app"], &flags, &["-o", "json"]).await.expect(0).json("Explanation");
    assert_eq!(json["namesToCall"][0]["name"], "work-app.fleet-system.svc");
    let wide = run_with(&["services", "work/app"], &flags, &["-o", "wide"]).await.expect(0);
    for part in ["work-app.fleet-system.svc  80/TCP  member-1=10.", "ClusterSetIP"] {
        assert!(wide.output.contains(part), "{part}: {wide:?}");
    }
    // The hub alone shows the same Services, without what arrives.
    let hub = fleet.flags(&["hub"]);
    let alone = run_with(&["services"], &hub, &["--no-headers"]).await.expect(3);
    assert_eq!(alone.output, "work  app  fleet  member-1,member-2  member-1,member-2  12  –  Ready  –\n");
    let why = "not known: member-1, member-2: no kubeconfig context leads to this cluster";
    assert!(alone.errors.contains(why), "{alone:?}");
    let unreached = run_with(&["explain", "work/app"], &hub, &[]).await.expect(3);
    assert!(unreached.output.lines().count() < 10, "one line for each reason: {unreached:?}");
    assert!(
        unreached.output.contains("member-1, member-2: no kubeconfig context leads to this cluster"),
        "{unreached:?}"
    );
    // The user has a context of member-2, and chose another.
    let why = "member-2: not asked, because no context on the command line leads to this cluster";
    for verb in [&["explain", "work/app"][..], &["services"], &["check"]] {
        let chosen = run_with(verb, &flags, &["--context=kubectl@member-1"]).await.expect(3);
        let text = format!("{}{}", chosen.output, chosen.errors);
        assert!(text.contains(why) && !text.contains("no kubeconfig context"), "{verb:?}: {chosen:?}");
    }
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_do_not_exist_are_answered_with_those_that_do() {
    let fleet = Fleet::start(2).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    for flag in ["--from", "--to"] {
        let ended = run_with(&["explain", "work/app"], &flags, &[flag, "west"]).await.expect(2);
        assert!(ended.errors.contains("the members are member-1, member-2"), "{ended:?}");
    }
    let nothing = run_with(&["explain", "work/nothing"], &flags, &[]).await.expect(1);
    assert!(nothing.output.ends_with("did you mean work/app?\n"), "{nothing:?}");
    let nothing = run_with(&["services", "work/ap"], &flags, &[]).await.expect(1);
    assert_eq!(nothing.output, "no cluster exports or imports work/ap: did you mean work/app?\n");
    run_with(&["services", "app", "-n", "work"], &flags, &[]).await.expect(0);
    fleet.end().await;
}
