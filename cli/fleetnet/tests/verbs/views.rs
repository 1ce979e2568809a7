//! Tests of `fleetnet status`, `services`, `explain`, `check` and `latency`.

use crate::fleet::Fleet;
use crate::hub::{Cluster, Silent, folder, hub_and_west};
use crate::program::{run, run_for, run_with};
use fleetnet_api::crd::ServiceExport;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use memkube::{Call, Verb};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for a fault to be found. A change counts as a fault after 10 s.
const LIMIT: Duration = Duration::from_secs(60);
/// Formats of all views.
const FORMATS: [&str; 5] = ["table", "wide", "json", "yaml", "name"];
/// Views and the kinds of their JSON.
const VIEWS: [(&[&str], &str); 5] = [
    (&["status"], "Status"),
    (&["services"], "ServiceList"),
    (&["explain", "work/app"], "Explanation"),
    (&["check"], "Check"),
    (&["latency"], "LatencyMatrix"),
];

#[tokio::test(flavor = "multi_thread")]
async fn views_of_a_healthy_fleet_have_exit_code_0_in_each_format() {
    let fleet = Fleet::start(2).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    for (verb, kind) in VIEWS {
        for format in FORMATS {
            let ended = run_with(verb, &flags, &["-o", format]).await.expect(0);
            assert!(!ended.output.contains('\u{1b}'), "no terminal, no colours: {ended:?}");
            if format == "json" {
                assert_eq!(ended.json(kind)["verdict"], "healthy");
            }
        }
    }
    let status = run_with(&["status"], &flags, &["-o", "json"]).await.json("Status");
    let states: Vec<&str> =
        status["members"].as_array().unwrap().iter().filter_map(|it| it["state"].as_str()).collect();
    assert_eq!(states, ["Ready", "Ready"]);
    let services = run_with(&["services"], &flags, &["--no-headers", "-n", "work"]).await.expect(0);
    let row = "work  app  fleet  member-1,member-2  member-1,member-2  12  12  Ready  work-app.fleet-system.svc\n";
    assert_eq!(services.output, row);
    assert_eq!(run_with(&["services"], &flags, &["--conflicts", "-o", "name"]).await.expect(0).output, "");
    let explained =
        run_with(&["explain", "app", "-n", "work"], &flags, &["--from", "member-1", "--all"]).await.expect(0);
    assert_eq!(explained.output.matches(" → ").count(), 2, "{explained:?}");
    assert!(run_with(&["check"], &flags, &["-o", "short"]).await.expect(0).output.starts_with("All checks are ok"));
    let latency = run_with(&["latency"], &flags, &[]).await.expect(0);
    assert!(latency.output.starts_with("FROM \\ TO  member-1"), "{latency:?}");
    let version = run_with(&["version"], &flags, &["-o", "name"]).await.expect(0);
    assert!(version.output.contains("hub-agent/") && version.output.contains("member-agent/"), "{version:?}");
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_fleet_of_the_mcs_api_has_exit_code_0_in_each_view() {
    let fleet = Fleet::start_with(2, "multicluster").await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    for (verb, kind) in VIEWS {
        assert_eq!(run_with(verb, &flags, &["-o", "json"]).await.expect(0).json(kind)["verdict"], "healthy");
    }
    let services = run_with(&["services"], &flags, &["--no-headers"]).await.expect(0);
    let row =
        "work  app  multicluster  member-1,member-2  member-1,member-2  12  12  Ready  app.work.svc.clusterset.local\n";
    assert_eq!(services.output, row);
    let counted = async {
        loop {
            let status = run_with(&["status"], &flags, &["-o", "json"]).await.expect(0).json("Status");
            if status["members"].as_array().unwrap().iter().all(|member| member["imports"] == 1) {
                return;
            }
        }
    };
    timeout(LIMIT, counted).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the count of imports"));
    let explained =
        run_with(&["explain", "work/app"], &flags, &["--from", "member-1", "--to", "member-2"]).await.expect(0);
    assert!(explained.output.starts_with("member-1 → member-2 (multicluster.x-k8s.io): ok\n"), "{explained:?}");
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_has_exit_code_1_and_its_code_in_each_format() {
    let fleet = Fleet::start(2).await;
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let exports: Api<ServiceExport> = Api::namespaced(fleet.client("member-1").await, "work");
    let weight = json!({"metadata": {"annotations": {"networking.fleet.azure.com/weight": "\u{1b}[31mheavy"}}});
    exports.patch("app", &PatchParams::default(), &Patch::Merge(&weight)).await.unwrap();
    // A change counts as a fault when the agents had the time to react.
    let explain = ["explain", "work/app", "--from", "member-1", "--to", "member-2"];
    let until_found = async {
        loop {
            let ended = run_with(&explain, &flags, &["-o", "json"]).await;
            if ended.code != 0 {
                return ended;
            }
        }
    };
    let ended =
        timeout(LIMIT, until_found).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the fault to be found"));
    assert_eq!(ended.json("Explanation")["pairs"][0]["cause"]["code"], "FN305", "{ended:?}");
    for format in FORMATS {
        let ended = run_with(&explain, &flags, &["-o", format]).await.expect(1);
        assert!(ended.output.contains("FN305") && !ended.output.contains('\u{1b}'), "{ended:?}");
    }
    let wide = run_with(&explain, &flags, &["-o", "wide"]).await;
    assert!(wide.output.contains("confirm:  kubectl ") && wide.output.contains("\\u{1b}[31mheavy"), "{wide:?}");
    let waited = run_with(&explain, &flags, &["--wait=1s"]).await.expect(4);
    assert!(waited.output.contains("FN305"), "{waited:?}");
    exports.delete("app", &DeleteParams::default()).await.unwrap();
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_refuses_connections_is_fn102_and_a_silent_one_is_not_known() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    let silent = Silent::start().await;
    let silent_hub = silent.in_place_of(&hub.kubeconfig, "hub", folder.path());
    let refusing = [hub.flag()];
    let silent = [format!("--kubeconfig={}", silent_hub.display()), "--request-timeout=100ms".to_owned()];
    drop(hub);
    // explain and check diagnose the connection. The other views show only what the hub says.
    for ((verb, kind), code) in VIEWS.into_iter().zip([3, 3, 1, 1, 3]) {
        for format in FORMATS {
            let ended = run_with(verb, &refusing, &["-o", format]).await.expect(code);
            assert_eq!(code == 1, ended.output.contains("FN102"), "{ended:?}");
            let silent = run_with(verb, &silent, &["-o", format]).await.expect(3);
            if format == "json" {
                assert_eq!(ended.json(kind)["verdict"], if code == 1 { "fault" } else { "notKnown" });
                assert_eq!(silent.json(kind)["verdict"], "notKnown");
            }
        }
    }
}

/// Exports the Service `work/shared` from both members, with different ports, and waits for the conflict.
async fn conflict(fleet: &Fleet, flags: &[String]) {
    for (member, port) in [("member-1", 80), ("member-2", 81)] {
        let client = fleet.client(member).await;
        let services: Api<Service> = Api::namespaced(client.clone(), "work");
        let service = json!({"metadata": {"name": "shared"}, "spec": {"ports": [{"port": port}]}});
        services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
        let exports: Api<ServiceExport> = Api::namespaced(client, "work");
        let export = json!({
            "apiVersion": "networking.fleet.azure.com/v1beta1", "kind": "ServiceExport", "metadata": {"name": "shared"},
        });
        exports.create(&PostParams::default(), &serde_json::from_value(export).unwrap()).await.unwrap();
        let exporters = || async {
            let services = run_with(&["services"], flags, &["-o", "json"]).await.json("ServiceList");
            let rows = services["services"].as_array().unwrap().clone();
            let shared = rows.into_iter().find(|row| row["name"] == "shared").unwrap_or_default();
            // The Service has no endpoints, so it is never ready. It has a type when its export is accepted.
            (shared["type"].is_string(), shared["conflicts"].clone())
        };
        let is_settled = async {
            loop {
                let (is_accepted, conflicts) = exporters().await;
                if is_accepted && member == "member-1" || conflicts == json!([member]) {
                    return;
                }
            }
        };
        timeout(LIMIT, is_settled).await.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the export of {member}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_and_a_silent_member_have_their_exit_codes_in_each_format() {
    let fleet = Fleet::start(2).await;
    let all = fleet.flags(&["hub", "member-1", "member-2"]);
    conflict(&fleet, &all).await;
    let folder = folder();
    let silent = Silent::start().await;
    let without = |silent_member: &str, other: &str| {
        let mut flags = fleet.flags(&["hub", other]);
        let kubeconfig = silent.in_place_of(&fleet.kubeconfig(silent_member), silent_member, folder.path());
        flags.push(format!("--kubeconfig={}", kubeconfig.display()));
        let named = [format!("--context={silent_member}"), format!("--context=kubectl@{other}")];
        flags.extend(named.into_iter().chain(["--request-timeout=200ms".to_owned()]));
        flags
    };
    let (loser_is_silent, winner_is_silent) = (without("member-2", "member-1"), without("member-1", "member-2"));
    // The hub alone shows the conflict of member-2. An earlier step that could not be read does not hide it.
    let table: [(&[&str], [u8; 3]); 6] = [
        (&["status"], [0, 3, 3]),
        (&["services"], [1, 1, 1]),
        (&["explain", "work/shared"], [1, 1, 1]),
        (&["explain", "work/app"], [0, 3, 3]),
        (&["check"], [0, 3, 3]),
        (&["latency"], [0, 3, 3]),
    ];
    for (verb, codes) in table {
        for (flags, code) in [&all, &loser_is_silent, &winner_is_silent].into_iter().zip(codes) {
            for format in FORMATS {
                run_with(verb, flags, &["-o", format]).await.expect(code.into());
            }
        }
    }
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_context_is_a_usage_error_for_each_view() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let flags = [hub.flag()];
    for (verb, _) in VIEWS {
        for flag in ["--hub-context=east", "--context=east"] {
            let ended = run_with(verb, &flags, &[flag]).await.expect(2);
            assert!(ended.errors.contains("context east: NoContext: "), "{ended:?}");
        }
    }
}

/// Creates the Deployment of the hub agent, by which the hub is recognized before a member joins.
pub(crate) async fn hub_agent(hub: &Cluster) {
    let deployments: Api<Deployment> = Api::namespaced(hub.client(), "fleet-system");
    let labels = json!({"app.kubernetes.io/name": "hub-agent", "app.kubernetes.io/part-of": "fleetnet"});
    let deployment = json!({
        "metadata": {"name": "hub-agent", "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}},
        "status": {"readyReplicas": 1},
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_does_not_answer_is_named_and_the_others_are_shown() {
    let folder = folder();
    let (hub, west) = hub_and_west(folder.path()).await;
    let flags = [&hub, &west].map(|cluster| cluster.flag());
    let url = west.url.clone();
    hub_agent(&hub).await;
    drop(west);
    for format in FORMATS {
        let ended = run_with(&["status"], &flags, &["--context=admin@west", "-o", format]).await.expect(3);
        assert!(ended.errors.contains(&format!("context admin@west ({url}/, host 127.0.0.1, port ")), "{ended:?}");
        assert!(ended.errors.contains(": TCP: "), "{ended:?}");
        if format == "json" {
            let named = ended.json("Status")["contextsNotRead"][0].clone();
            assert!(named.as_str().unwrap().starts_with("context admin@west"), "{ended:?}");
        }
    }
    // A context that nobody named is no reason to fail: it may belong to another fleet.
    run_with(&["status"], &flags, &[]).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_named_and_not_taken_for_faults_of_services() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    let flags = [hub.flag()];
    let policy =
        |call: &Call| call.verb == Verb::Create || !["memberagents", "namespaces"].contains(&&*call.target.resource);
    hub.server.memkube().set_policy(Arc::new(policy));
    for format in FORMATS {
        let ended = run_with(&["status"], &flags, &["-o", format]).await.expect(3);
        assert!(["json", "yaml", "name"].contains(&format) || ended.errors.contains("not known: "), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_waits_until_nothing_is_wrong_or_the_time_is_over() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    let flags = [hub.flag()];
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    for format in FORMATS {
        let ended = run_with(&["status"], &flags, &["--wait=200ms", "-o", format]).await.expect(4);
        assert!(ended.output.contains("west"), "what is known is shown: {ended:?}");
    }
    let status = run_with(&["status"], &flags, &["-o", "json"]).await.expect(1).json("Status");
    assert_eq!(status["members"][0]["state"], "NeverHeard");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_view_is_shown_again_and_again_until_ctrl_c() {
    let folder = folder();
    let hub = Cluster::https(folder.path(), "hub").await;
    hub.server.make_namespace("fleet-member-west").await.unwrap();
    let kubeconfig = hub.flag();
    let arguments = ["latency", "--watch=50ms", &kubeconfig].map(str::to_owned);
    let ended = run_for(arguments, "FROM", 3, LIMIT).await;
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_codes_are_explained_without_a_cluster() {
    let page = run(["explain", "--explain-code", "fn203"]).await.expect(0);
    assert!(page.output.starts_with("FN203: ") && page.output.contains("remedy"), "{page:?}");
    let codes = run(["explain", "--list-codes", "-o", "json"]).await.expect(0).json("Codes");
    assert!(codes["codes"].as_array().unwrap().len() > 70);
    let wrong = run(["explain", "--explain-code", "FN999"]).await.expect(2);
    assert!(wrong.errors.contains("--list-codes"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_and_check_say_who_makes_the_slices_of_each_member() {
    let fleet = Fleet::start(2).await;
    let lease = json!({
        "metadata": {"name": "kube-controller-manager"},
        "spec": {"holderIdentity": "it", "leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z"},
    });
    let leases: Api<Lease> = Api::namespaced(fleet.client("member-1").await, "kube-system");
    leases.create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();
    let flags = fleet.flags(&["hub", "member-1", "member-2"]);
    let json = run_with(&["status"], &flags, &["-o", "json"]).await.expect(0).json("Status");
    let makers: Vec<&Value> = json["members"].as_array().unwrap().iter().map(|it| &it["slicesMadeBy"]).collect();
    assert_eq!(makers, [&Value::from("kube-controller-manager"), &Value::Null], "nothing shows that of member-2");
    let wide = run_with(&["status"], &flags, &["-o", "wide"]).await.expect(0);
    assert!(wide.output.contains("  kube-controller-manager  "), "{wide:?}");
    let check = run_with(&["check"], &flags, &["-o", "wide"]).await.expect(0);
    let of_first = "√ FN112 The EndpointSlices of the cluster are made: by kube-controller-manager\n";
    assert!(check.output.contains(of_first), "{check:?}");
    assert!(check.output.contains("– FN112 "), "{check:?}");
    fleet.end().await;
}
