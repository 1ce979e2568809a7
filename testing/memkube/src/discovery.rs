//! Requests that are not about a resource: health, version, discovery and OpenAPI.

mod groups;
mod lists;
mod openapi;
mod release;
mod swagger;

use crate::server::MemKube;
use crate::service::Reply;
use crate::status::Status;
use groups::Group;
pub(crate) use groups::priority;
use http::Method;
use http::header::ACCEPT;
use http::request::Parts;
use release::version;
use serde_json::{Value, json};

/// Returns the response to a request whose path is not about a resource.
pub(crate) fn answer(server: &MemKube, parts: &Parts) -> Reply {
    let path = parts.uri.path();
    let path = path.strip_prefix('/').unwrap_or(path);
    let path: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    let groups = || groups::all(&server.definitions());
    let found = match path.as_slice() {
        [""] => Some(Reply::json(200, &paths(&groups()))),
        ["healthz" | "livez" | "readyz"] => Some(Reply::text(200, "ok")),
        ["version"] => Some(Reply::json(200, &version())),
        ["api"] => Some(Reply::json(200, &lists::core_versions(&groups()))),
        ["apis"] => Some(Reply::json(200, &lists::all_groups(&groups()))),
        ["api", version] => lists::resources(&groups(), "", version),
        ["apis", group] => lists::group(&groups(), group),
        ["apis", group, version] => lists::resources(&groups(), group, version),
        ["openapi", "v2"] => Some(swagger::document(&groups(), accept(parts))),
        ["openapi", "v3"] => Some(Reply::json(200, &openapi::index(&groups()))),
        ["openapi", "v3", "api", version] => openapi::document(server, &groups(), "", version),
        ["openapi", "v3", "apis", group, version] => openapi::document(server, &groups(), group, version),
        _ => None,
    };
    if found.is_some() && parts.method != Method::GET {
        return Reply::from(&Status::method_not_allowed());
    }
    found.unwrap_or_else(|| match path.as_slice() {
        ["api", ..] => Reply::unknown_resource(&server.0.state.lock().registry, ""),
        ["apis", group, ..] => Reply::unknown_resource(&server.0.state.lock().registry, group),
        _ => Reply::text(404, "404 page not found\n"),
    })
}

fn accept(parts: &Parts) -> Option<&str> {
    parts.headers.get(ACCEPT)?.to_str().ok()
}

/// Response to `/`: all paths of the server.
fn paths(groups: &[Group]) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned)
            .to_vec();
    for group in groups {
        if !group.name.is_empty() {
            paths.push(format!("/apis/{}", group.name));
        }
        paths.extend(group.versions.iter().map(|version| format!("/{}", group.path(&version.name))));
    }
    paths.sort_unstable();
    json!({ "paths": paths })
}

#[cfg(test)]
mod tests;
