//! Tests of the alerts and recording rules in `deploy/observability`, with Prometheus' own tool, and of the commands in
//! the runbook.

use anyhow::{Context as _, ensure};
use harness::kubectl::Kubectl;
use harness::prometheus::promtool;
use harness::run;
use programs::docs;
use scenarios::environment::{Environment, FleetSpec, OnProcesses};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const RULES: [&str; 3] = [
    "deploy/observability/rules.yaml",
    "deploy/charts/fleetnet-hub-agent/files/rules.yaml",
    "deploy/charts/fleetnet-member-agent/files/rules.yaml",
];
const TESTS: &str = "deploy/observability/rules_test.yaml";

fn document(name: &str) -> anyhow::Result<Value> {
    let text = fs::read_to_string(programs::root().join(name)).with_context(|| name.to_owned())?;
    serde_saphyr::from_str(&text).with_context(|| name.to_owned())
}

/// Returns the values of a list in a document. An absent list is empty.
fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// Returns the name of an alert, with its window if it has one.
fn named(alert: &str, window: Option<&str>) -> String {
    window.map_or_else(|| alert.to_owned(), |window| format!("{alert} {window}"))
}

#[test]
fn prometheus_accepts_all_rules() -> anyhow::Result<()> {
    run(promtool(&[&["check", "rules", "--lint=all", "--lint-fatal"], &RULES[..]].concat()))
}

#[test]
fn each_alert_fires_and_ends_as_its_tests_say() -> anyhow::Result<()> {
    run(promtool(&["test", "rules", TESTS]))
}

/// Returns the minutes of a time such as `24h30m`.
fn minutes(time: &str) -> anyhow::Result<u32> {
    let (hours, rest) = time.split_once('h').unwrap_or(("0", time));
    let rest = if rest.is_empty() { "0" } else { rest.strip_suffix('m').context("a time ends with h or m")? };
    Ok(60 * hours.parse::<u32>()? + rest.parse::<u32>()?)
}

#[test]
fn each_alert_has_a_test_in_which_it_fires_and_then_ends() -> anyhow::Result<()> {
    let (rules, tests) = (document(RULES[0])?, document(TESTS)?);
    let mut alerts = BTreeSet::new();
    let mut recordings = BTreeSet::new();
    for rule in list(&rules, "groups").flat_map(|group| list(group, "rules")) {
        match (rule["alert"].as_str(), rule["record"].as_str()) {
            (Some(alert), _) => alerts.insert(named(alert, rule["labels"]["window"].as_str())),
            (None, recorded) => recordings.insert(recorded.context("a rule has a name")?.to_owned()),
        };
    }
    ensure!(alerts.len() >= 20 && recordings.len() >= 8, "{} alerts, {} recordings", alerts.len(), recordings.len());
    let (mut firing, mut waiting, mut ended) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut expressions = String::new();
    for test in list(&tests, "tests") {
        // Time at which each expression of this test has a value for the first time.
        let mut fired: BTreeMap<&str, u32> = BTreeMap::new();
        for case in list(test, "promql_expr_test") {
            let expression = case["expr"].as_str().context("a test has an expression")?;
            let at = minutes(case["eval_time"].as_str().context("a test has a time")?)?;
            expressions += expression;
            let label = |name: &str| expression.split(&format!("{name}=\"")).nth(1)?.split('"').next();
            let Some(alert) = label("alertname").map(|alert| named(alert, label("window"))) else { continue };
            if list(case, "exp_samples").next().is_some() {
                fired.entry(expression).or_insert(at);
                firing.insert(alert);
            } else if fired.get(expression).is_some_and(|fired| *fired < at) {
                ended.insert(alert);
            } else {
                waiting.insert(alert);
            }
        }
    }
    for (what, found) in [("fires", firing), ("does not fire yet", waiting), ("ends", ended)] {
        ensure!(
            found == alerts,
            "alerts without a moment at which it {what}: {:?}",
            alerts.symmetric_difference(&found)
        );
    }
    for recorded in
        recordings.iter().filter(|name| ["changes:", "p50", "p90", "p99", "1h"].iter().any(|it| name.contains(it)))
    {
        ensure!(expressions.contains(recorded.as_str()), "no test reads {recorded}");
    }
    Ok(())
}

