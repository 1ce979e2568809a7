//! Tests of fleets whose agents have another namespace or other names than usual.

use crate::agents::AgentNamespace;
use crate::call::names_to_call;
use crate::check::{Stage, check};
use crate::codes::Code::{self, *};
use crate::explain::{Filter, explain};
use crate::fixture::{app, at, healthy_in};
use crate::report::{CheckResult, Explanation, Outcome, ServiceState, Verdict};
use crate::services::{Rows, services};
use crate::snapshot::{AgentObjects, Listing, Snapshot};
use crate::status::status;

const EAST: usize = 0;
const KNOWN: &str = "the fixture has the objects";

fn explained(snapshot: &Snapshot) -> Explanation {
    explain(snapshot, &app(), &Filter::default())
}

/// Fleet with agents in `fabric`, as a user reads it who expects them in `fleet-system`.
fn misread() -> Snapshot {
    let mut snapshot = healthy_in("fabric");
    let nothing = || AgentObjects {
        deployments: Listing::of(Vec::new()),
        pods: Listing::of(Vec::new()),
        leases: Listing::of(Vec::new()),
        ..AgentObjects::default()
    };
    snapshot.hub.agent = AgentObjects { definitions: snapshot.hub.agent.definitions, ..nothing() };
    for member in &mut snapshot.members {
        let definitions = member.agent.definitions.clone();
        member.agent = AgentObjects { definitions, ..nothing() };
        member.hub_secret = Listing::of(Vec::new());
        let is_read = |namespace: Option<&String>| namespace.is_some_and(|it| it == "shop");
        let (slices, services) = (&mut member.slices, &mut member.services);
        slices.objects_mut().expect(KNOWN).retain(|it| is_read(it.metadata.namespace.as_ref()));
        services.objects_mut().expect(KNOWN).retain(|it| is_read(it.metadata.namespace.as_ref()));
    }
    snapshot
}

#[test]
fn a_fleet_with_agents_in_another_namespace_is_healthy_in_each_view() {
    let snapshot = healthy_in("fabric");
    let explanation = explained(&snapshot);
    assert_eq!((explanation.verdict, &explanation.notices), (Verdict::Healthy, &Vec::new()), "{explanation:#?}");
    assert_eq!(check(&snapshot, Stage::Installed).verdict, Verdict::Healthy);
    let status = status(&snapshot);
    assert_eq!((status.verdict, status.hub.replicas), (Verdict::Healthy, Some((2, 1))));
    let services = services(&snapshot, &Rows::default());
    let (row, arrived) = (&services.services[0], &services.services[0].arrived[0]);
    assert_eq!((row.state, arrived.endpoints), (ServiceState::Ready, 1));
    let called: Vec<String> = names_to_call(&snapshot, &app(), "east").into_iter().map(|it| it.name).collect();
    assert_eq!(called, ["shop-app.fabric.svc"]);
}

