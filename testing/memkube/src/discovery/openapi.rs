//! OpenAPI documents, with the parts that kubectl reads.
//!
//! - `kubectl explain` reads the schemas.
//! - `kubectl create`, `apply` and `replace` look for the query parameter `fieldValidation`. This parameter shows that
//!   the server validates fields.
//!
//! The documents do not mention strategic merge patches, although memkube supports these patches. Otherwise kubectl
//! would read the merge keys of lists from the schemas, and memkube's schemas have no merge keys. Without strategic
//! merge patches in the documents, kubectl uses its built-in merge keys.

mod paths;
mod schemas;

use super::groups::Group;
use super::release::MINOR;
use crate::server::MemKube;
use crate::service::Reply;
use serde_json::{Map, Value, json};

/// Response to `/openapi/v3`: the paths of the documents.
pub(super) fn index(groups: &[Group]) -> Value {
    let documents = groups.iter().flat_map(|group| group.versions.iter().map(|version| group.path(&version.name)));
    let entry = |path: String| {
        let url = format!("/openapi/v3/{path}");
        (path, json!({ "serverRelativeURL": url }))
    };
    json!({"paths": documents.map(entry).collect::<Map<_, _>>()})
}

/// Response to `/openapi/v3/api/<version>` and `/openapi/v3/apis/<group>/<version>`. `None` if the server has no such
/// version.
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
