//! Tests of the page in a browser. `cli/ui/browser` has their scripts, which drive Chromium with Playwright.

use super::pods::client;
use super::{LIMIT, Running, names, text};
use fleetnet_api::crd::{MemberAgent, ServiceExport};
use k8s_openapi::api::core::v1::{Event, Namespace, Service};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use programs::{chromium, playwright, root};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

/// Sandbox with kubeconfigs, whose page a browser shows.
pub(super) struct Shown {
    running: Running,
    url: Value,
    /// Folder with the folder of the kubeconfigs, and with what a script writes.
    pub(super) folder: TempDir,
}

impl Shown {
    pub(super) fn start(arguments: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let kubeconfigs = folder.path().join("kubeconfigs");
        let more = ["--json", "--kubeconfigs", kubeconfigs.to_str().unwrap()];
        let mut running = Running::start(&[&more, arguments].concat());
        let page: Value = serde_json::from_str(&running.until("\"page\"")).unwrap();
        running.until("\"commands\"");
        Self { running, url: page["url"].clone(), folder }
    }

    /// Waits for the verdict of the scenario.
    pub(super) fn passes(&mut self) {
        let verdict = self.running.until("\"verdict\"");
        assert!(verdict.contains("\"passed\":true"), "{verdict}");
    }

    pub(super) fn kubeconfigs(&self) -> Vec<String> {
        let folder = self.folder.path().join("kubeconfigs");
        names(&folder).iter().map(|name| folder.join(name).to_str().unwrap().to_owned()).collect()
    }

    pub(super) async fn client(&self, cluster: &str) -> Client {
        client(&self.folder.path().join("kubeconfigs"), &format!("kubectl@{cluster}")).await
    }

    /// Runs a script on the page. `more` has further settings of the script.
    pub(super) async fn script(&self, test: &str, more: Value) {
        let scripts = TempDir::new().unwrap();
        for entry in std::fs::read_dir(root().join("cli/ui/browser")).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|it| it == "mjs") {
                std::fs::copy(entry.path(), scripts.path().join(entry.file_name())).unwrap();
            }
        }
        // Node searches packages beside the script.
        std::os::unix::fs::symlink(playwright::locate().unwrap(), scripts.path().join("node_modules")).unwrap();
        let mut settings = json!({
            "test": test, "url": self.url, "chromium": chromium::locate().unwrap(),
            "fleetnet": env!("CARGO_BIN_EXE_fleetnet"), "kubeconfigs": self.kubeconfigs(),
        });
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut command = Command::new("node");
        command.arg(scripts.path().join("main.mjs")).arg(settings.to_string());
        // The script ends when this process does, as the pipe ends then. Chromium ends with the script in the same way.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let child = command.spawn().expect("node, of the Debian package nodejs (Node 20 or later)");
        let ended = end(child).await;
        assert!(ended.0, "the script {test} of cli/ui/browser failed: {}", ended.1);
    }

    pub(super) fn end(self) {
        let (code, errors) = self.running.end(Signal::INT);
        assert!(code == Some(0) || code == Some(130), "{code:?}: {errors}");
    }
}

/// Waits for the end of a process. Returns true if it succeeded, and its output.
async fn end(mut child: tokio::process::Child) -> (bool, String) {
    // Dropping this end of the pipe would end the script.
    let _orders = child.stdin.take();
    let output = timeout(LIMIT, child.wait_with_output()).await;
    let output = output.unwrap_or_else(|_| panic!("waited {LIMIT:?} for the end of a script in a browser")).unwrap();
    (output.status.success(), text(&[output.stdout, output.stderr].concat()).to_owned())
}

/// Few changes, so that the page and a command are compared at the same state.
const QUIET: [&str; 2] = ["--changes-per-second", "0.1"];

