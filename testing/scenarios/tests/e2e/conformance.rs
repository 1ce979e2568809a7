//! Test that the calls in `testing/scenarios/src/conformance/table/` get the same codes, reasons and bodies from a real
//! kube-apiserver and from memkube.

use anyhow::ensure;
use harness::run;
use memkube::MemKube;
use scenarios::conformance::compare::{Report, compare, unexpected};
use scenarios::conformance::script::Case;
use scenarios::conformance::servers::Real;
use scenarios::conformance::{
    CLEANED_NAME, FORGETFUL_NAME, TABLE_NAME, cleaned_table, forgetful_table, pins, servers, table,
};

/// Runs the cases on both servers and compares their responses. `table` is the name of the file with the known
/// differences.
fn compared(
    table: &str,
    cases: &[Case],
    real: impl Future<Output = anyhow::Result<Real>>,
    ours: impl Future<Output = anyhow::Result<MemKube>>,
) -> anyhow::Result<()> {
    let real = run(async {
        let real = real.await?;
        servers::run_real(&real.server.admin(), cases).await
    })?;
    let wrong: Vec<String> =
        cases.iter().zip(&real).flat_map(|(case, answers)| unexpected(case, answers, false)).collect();
    ensure!(wrong.is_empty(), "the real server:\n{}", wrong.join("\n"));
    let ours = servers::paused(async {
        let client = ours.await?.client(servers::admin());
        servers::run_ours(&client, cases).await
    })?;
    let mut report = Report::default();
    for ((case, real), ours) in cases.iter().zip(&real).zip(&ours) {
        report.add(compare(case, real, ours));
    }
    let (known, Report { compared, differences, marks }) = (report.known(), &report);
    println!("{compared} answers compared, {} differ, known differences: {known:?}", differences.len());
    let pinned = pins::check(table, marks);
    ensure!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    pinned
}

#[test]
fn memkube_answers_the_table_as_a_real_server_does() -> anyhow::Result<()> {
    compared(TABLE_NAME, &table()?, servers::real(), servers::ours())
}

#[test]
fn memkube_cleans_up_as_kube_controller_manager_does() -> anyhow::Result<()> {
    compared(CLEANED_NAME, &cleaned_table()?, servers::real_cleaned(), servers::ours_cleaned())
}

#[test]
fn memkube_drops_its_history_as_a_real_server_does() -> anyhow::Result<()> {
    compared(FORGETFUL_NAME, &forgetful_table()?, servers::real_forgetful(), servers::ours_forgetful())
}
