//! OpenAPI paths of resources, with the operations of each path.

use crate::auth::Verb;
use crate::registry::{Definition, Scope};
use serde_json::{Map, Value, json};

/// Returns pairs of an OpenAPI path and its operations, for all paths of a resource. `root` is the prefix of its group
/// version, for example `apis/discovery.k8s.io/v1`.
pub(super) fn of(root: &str, definition: &Definition, version: &str) -> Vec<(String, Value)> {
    let plural = &definition.plural;
    let namespaced = definition.scope == Scope::Namespaced;
    let place =
        if namespaced { format!("/{root}/namespaces/{{namespace}}/{plural}") } else { format!("/{root}/{plural}") };
    let operations = |methods: &[(&str, &str, Verb)]| {
        let held = methods.iter().filter(|(.., verb)| definition.verbs.contains(verb));
        let operations =
            held.map(|(method, action, verb)| ((*method).to_owned(), operation(definition, version, action, *verb)));
        operations.collect::<Map<_, _>>()
    };
    let collection = [
        ("get", "list", Verb::List),
        ("post", "post", Verb::Create),
        ("delete", "deletecollection", Verb::DeleteCollection),
    ];
    let object = [
        ("get", "get", Verb::Get),
        ("put", "put", Verb::Update),
        ("patch", "patch", Verb::Patch),
        ("delete", "delete", Verb::Delete),
    ];
    let place_parameters = if namespaced { vec!["namespace"] } else { Vec::new() };
    let object_parameters = [&place_parameters[..], &["name"]].concat();
    let mut paths = vec![(place.clone(), path_item(operations(&collection), &place_parameters))];
    if namespaced {
        let across = operations(&[("get", "list", Verb::List)]);
        paths.push((format!("/{root}/{plural}"), path_item(across, &[])));
    }
    paths.push((format!("{place}/{{name}}"), path_item(operations(&object), &object_parameters)));
    for subresource in &definition.subresources {
        let path = format!("{place}/{{name}}/{}", subresource.name());
        let verbs = subresource.verbs();
        let methods: Vec<_> =
            object.into_iter().chain([collection[1]]).filter(|(.., verb)| verbs.contains(verb)).collect();
        paths.push((path, path_item(operations(&methods), &object_parameters)));
    }
    paths.retain(|(_, item)| item.as_object().is_some_and(|item| item.keys().any(|key| key != "parameters")));
    paths
}

fn path_item(mut operations: Map<String, Value>, parameters: &[&str]) -> Value {
    let in_path = |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let parameters: Vec<Value> = parameters.iter().map(in_path).collect();
    if !parameters.is_empty() {
        operations.insert("parameters".to_owned(), json!(parameters));
    }
    Value::Object(operations)
}

fn operation(definition: &Definition, version: &str, action: &str, verb: Verb) -> Value {
    let mut operation = json!({
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": definition.group, "version": version, "kind": definition.kind},
    });
    let parameters: &[&str] = match verb {
        Verb::Create | Verb::Update | Verb::Patch => &["dryRun", "fieldManager", "fieldValidation"],
        Verb::Delete | Verb::DeleteCollection => &["dryRun", "propagationPolicy"],
        _ => &[],
    };
    if !parameters.is_empty() {
        let parameter = |name: &&str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
        operation["parameters"] = parameters.iter().map(parameter).collect();
    }
    let bodies: &[&str] = match verb {
        Verb::Create | Verb::Update => &["application/json", "application/yaml"],
        Verb::Patch => &["application/json-patch+json", "application/merge-patch+json"],
        _ => &[],
    };
    if !bodies.is_empty() {
        let content: Map<_, _> = bodies.iter().map(|body| ((*body).to_owned(), json!({}))).collect();
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    operation
}
