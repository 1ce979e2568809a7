//! Tests of the page in a browser. `cli/ui/browser` has their scripts, which drive Chromium with Playwright.

use super::pods::client;
use super::{LIMIT, Limit, Running, names};
use fleetnet_api::crd::{MemberAgent, ServiceExport};
use k8s_openapi::api::core::v1::{Event, Namespace, Service};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use programs::{chromium, playwright, root};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Time limit of a script. It ends before [`LIMIT`], so the message of the script is shown.
const SCRIPT: Duration = Duration::from_secs(LIMIT.as_secs() - 30);

/// Chromium with an empty page, and the script that drives it. The script waits for the settings of its test.
pub(super) struct Browser {
    script: Child,
    output: BufReader<PipeReader>,
    limit: Limit,
    _folder: TempDir,
}

impl Browser {
    pub(super) fn start() -> Self {
        let folder = TempDir::new().unwrap();
        for entry in std::fs::read_dir(root().join("cli/ui/browser")).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_some_and(|it| it == "mjs") {
                std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
            }
        }
        // Node searches packages beside the script.
        std::os::unix::fs::symlink(playwright::locate().unwrap(), folder.path().join("node_modules")).unwrap();
        let (output, written) = pipe().unwrap();
        let script = spawn(folder.path(), written);
        let limit = Limit::of(&script);
        let mut browser = Self { script, output: BufReader::new(output), limit, _folder: folder };
        browser.wait();
        browser
    }

    /// Waits until Chromium has started.
    fn wait(&mut self) {
        let mut output = String::new();
        while !output.ends_with("ready\n") {
            let read = self.output.read_line(&mut output).unwrap();
            self.limit.check("the start of a browser");
            assert!(read > 0, "the browser did not start: {output}");
        }
    }

    /// Runs the test of the settings.
    pub(super) fn run(mut self, settings: &Value) {
        // A script that has ended reads no settings. Its output says why.
        let sent = writeln!(self.script.stdin.as_mut().unwrap(), "{settings}");
        let mut output = String::new();
        self.output.read_to_string(&mut output).unwrap();
        let status = self.script.wait().unwrap();
        self.limit.check("the end of a script in a browser");
        assert!(sent.is_ok() && status.success(), "a script of cli/ui/browser failed: {output}\n{settings}");
    }
}

impl Drop for Browser {
    /// Closes the script's standard input and waits. The script ends then, and Chromium before it. So nobody writes to
    /// the folder while it is removed.
    fn drop(&mut self) {
        _ = self.script.wait();
    }
}

/// Starts the script of a folder. Its output ends with it.
fn spawn(folder: &Path, output: PipeWriter) -> Child {
    let mut command = Command::new("node");
    command.arg(folder.join("main.mjs")).arg(chromium::locate().unwrap()).arg(SCRIPT.as_millis().to_string());
    // The path of Chromium's socket has at most 108 bytes, so no folder is in between.
    command.env("TMPDIR", folder);
    command.stdin(Stdio::piped()).stdout(output.try_clone().unwrap()).stderr(output);
    command.spawn().expect("node, of the Debian package nodejs (Node 20 or later)")
}

/// Sandbox with kubeconfigs, whose page a browser shows.
pub(super) struct Shown {
    running: Running,
    /// None after its script.
    browser: Option<Browser>,
    url: Value,
    /// Folder with the folder of the kubeconfigs, and with what a script writes.
    pub(super) folder: TempDir,
}

impl Shown {
    /// Starts the browser and then the sandbox, whose scenario does not wait for the browser.
    pub(super) fn start(arguments: &[&str]) -> Self {
        let browser = Some(Browser::start());
        let folder = TempDir::new().unwrap();
        let kubeconfigs = folder.path().join("kubeconfigs");
        let more = ["--json", "--kubeconfigs", kubeconfigs.to_str().unwrap()];
        let mut running = Running::start(&[&more, arguments].concat());
        let page: Value = serde_json::from_str(&running.until("\"page\"")).unwrap();
        running.until("\"commands\"");
        Self { running, browser, url: page["url"].clone(), folder }
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

    /// Runs the only script on the page. `more` has further settings of the script.
    pub(super) fn script(&mut self, test: &str, more: Value) {
        let mut settings = json!({
            "test": test, "url": self.url, "fleetnet": env!("CARGO_BIN_EXE_fleetnet"),
            "kubeconfigs": self.kubeconfigs(),
        });
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.browser.take().expect("one script").run(&settings);
    }

    pub(super) fn end(self) {
        let (code, errors) = self.running.end(Signal::INT);
        assert!(code == Some(0) || code == Some(130), "{code:?}: {errors}");
    }
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
    shown.script("conflict", json!({}));
    shown.end();
}

#[test]
fn a_silent_member_and_the_first_latencies_are_shown_as_the_commands_say() {
    let mut shown = Shown::start(&scenario("member-silent"));
    shown.script("memberSilent", json!({}));
    shown.end();
}

#[test]
fn a_lost_hub_and_a_lost_connection_are_shown_until_they_are_back() {
    let mut shown = Shown::start(&scenario("hub-down"));
    shown.script("hubDown", json!({}));
    shown.end();
}

#[test]
fn after_a_storm_of_slices_the_page_shows_what_the_commands_say() {
    let mut shown = Shown::start(&scenario("slice-storm"));
    shown.passes();
    shown.script("sliceStorm", json!({}));
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
    let mut shown = Shown::start(&QUIET);
    let member = hostile_member(shown.client("hub").await).await;
    let [long, service] = hostile_exports(shown.client("member-1").await).await;
    hostile_event(shown.client("member-1").await).await;
    let event = format!("event {MARKUP}{}", BIDI.1);
    let (members, evidence) = ([&member, MARKUP, BIDI.1], format!("{MARKUP}{}", BIDI.1));
    let texts = json!({"members": members, "long": long, "service": service, "evidence": evidence, "event": event});
    shown.script("hostile", json!({ "texts": texts }));
    shown.end();
}
