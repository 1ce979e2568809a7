//! HTTP requests and responses: routing, faults, authorization, limits, audit.

mod accept;
mod path;
mod query;
mod request;
mod route;
mod suffered;

pub(crate) use accept::Form;
pub(crate) use query::Query;
pub(crate) use request::Request;

use crate::audit::Entry;
use crate::auth::{Call, User, Verb};
use crate::faults::{self, Fault};
use crate::limits;
use crate::registry::{Definition, ResourceId};
use crate::selector::FieldSelector;
use crate::server::MemKube;
use crate::service::{Body, BoxError, Reply};
use crate::status::{Named, Status};
use crate::verbs::{self, Begun};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{Response, header};
use http_body_util::{BodyExt as _, Limited};
use std::sync::Arc;

/// Returns the response to a request, or an error if the connection must break.
pub(crate) async fn answer<B>(
    server: MemKube,
    user: User,
    request: http::Request<B>,
) -> Result<Response<Body>, BoxError>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let target = route::parse(parts.uri.path()).filter(|_| path::is_escaped_well(parts.uri.path()));
    let verb = target.as_ref().and_then(|target| route::verb(target, &parts.method, &query));
    let (Some(target), Some(verb)) = (target, verb) else {
        return path::answer(&server, user, &parts).await;
    };
    let call = Call { user, verb, target };
    let faults = server.0.settings().faults;
    let fault = faults.as_ref().map(|faults| faults.request(&call)).unwrap_or_default();
    if !fault.delay_before.is_zero() {
        tokio::time::sleep(fault.delay_before).await;
    }
    let body = collect(body, server.0.limits.body_bytes).await?;
    let reply = perform(&server, call, query, &parts, body, &fault).await;
    suffered::suffered(&fault, reply).await
}

/// Executes a request and records it in the audit ledger.
async fn perform(
    server: &MemKube,
    call: Call,
    query: Query,
    parts: &Parts,
    body: Result<Bytes, Status>,
    fault: &Fault,
) -> Reply {
    let mut entered = call.clone();
    let reply = match permitted(server, call, query, parts, body, fault) {
        Ok(request) => verbs_reply(server, request, fault).await,
        Err(refusal) => refusal,
    };
    if let Some(name) = reply.object_name.as_deref().filter(|_| entered.target.name.is_empty()) {
        entered.target.name = name.into();
    }
    let entry = Entry { at: server.0.clock.now(), call: entered, code: reply.code };
    server.0.state.lock().ledger.enter(entry);
    reply
}

/// Returns the request that authorization must allow. A request for a collection with the field selector
/// `metadata.name=<name>` is authorized like a request for this object.
fn as_authorized(call: &Call, query: &Query) -> Call {
    let mut authorized = call.clone();
    if matches!(call.verb, Verb::List | Verb::Watch | Verb::DeleteCollection)
        && authorized.target.name.is_empty()
        && let Ok(fields) = FieldSelector::parse(query.text("fieldSelector"))
        && let Some(name) = fields.required("metadata.name")
    {
        authorized.target.name = name.into();
    }
    authorized
}

/// Checks and decodes a request. Returns an error response if the request is not allowed or invalid.
fn permitted(
    server: &MemKube,
    call: Call,
    query: Query,
    parts: &Parts,
    body: Result<Bytes, Status>,
    fault: &Fault,
) -> Result<Request, Reply> {
    if let Some(status) = &fault.refuse {
        return Err(Reply::from(status));
    }
    let authorized = as_authorized(&call, &query);
    if !server.0.settings().policy.allows(&authorized) {
        return Err(Reply::from(&refused(&authorized)));
    }
    let definition = known(server, &call)?;
    let header = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let form = Form::negotiate(header(ACCEPT), &query).map_err(|status| Reply::from(&status))?;
    let content_type = header(CONTENT_TYPE).unwrap_or_default();
    Ok(Request {
        call,
        definition,
        query,
        content_type: content_type.split(';').next().unwrap_or_default().trim().to_owned(),
        body: body.map_err(|status| Reply::from(&status))?,
        form,
    })
}

