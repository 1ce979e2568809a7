//! OpenAPI v2 document, with the parts that kubectl reads.
//!
//! `kubectl apply` and `create` look for a kind's query parameter `fieldValidation` in this document if OpenAPI v3 does
//! not have the kind, for example for a `List`. kubectl accepts this document only as protobuf. The document has no
//! schemas, so kubectl leaves the validation to the server.
//!
//! Field numbers: `openapiv2/OpenAPIv2.proto` of github.com/google/gnostic-models.

use super::groups::Group;
use super::release::MINOR;
use crate::auth::Verb;
use crate::registry::{Definition, Scope};
use crate::service::{Content, Reply};
use serde_json::{Map, Value, json};

/// Media type that kubectl asks for.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// Media type without the characters that Go rejects in the `Content-Type` header of a response.
const ANSWERED: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// Query parameters of a patch.
const PARAMETERS: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];

/// Response to `/openapi/v2`: protobuf if the client asks for it, otherwise JSON.
pub(super) fn document(groups: &[Group], accept: Option<&str>) -> Reply {
    let patches = patches(groups);
    if accept.is_some_and(|accept| accept.contains(PROTOBUF)) {
        return Reply::new(200, Content::Other(ANSWERED, encode(&patches).into()));
    }
    Reply::json(200, &json(&patches))
}

/// Path of an object, with the group, version and kind that a patch of the path changes.
struct Patch {
    path: String,
    group: String,
    version: String,
    kind: String,
}

fn patches(groups: &[Group]) -> Vec<Patch> {
    let versions = groups.iter().flat_map(|group| group.versions.iter().map(move |version| (group, version)));
    let patches = versions.flat_map(|(group, version)| {
        let supported = version.resources.iter().filter(|definition| definition.verbs.contains(&Verb::Patch));
        supported.map(move |definition| Patch {
            path: path(&group.path(&version.name), definition),
            group: group.name.clone(),
            version: version.name.clone(),
            kind: definition.kind.clone(),
        })
    });
    patches.collect()
}

fn path(root: &str, definition: &Definition) -> String {
    let plural = &definition.plural;
    match definition.scope {
        Scope::Cluster => format!("/{root}/{plural}/{{name}}"),
        Scope::Namespaced => format!("/{root}/namespaces/{{namespace}}/{plural}/{{name}}"),
    }
}

fn json(patches: &[Patch]) -> Value {
    let parameters: Vec<Value> =
        PARAMETERS.iter().map(|name| json!({"name": name, "in": "query", "type": "string"})).collect();
    let item = |patch: &Patch| {
        let Patch { path, group, version, kind } = patch;
        let operation = json!({
            "parameters": parameters, "responses": {"200": {"description": "OK"}},
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        });
        (path.clone(), json!({ "patch": operation }))
    };
    let paths: Map<String, Value> = patches.iter().map(item).collect();
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": format!("1.{MINOR}")}, "paths": paths,
        "definitions": {},
    })
}

/// Encodes a `Document`.
fn encode(patches: &[Patch]) -> Vec<u8> {
    let info = [text(1, "Kubernetes"), text(2, &format!("1.{MINOR}"))].concat();
    let paths: Vec<u8> = patches.iter().flat_map(|patch| field(2, &path_item(patch))).collect();
    [text(1, "2.0"), field(2, &info), field(8, &paths), field(9, &[])].concat()
}

/// Encodes a `NamedPathItem`.
fn path_item(patch: &Patch) -> Vec<u8> {
    let Patch { path, group, version, kind } = patch;
    // `ParametersItem`, `Parameter`, `NonBodyParameter` and `QueryParameterSubSchema`.
    let parameter = |name: &&str| {
        let schema = [text(2, "query"), text(4, name), text(6, "string")].concat();
        field(8, &field(1, &field(2, &field(3, &schema))))
    };
    let parameters: Vec<u8> = PARAMETERS.iter().flat_map(parameter).collect();
    let kind = format!("group: {}\nversion: {}\nkind: {}\n", json!(group), json!(version), json!(kind));
    // `NamedAny` and `Any`.
    let extension = [text(1, "x-kubernetes-group-version-kind"), field(2, &text(2, &kind))].concat();
    let operation = [parameters, field(13, &extension)].concat();
    [text(1, path), field(2, &field(8, &operation))].concat()
}

fn text(number: u8, text: &str) -> Vec<u8> {
    field(number, text.as_bytes())
}

/// Encodes a field of wire type 2: its key, its length and its content. `number` is at most 15.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut encoded = vec![(number << 3) | 2];
    let mut length = content.len();
    // A varint: 7 bits in each byte, the lowest ones first. The eighth bit says that more bytes follow.
    while length > 0x7f {
        encoded.push((length.to_le_bytes()[0] & 0x7f) | 0x80);
        length >>= 7;
    }
    encoded.push(length.to_le_bytes()[0]);
    encoded.extend_from_slice(content);
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_key_length_and_content() {
        assert_eq!(text(1, "2.0"), [0x0a, 3, b'2', b'.', b'0']);
        assert_eq!(field(9, &[]), [0x4a, 0]);
        let long = field(2, &[7; 300]);
        assert_eq!(long[..3], [0x12, 0xac, 0x02]);
        assert_eq!(long.len(), 303);
    }
}
