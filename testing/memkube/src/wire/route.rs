//! Routing: the resource in a path, and the verb for an HTTP method.

use super::Query;
use crate::auth::{Call, Target, Verb};
use crate::registry::{Definition, Scope};
use http::Method;
use percent_encoding::percent_decode_str;

/// Parses a path such as `/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices/web-x7`. Returns `None` for other
/// paths.
pub(super) fn parse(path: &str) -> Option<Target> {
    // Like Go's HTTP server, decode the path first, so that an escaped slash also separates parts.
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let path = decoded.strip_prefix('/')?;
    let parts: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    if parts.contains(&"") {
        return None;
    }
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        // This pattern matches a Namespace itself, with or without subresource. The next pattern matches a path in a
        // namespace.
        ["namespaces", name] | ["namespaces", name, "status"] => (*name, rest),
        ["namespaces", name, below @ ..] if !below.is_empty() => (*name, below),
        _ => ("", rest),
    };
    let (resource, name, below) = match rest {
        [] => return None,
        [resource] => (*resource, "", &[][..]),
        [resource, name, below @ ..] => (*resource, *name, below),
    };
    Some(Target {
        group: group.into(),
        version: version.into(),
        resource: resource.into(),
        // No resource has a subresource with two parts. So this path gets the same error as a path with an unknown
        // subresource.
        subresource: below.join("/").into(),
        namespace: namespace.into(),
        name: name.into(),
    })
}

/// Verb of a request; `None` for an HTTP method that no resource supports.
pub(super) fn verb(target: &Target, method: &Method, query: &Query) -> Option<Verb> {
    let named = !target.name.is_empty();
    Some(match (method, named) {
        (&Method::GET, true) => Verb::Get,
        (&Method::GET, false) if query.flag("watch") => Verb::Watch,
        (&Method::GET, false) => Verb::List,
        (&Method::POST, _) => Verb::Create,
        (&Method::PUT, _) => Verb::Update,
        (&Method::PATCH, _) => Verb::Patch,
        (&Method::DELETE, true) => Verb::Delete,
        (&Method::DELETE, false) => Verb::DeleteCollection,
        _ => return None,
    })
}

/// Checks that the path of the request exists for this resource, and that the resource supports the verb of the request
/// at this path.
///
/// # Errors
/// Code of the response: 404 if the path does not exist, 405 if the resource does not support the verb.
pub(super) fn fits(definition: &Definition, call: &Call) -> Result<(), u16> {
    let target = &call.target;
    let named = !target.name.is_empty();
    // In the path of a Namespace, the name of the Namespace is also the namespace of the target.
    let itself = *target.resource == *"namespaces" && target.name == target.namespace;
    let in_namespace = !target.namespace.is_empty() && !itself;
    if in_namespace && definition.scope == Scope::Cluster {
        return Err(404);
    }
    if !target.subresource.is_empty() {
        return fits_below(definition, call);
    }
    let across = definition.scope == Scope::Namespaced && !in_namespace;
    if across && named {
        return Err(404);
    }
    let on_object = matches!(call.verb, Verb::Get | Verb::Update | Verb::Patch | Verb::Delete);
    let only_in_namespaces = across && matches!(call.verb, Verb::Create | Verb::DeleteCollection);
    if only_in_namespaces && definition.custom {
        return Err(404);
    }
    let possible = definition.verbs.contains(&call.verb) && on_object == named && !only_in_namespaces;
    if possible { Ok(()) } else { Err(405) }
}

/// Checks that the resource has this subresource and that the subresource supports the verb.
fn fits_below(definition: &Definition, call: &Call) -> Result<(), u16> {
    match definition.subresources.iter().find(|known| known.name() == &*call.target.subresource) {
        None => Err(404),
        Some(known) if known.verbs().contains(&call.verb) => Ok(()),
        Some(_) => Err(405),
    }
}
