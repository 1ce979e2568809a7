//! Requests that are not about a resource: health, version, discovery and OpenAPI.

mod aggregated;
mod groups;
mod lists;
mod openapi;

use crate::server::MemKube;
use crate::service::Reply;
use crate::status::Status;
use crate::wire;
use groups::Group;
use http::Method;
use http::header::ACCEPT;
use http::request::Parts;
use serde_json::{Value, json};

/// Minor version of the Kubernetes release that memkube imitates.
const MINOR: &str = "35";

/// Returns the response to a request whose path is not about a resource.
pub(crate) fn answer(server: &MemKube, parts: &Parts) -> Reply {
    let path = parts.uri.path();
    let path = path.strip_prefix('/').unwrap_or(path);
    let path: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    let accept = parts.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let groups = || groups::all(&server.discovered());
    let found = match path.as_slice() {
        [""] => Some(Reply::json(200, &paths(&groups()))),
        [check @ ("healthz" | "livez" | "readyz")] => Some(health(check, parts.uri.query().unwrap_or_default())),
        ["version"] => Some(Reply::json(200, &version())),
        ["api"] => Some(aggregated::or_plain(accept, &groups(), true)),
        ["apis"] => Some(aggregated::or_plain(accept, &groups(), false)),
        ["api", version] => lists::resources(&groups(), "", version),
        ["apis", group] => lists::group(&groups(), group),
        ["apis", group, version] => lists::resources(&groups(), group, version),
        ["openapi", "v2"] => Some(openapi::version_2(accept)),
        ["openapi", "v3"] => Some(Reply::json(200, &openapi::index(&groups()))),
        ["openapi", "v3", "api", version] => openapi::document(server, &groups(), "", version),
        ["openapi", "v3", "apis", group, version] => openapi::document(server, &groups(), group, version),
        _ => None,
    };
    if found.is_some() && parts.method != Method::GET && checks_method(server, &path) {
        return Reply::from(&Status::method_not_allowed());
    }
    found.unwrap_or_else(|| match path.as_slice() {
        ["api", ..] => wire::nothing(&server.0.state.lock().registry, ""),
        ["apis", group, ..] => wire::nothing(&server.0.state.lock().registry, group),
        _ => Reply::text(404, "404 page not found\n"),
    })
}

/// True if kube-apiserver rejects every HTTP method except GET for this path, with 405. This is the case for `/version` and for
/// the discovery of built-in groups. kube-apiserver ignores the method of all other discovery requests.
fn checks_method(server: &MemKube, path: &[&str]) -> bool {
    match path {
        ["version" | "api"] | ["api", _] => true,
        ["apis", group, _] => server.definitions().iter().any(|own| !own.custom && own.group == *group),
        _ => false,
    }
}

fn health(check: &str, query: &str) -> Reply {
    match form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "verbose") {
        true => Reply::text(200, format!("[+]ping ok\n{check} check passed\n")),
        false => Reply::text(200, "ok"),
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR,
        "gitVersion": format!("v1.{MINOR}.4+memkube.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
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
