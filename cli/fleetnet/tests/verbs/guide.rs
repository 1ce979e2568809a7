//! Test of the commands in docs/reference/cli.md and in the runbook: it runs each block of commands with its name,
//! in order, on a real fleet.

use crate::fleet::Fleet;
use crate::hub::folder;
use crate::program::{run_for_in, run_in};
use programs::docs::run_by;
use std::time::Duration;

/// Name of this test in the info strings of the blocks that it runs.
const TEST: &str = "guide::the_commands_of_the_page_work_on_a_real_fleet";
/// Names in the pages, and the names of the same clusters and Services in the sandbox.
const NAMES: [(&str, &str); 5] = [
    ("west", "member-2"),
    ("east", "member-1"),
    ("shop/web", "work/app"),
    ("HUB", "hub"),
    ("NAMESPACE/NAME", "work/app"),
];

/// Returns the texts of the pages. The commands of the last one take a member out.
fn pages() -> Vec<String> {
    let docs = programs::root().join("docs");
    let of_alerts = std::fs::read_dir(docs.join("runbook")).unwrap().map(|entry| entry.unwrap().path());
    let all = of_alerts.chain(["runbook.md", "reference/cli.md"].map(|page| docs.join(page)));
    all.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Returns the commands of this test's blocks, each once.
fn commands() -> Vec<Vec<String>> {
    let pages = pages();
    let blocks: String = pages.iter().flat_map(|page| run_by(page, TEST, "sh")).collect();
    let words = |line: &str| {
        let words = line.split_whitespace().map(|word| {
            let name = NAMES.iter().find(|(name, _)| *name == word);
            name.map_or(word, |(_, same)| same).to_owned()
        });
        words.collect::<Vec<_>>()
    };
    let mut commands: Vec<Vec<String>> = Vec::new();
    for command in blocks.lines().map(words).filter(|words| !words.is_empty()) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_page_work_on_a_real_fleet() {
    let fleet = Fleet::start(2).await;
    let folder = folder();
    let kubeconfigs = ["hub", "member-1", "member-2"].map(|cluster| {
        let text = std::fs::read_to_string(fleet.kubeconfig(cluster)).unwrap();
        let path = folder.path().join(cluster);
        std::fs::write(&path, text.replace(&format!("kubectl@{cluster}"), cluster)).unwrap();
        path
    });
    let kubeconfigs = std::env::join_paths(kubeconfigs).unwrap();
    let variables = [("KUBECONFIG", kubeconfigs.to_str().unwrap())];
    // A user reads the pages when the fleet has been running for a while.
    for view in ["status", "services", "explain", "check"] {
        let arguments = [view, "work/app", "--wait"].into_iter().filter(|it| *it != "work/app" || view == "explain");
        let ended = run_in(folder.path(), &variables, arguments.map(str::to_owned)).await;
        assert_eq!(ended.code, 0, "{view}: {ended:?}");
    }
    let commands = commands();
    assert!(commands.len() >= 17, "{commands:?}");
    for command in commands {
        let (program, arguments) = command.split_first().unwrap();
        assert_eq!(program, "fleetnet", "{command:?}");
        let ended = if arguments.iter().any(|argument| argument == "--watch") {
            run_for_in(folder.path(), &variables, arguments.iter().cloned(), "member-1", 2, Duration::from_secs(60))
                .await
        } else {
            run_in(folder.path(), &variables, arguments).await
        };
        assert_eq!(ended.code, 0, "{command:?}: {ended:?}");
    }
    assert!(folder.path().join("fault.tar.gz").is_file(), "gather has written an archive");
    fleet.end().await;
}
