//! Tests of the rules of kinds: memkube's responses are compared with recorded responses of a real kube-apiserver.
//!
//! Each file in `calls/` has sections, each with a title (`= <title>`). The calls of each section go to a new server:
//!
//! ```text
//! > POST /api/v1/namespaces/rules/services {"spec":{}}      verb, path, body (`@things.json`: from `definitions/`)
//! < 422 Invalid                                             code and reason (`< 201 {…}`: the object)
//! ! FieldValueRequired spec.ports                           reason and field of each cause, in any order
//! ```
//!
//! `MERGE` is a merge patch. `"*"` in an object matches any value, for example an address, port or time that the server
//! chose. The comparison ignores metadata that the expected response does not contain. A call without an expected
//! response must succeed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod compare;
mod support;

use support::Section;

/// Namespace of all calls.
const NAMESPACE: &str = r#"{"metadata":{"name":"rules"}}"#;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FLEET: [&str; 8] = [
    include_str!("../../../../deploy/crds/networking.fleet.azure.com_endpointsliceexports.yaml"),
    include_str!("../../../../deploy/crds/networking.fleet.azure.com_endpointsliceimports.yaml"),
    include_str!("../../../../deploy/crds/networking.fleet.azure.com_internalserviceexports.yaml"),
    include_str!("../../../../deploy/crds/networking.fleet.azure.com_internalserviceimports.yaml"),
    include_str!("../../../../deploy/crds/networking.fleet.azure.com_memberagents.yaml"),
    include_str!("../../../../deploy/crds/networking.fleet.azure.com_multiclusterservices.yaml"),
    include_str!("../../../../deploy/crds/networking.fleet.azure.com_serviceexports.yaml"),
    include_str!("../../../../deploy/crds/networking.fleet.azure.com_serviceimports.yaml"),
];

/// Makes the calls of a file. Each section uses a new server, on which `definitions` are created first.
async fn replay(file: &str, calls: &str, definitions: &[&str]) {
    let mut differences = Vec::new();
    for section in Section::all(calls) {
        let mut server = support::Server::new();
        server.expect("POST", "/api/v1/namespaces", NAMESPACE, 201).await;
        for definition in definitions {
            server.expect("YAML", DEFINITIONS, definition, 201).await;
        }
        for call in &section.calls {
            let answer = server.call(&call.verb, &call.path, &call.body).await;
            let found = compare::differences(&call.expected, &answer);
            let place = || format!("{file}: {}\n> {} {} {}", section.title, call.verb, call.path, call.body);
            differences.extend(found.iter().map(|difference| format!("{}\n{difference}", place())));
        }
    }
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n\n"));
}

macro_rules! replays {
    ($($name:ident: $file:literal with [$($definition:expr),*];)*) => {$(
        #[tokio::test]
        async fn $name() {
            replay($file, include_str!(concat!("calls/", $file, ".calls")), &[$($definition),*]).await;
        }
    )*};
}

const THINGS: &str = include_str!("definitions/things.json");
const CELTS: &str = include_str!("definitions/celts.json");

replays! {
    services_are_as_on_a_real_server: "services" with [];
    services_change_as_on_a_real_server: "service_updates" with [];
    endpoint_slices_are_as_on_a_real_server: "endpoint_slices" with [];
    namespaces_are_as_on_a_real_server: "namespaces" with [];
    leases_are_as_on_a_real_server: "leases" with [];
    events_are_as_on_a_real_server: "events" with [];
    config_maps_and_secrets_are_as_on_a_real_server: "data" with [];
    values_of_custom_resources_are_checked_as_on_a_real_server: "custom_values" with [THINGS];
    custom_resources_are_as_on_a_real_server: "custom_objects" with [THINGS];
    custom_resources_change_as_on_a_real_server: "custom_updates" with [THINGS];
    rules_of_custom_resources_hold_as_on_a_real_server: "rules" with [CELTS];
    definitions_are_checked_as_on_a_real_server: "definitions" with [];
    definitions_change_as_on_a_real_server: "definition_updates" with [];
}

#[tokio::test]
async fn the_definitions_of_this_repository_hold_as_on_a_real_server() {
    replay("fleet_definitions", include_str!("calls/fleet_definitions.calls"), &FLEET).await;
}

/// Status code, and field of the first cause.
fn field(answer: &support::Answer) -> (u16, String) {
    let field = answer.body["details"]["causes"][0]["field"].as_str();
    (answer.code, field.unwrap_or_default().to_owned())
}

/// Test of large slices, which are too long for a file of calls.
#[tokio::test]
async fn slices_have_a_limited_size() {
    let mut server = support::Server::new();
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let addresses: Vec<String> = (0..101).map(|last| format!("10.0.0.{last}")).collect();
    let slice = |endpoints: serde_json::Value| {
        serde_json::json!({"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": endpoints}).to_string()
    };
    let answer = server.call("POST", path, &slice(serde_json::json!([{"addresses": addresses}]))).await;
    assert_eq!(field(&answer), (422, "endpoints[0].addresses".to_owned()));
    let many = vec![serde_json::json!({"addresses": ["10.0.0.1"]}); 1001];
    let answer = server.call("POST", path, &slice(many.into())).await;
    assert_eq!(field(&answer), (422, "endpoints".to_owned()));
}

/// Test that a CustomResourceDefinition that is deleted and created again has none of its earlier objects.
#[tokio::test]
async fn deleting_a_definition_takes_its_objects_with_it() {
    let mut server = support::Server::new();
    let things = "/apis/rules.io/v1/namespaces/default/things";
    server.expect("GET", things, "", 404).await;
    server.expect("POST", DEFINITIONS, THINGS, 201).await;
    let thing = r#"{"apiVersion":"rules.io/v1","kind":"Thing","metadata":{"name":"a"}}"#;
    server.expect("POST", things, thing, 201).await;
    let definition = format!("{DEFINITIONS}/things.rules.io");
    server.expect("DELETE", &definition, "", 200).await;
    server.expect("GET", things, "", 404).await;
    server.expect("POST", DEFINITIONS, THINGS, 201).await;
    let list = server.call("GET", things, "").await;
    assert_eq!(list.body["items"], serde_json::json!([]));
}

/// Test of a difference: kube-apiserver sets the condition some time after the create, memkube sets it immediately.
#[tokio::test]
async fn a_definition_is_established_when_it_is_created() {
    let mut server = support::Server::new();
    let answer = server.call("POST", DEFINITIONS, THINGS).await;
    let time = "2026-01-01T00:00:00Z";
    let expected = serde_json::json!({
        "conditions": [
            {"type": "NamesAccepted", "status": "True", "lastTransitionTime": time, "reason": "NoConflicts",
             "message": "no conflicts found"},
            {"type": "Established", "status": "True", "lastTransitionTime": time, "reason": "InitialNamesAccepted",
             "message": "the initial names have been accepted"},
        ],
        "acceptedNames": {"plural": "things", "singular": "thing", "shortNames": ["th"], "kind": "Thing",
                          "listKind": "ThingList", "categories": ["all"]},
        "storedVersions": ["v1"],
    });
    assert_eq!(answer.body["status"], expected);
}
