//! Tests that the cases in `table/` detect faults: each fault in memkube changes at least one response. Other tests run
//! memkube without faults: its codes are those in `table/`, and two runs return the same bytes.

mod planted;

use super::compare::{Mark, differing, marks, unexpected};
use super::pins;
use super::run::{CaseRun, NO_ANSWER, run_case};
use super::script::Case;
use super::servers::{self, paused, run_one};
use super::{CLEANED_NAME, FORGETFUL_NAME, TABLE_NAME, cleaned_table, forgetful_table, table};
use anyhow::ensure;
use kube::Client;
use memkube::MemKube;
use planted::{PlantedFault, Servers};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn memkube_answers_the_table_with_the_codes_that_it_lists() -> anyhow::Result<()> {
    for (cases, answers) in [healthy()?, healthy_forgetful()?, healthy_cleaned()?] {
        let wrong: Vec<String> =
            cases.iter().zip(&answers).flat_map(|(case, answers)| unexpected(case, answers, true)).collect();
        ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}

#[test]
fn answers_of_memkube_that_differ_are_those_in_the_file() -> anyhow::Result<()> {
    let results =
        [(TABLE_NAME, healthy()?), (FORGETFUL_NAME, healthy_forgetful()?), (CLEANED_NAME, healthy_cleaned()?)];
    for (name, (cases, answers)) in results {
        let marks: Vec<Mark> =
            cases.iter().zip(&answers).flat_map(|(case, answers)| marks(case, &[], answers)).collect();
        pins::check_ours(name, &marks)?;
    }
    Ok(())
}

#[test]
fn two_runs_of_the_table_are_the_same_to_the_byte() -> anyhow::Result<()> {
    let table = |forgetful| {
        paused(async move {
            let server = servers::ours_cleaned().await?;
            let server = if forgetful { servers::forgetting(server) } else { server };
            let cases = if forgetful { forgetful_table()? } else { [table()?, cleaned_table()?].concat() };
            raw(&server.client(servers::admin()), &cases).await
        })
    };
    ensure!(table(false)? == table(false)?, "answers depend on something that is not given to memkube");
    ensure!(table(true)? == table(true)?, "answers that forget depend on something that is not given to memkube");
    Ok(())
}

/// Returns the responses to these cases before normalization: bytes, codes, headers and times.
async fn raw(client: &Client, cases: &[Case]) -> anyhow::Result<Vec<CaseRun>> {
    let mut results = Vec::new();
    for case in cases {
        results.push(run_case(client, case).await?);
    }
    let bytes: usize = results.iter().flat_map(|run| &run.answers).map(|answer| answer.raw.len()).sum();
    ensure!(bytes > 5_000, "only {bytes} bytes of answers were kept");
    Ok(results)
}

#[test]
fn each_planted_fault_makes_the_table_fail() -> anyhow::Result<()> {
    let (table, forgetful, cleaned) = (healthy()?, healthy_forgetful()?, healthy_cleaned()?);
    let planted = planted::all();
    let inside = planted.iter().filter(|fault| fault.place() == "in memkube").count();
    ensure!(inside >= 20, "only {inside} faults are planted in memkube itself");
    let mut unnoticed = Vec::new();
    for fault in &planted {
        let healthy = match fault.servers() {
            Servers::Usual => &table,
            Servers::Forgetful => &forgetful,
            Servers::Cleaned => &cleaned,
        };
        match paused(noticed(fault, healthy))? {
            Some(where_) => println!("{}: {}: noticed by {where_}", fault.place(), fault.name),
            None => unnoticed.push(fault.name),
        }
    }
    ensure!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
    Ok(())
}

/// Cases, and the responses of a memkube without faults to these cases.
type Healthy = (Vec<Case>, Vec<Vec<Value>>);

fn healthy() -> anyhow::Result<Healthy> {
    answered(table()?, servers::ours())
}

fn healthy_forgetful() -> anyhow::Result<Healthy> {
    answered(forgetful_table()?, servers::ours_forgetful())
}

fn healthy_cleaned() -> anyhow::Result<Healthy> {
    answered(cleaned_table()?, servers::ours_cleaned())
}

fn answered(cases: Vec<Case>, server: impl Future<Output = anyhow::Result<MemKube>>) -> anyhow::Result<Healthy> {
    let answers = paused(async {
        let client = server.await?.client(servers::admin());
        servers::run_ours(&client, &cases).await
    })?;
    Ok((cases, answers))
}

/// Returns the first call whose response differs because of the fault. `healthy` has the responses of a memkube without
/// faults. Calls with a known difference and missing responses do not count.
async fn noticed(fault: &PlantedFault, (cases, healthy): &Healthy) -> anyhow::Result<Option<String>> {
    let client: Client = fault.client().await?;
    let (first, rest): (Vec<_>, Vec<_>) = cases.iter().zip(healthy).partition(|(case, _)| case.theme == fault.theme);
    for (case, healthy) in first.into_iter().chain(rest) {
        let Ok(answers) = run_one(&client, case).await else { continue };
        let mut steps = differing(case, healthy, &answers).filter(|step| answers[*step]["code"] != NO_ANSWER);
        if let Some(step) = steps.next() {
            return Ok(Some(format!("{}.calls:{} ({})", case.theme, case.steps[step].line, case.title)));
        }
    }
    Ok(None)
}

#[test]
fn every_difference_that_stays_is_in_the_docs_with_its_reason() -> anyhow::Result<()> {
    let docs = std::fs::read_to_string(programs::root().join("docs/contributors/memkube.md"))?;
    let rows = docs.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let mut documented = BTreeSet::new();
    for (name, rest) in rows {
        let columns: Vec<&str> = rest.trim_end_matches('|').split('|').map(str::trim).collect();
        ensure!(columns.len() == 2 && columns.iter().all(|column| !column.is_empty()), "no reason for {name}");
        documented.insert(name.to_owned());
    }
    let cases = [table()?, forgetful_table()?, cleaned_table()?].concat();
    let marks = cases.iter().flat_map(|case| &case.steps).filter_map(|step| step.differs.as_ref());
    let marked: BTreeSet<String> = marks.map(|mark| mark.name.clone()).collect();
    ensure!(marked == documented, "marked in the table: {marked:?}\nin the docs: {documented:?}");
    Ok(())
}
