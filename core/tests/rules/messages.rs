//! Tests of the messages to users. Each reason has an exact text, which is the same in condition, Event and log.

use crate::support::build::{
    Build, BuildClaim, BuildExport, BuildHubSlice, BuildImport, BuildInternalExport, BuildNamespace, BuildRequest,
    BuildService, BuildSlice, IntoObject, accepted_export, claim, condition, conflict, derived_service,
    distributed_slice, found, imported_slice, in_system, internal_export, member_agent, named, namespace, no_conflict,
    not_found, port, request, resolved, seconds, service, service_export, service_import, slice, slice_export, valid,
};
use crate::support::view::{
    claimed_hub_view, hub_view, limited_hub_view, limited_member_view, member_view, planned, undecodable,
};
use fleetnet_core::features::{Feature, Features};
use fleetnet_core::hub;
use fleetnet_core::member::{ImportLimits, Key, Limits};
use fleetnet_core::model::{
    AddressType, Condition, EndpointSlice, ImportStatus, ImportType, InternalServiceExport, Kind, MultiClusterService,
    Object, ServiceExport, ServiceImport, ServiceType,
};
use fleetnet_core::names::{self, SuffixLength};
use fleetnet_core::plan::{Action, Patch, Plan};
use fleetnet_core::reasons::Reason;
use fleetnet_types::{ConditionStatus, Severity, Text};
use std::collections::BTreeSet;

/// Returns the messages of a plan: `<kind> <reason>: <message>` for each Event, and `log <reason>: <message>` for each
/// blocking reason.
fn messages(plan: &Plan) -> Vec<String> {
    let events = plan.writes.iter().flat_map(|write| &write.events);
    let events = events.map(|event| format!("{:?} {}: {}", event.source, event.reason, event.message));
    let blocking_reasons = plan
        .blocking_reasons
        .iter()
        .map(|blocking_reason| format!("log {}: {}", blocking_reason.reason, blocking_reason.message));
    events.chain(blocking_reasons).collect()
}