fn scenario(name: &'static str) -> Vec<&'static str> {
    [&QUIET[..], &["--scenario", name]].concat()
}

/// Gives the Service `work/shop` of a member a port that conflicts with those of other members.
pub(super) async fn set_other_port(client: Client) {
    let services: Api<Service> = Api::namespaced(client, "work");
    let port = json!({"spec": {"ports": [{"name": "http", "port": 81, "protocol": "TCP", "targetPort": 8080}]}});
    services.patch("shop", &PatchParams::default(), &Patch::Merge(&port)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_is_shown_as_the_commands_say_and_each_view_is_accessible() {
    let mut shown = Shown::start(&scenario("conflict"));
    shown.passes();
    set_other_port(shown.client("member-2").await).await;
    shown.script("conflict", json!({})).await;
    shown.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_member_and_the_first_latencies_are_shown_as_the_commands_say() {
    let shown = Shown::start(&scenario("member-silent"));
    shown.script("memberSilent", json!({})).await;
    shown.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_hub_and_a_lost_connection_are_shown_until_they_are_back() {
    let shown = Shown::start(&scenario("hub-down"));
    shown.script("hubDown", json!({})).await;
    shown.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_storm_of_slices_the_page_shows_what_the_commands_say() {
    let mut shown = Shown::start(&scenario("slice-storm"));
    shown.passes();
    shown.script("sliceStorm", json!({})).await;
    shown.end();
}

/// Markup that would run a script.
const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>";
/// Characters that would change the order of the text after them, and how the page shows them.
const BIDI: (&str, &str) = ("\u{202e}drow\u{2066}", "\\u{202e}drow\\u{2066}");

/// Writes the MemberAgent of a member with the longest id, as a hostile member can write it.
async fn hostile_member(hub: Client) -> String {
    let namespace = format!("fleet-member-{}", "m".repeat(50));
    let object = json!({"metadata": {"name": namespace}});
    let namespaces: Api<Namespace> = Api::all(hub.clone());
    namespaces.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let id = namespace.replace("fleet-member-", "");
    let agent: MemberAgent = serde_json::from_value(json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MemberAgent", "metadata": {"name": id},
        "spec": {"version": MARKUP, "renewTime": "2026-11-22T03:48:02.123456Z", "clusterUid": BIDI.0},
    }))
    .unwrap();
    let agents: Api<MemberAgent> = Api::namespaced(hub, &namespace);
    agents.create(&PostParams::default(), &agent).await.unwrap();
    id
}

/// Exports a Service whose name and port have the longest names, and gives another export a hostile weight. Returns
/// both Services.
async fn hostile_exports(member: Client) -> [String; 2] {
    let name = "s".repeat(63);
    let service = json!({
        "metadata": {"name": name},
        "spec": {"ports": [{"name": "p".repeat(63), "port": 80, "protocol": "TCP"}]},
    });
    let services: Api<Service> = Api::namespaced(member.clone(), "work");
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let exports: Api<ServiceExport> = Api::namespaced(member, "work");
    let export = serde_json::from_value(json!({
        "apiVersion": "networking.fleet.azure.com/v1beta1", "kind": "ServiceExport", "metadata": {"name": name},
    }));
    exports.create(&PostParams::default(), &export.unwrap()).await.unwrap();
    let weight = format!("{MARKUP}{}", BIDI.0);
    let weight = json!({"metadata": {"annotations": {"networking.fleet.azure.com/weight": weight}}});
    exports.patch("app", &PatchParams::default(), &Patch::Merge(&weight)).await.unwrap();
    [format!("work/{name}"), "work/app".to_owned()]
}

/// Writes an Event about the export of `work/app`, as everybody with the right to create Events can.
async fn hostile_event(member: Client) {
    let about = json!({
        "apiVersion": "networking.fleet.azure.com/v1beta1", "kind": "ServiceExport", "namespace": "work", "name": "app",
    });
    let event = json!({
        "metadata": {"name": "hostile"}, "involvedObject": about, "type": "Warning", "reason": "Hostile",
        "message": format!("event {MARKUP}{}", BIDI.0), "firstTimestamp": "2026-11-22T03:48:02Z",
        "lastTimestamp": "2026-11-22T03:48:02Z", "source": {"component": "serviceexport-controller"},
    });
    let events: Api<Event> = Api::namespaced(member, "work");
    events.create(&PostParams::default(), &serde_json::from_value(event).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_stay_text_and_long_names_fit_a_phone() {
    let shown = Shown::start(&QUIET);
    let member = hostile_member(shown.client("hub").await).await;
    let [long, service] = hostile_exports(shown.client("member-1").await).await;
    hostile_event(shown.client("member-1").await).await;
    let event = format!("event {MARKUP}{}", BIDI.1);
    let (members, evidence) = ([&member, MARKUP, BIDI.1], format!("{MARKUP}{}", BIDI.1));
    let texts = json!({"members": members, "long": long, "service": service, "evidence": evidence, "event": event});
    shown.script("hostile", json!({ "texts": texts })).await;
    shown.end();
}
