//! Test that random sequences of calls get the same responses from a real kube-apiserver and memkube.

use anyhow::{bail, ensure};
use harness::run;
use kube::Client;
use scenarios::conformance::compare::compare;
use scenarios::conformance::random::{as_table, case, shorter};
use scenarios::conformance::script::{Action, Case};
use scenarios::conformance::servers::{self, paused, run_one, run_real};
use serde_json::Value;
use std::collections::BTreeMap;

/// Number of random sequences, each with a different seed.
const CASES: u64 = 200;
/// Environment variable with the first seed, to try other sequences: `CONFORMANCE_SEED=4711`.
const SEED_VARIABLE: &str = "CONFORMANCE_SEED";

/// Minimum number of responses and events of each class. Without these minimums, the test could compare only 404s,
/// which has no value. Seed 1 gives about twice as many.
const LEAST: &[(&str, usize)] = &[
    ("GET 2xx", 100),
    ("GET 4xx", 40),
    ("POST 2xx", 200),
    ("POST 4xx", 150),
    ("POST 5xx", 10),
    ("PUT 2xx", 50),
    ("PUT 4xx", 80),
    ("PATCH 2xx", 130),
    ("PATCH 4xx", 250),
    ("DELETE 2xx", 40),
    ("DELETE 4xx", 100),
    ("404", 400),
    ("409", 100),
    ("422", 120),
    ("ADDED", 200),
    ("MODIFIED", 80),
    ("DELETED", 25),
];

/// Returns three kinds of counts: responses by verb and class of status code (`GET 2xx`), responses by status code
/// (`422`), and watch events by type (`ADDED`).
fn counted(cases: &[Case], answers: &[Vec<Value>]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut count = |what: String| *counts.entry(what).or_default() += 1;
    for (step, answer) in cases.iter().zip(answers).flat_map(|(case, answers)| case.steps.iter().zip(answers)) {
        if let Action::Send(call) = &step.action {
            let code = answer["code"].as_u64().unwrap_or_default();
            count(format!("{} {}xx", call.method, code / 100));
            count(code.to_string());
        }
        if let Action::ReadUntil(..) = &step.action {
            let events = answer["body"].as_array().into_iter().flatten();
            events.filter_map(|event| event["type"].as_str()).for_each(|event| count(event.to_owned()));
        }
    }
    counts
}

#[test]
fn random_sequences_of_calls_are_answered_as_by_a_real_server() -> anyhow::Result<()> {
    let first: u64 = std::env::var(SEED_VARIABLE).ok().map_or(Ok(1), |seed| seed.parse())?;
    let cases: Vec<Case> = (first..first + CASES).map(case).collect();
    let real_server = run(servers::real())?;
    let client = real_server.server.admin();
    let real = run(run_real(&client, &cases))?;
    let ours = on_memkube(&cases)?;
    let calls: usize = real.iter().map(Vec::len).sum();
    let counts: Vec<usize> =
        real.iter().filter_map(|answers| answers.last()?["body"].as_array().map(Vec::len)).collect();
    ensure!(counts.len() == cases.len(), "each sequence ends with what its watch showed");
    let events: usize = counts.iter().sum();
    println!("{calls} answers and {events} events compared, in {CASES} sequences from seed {first}");
    let counts = counted(&cases, &real);
    let seldom = |(what, least): &&(&str, usize)| counts.get(*what).is_none_or(|count| count < least);
    let seldom: Vec<_> = LEAST.iter().filter(seldom).collect();
    ensure!(seldom.is_empty(), "answered less often than they are to be: {seldom:?} of {counts:?}");
    let mut results = (first..).zip(&cases).zip(&real).zip(&ours);
    let differing = results.find_map(|(((seed, case), real), ours)| {
        let differences = compare(case, real, ours).differences;
        (!differences.is_empty()).then_some((seed, case, differences))
    });
    if let Some((seed, case, differences)) = differing {
        let (smallest, again) = smallest(&client, case)?;
        let shown = if again.is_empty() { differences } else { again };
        bail!("{SEED_VARIABLE}={seed} replays it:\n{}{}", as_table(&smallest), shown.join("\n"));
    }
    Ok(())
}

fn on_memkube(cases: &[Case]) -> anyhow::Result<Vec<Vec<Value>>> {
    paused(async {
        let client = servers::ours().await?.client(servers::admin());
        servers::run_ours(&client, cases).await
    })
}

/// Removes calls from a case as long as the responses of the servers still differ. Returns the smallest case and its
/// differences.
fn smallest(client: &Client, case: &Case) -> anyhow::Result<(Case, Vec<String>)> {
    let mut smallest = case.clone();
    let mut tries = 0;
    let mut differences = differences(client, &smallest, tries)?;
    if differences.is_empty() {
        return Ok((smallest, differences));
    }
    'shrinking: loop {
        let shorter: Vec<Case> = shorter(&smallest).collect();
        for shorter in shorter {
            tries += 1;
            let still = self::differences(client, &shorter, tries)?;
            if !still.is_empty() {
                (smallest, differences) = (shorter, still);
                continue 'shrinking;
            }
        }
        return Ok((smallest, differences));
    }
}

/// Runs a case on both servers and returns the differences. The name of the case's namespace ends with `tries`, so that
/// each run has a new namespace.
fn differences(client: &Client, case: &Case, tries: usize) -> anyhow::Result<Vec<String>> {
    let mut case = case.clone();
    case.namespace = format!("{}-{tries}", case.namespace);
    let real = run(run_one(client, &case))?;
    let ours = on_memkube(std::slice::from_ref(&case))?;
    Ok(match ours.first() {
        Some(ours) => compare(&case, &real, ours).differences,
        None => Vec::new(),
    })
}
