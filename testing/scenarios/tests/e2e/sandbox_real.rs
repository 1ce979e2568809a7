//! Tests of `fleetnet sandbox` that need other programs: the flag `--real`, and kubectl with a sandbox.

use anyhow::Context as _;
use harness::eventually::Deadline;
use harness::kubectl::Kubectl;
use harness::process::{Ended, Process, Signal, Spec};
use harness::turn::Turn;
use harness::{binaries, run};
use programs::docs::run_by;
use std::ffi::OsString;

async fn sandbox(arguments: &[&str]) -> anyhow::Result<Process> {
    let arguments = std::iter::once("sandbox").chain(arguments.iter().copied()).map(OsString::from).collect();
    let inherited = ["HOME", "CARGO", "KUBEBUILDER_ASSETS", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOCACHE"];
    let variable = |name: &str| Some((name.to_owned(), std::env::var_os(name)?));
    let environment = inherited.into_iter().filter_map(variable).collect();
    let file = binaries::find("fleetnet").await?;
    Process::start(Spec { name: "fleetnet sandbox".to_owned(), file, arguments, environment, scratch: None }).await
}

fn contains(part: &'static str) -> impl FnMut(&str) -> Option<()> {
    move |line| line.contains(part).then_some(())
}

#[test]
fn the_sandbox_shows_the_same_on_real_control_planes() -> anyhow::Result<()> {
    run(async {
        let _turn = Turn::with_own_servers().await;
        let sandbox = sandbox(&["--real", "--once", "--json", "--changes", "4"]).await?;
        sandbox.log().find("a verdict", contains(r#""passed":true,"imported":true"#)).await?;
        let lines = sandbox.log().lines();
        let changes: Vec<&String> = lines.iter().filter(|line| line.contains(r#""event":"change""#)).collect();
        assert_eq!(changes.len(), 4, "{lines:#?}");
        for change in changes {
            assert!(change.contains(r#""arrived":2,"importers":2"#) && change.contains(r#""total":5"#), "{change}");
            assert!(!change.contains(r#"stream_milliseconds":null"#), "a slice stream is not open: {change}");
        }
        assert_eq!(sandbox.wait().await?, Ended::Exited(0));
        sandbox.end().await
    })
}

/// On memkube. It waits for heartbeats, so it would make the fast suite slow.
#[test]
fn the_sandbox_drains_a_silent_member_and_trusts_it_again_later() -> anyhow::Result<()> {
    run(async {
        let sandbox = sandbox(&["--once", "--json", "--members", "3", "--scenario", "member-silent"]).await?;
        assert_eq!(sandbox.wait().await?, Ended::Exited(0), "{:#?}", sandbox.log().lines());
        let steps: Vec<String> = sandbox.log().lines().into_iter().filter(|line| line.contains("\"step\"")).collect();
        let says = |text: &str| steps.iter().filter(|step| step.contains(text)).count();
        let told = ["member-3 are draining", "sends heartbeats again", "fell silent twice"].map(says);
        assert_eq!(told, [2, 1, 1], "{steps:#?}");
        let waited =
            steps.iter().find_map(|step| step.split("are ready after ").nth(1).filter(|_| step.contains("twice")));
        let waited: f64 = waited.and_then(|it| it.split(' ').next()?.parse().ok()).context("a time")?;
        assert!(waited >= 9.0, "it is trusted after {waited} s");
        sandbox.end().await
    })
}

/// Page with the files of a Deployment that is exported, and of its import.
const PAGE: &str = include_str!("../../../../docs/start/sandbox.md");
/// Test of the same files on memkube.
const FILES: &str = "pods::a_deployment_ends_in_endpoints_in_the_other_member_by_kubectl_alone";

#[test]
fn deployments_have_pods_on_real_control_planes_and_a_signal_leaves_a_summary() -> anyhow::Result<()> {
    run(async {
        let _turn = Turn::with_own_servers().await;
        let scratch = tempfile::tempdir()?;
        let folder = scratch.path().join("configs");
        let path = folder.to_str().context("a path in UTF-8")?;
        let sandbox = sandbox(&["--real", "--json", "--changes-per-second", "0.5", "--kubeconfigs", path]).await?;
        sandbox.log().find("a change", contains(r#""event":"change""#)).await?;
        let on = async |cluster: &str, line: &str| {
            Kubectl::with(folder.join(format!("{cluster}.kubeconfig"))).await?.print(line).await
        };
        let files = run_by(PAGE, FILES, "yaml");
        for (cluster, file) in ["member-1", "member-2"].into_iter().zip(files) {
            let at = scratch.path().join(format!("{cluster}.yaml"));
            std::fs::write(&at, file)?;
            on(cluster, &format!("--namespace work apply --filename {}", at.display())).await?;
        }
        on("member-1", "--namespace work rollout status deployment/web --timeout=60s").await?;
        let imported = "--namespace fleet-system get endpointslices --selector kubernetes.io/service-name=work-web \
                        --output jsonpath={.items[*].endpoints[*].addresses[0]}";
        let deadline = Deadline::start();
        let pods = loop {
            let shown = on("member-2", imported).await?;
            if shown.split(' ').filter(|address| address.starts_with("10.244.1.")).count() == 2 {
                break shown;
            }
            deadline.check().with_context(|| format!("two pods of member-1 in member-2, not {shown:?}"))?;
        };
        assert_eq!(pods.split(' ').count(), 2, "{pods}");
        for member in ["member-1", "member-2"] {
            let of_api_server = "--namespace default get service,endpointslice kubernetes --output name";
            let shown = on(member, of_api_server).await?;
            assert_eq!(shown, "service/kubernetes\nendpointslice.discovery.k8s.io/kubernetes\n", "{member}");
        }
        sandbox.signal(Signal::Term).await?;
        assert_eq!(sandbox.wait().await?, Ended::Exited(0), "{}", sandbox.log().tail());
        let last = sandbox.log().lines().pop().context("a last line")?;
        assert!(last.contains(r#""event":"ended""#) && last.contains(r#""compared":true,"differences":[]"#), "{last}");
        sandbox.end().await
    })
}
