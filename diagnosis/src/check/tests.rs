//! Tests of `check`.

use super::*;
use crate::fixture::{at, healthy};
use crate::snapshot::{Connection, Listing};

fn row<'a>(check: &'a Check, cluster: &str, code: Code) -> &'a CheckRow {
    let categories = check.categories.iter().filter(|category| category.cluster == cluster);
    let mut rows = categories.flat_map(|category| &category.checks).filter(|row| row.code == code);
    rows.next().expect("the check is there")
}

#[test]
fn a_healthy_fleet_passes_all_checks_of_access_and_membership() {
    let check = check(&healthy(), Stage::Installed);
    assert_eq!(check.verdict, Verdict::Healthy);
    let rows: Vec<&CheckRow> = check.categories.iter().flat_map(|category| &category.checks).collect();
    assert!(rows.iter().all(|row| row.result <= CheckResult::Skipped), "{rows:#?}");
    let clusters: Vec<(Group, &str)> = check.categories.iter().map(|it| (it.group, it.cluster.as_str())).collect();
    let [access, membership] = [Group::Access, Group::Membership];
    assert_eq!(
        clusters,
        [(access, "hub"), (access, "east"), (membership, "east"), (access, "west"), (membership, "west")]
    );
    assert_eq!(row(&check, "west", Code::FN206).result, CheckResult::Ok);
}

#[test]
fn a_fault_is_an_error_with_a_hint_and_a_notice_is_a_warning() {
    let mut snapshot = healthy();
    snapshot.hub.connection.now = Some(at("2027-01-15T12:30:00Z"));
    snapshot.members[1].connection.throttled = true;
    let check = check(&snapshot, Stage::Installed);
    assert_eq!(check.verdict, Verdict::Fault);
    let silent = row(&check, "west", Code::FN206);
    assert_eq!((silent.result, silent.hint), (CheckResult::Error, Code::FN206.entry().remedy));
    assert_eq!(silent.detail, "hub: MemberAgent fleet-member-west/west spec.renewTime: 2027-01-15T12:09:55Z");
    assert_eq!(row(&check, "west", Code::FN706).result, CheckResult::Warning);
}

#[test]
fn before_the_installation_only_the_access_is_checked() {
    let mut snapshot = healthy();
    snapshot.hub.agent.deployments = Listing::of(Vec::new());
    let check = check(&snapshot, Stage::BeforeInstallation);
    assert_eq!(check.verdict, Verdict::Healthy);
    let codes: Vec<Code> = check.categories[0].checks.iter().map(|row| row.code).collect();
    assert_eq!(codes, [Code::FN101, Code::FN102, Code::FN103]);
    assert!(check.categories.iter().all(|category| category.group == Group::Access));
}

#[test]
fn a_member_without_a_context_is_unknown_and_no_error() {
    let mut snapshot = healthy();
    snapshot.members[1] = Member { id: "west".to_owned(), connection: Connection::default(), ..Member::default() };
    let check = check(&snapshot, Stage::Installed);
    assert_eq!(check.verdict, Verdict::NotKnown);
    assert_eq!(row(&check, "west", Code::FN102).result, CheckResult::Unknown);
    assert_eq!(row(&check, "west", Code::FN201).result, CheckResult::Ok);
}
