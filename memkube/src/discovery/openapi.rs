//! OpenAPI documents, with the parts that kubectl reads.
//!
//! - `kubectl explain` reads the schemas.
//! - `kubectl create`, `apply` and `replace` look for the query parameter `fieldValidation`. This parameter shows that the
//!   server validates fields.
//!
//! The documents do not mention strategic merge patches, although memkube supports these patches. Otherwise kubectl would read
//! the merge keys of lists from the schemas, and memkube's schemas have no merge keys. Without strategic merge patches in the
//! documents, kubectl uses its built-in merge keys.

mod paths;
mod schemas;

use super::MINOR;
use super::groups::Group;
use crate::server::MemKube;
use crate::service::{Content, Reply};
use serde_json::{Map, Value, json};

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// Content type of the protobuf document. It differs from the media type that clients request ([`PROTOBUF`]), because a content
/// type may not contain an `@`.
const PROTOBUF_ANSWER: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Response to `/openapi/v2`: a document without paths and schemas.
///
/// An empty document is enough. Clients prefer version 3. A client that requests version 2 contains the schemas of built-in kinds
/// in its own code.
pub(super) fn version_2(accept: &str) -> Reply {
    let version = format!("1.{MINOR}");
    if accept.contains(PROTOBUF) {
        let info = [text_field(1, "Kubernetes"), text_field(2, &version)].concat();
        let document = [text_field(1, "2.0"), field(2, &info)].concat();
        return Reply::new(200, Content::Document(PROTOBUF_ANSWER, document.into()));
    }
    Reply::json(200, &json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": version}, "paths": {}}))
}

fn text_field(number: u8, text: &str) -> Vec<u8> {
    field(number, text.as_bytes())
}

/// Encodes a length-delimited protobuf field. The field number must be below 16 and the length below 128, because this function
/// writes each of them into one byte.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("the texts above are short");
    let mut field = vec![number << 3 | 2, length];
    field.extend(bytes);
    field
}

/// Response to `/openapi/v3`: the paths of the documents.
pub(super) fn index(groups: &[Group]) -> Value {
    let documents = groups.iter().flat_map(|group| group.versions.iter().map(|version| group.path(&version.name)));
    let entry = |path: String| {
        let url = format!("/openapi/v3/{path}");
        (path, json!({ "serverRelativeURL": url }))
    };
    json!({"paths": documents.map(entry).collect::<Map<_, _>>()})
}

/// Response to `/openapi/v3/api/<version>` and `/openapi/v3/apis/<group>/<version>`. `None` if the server has no such version.
pub(super) fn document(server: &MemKube, groups: &[Group], group: &str, version: &str) -> Option<Reply> {
    let group = groups.iter().find(|known| known.name == group)?;
    let version = group.versions.iter().find(|known| known.name == version)?;
    let root = group.path(&version.name);
    let paths = version.resources.iter().flat_map(|definition| paths::of(&root, definition, &version.name));
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": format!("1.{MINOR}")},
        "paths": paths.collect::<Map<_, _>>(),
        "components": {"schemas": schemas::of(server, &version.resources, &version.name)},
    });
    Some(Reply::json(200, &document))
}
