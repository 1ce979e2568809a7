//! Tests of the table of Services.

use super::*;
use crate::cli::output::render;
use crate::cli::view::exit_of;
use diagnosis::report::{Arrival, NameToCall};

fn row(name: &str, members: usize, conflicts: &[&str]) -> ServiceRow {
    let ids: Vec<String> = (1..=members).map(|number| format!("member-{number}")).collect();
    let arrival = |id: &String| Arrival { importer: id.clone(), endpoints: 12, missing_exporters: Vec::new() };
    let call = |(number, id): (usize, &String)| NameToCall {
        importer: id.clone(),
        api: Api::Fleet,
        name: format!("work-{name}.fleet-system.svc"),
        addresses: vec![format!("10.0.0.{number}")],
        ports: vec!["80/TCP".to_owned()],
    };
    ServiceRow {
        namespace: "work".to_owned(),
        name: name.to_owned(),
        api: Api::Fleet,
        type_: conflicts.is_empty().then(|| "ClusterSetIP".to_owned()),
        endpoints: 12,
        conflicts: conflicts.iter().map(|cluster| (*cluster).to_owned()).collect(),
        state: if conflicts.is_empty() { ServiceState::Ready } else { ServiceState::NotReady },
        arrived: ids.iter().map(arrival).collect(),
        names_to_call: ids.iter().enumerate().map(call).collect(),
        exporters: ids.clone(),
        importers: ids,
    }
}

fn shown(services: Vec<ServiceRow>) -> Shown {
    let (api_version, kind, not_known) = (diagnosis::report::API_VERSION, "ServiceList", Vec::new());
    let services = Services { api_version, kind, services, verdict: Verdict::Healthy, not_known };
    Shown { services, named: None, similar: Vec::new() }
}

fn text(view: &Shown, output: Format) -> String {
    render(view, OutputFlags { output, ..OutputFlags::default() }, Paint::Plain).to_string()
}

#[test]
fn services_are_rows_with_what_arrives_and_the_name_to_call() {
    let view = shown(vec![row("app", 2, &[])]);
    assert_eq!(
        text(&view, Format::Table),
        "\
NAMESPACE  NAME  API    EXPORTERS          IMPORTERS          ENDPOINTS  ARRIVED  STATE  NAME TO CALL
work       app   fleet  member-1,member-2  member-1,member-2  12         12       Ready  work-app.fleet-system.svc
"
    );
    let wide = text(&view, Format::Wide);
    for part in ["TYPE", "CONFLICT", "80/TCP", "member-1=10.0.0.0,member-2=10.0.0.1", "ClusterSetIP"] {
        assert!(wide.contains(part), "{part}: {wide}");
    }
}

#[test]
fn a_conflict_has_a_column_if_there_is_one() {
    let mcs = ServiceRow { api: Api::Mcs, state: ServiceState::Ready, ..row("db", 1, &["west"]) };
    let view = shown(vec![row("app", 0, &[]), row("db", 1, &["west"]), mcs]);
    assert_eq!(
        text(&view, Format::Table),
        "\
NAMESPACE  NAME  API           EXPORTERS  IMPORTERS  ENDPOINTS  ARRIVED  CONFLICT  STATE     NAME TO CALL
work       app   fleet         –          –          12         –        –         Ready     –
work       db    fleet         member-1   member-1   12         12       west      NotReady  work-db.fleet-system.svc
work       db    multicluster  member-1   member-1   12         12       west      Ready     work-db.fleet-system.svc
"
    );
    assert_eq!(text(&view, Format::Name), "service/work/app\nservice/work/db\n");
}

#[test]
fn a_fleet_of_20_members_fits_120_columns() {
    let mut mcs = row("app", 20, &[]);
    mcs.api = Api::Mcs;
    mcs.names_to_call.iter_mut().for_each(|call| call.name = "app.work.svc.clusterset.local".to_owned());
    let text = text(&shown(vec![row("app", 20, &[]), mcs]), Format::Table);
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert!(text.contains("  20 "), "{text}");
}

#[test]
fn an_importer_with_fewer_endpoints_is_seen() {
    let mut services = row("app", 2, &[]);
    services.arrived[0].endpoints = 6;
    let view = shown(vec![services]);
    assert!(text(&view, Format::Table).contains("  12         6-12 "));
    let painted = render(&view, OutputFlags::default(), Paint::Colours).to_string();
    assert!(painted.contains("\u{1b}[33m6-12"), "{painted}");
}

#[test]
fn a_named_service_that_does_not_exist_is_a_fault_with_a_suggestion() {
    let mut view = shown(Vec::new());
    assert_eq!(exit_of(&view, &[]), Exit::Healthy);
    view.named = Some(ObjectName::new("work", "ap"));
    assert_eq!(exit_of(&view, &[]), Exit::Fault);
    assert_eq!(text(&view, Format::Table), "no cluster exports or imports work/ap\n");
    view.similar = vec!["work/app".to_owned()];
    assert_eq!(text(&view, Format::Table), "no cluster exports or imports work/ap: did you mean work/app?\n");
}