#[test]
fn evidence_and_commands_have_the_namespace_of_the_agents() {
    let found = |change: fn(&mut Snapshot)| {
        let mut snapshot = healthy_in("fabric");
        change(&mut snapshot);
        let pair = explained(&snapshot).pairs.into_iter().next().expect("a pair");
        pair.cause.map(|cause| (cause.code, cause.evidence.namespace, cause.evidence.command))
    };
    type Case = (Code, fn(&mut Snapshot), &'static str);
    let table: [Case; 3] = [
        (
            FN107,
            |it| it.hub.agent.deployments = Listing::of(Vec::new()),
            "hub -n fabric get deployments.apps hub-agent",
        ),
        (FN601, |it| it.members[EAST].services = Listing::of(Vec::new()), "east -n fabric get services shop-app"),
        (
            FN605,
            |it| it.members[EAST].slices = Listing::of(Vec::new()),
            "east -n fabric get endpointslices.discovery.k8s.io west-shop-app-1-x",
        ),
    ];
    for (code, change, command) in table {
        let (found, namespace, shown) = found(change).expect("a cause");
        assert_eq!((found, shown), (code, format!("kubectl --context {command} -o yaml")), "{code}");
        assert_eq!(namespace, "fabric", "{code}");
    }
}

#[test]
fn agents_with_other_names_are_found_by_their_labels() {
    let mut snapshot = healthy_in("fabric");
    let members = snapshot.members.iter_mut().map(|member| (&mut member.agent, "member-agent"));
    for (agent, component) in members.chain([(&mut snapshot.hub.agent, "hub-agent")]) {
        let metadata = &mut agent.deployments.objects_mut().expect(KNOWN)[0].metadata;
        metadata.name = Some("custom".to_owned());
        let labels = metadata.labels.as_mut().expect(KNOWN);
        labels.insert("app.kubernetes.io/name".to_owned(), "custom".to_owned());
        labels.insert("app.kubernetes.io/component".to_owned(), component.to_owned());
    }
    let explanation = explained(&snapshot);
    for code in [FN107, FN108] {
        let step = explanation.pairs[0].steps.iter().find(|step| step.code == code).expect("the step");
        assert_eq!(step.outcome, Outcome::Ok, "{step:?}");
    }
    assert_eq!(status(&snapshot).hub.replicas, Some((2, 1)));
}

#[test]
fn a_wrong_namespace_is_not_known_and_no_fault_of_a_member() {
    let mut snapshot = misread();
    let why = |id: &str| {
        format!(
            "{id}: the namespace fleet-system has no member agent: name the namespace of the agents with --agent-namespace"
        )
    };
    // The hub agent is missing in fleet-system, so its Deployment is a fault with the remedy.
    let cause = explained(&snapshot).pairs[0].cause.clone().expect("a cause");
    assert_eq!((cause.code, cause.evidence.cluster.as_str()), (FN107, "hub"));
    assert!(cause.remedy.contains("--agent-namespace") && cause.remedy.contains("--hub-agent-namespace"), "{cause:?}");
    let shown = status(&snapshot);
    assert_eq!(shown.verdict, Verdict::NotKnown);
    assert!(shown.not_known[0].starts_with("hub: the namespace fleet-system has no hub agent: if it"), "{shown:?}");

    // The right namespace for the hub only.
    snapshot.hub = healthy_in("fabric").hub;
    let explanation = explained(&snapshot);
    let pair = &explanation.pairs[0];
    assert_eq!((explanation.verdict, &pair.cause), (Verdict::NotKnown, &None), "{explanation:#?}");
    for code in [FN107, FN601, FN605] {
        let step = pair.steps.iter().find(|step| step.code == code).expect("the step");
        let is_said = ["east", "west"].into_iter().any(|id| step.detail == why(id));
        assert!(step.outcome == Outcome::Unknown && is_said, "{step:?}");
    }
    assert_eq!(names_to_call(&snapshot, &app(), "east"), []);
    let checked = check(&snapshot, Stage::Installed);
    assert_eq!(checked.verdict, Verdict::NotKnown);
    for id in ["east", "west"] {
        let of_cluster = checked.categories.iter().filter(|it| it.cluster == id).flat_map(|it| &it.checks);
        let row = of_cluster.into_iter().find(|row| row.code == FN107).expect("the check");
        assert_eq!((row.result, row.detail.clone()), (CheckResult::Unknown, why(id)));
    }
    let listed = services(&snapshot, &Rows::default());
    assert_eq!(listed.verdict, Verdict::NotKnown);
    assert_eq!(listed.not_known, [why("east")], "only the importer matters");

    // Nobody hears the member, so its agent does not run anywhere.
    snapshot.hub.connection.now = Some(at("2027-01-15T12:30:00Z"));
    assert_eq!(explained(&snapshot).pairs[0].cause.as_ref().map(|cause| cause.code), Some(FN107));
}

#[test]
fn imported_slices_in_another_namespace_show_that_the_namespace_is_wrong() {
    // For `services`, the slices of all namespaces are read, and no Deployments and Leases.
    let mut snapshot = healthy_in("fabric");
    snapshot.members[EAST].agent = AgentObjects::default();
    snapshot.members[EAST].services = Listing::of(Vec::new());
    let listed = services(&snapshot, &Rows::default());
    assert_eq!((listed.verdict, listed.not_known.len()), (Verdict::NotKnown, 1));
    snapshot.members[EAST].agent.namespace = "fabric".parse::<AgentNamespace>().expect("a name");
    assert_eq!(services(&snapshot, &Rows::default()).verdict, Verdict::Healthy);
}
