//! The table notices faults: each that is planted in memkube changes at least one answer. And it has none without: on
//! memkube alone it has the codes that it says, and the same bytes each time.

use crate::conformance::compare::unexpected;
use crate::conformance::plants::{self, Plant};
use crate::conformance::script::Case;
use crate::conformance::servers::{self, paused, play_one};
use crate::conformance::{play, table};
use anyhow::ensure;
use kube::Client;
use memkube::User;
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn memkube_answers_the_table_with_the_codes_that_it_says() -> anyhow::Result<()> {
    let cases = table()?;
    let answers = healthy(&cases)?;
    let wrong: Vec<String> =
        cases.iter().zip(&answers).flat_map(|(case, answers)| unexpected(case, answers, true)).collect();
    ensure!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn two_runs_of_the_table_are_the_same_to_the_byte() -> anyhow::Result<()> {
    let cases = table()?;
    let run = || {
        paused(async {
            let client = servers::ours().await?.client(User::new("admin"));
            let mut answers = Vec::new();
            for case in &cases {
                answers.push(play::play(&client, case).await?);
            }
            Ok(answers)
        })
    };
    ensure!(run()? == run()?, "answers depend on something that is not given to memkube");
    Ok(())
}

#[test]
fn each_planted_fault_makes_the_table_fail() -> anyhow::Result<()> {
    let cases = table()?;
    let healthy = healthy(&cases)?;
    let plants = plants::all();
    ensure!(plants.len() >= 20, "only {} faults are planted", plants.len());
    let mut unnoticed = Vec::new();
    for plant in &plants {
        match paused(noticed(plant, &cases, &healthy))? {
            Some(case) => println!("{}: noticed by \"{case}\"", plant.name),
            None => unnoticed.push(plant.name),
        }
    }
    ensure!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
    Ok(())
}

fn healthy(cases: &[Case]) -> anyhow::Result<Vec<Vec<Value>>> {
    paused(async {
        let client = servers::ours().await?.client(User::new("admin"));
        servers::play_ours(&client, cases).await
    })
}

/// The first case whose answers differ from those of a healthy memkube.
async fn noticed(plant: &Plant, cases: &[Case], healthy: &[Vec<Value>]) -> anyhow::Result<Option<String>> {
    let client: Client = plant.client().await?;
    let (first, rest): (Vec<_>, Vec<_>) = cases.iter().zip(healthy).partition(|(case, _)| case.theme == plant.theme);
    for (case, healthy) in first.into_iter().chain(rest) {
        // A namespace that cannot be made is noticed too.
        if play_one(&client, case).await.ok().as_ref() != Some(healthy) {
            return Ok(Some(case.title.clone()));
        }
    }
    Ok(None)
}

#[test]
fn every_difference_that_stays_is_in_the_docs_with_its_reason() -> anyhow::Result<()> {
    let docs = std::fs::read_to_string(xtask::root().join("docs/memkube.md"))?;
    let rows = docs.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let mut documented = BTreeSet::new();
    for (name, rest) in rows {
        let columns: Vec<&str> = rest.trim_end_matches('|').split('|').map(str::trim).collect();
        ensure!(columns.len() == 2 && columns.iter().all(|column| !column.is_empty()), "no reason for {name}");
        documented.insert(name.to_owned());
    }
    let cases = table()?;
    let marks = cases.iter().flat_map(|case| &case.steps).filter_map(|step| step.differs.as_ref());
    let marked: BTreeSet<String> = marks.map(|mark| mark.name.clone()).collect();
    ensure!(marked == documented, "marked in the table: {marked:?}\nin the docs: {documented:?}");
    Ok(())
}
