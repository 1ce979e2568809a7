//! Requests that are not about a resource: discovery, OpenAPI, version, health, and unknown methods.

use super::route;
use super::suffered::suffered;
use crate::auth::{PathCall, User};
use crate::discovery;
use crate::faults::Fault;
use crate::server::MemKube;
use crate::service::{Body, BoxError, Reply};
use crate::status::Status;
use http::Response;
use http::request::Parts;

/// Returns the response to a request that is not about a resource, or an error if the connection must break.
pub(super) async fn answer(server: &MemKube, user: User, parts: &Parts) -> Result<Response<Body>, BoxError> {
    let verb = parts.method.as_str().to_ascii_lowercase().into();
    let call = PathCall { user, verb, path: parts.uri.path().into() };
    let faults = server.0.settings().faults;
    let fault = faults.as_ref().map(|faults| faults.path(&call)).unwrap_or_default();
    if !fault.delay_before.is_zero() {
        tokio::time::sleep(fault.delay_before).await;
    }
    let reply = reply(server, &call, parts, &fault);
    suffered(&fault, reply).await
}

fn reply(server: &MemKube, call: &PathCall, parts: &Parts, fault: &Fault) -> Reply {
    if let Some(status) = &fault.refuse {
        return Reply::from(status);
    }
    if !is_escaped_well(&call.path) {
        return Reply::text(400, "400 Bad Request");
    }
    if route::parse(&call.path).is_some() {
        return Reply::from(&Status::method_not_allowed());
    }
    if !server.0.settings().policy.allows_path(&call.user, &call.verb, &call.path) {
        return Reply::from(&refused(call));
    }
    discovery::answer(server, parts)
}

/// 403 with the message of RBAC.
fn refused(call: &PathCall) -> Status {
    let PathCall { user, verb, path } = call;
    let message = format!("forbidden: User \"{}\" cannot {verb} path \"{path}\"", user.name);
    Status::plain(403, "Forbidden", message)
}

/// True if two hexadecimal digits follow each `%` in a path. Go's HTTP server rejects other paths with 400.
pub(super) fn is_escaped_well(path: &str) -> bool {
    let mut parts = path.split('%');
    parts.next();
    parts.all(|part| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}