async fn verbs_reply(server: &MemKube, request: Request, fault: &Fault) -> Reply {
    if let Some(revision) = verbs::needed_revision(&request)
        && let Err(status) = wait_for(server, &request, revision, fault.state).await
    {
        return verbs::not_fresh(&request, &status);
    }
    match verbs::begin(server, request, fault.state) {
        Ok(Begun::Done(reply)) => reply,
        Ok(Begun::Watch(watch)) => watch.into_reply(),
        Err(status) => Reply::from(&status),
    }
}

/// Definition of the requested resource, or an error response if the resource does not exist.
fn known(server: &MemKube, call: &Call) -> Result<Arc<Definition>, Reply> {
    let state = server.0.state.lock();
    let target = &call.target;
    let served = |definition: &Definition| {
        let mut versions = definition.versions.iter();
        *definition.group == *target.group && versions.any(|version| version.served && *version.name == *target.version)
    };
    let id = ResourceId { group: Arc::clone(&target.group), plural: Arc::clone(&target.resource) };
    let Some(registered) = state.registry.get(&id).filter(|registered| served(&registered.definition)) else {
        return Err(Reply::unknown_resource(&state.registry, &target.group));
    };
    let definition = Arc::clone(&registered.definition);
    match route::fits(&definition, call) {
        Ok(()) => Ok(definition),
        Err(404) if definition.custom && !target.subresource.is_empty() => {
            Err(Reply::from(&Status::no_such_resource()))
        }
        Err(404) => Err(Reply::unknown_resource(&state.registry, &target.group)),
        Err(_) => Err(Reply::from(&Status::method_not_allowed())),
    }
}

/// 403 with the message of RBAC.
fn refused(call: &Call) -> Status {
    let target = &call.target;
    let mut resource = target.resource.to_string();
    if !target.subresource.is_empty() {
        resource = format!("{resource}/{}", target.subresource);
    }
    let place = match (&*target.namespace, &*target.resource) {
        ("", _) | (_, "namespaces") => "at the cluster scope".to_owned(),
        (namespace, _) => format!("in the namespace \"{namespace}\""),
    };
    let why = format!(
        "User \"{}\" cannot {} resource \"{resource}\" in API group \"{}\" {place}",
        call.user.name,
        call.verb.name(),
        target.group
    );
    let named = Named { group: &target.group, kind: &target.resource, name: &target.name };
    Status::forbidden(named, &why)
}

/// Reads the body of a request. A body that is too long is an error with code 413. If the body ends early, the
/// connection breaks.
async fn collect<B>(body: B, bytes_max: usize) -> Result<Result<Bytes, Status>, BoxError>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, bytes_max).collect().await {
        Ok(collected) => Ok(Ok(collected.to_bytes())),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {bytes_max}");
            Ok(Err(Status::plain(413, "RequestEntityTooLarge", message)))
        }
        Err(error) => Err(error),
    }
}

/// Waits until the state that a request reads has reached a resourceVersion.
async fn wait_for(server: &MemKube, request: &Request, revision: u64, seen: faults::State) -> Result<(), Status> {
    let deadline = tokio::time::Instant::now() + limits::FRESH_WAIT;
    loop {
        let moved = server.0.state.lock().store.moved();
        let notified = moved.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        let current = verbs::seen_revision(server, request, seen);
        if current >= revision {
            return Ok(());
        }
        if tokio::time::timeout_at(deadline, notified).await.is_err() {
            return Err(too_large(revision, current));
        }
    }
}

/// 504 for a resourceVersion that the server has not reached in time.
fn too_large(revision: u64, current: u64) -> Status {
    let message = format!("Timeout: Too large resource version: {revision}, current: {current}");
    Status::plain(504, "Timeout", message).with_cause("ResourceVersionTooLarge", "").with_retry_after(1)
}