#[test]
fn no_alert_is_muted_by_one_of_a_lower_severity() -> anyhow::Result<()> {
    let severity = |value: &Value| ["info", "warning", "critical"].iter().position(|it| value == it);
    let rules = document(RULES[0])?;
    let all: BTreeMap<&str, (usize, &Value)> = list(&rules, "groups")
        .flat_map(|group| list(group, "rules"))
        .filter_map(|rule| Some((rule["alert"].as_str()?, (severity(&rule["labels"]["severity"])?, &rule["expr"]))))
        .collect();
    let page = fs::read_to_string(programs::root().join("docs/how-to/monitoring.md"))?;
    let blocks = docs::blocks(&page);
    let block = blocks.iter().find(|it| it.text.starts_with("inhibit_rules:")).context("the page has the rules")?;
    let inhibit: Value = serde_saphyr::from_str(&block.text)?;
    // Names of the alerts that the matchers of a rule select.
    let selected = |rule: &Value, key: &str| -> anyhow::Result<Vec<String>> {
        let name = list(rule, key).filter_map(Value::as_str).find_map(|it| {
            it.strip_prefix("alertname =~ ").or_else(|| it.strip_prefix("alertname = ")).map(|it| it.trim_matches('"'))
        });
        let name = name.with_context(|| format!("{rule} selects no alert"))?;
        let names =
            if name == "Fleetnet.*" { all.keys().copied().collect() } else { name.split('|').collect::<Vec<_>>() };
        Ok(names.into_iter().map(str::to_owned).collect())
    };
    let mut pairs = 0;
    for rule in list(&inhibit, "inhibit_rules") {
        for source in selected(rule, "source_matchers")? {
            for target in selected(rule, "target_matchers")? {
                let of = |name: &str| all.get(name).with_context(|| format!("there is no alert {name}"));
                ensure!(of(&source)?.0 >= of(&target)?.0, "{source} mutes {target}, which is worse");
                for label in list(rule, "equal").filter_map(Value::as_str).filter(|label| *label != "agent") {
                    let expressions = [of(&source)?.1, of(&target)?.1];
                    let has_label = |it: &&Value| it.as_str().is_some_and(|it| it.contains(label));
                    let is_kept = expressions.iter().all(has_label) || source == "FleetnetAgentAbsent";
                    ensure!(is_kept, "{source} and {target} do not both have the label {label}");
                }
                pairs += 1;
            }
        }
    }
    ensure!(pairs > 20, "{pairs} pairs");
    Ok(())
}

/// Returns the commands of the runbook's pages that this test runs.
fn commands() -> anyhow::Result<Vec<String>> {
    const TEST: &str = "alerts::the_commands_of_the_runbook_work_on_real_api_servers";
    let mut commands = Vec::new();
    for entry in fs::read_dir(programs::root().join("docs/runbook"))? {
        let page = fs::read_to_string(entry?.path())?;
        let blocks: String = docs::run_by(&page, TEST, "sh").collect();
        commands.extend(blocks.lines().map(str::to_owned));
    }
    Ok(commands)
}

#[test]
fn the_commands_of_the_runbook_work_on_real_api_servers() -> anyhow::Result<()> {
    run(async {
        let env = Environment::<OnProcesses>::create(FleetSpec::of(1)).await?;
        let hub = Kubectl::with(env.backend.hub_kubeconfig()?).await?;
        let member = Kubectl::with(env.backend.member_kubeconfig(0)?).await?;
        let commands: BTreeSet<String> = commands()?.into_iter().collect();
        ensure!(commands.len() >= 15, "{commands:?}");
        for command in commands {
            // There are no pods, so grep would find nothing and fail.
            let (command, _) = command.split_once(" | grep ").unwrap_or((&command, ""));
            let rest = command.strip_prefix("kubectl --context ").with_context(|| command.to_owned())?;
            let (context, rest) = rest.split_once(' ').with_context(|| command.to_owned())?;
            let kubectl = match context {
                "HUB" => &hub,
                "CLUSTER" => &member,
                _ => anyhow::bail!("{command}: the page does not explain {context}"),
            };
            let line = rest.replace("MEMBER", &env.members[0].cluster_id.to_string()).replace("AGENT", "member-agent");
            let line = line.replace("KIND", "services").replace("REASON", "WriteDenied").replace('\'', "");
            let outcome = kubectl.run(&line.split_whitespace().collect::<Vec<_>>(), "").await?;
            // `kubectl auth can-i` answers no with code 1.
            let is_no = line.starts_with("auth can-i ") && outcome.out.trim() == "no";
            ensure!(outcome.code == 0 || is_no, "{command}: {outcome:?}");
        }
        Ok(())
    })
}
