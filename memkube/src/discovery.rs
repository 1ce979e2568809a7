//! What is no resource: health, version, and what tells clients which resources there are and what they look like.

mod aggregated;
mod groups;
mod lists;
mod openapi;

use crate::auth::User;
use crate::server::MemKube;
use crate::service::Reply;
use groups::Group;
use http::header::ACCEPT;
use http::request::Parts;
use serde_json::{Value, json};

/// The Kubernetes version that answers are those of.
const MINOR: &str = "35";

/// Answers a path that is none of a resource. Everyone may ask: the users' roles say nothing of these paths, as in a
/// cluster, where all users have `system:discovery`.
pub(crate) fn answer(server: &MemKube, _: &User, parts: &Parts) -> Reply {
    let path: Vec<&str> = parts.uri.path().split('/').filter(|part| !part.is_empty()).collect();
    let accept = parts.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let groups = || groups::all(&server.definitions());
    let found = match path.as_slice() {
        [] => Some(Reply::json(200, &paths(&groups()))),
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
    found.unwrap_or_else(|| Reply::text(404, "404 page not found\n"))
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

/// Every path that there is.
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
