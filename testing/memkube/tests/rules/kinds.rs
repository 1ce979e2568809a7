//! Tests of the rules of kinds: memkube's responses are compared with recorded responses of a real kube-apiserver.
//!
//! Each file in `kinds/calls/` has sections, each with a title (`= <title>`). The calls of each section go to a new
//! server:
//!
//! ```text
//! > POST /api/v1/namespaces/rules/services {"spec":{}}      verb, path, body (`@rats.json`: from `definitions/`)
//! < 422 Invalid                                             code and reason (`< 201 {…}`: the object)
//! ! FieldValueRequired spec.ports                           reason and field of each cause, in any order
//! ```
//!
//! `MERGE` is a merge patch. `"*"` in an object matches any value, for example an address, port or time that the server
//! chose. The comparison ignores metadata that the expected response does not contain. A call without an expected
//! response must succeed.

mod calls;
mod compare;

use crate::support::{Answer, MERGE, Server};
use calls::Section;
use http::Method;

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

/// Makes a call. The verb `MERGE` sends a merge patch, and the verb `YAML` creates an object from YAML.
async fn call(server: &Server, verb: &str, path: &str, body: &str) -> Answer {
    let (method, content_type) = match verb {
        "MERGE" => (Method::PATCH, MERGE),
        "YAML" => (Method::POST, "application/yaml"),
        verb => (verb.parse().unwrap(), "application/json"),
    };
    server.call(method, path, content_type, body.to_owned()).await
}

/// Makes the calls of a file. Each section uses a new server, on which `definitions` are created first.
async fn replay(file: &str, calls: &str, definitions: &[&str]) {
    let mut differences = Vec::new();
    for section in Section::all(calls) {
        let server = Server::new();
        assert_eq!(call(&server, "POST", "/api/v1/namespaces", NAMESPACE).await.code, 201);
        for definition in definitions {
            let answer = call(&server, "YAML", DEFINITIONS, definition).await;
            assert_eq!(answer.code, 201, "{}", answer.body);
        }
        for made in &section.calls {
            let answer = call(&server, &made.verb, &made.path, &made.body).await;
            let found = compare::differences(&made.expected, &answer);
            let place = || format!("{file}: {}\n> {} {} {}", section.title, made.verb, made.path, made.body);
            differences.extend(found.iter().map(|difference| format!("{}\n{difference}", place())));
        }
    }
    assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n\n"));
}

macro_rules! replays {
    ($($name:ident: $file:literal with [$($definition:expr),*];)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            replay($file, include_str!(concat!("kinds/calls/", $file, ".calls")), &[$($definition),*]).await;
        }
    )*};
}

const THINGS: &str = include_str!("kinds/definitions/things.json");
const CELTS: &str = include_str!("kinds/definitions/celts.json");

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

#[tokio::test(start_paused = true)]
async fn the_definitions_of_this_repository_hold_as_on_a_real_server() {
    replay("fleet_definitions", include_str!("kinds/calls/fleet_definitions.calls"), &FLEET).await;
}

/// Test of large slices, which are too long for a file of calls.
#[tokio::test(start_paused = true)]
async fn slices_have_a_limited_size() {
    let server = Server::new();
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let addresses: Vec<String> = (0..101).map(|last| format!("10.0.0.{last}")).collect();
    let slice = |endpoints: serde_json::Value| {
        serde_json::json!({"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": endpoints}).to_string()
    };
    let answer = call(&server, "POST", path, &slice(serde_json::json!([{"addresses": addresses}]))).await;
    assert_eq!((answer.code, answer.fields().1[0]), (422, "endpoints[0].addresses"));
    let many = vec![serde_json::json!({"addresses": ["10.0.0.1"]}); 1001];
    let answer = call(&server, "POST", path, &slice(many.into())).await;
    assert_eq!((answer.code, answer.fields().1[0]), (422, "endpoints"));
}

/// Test of a difference: kube-apiserver sets the condition some time after the create, memkube sets it immediately.
#[tokio::test(start_paused = true)]
async fn a_definition_is_established_when_it_is_created() {
    let server = Server::new();
    let answer = call(&server, "POST", DEFINITIONS, THINGS).await;
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