/// Name of a case, its plan, and the expected messages of that plan.
type Case = (&'static str, Plan, Vec<String>);

fn case<const N: usize>(what: &'static str, plan: Plan, messages: [&str; N]) -> Case {
    (what, plan, messages.map(str::to_owned).to_vec())
}

// === Conditions and Events about exports ===

fn export_plan(objects: impl IntoIterator<Item = Object>) -> Plan {
    planned(&member_view(objects), &Key::Export(named("work/app")))
}

fn of_services() -> Vec<Case> {
    let app = || service("work/app").object();
    let fresh = || service_export("work/app");
    let requested = ServiceExport { headless: true, ..fresh() };
    let hub = member_agent("member-1", Features::ALL, Features::ALL.without(Feature::Headless)).object();
    vec![
        case(
            "an export is made",
            export_plan([app(), fresh().object()]),
            [
                "ServiceExport ServiceIsValid: service work/app is valid for export",
                "ServiceExport ServicePendingConflictResolution: service work/app is pending export conflict resolution",
            ],
        ),
        case(
            "its Service is not there",
            export_plan([fresh().object()]),
            ["ServiceExport ServiceNotFound: service work/app is not found in cluster member-1: create a Service of \
              that name, or delete the ServiceExport"],
        ),
        case(
            "it is of type ExternalName",
            export_plan([service("work/app").of_type(ServiceType::ExternalName).object(), fresh().object()]),
            [
                "ServiceExport ServiceIneligible: service work/app is not eligible for export: it is of type ExternalName \
              and has no endpoints of its own",
            ],
        ),
        case(
            "it is headless",
            export_plan([service("work/app").headless().object(), fresh().object()]),
            ["ServiceExport ServiceIneligible: service work/app is not eligible for export: it is headless; set the \
              annotation networking.fleet.azure.com/export-headless of the ServiceExport to \"true\" to export it"],
        ),
        case(
            "the hub does not understand that",
            export_plan([service("work/app").headless().object(), requested.object(), hub]),
            ["ServiceExport ServiceIneligible: service work/app is not eligible for export: it is headless, and the \
              hub agent does not announce support for headless Services. Upgrade the hub agent, or apply the CRD of \
              MemberAgent in the hub"],
        ),
        case(
            "it is derived from an import",
            planned(
                &member_view([
                    derived_service("work-app", "work/app").object(),
                    service_export("fleet-system/work-app").object(),
                ]),
                &Key::Export(in_system("work-app")),
            ),
            [
                "ServiceExport ServiceImported: service fleet-system/work-app is the derived Service of an import, so its \
              endpoints are of other clusters. Delete the ServiceExport: each cluster can import the Service from the \
              clusters that run it",
            ],
        ),
    ]
}

fn of_services_over_a_limit() -> Vec<Case> {
    let app = || service("work/app").object();
    let fresh = || service_export("work/app");
    vec![
        case(
            "it has too many ports",
            export_plan([service("work/app").ports(&vec![port("http", 80); 1001]).object(), fresh().object()]),
            ["ServiceExport TooManyPorts: service work/app has 1001 ports, and at most 1000 can be exported. The \
              existing export stays as it was. Remove ports, or split them between several Services"],
        ),
        case(
            "its weight says nothing",
            export_plan([app(), fresh().weighing("many").object()]),
            ["ServiceExport ServiceExportInvalidWeightAnnotation: serviceExport work/app has an invalid \
              annotation networking.fleet.azure.com/weight: it is not a valid integer: many. The existing export continues \
              unchanged. Correct the annotation"],
        ),
        case(
            "its weight is 0",
            export_plan([app(), fresh().weighing("0").object()]),
            ["ServiceExport ServiceIsValid: exported service work/app with 0 weight: other clusters send it no \
              traffic until its weight is above 0"],
        ),
    ]
}

fn of_outcomes() -> Vec<Case> {
    let app = || service("work/app").uid("0a1b2c3d");
    let internal = || internal_export("member-1", &app()).port_set_since(seconds(2));
    let denied = Condition { status: ConditionStatus::False, reason: "ExporterNotAllowed".into(), ..valid("work/app") };
    let denied = Condition { message: "cluster member-1 may not".into(), ..denied };
    let theirs = |name: &str, of: &str| {
        let mut export = internal_export("member-1", &service(of).uid(of));
        export.meta.name.name = name.into();
        export.object()
    };
    let pending = || service_export("work/app").marked().with_conditions(&[valid("work/app")]);
    let message = "service work/app of cluster member-1 cannot be exported: another export in the hub uses each name \
                that its InternalServiceExport may have: fleet-member-member-1/work-app (of Service a/b), \
                fleet-member-member-1/work-app-0a1b2 (of Service c/d). Delete one of these, or give the Service \
                another name";
    vec![
        case(
            "the hub finds no conflict",
            export_plan([app().object(), pending().object(), internal().judged(no_conflict("work/app")).object()]),
            ["ServiceExport NoConflictFound: service work/app is exported without conflict"],
        ),
        case(
            "the hub finds one",
            export_plan([
                app().object(),
                accepted_export("work/app").object(),
                internal().judged(conflict("work/app")).object(),
            ]),
            ["ServiceExport ConflictFound: service work/app is in conflict with other exported services. The Events \
              of InternalServiceExport fleet-member-member-1/work-app in the hub name the ports, the clusters and the \
              winner"],
        ),
        case(
            "the hub does not let this cluster export it",
            export_plan([app().object(), accepted_export("work/app").object(), internal().judged(denied).object()]),
            ["ServiceExport ExporterNotAllowed: cluster member-1 may not"],
        ),
        (
            "others have both of its names in the hub",
            export_plan([
                app().object(),
                accepted_export("work/app").object(),
                theirs("work-app", "a/b"),
                theirs("work-app-0a1b2", "c/d"),
            ]),
            vec![format!("ServiceExport NameHeldByAnother: {message}"), format!("log NameHeldByAnother: {message}")],
        ),
    ]
}

fn of_source_slices() -> Vec<Case> {
    let exporting = || [service("work/app").object(), accepted_export("work/app").object()];
    let plan = |objects: Vec<Object>| {
        planned(&member_view(exporting().into_iter().chain(objects)), &Key::SliceExport(named("work/app-1")))
    };
    let mut six = slice("work/app-1");
    six.content.address_type = AddressType::IPv6;
    let mut fully_qualified = slice("work/app-1");
    fully_qualified.content.address_type = AddressType::Other("FQDN".into());
    let mut many_addresses = slice("work/app-1");
    many_addresses.further_addresses = 1;
    let app = slice("work/app-1").uid("0a1b2c3d");
    let names = [SuffixLength::Short, SuffixLength::Long].map(|length| {
        let (slice_uid, export_uid) = (&*app.meta.uid, "uid-export-work/app");
        names::slice_export_name("member-1", "work", "app-1", slice_uid, export_uid, length)
    });
    let taken = |name: &Text| {
        let mut export = slice_export("member-1", &app).called(name);
        export.spec.reference.uid = "another".into();
        export.spec.reference.source = named("work/another");
        Object::EndpointSliceExport(export)
    };
    let message = format!(
        "log NameHeldByAnother: EndpointSlice work/app-1 of cluster member-1 is not exported: EndpointSliceExports of \
         other slices use both names that it may have in the hub, fleet-member-member-1/{} and \
         fleet-member-member-1/{}. Delete one of these",
        names[0], names[1]
    );
    vec![
        case(
            "the hub does not understand IPv6",
            plan(vec![six.clone().object()]),
            ["log NotUnderstood: EndpointSlice work/app-1 of cluster member-1 is not exported: the hub agent does \
                 not announce support for IPv6 slices. Upgrade it, or apply the CRD of MemberAgent in the hub"],
        ),
        case(
            "an exported slice, and the hub does not support IPv6",
            plan(vec![
                Object::EndpointSliceExport(slice_export("member-1", &six)),
                six.object(),
                member_agent("member-1", Features::ALL, Features::NONE).object(),
            ]),
            ["log NotUnderstood: EndpointSlice work/app-1 of cluster member-1 is not exported: the hub agent does \
                 not announce support for IPv6 slices. Upgrade it, or apply the CRD of MemberAgent in the hub"],
        ),
        case(
            "nobody understands names",
            plan(vec![fully_qualified.object()]),
            ["log NotUnderstood: EndpointSlice work/app-1 of cluster member-1 is not exported: no cluster can import \
              slices of address type FQDN"],
        ),
        case(
            "an endpoint has more addresses than the agents keep",
            plan(vec![many_addresses.object()]),
            [
                "log TooManyAddresses: EndpointSlice work/app-1 of cluster member-1 is exported without 1 of its addresses: of \
              each endpoint, the first 8 addresses are exported. Write the other addresses as endpoints of their own",
            ],
        ),
        (
            "others have both names of a slice in the hub",
            plan(vec![app.clone().object(), taken(&names[0]), taken(&names[1])]),
            vec![message],
        ),
    ]
}

// === Conditions and Events about imports ===

fn import_plan(objects: impl IntoIterator<Item = Object>) -> Plan {
    planned(&member_view(objects), &Key::MultiClusterService(named("work/app")))
}

fn taken_on() -> MultiClusterService {
    request("work/app").taken_on()
}

/// Returns a MultiClusterService whose ServiceImport had exporters before.
fn previously_found() -> MultiClusterService {
    taken_on().deriving("work-app").with_conditions(&[found()])
}

fn of_requests() -> Vec<Case> {
    let full =
        |request| service_import("work/app").controlled_by(&request).showing(resolved(&["member-2", "member-3"]));
    vec![
        case(
            "the import is there",
            import_plan([
                taken_on().deriving("work-app").with_conditions(&[not_found()]).object(),
                full(taken_on()).object(),
                derived_service("work-app", "work/app").object(),
            ]),
            [
                "MultiClusterService FoundServiceImport: service work/app of member-2, member-3 is imported into cluster \
              member-1 as Service fleet-system/work-app: clients call work-app.fleet-system.svc",
            ],
        ),
        (
            "type LoadBalancer is asked for, and not granted",
            import_plan([
                previously_found().object(),
                full(previously_found()).object(),
                derived_service("work-app", "work/app").of_type(ServiceType::ClusterIp).object(),
                claim("member-1", &full(previously_found())).east_west().with_status(resolved(&["member-2", "member-3"])).object(),
            ]),
            vec![
                "MultiClusterService LoadBalancerNotGranted: service work/app stays imported into cluster member-1 with type \
                 ClusterIP: type LoadBalancer is not granted. Only one cluster may import it with that type: delete the \
                 MultiClusterService of the other cluster, which the events of ServiceImport work/app in the hub name, or set \
                 spec.type to ClusterIP"
                    .to_owned(),
            ],
        ),
        case(
            "it is deleted",
            import_plan([previously_found().deleting().object()]),
            ["MultiClusterService UnimportedService: service work/app is not imported any more"],
        ),
    ]
}

/// Returns cases of MultiClusterServices that cannot import their Service.
fn of_unknown_imports() -> Vec<Case> {
    let empty = |request| service_import("work/app").controlled_by(&request).object();
    let lost = "service work/app is not imported into cluster member-1";
    let why = "no cluster exports it, or another cluster imports it with type LoadBalancer. The Events of \
               ServiceImport work/app in the hub name these clusters";
    let shows = |status, reason| taken_on().with_conditions(&[condition("Valid", status, reason, "why", 1)]);
    let other = request("work/other").importing("app").taken_on();
    let waits = "MultiClusterService work/app of cluster member-1 waits: other of the same namespace already imports \
                 service work/app. Delete one of the two, or let them import different services";
    vec![
        (
            "it is new",
            import_plan([taken_on().object(), empty(taken_on())]),
            vec![format!("MultiClusterService UnknownServiceImport: {lost} yet: {why}")],
        ),
        (
            "its last exporter has left",
            import_plan([
                previously_found().object(),
                empty(previously_found()),
                derived_service("work-app", "work/app").object(),
            ]),
            vec![format!("MultiClusterService UnknownServiceImport: {lost} any more: {why}")],
        ),
        (
            "its last exporter has left, and it had no load balancer",
            import_plan([
                shows("True", "LoadBalancerNotGranted").object(),
                empty(previously_found()),
                derived_service("work-app", "work/app").of_type(ServiceType::ClusterIp).object(),
            ]),
            vec![format!("MultiClusterService UnknownServiceImport: {lost} any more: {why}")],
        ),
        (
            "its last exporter has left, and it was never imported",
            import_plan([shows("False", "TooManyLoadBalancers").object(), empty(taken_on())]),
            vec![format!("MultiClusterService UnknownServiceImport: {lost} yet: {why}")],
        ),
        case(
            "it names no target",
            import_plan([request("work/app").importing("").object()]),
            ["MultiClusterService UnknownServiceImport: MultiClusterService work/app of cluster member-1 names no \
              Service to import: set spec.serviceImport.name"],
        ),
        (
            "another has the import",
            import_plan([taken_on().object(), empty(other.clone()), other.object()]),
            vec![
                format!("MultiClusterService UnknownServiceImport: {waits}"),
                format!("log UnknownServiceImport: {waits}"),
            ],
        ),
    ]
}

/// Returns the two lines that [`messages`] has for the same message: one for the Event about a MultiClusterService, and
/// one for the log.
fn both(reason: &str, message: &str) -> Vec<String> {
    vec![format!("MultiClusterService {reason}: {message}"), format!("log {reason}: {message}")]
}

fn of_blocked_requests() -> Vec<Case> {
    let taken = || request("work/app").taken_on().uid("0a1b2c3d").with_conditions(&[not_found()]);
    let import = || service_import("work/app").uid("4e5f6a7b").controlled_by(&taken());
    let shown = || import().showing(resolved(&["member-2"]));
    let odd = ImportStatus { ports: vec![port("http", 0)], ..resolved(&["member-2"]) };
    let theirs = |name: &str, of: &str| {
        let mut claim = claim("member-1", &service_import(of).uid(of));
        claim.meta.name.name = name.into();
        claim.object()
    };
    let claimed = "service work/app cannot be imported into cluster member-1: another InternalServiceImport in the \
                   hub uses each name that its claim may have: fleet-member-member-1/work-app (of service a/b), \
                   fleet-member-member-1/work-app-4e5f6 (of service c/d). Delete one of these, or import another \
                   service";
    let derived = "MultiClusterService work/app of cluster member-1 cannot derive a Service: Services of other owners \
                   use each name that it may have: fleet-system/work-app, fleet-system/work-app-0a1b2. Delete or \
                   rename one of these";
    let ports = "Service work/app is not derived: port \"http\" 0/TCP of the ServiceImport in the hub is invalid. \
                 Correct the Service in cluster member-2";
    vec![
        (
            "others have both names of its claim in the hub",
            import_plan([
                taken().object(),
                import().object(),
                theirs("work-app", "a/b"),
                theirs("work-app-4e5f6", "c/d"),
            ]),
            both("NameHeldByAnother", claimed),
        ),
        (
            "others have both names of its derived Service",
            import_plan([
                taken().object(),
                shown().object(),
                service("fleet-system/work-app").object(),
                service("fleet-system/work-app-0a1b2").object(),
            ]),
            both("NameHeldByAnother", derived),
        ),
        (
            "the import has a port that is none",
            import_plan([taken().object(), import().showing(odd).object()]),
            both("PortRefused", ports),
        ),
        case(
            "somebody took the labels of its derived Service away",
            import_plan([
                taken().deriving("work-app").object(),
                shown().object(),
                service("fleet-system/work-app").object(),
            ]),
            ["MultiClusterService DerivedServiceLost: Service fleet-system/work-app does not have the labels of \
              MultiClusterService work/app, so the agent leaves it unchanged, and derives another Service. Delete it \
              if nobody needs it"],
        ),
        case(
            "it is to go while what was made for it cannot be read",
            {
                let mut view = member_view([taken().deleting().object()]);
                undecodable(&mut view, Kind::ServiceImport, &named("work/app"));
                planned(&view, &Key::MultiClusterService(named("work/app")))
            },
            ["log ObjectUnreadable: MultiClusterService work/app is being deleted and keeps its finalizer, because \
              ServiceImport work/app was created for it and is undecodable. Repair or delete that object"],
        ),
    ]
}

fn of_imported_slices() -> Vec<Case> {
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let import = service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"]));
    let service = derived_service("work-app", "work/app");
    let distributed = || distributed_slice("member-1", &slice_export("member-2", &slice("work/app-1")));
    let plan = |objects: Vec<Object>, name: &Text| {
        let around = [request.clone().object(), import.clone().object(), service.clone().object()];
        planned(&member_view(around.into_iter().chain(objects)), &Key::SliceImport(in_system(name)))
    };
    let name = distributed().meta.name.name;
    let theirs = EndpointSlice { imported: false, observed_generation: None, ..imported_slice(&name, "another") };
    let message = format!(
        "EndpointSlice fleet-system/{name} of cluster member-1 is not managed by this agent, so the imported slice of \
         that name cannot be written. Delete it, or restore its managed-by label"
    );
    let odd = distributed().called("Not_A_Name").marked();
    let loopback = distributed().with_addresses(&["10.0.0.1", "127.0.0.1"], 1).marked();
    let address = "EndpointSlice work/app-1 of cluster member-2 has values that are not imported: address 127.0.0.1 \
                   (loopback). Correct the slice in cluster member-2";
    vec![
        (
            "somebody else's slice has its name",
            plan(vec![Object::EndpointSliceImport(distributed()), theirs.object()], &name),
            vec![format!("log NameHeldByAnother: {message}")],
        ),
        case(
            "no slice can have its name",
            plan(vec![Object::EndpointSliceImport(odd)], &"Not_A_Name".into()),
            ["log NameRefused: EndpointSliceImport fleet-member-member-1/Not_A_Name is not imported, because no \
              EndpointSlice can have its name. Hub agents write no such name: find the client that wrote it"],
        ),
        (
            "it has an address that is no other cluster's",
            plan(vec![Object::EndpointSliceImport(loopback)], &name),
            both("AddressRefused", address),
        ),
    ]
}

// === Events of the hub agent ===

fn hub_plan(objects: impl IntoIterator<Item = Object>) -> Plan {
    planned(&hub_view(objects), &hub::Key::Service(named("work/app")))
}

fn internal(cluster: &str, number: i32, since: i64) -> InternalServiceExport {
    internal_export(cluster, &service("work/app").ports(&[port("http", number)])).port_set_since(seconds(since))
}

fn shown(clusters: &[&str]) -> ServiceImport {
    service_import("work/app").showing(resolved(clusters))
}

const DIFFERS: &str = "service work/app of cluster member-3 is in conflict with the export of cluster member-1, which \
                       has exported its ports for longer: only member-3 exports http 81/TCP; only member-1 exports \
                       http 80/TCP. Export the same ports, or export under another name";

fn of_new_exports_in_the_hub() -> Vec<Case> {
    let winner = || internal("member-1", 80, 3).judged(no_conflict("work/app")).object();
    let mut later = internal("member-3", 81, 4).judged(conflict("work/app"));
    later.meta.generation = 2;
    let odd = internal_export("member-1", &service("work/Not_A_Name")).port_set_since(seconds(2));
    // The conflict gets its Event with the write of the condition, not with the write of the ServiceImport.
    let updated = "ServiceImport SuccessfulUpdateStatus: service work/app is exported by cluster member-1";
    vec![
        case(
            "one is new in conflict while the winner changes",
            hub_plan([winner(), internal("member-3", 81, 4).object(), shown(&["member-2"]).object()]),
            [updated],
        ),
        case(
            "one is in conflict in its next generation while the winner changes",
            hub_plan([winner(), later.object(), shown(&["member-2"]).object()]),
            [updated],
        ),
        case(
            "one joins while another stays in conflict with the same winner",
            hub_plan([
                winner(),
                internal("member-2", 80, 4).judged(no_conflict("work/app")).object(),
                internal("member-3", 81, 4).judged(conflict("work/app")).object(),
                shown(&["member-1"]).object(),
            ]),
            [
                "ServiceImport SuccessfulUpdateStatus: service work/app is exported by clusters member-1, member-2, with the \
              ports of member-1",
            ],
        ),
        case(
            "no Service can have the name",
            planned(&hub_view([odd.object()]), &hub::Key::Service(named("work/Not_A_Name"))),
            [
                "log NameRefused: Service \"work/Not_A_Name\" is exported under a name that no Service can have, so the hub \
              agent creates nothing for it. Member agents write no such InternalServiceExport: find the client that \
              wrote it",
            ],
        ),
    ]
}

fn of_exports_in_the_hub() -> Vec<Case> {
    let accepted = |cluster: &str, since| internal(cluster, 80, since).judged(no_conflict("work/app")).object();
    let loser = || internal("member-3", 81, 4);
    let mut back = internal("member-2", 80, 3).judged(no_conflict("work/app"));
    let denial = "cluster member-2 may not export from namespace work of the hub: the annotation networking.fleet.azure.com/exporters does \
                   not list it. Add member-2 there, or remove the annotation so that every cluster may";
    let denied = || crate::support::build::condition("Valid", "False", "ExporterNotAllowed", denial, 1);
    back.conditions.push(denied());
    let by_one = || namespace("work").exported_from_by("member-1").object();
    vec![
        case(
            "exporters join",
            hub_plan([accepted("member-1", 2), accepted("member-2", 3), shown(&["member-1"]).object()]),
            [
                "ServiceImport SuccessfulUpdateStatus: service work/app is exported by clusters member-1, member-2, with the \
              ports of member-1",
            ],
        ),
        case(
            "the last one has left",
            hub_plan([shown(&["member-1"]).object()]),
            ["ServiceImport NoExportedService: service work/app is exported by no cluster any more"],
        ),
        (
            "one is in conflict",
            hub_plan([accepted("member-1", 2), loser().object(), shown(&["member-1"]).object()]),
            vec![format!("InternalServiceExport ConflictFound: {DIFFERS}")],
        ),
        (
            "one stays in conflict with another winner",
            hub_plan([
                accepted("member-1", 3),
                loser().judged(conflict("work/app")).object(),
                shown(&["member-2"]).object(),
            ]),
            vec![
                "ServiceImport SuccessfulUpdateStatus: service work/app is exported by cluster member-1".to_owned(),
                format!("InternalServiceExport ConflictFound: {DIFFERS}"),
            ],
        ),
        case(
            "a conflict ends",
            hub_plan([
                accepted("member-1", 2),
                internal("member-2", 80, 3).judged(conflict("work/app")).object(),
                shown(&["member-1", "member-2"]).object(),
            ]),
            [
                "InternalServiceExport NoConflictFound: service work/app of cluster member-2 is exported without conflict",
            ],
        ),
        (
            "one may not export",
            hub_plan([accepted("member-1", 2), accepted("member-2", 3), shown(&["member-1"]).object(), by_one()]),
            vec![format!("InternalServiceExport ExporterNotAllowed: {denial}")],
        ),
        case(
            "one may export again",
            hub_plan([accepted("member-1", 2), back.object(), shown(&["member-1", "member-2"]).object()]),
            ["InternalServiceExport ExporterAllowed: service work/app may be exported by this cluster"],
        ),
    ]
}

fn of_claims() -> Vec<Case> {
    let exporter = || internal("member-1", 80, 2).judged(no_conflict("work/app")).object();
    let claim_of = |cluster: &str| claim(cluster, &service_import("work/app"));
    let holder = || claim_of("member-2").marked().with_status(resolved(&["member-1"])).object();
    let headless = ImportStatus { import_type: Some(ImportType::Headless), ..resolved(&["member-1"]) };
    let headless_export = || {
        let export = internal_export("member-1", &service("work/app").headless());
        export.port_set_since(seconds(2)).judged(no_conflict("work/app"))
    };
    let of_none = namespace("work").imported_from_by("").object();
    vec![
        case(
            "one claims",
            hub_plan([exporter(), shown(&["member-1"]).object(), claim_of("member-2").marked().object()]),
            ["ServiceImport ImportersChanged: service work/app is imported by cluster member-2"],
        ),
        case(
            "two share",
            hub_plan([
                exporter(),
                shown(&["member-1"]).claimed_by(&["member-2"]).object(),
                claim_of("member-2").east_west().marked().with_status(resolved(&["member-1"])).object(),
                claim_of("member-3").east_west().marked().object(),
            ]),
            ["ServiceImport ImportersChanged: service work/app is imported by clusters member-2, member-3"],
        ),
        case(
            "the claimer has left",
            hub_plan([exporter(), shown(&["member-1"]).claimed_by(&["member-2"]).object()]),
            ["ServiceImport ImportersChanged: service work/app is imported by no cluster any more"],
        ),
        case(
            "another waits",
            hub_plan([
                exporter(),
                shown(&["member-1"]).claimed_by(&["member-2"]).object(),
                holder(),
                claim_of("member-3").object(),
            ]),
            ["log ImportHeldByAnother: InternalServiceImport fleet-member-member-3/work-app of cluster member-3 \
              waits: service work/app is imported by member-2 already, and only one cluster may import it with type \
              LoadBalancer. Use type ClusterIP, or delete the MultiClusterService of the other cluster"],
        ),
        case(
            "one does not understand what it asks for",
            hub_plan([
                headless_export().object(),
                service_import("work/app").showing(headless).object(),
                claim_of("member-2").object(),
            ]),
            ["log NotUnderstood: InternalServiceImport fleet-member-member-2/work-app of cluster member-2 waits: \
              service work/app is headless, and the agent of that cluster does not announce support for headless \
              Services. Upgrade that agent"],
        ),
        case(
            "one may not import",
            hub_plan([exporter(), shown(&["member-1"]).object(), claim_of("member-2").object(), of_none]),
            ["InternalServiceImport ImporterNotAllowed: cluster member-2 may not import from namespace work of the \
              hub: the annotation networking.fleet.azure.com/importers does not list it. Add member-2 there, or remove the annotation so \
              that every cluster may"],
        ),
    ]
}

/// Returns cases of two members whose exported slices conflict: both export the same source slice, or both use the same
/// name.
fn of_slices_in_the_hub() -> Vec<Case> {
    let holder = slice_export("member-1", &slice("work/app-1")).marked().created(seconds(2));
    let second = slice_export("member-2", &slice("work/app-1")).uid("second").created(seconds(3));
    let name = &holder.meta.name.name;
    let squatter = slice_export("member-2", &slice("work/other-1")).called(name).marked().created(seconds(1));
    let distributed = distributed_slice("member-3", &squatter);
    let import = shown(&["member-1"]).claimed_by(&["member-3"]);
    let plan = |objects: Vec<Object>, name: &Text| {
        let all = [Object::EndpointSliceExport(holder.clone()), import.clone().object()].into_iter().chain(objects);
        planned(&claimed_hub_view(all), &hub::Key::Slice(name.clone()))
    };
    let both = |reason: &str, message: &str| {
        vec![format!("EndpointSliceExport {reason}: {message}"), format!("log {reason}: {message}")]
    };
    let of_slice = format!(
        "EndpointSlice work/app-1 (uid uid-app-1) of cluster member-2 is not distributed: cluster member-1 already \
         exports it, as EndpointSliceExport {}. If one cluster joined the fleet under two ids, remove one of them. \
         Otherwise one of the two clusters exports a slice of the other",
        holder.meta.name
    );
    let of_name = format!(
        "EndpointSlice work/other-1 of cluster member-2 is not distributed: EndpointSliceExport {} of cluster \
         member-1 already uses the name. Delete the one that does not belong there",
        holder.meta.name
    );
    vec![
        (
            "another exports the slice",
            plan(vec![Object::EndpointSliceExport(second.clone())], &second.meta.name.name),
            both("SliceHeldByAnother", &of_slice),
        ),
        (
            "whose the name is takes it over",
            plan(vec![Object::EndpointSliceExport(squatter), Object::EndpointSliceImport(distributed)], name),
            both("NameHeldByAnother", &of_name),
        ),
    ]
}

fn of_limits() -> Vec<Case> {
    let limits = |slices, endpoints| Limits { imports: ImportLimits { slices, endpoints }, exports_per_namespace: 1 };
    let other = internal_export("member-1", &service("work/other")).object();
    let exporting = limited_member_view(
        limits(1, 1),
        [service("work/app").object(), service_export("work/app").marked().object(), other],
    );
    let request = request("work/app").taken_on().deriving("work-app").with_conditions(&[found()]);
    let export = slice_export("member-2", &slice("work/app-1").endpoints(&["10.0.0.1", "10.0.0.2"]));
    let importing = limited_member_view(
        limits(1, 1),
        [
            request.clone().object(),
            service_import("work/app").controlled_by(&request).showing(resolved(&["member-2"])).object(),
            derived_service("work-app", "work/app").object(),
            Object::EndpointSliceImport(distributed_slice("member-1", &export).marked()),
        ],
    );
    let agent = member_agent("member-1", Features::ALL, Features::ALL);
    let of_member = |bytes, fan_out| {
        let export = slice_export("member-1", &slice("work/app-1"));
        let distributed_slices =
            ["member-2", "member-3"].map(|importer| Object::EndpointSliceImport(distributed_slice(importer, &export)));
        let objects = [agent.clone().object(), Object::EndpointSliceExport(export)];
        let mut view = limited_hub_view(bytes, fan_out, objects.into_iter().chain(distributed_slices));
        view.announces = fleetnet_core::model::Announcement::new("1.0.0", Features::ALL);
        planned(&view, &hub::Key::Member("member-1".into()))
    };
    let too_large = "objects of cluster member-1 exceed the memory that the hub agent keeps for a member, so it uses their last known \
                     state, and not yet those that are new. Remove exports or endpoints in cluster member-1, or raise --member-memory \
                     of the hub agent";
    let limited = "the exports of cluster member-1 cause as many objects in the namespaces of other members as they may, so no further \
                   cluster imports them. Remove exports in cluster member-1, or raise --member-fan-out of the hub agent";
    let of_agent = |reason: &str, message: &str| vec![format!("log {reason}: {message}")];
    let too_many = "service work/app of cluster member-1 cannot be exported: namespace work has 1 exported Services already, and may \
                    have no more. Delete ServiceExports of other Services, or raise --max-exports-per-namespace of the member agent";
    vec![
        (
            "a namespace has as many exports as it may have",
            planned(&exporting, &Key::Export(named("work/app"))),
            vec![
                format!("ServiceExport TooManyExports: {too_many}"),
                "ServiceExport ServicePendingConflictResolution: service work/app is pending export conflict resolution".to_owned(),
                format!("log TooManyExports: {too_many}"),
            ],
        ),
        case(
            "an exporter has too many endpoints",
            planned(&importing, &Key::SliceImport(in_system(&export.meta.name.name))),
            ["log TooManyEndpoints: service work/app of cluster member-2 has more than 1 slices or 1 endpoints, so cluster member-1 \
              does not import all of its endpoints. Reduce them in cluster member-2, or raise --max-imported-slices and \
              --max-imported-endpoints of the member agent of cluster member-1"],
        ),
        ("the objects of a member are too large", of_member(Some(1), None), of_agent("MemberTooLarge", too_large)),
        ("a member causes many objects", of_member(None, Some(2)), of_agent("DistributionLimited", limited)),
    ]
}

fn all() -> Vec<Case> {
    let member = [
        of_services(),
        of_services_over_a_limit(),
        of_outcomes(),
        of_source_slices(),
        of_requests(),
        of_unknown_imports(),
        of_blocked_requests(),
        of_imported_slices(),
        of_limits(),
    ];
    let hub = [of_new_exports_in_the_hub(), of_exports_in_the_hub(), of_claims(), of_slices_in_the_hub()];
    member.into_iter().chain(hub).flatten().collect()
}

/// Rule E17: An endpoint of a source slice has more than 8 addresses
/// Then: The member agent exports the first 8 addresses of the endpoint, and logs the reason `TooManyAddresses` with
/// the number of the other addresses
///
/// Rule R1: An agent reports something to users
/// Then: The condition, the Event and the log line have the same reason. The message contains the name of the object
/// and the id of the cluster, and says what to do
///
/// Rule R8: The exporters or importers of a Service change
/// Then: The hub agent emits an Event on the hub's ServiceImport with the write that records the change
///
/// Rule R9: A conflict begins, ends, or continues with another winner or other ports
/// Then: The hub agent emits an Event on the InternalServiceExport whose conflict begins, ends or changes
///
/// Rule T52: A member exceeds `--member-memory` or `--member-fan-out`
/// Then: The MemberAgent has an Event `MemberTooLarge` or `DistributionLimited`. The log and `fleetnet_hindrances` have
/// the same reasons, also without a MemberAgent
///
/// Also rules R5, S25, S30.
#[test]
fn messages_say_what_happened_why_and_what_to_do() {
    let reported = all().into_iter().map(|(case, plan, expected)| (case, messages(&plan), expected));
    let otherwise: Vec<_> = reported.filter(|(_, reported, expected)| reported != expected).collect();
    assert!(otherwise.is_empty(), "what is told, and what should be: {otherwise:#?}");
}

/// Also rule R1.
#[test]
fn every_reason_has_a_message() {
    let mut reported: BTreeSet<Reason> = BTreeSet::new();
    for (_, plan, _) in all() {
        reported.extend(plan.writes.iter().flat_map(|write| &write.events).map(|event| event.reason));
        reported.extend(plan.blocking_reasons.iter().map(|blocking_reason| blocking_reason.reason));
    }
    // Not checked here: the tests of the agents' crates check the messages about writes and rights.
    reported.extend([Reason::WriteRefused, Reason::WriteDenied, Reason::RightsNotEnforced]);
    // `disputed.rs` checks the messages about disputes with other writers.
    reported.extend([Reason::WritesUndone, Reason::WritesStand]);
    // `reworded.rs` checks the condition `Withdrawn`. Changes of this condition emit no Event.
    reported.extend([Reason::WeightIsZero, Reason::WeightIsNotZero]);
    // `identity.rs` checks the messages about the owner of a cluster id.
    reported.extend([Reason::ClusterIdInUse, Reason::ClusterIdShared, Reason::ClusterIdNotChecked]);
    // `membership.rs` checks the answers to a fleet manager, and the messages about members that leave.
    reported.extend([Reason::AgentJoined, Reason::AgentLeft, Reason::MemberLeaves, Reason::LeavePostponed]);
    // `silence.rs` checks the messages about silent members.
    reported.extend([Reason::MemberSilent, Reason::ManyMembersSilent, Reason::MemberReturning, Reason::MemberReturned]);
    // `import.rs` checks the messages about load balancers.
    reported.extend([Reason::TooManyLoadBalancers, Reason::InternalLoadBalancerInvalid]);
    // `mcs_import.rs` checks the messages about imports by the standard API.
    reported.extend([Reason::IPFamilyNotSupported]);
    // `cluster_selection.rs` checks the message about weights. The member agent's tests check those about failovers.
    reported.extend([Reason::WeightsInvalid, Reason::ClusterFailover, Reason::ClusterFailback]);
    // `properties.rs` checks the message about properties.
    reported.extend([Reason::PropertiesLeftOut]);
    // `cluster_selectors.rs` checks the messages about cluster selectors.
    reported.extend([Reason::InvalidClusterSelector, Reason::ClusterSelectorsRead, Reason::PropertiesUnknown]);
    assert_eq!(reported, Reason::ALL.iter().copied().collect());
    let messages: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(messages.len(), Reason::ALL.len(), "no two say the same");
}

/// Returns the conditions that a write sets, if any.
pub(crate) fn set_by(action: &Action) -> Option<&[Condition]> {
    match action {
        Action::Patch {
            patch:
                Patch::ServiceExportConditions(list)
                | Patch::InternalServiceExportConditions(list)
                | Patch::InternalServiceExportMerge { conditions: list, precedence: _ }
                | Patch::ServiceImportConditions(list)
                | Patch::MultiClusterServiceStatus { conditions: list, .. },
            ..
        } => Some(list),
        _ => None,
    }
}

/// Also rule R1.
#[test]
fn a_condition_its_event_and_the_log_have_the_same_reason() {
    for (case, plan, _) in all() {
        for write in plan.writes.iter().filter(|write| set_by(&write.action).is_some()) {
            let set: Vec<&str> = set_by(&write.action).into_iter().flatten().map(|it| &*it.reason).collect();
            for event in &write.events {
                assert!(set.contains(&event.reason.as_str()), "{case}: {} beside {set:?}", event.reason);
            }
        }
        let reported: Vec<Reason> =
            plan.writes.iter().flat_map(|write| &write.events).map(|event| event.reason).collect();
        for blocking_reason in &plan.blocking_reasons {
            assert!(
                reported.is_empty() || reported.contains(&blocking_reason.reason),
                "{case}: {} beside {reported:?}",
                blocking_reason.reason
            );
        }
    }
}

#[test]
fn the_event_of_a_problem_is_a_warning_and_others_are_not() {
    let (source, export) = (service("work/app").object(), service_export("work/app").object());
    for (objects, expected) in [(vec![source, export.clone()], Severity::Normal), (vec![export], Severity::Warning)] {
        let plan = export_plan(objects);
        let events: Vec<_> = plan.writes.iter().flat_map(|write| &write.events).collect();
        assert!(!events.is_empty() && events.iter().all(|event| event.severity == expected), "{events:?}");
    }
}
