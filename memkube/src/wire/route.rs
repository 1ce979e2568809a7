//! Which resource a path speaks of and what a method does to it.

use super::Query;
use crate::auth::{Call, Target, User, Verb};
use crate::registry::{Definition, Scope, Subresource};
use crate::status::{Named, Status};
use http::Method;
use percent_encoding::percent_decode_str;

/// The target of a path like `/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices/web-x7`; none where it is no path
/// of a resource.
pub(super) fn parse(path: &str) -> Option<Target> {
    let decoded: Vec<String> = path
        .trim_matches('/')
        .split('/')
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        // The namespace itself, or what is below it.
        ["namespaces", name] | ["namespaces", name, "status" | "finalize"] => (*name, rest),
        ["namespaces", name, below @ ..] if !below.is_empty() => (*name, below),
        _ => ("", rest),
    };
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, "", ""),
        [resource, name] => (*resource, *name, ""),
        [resource, name, subresource] => (*resource, *name, *subresource),
        _ => return None,
    };
    if resource.is_empty() {
        return None;
    }
    Some(Target {
        group: group.into(),
        version: version.into(),
        resource: resource.into(),
        subresource: subresource.into(),
        namespace: namespace.into(),
        name: name.into(),
    })
}

/// What is asked.
pub(super) fn call(user: User, target: Target, method: &Method, query: &Query) -> Result<Call, Status> {
    let named = !target.name.is_empty();
    let verb = match (method, named) {
        (&Method::GET, true) => Verb::Get,
        (&Method::GET, false) if query.flag("watch") => Verb::Watch,
        (&Method::GET, false) => Verb::List,
        (&Method::POST, _) => Verb::Create,
        (&Method::PUT, _) => Verb::Update,
        (&Method::PATCH, _) => Verb::Patch,
        (&Method::DELETE, true) => Verb::Delete,
        (&Method::DELETE, false) => Verb::DeleteCollection,
        _ => return Err(Status::method_not_allowed()),
    };
    Ok(Call { user, verb, target })
}

/// Whether the resource has this path and this verb on it.
pub(super) fn fits(definition: &Definition, call: &Call) -> Result<(), Status> {
    let target = &call.target;
    let named = !target.name.is_empty();
    // A namespace is at the path of what is in it.
    let itself = *target.resource == *"namespaces" && target.name == target.namespace;
    let in_namespace = !target.namespace.is_empty() && !itself;
    if in_namespace && definition.scope == Scope::Cluster {
        return Err(Status::no_such_resource());
    }
    if !target.subresource.is_empty() {
        let known = definition.subresources.iter().any(|known| known.name() == &*target.subresource);
        return match (known, call.verb) {
            (false, _) if definition.custom && *target.subresource == *Subresource::Status.name() => {
                let named = Named { group: &definition.group, kind: &definition.plural, name: &target.name };
                Err(Status::not_found(named))
            }
            (false, _) => Err(Status::no_such_resource()),
            (true, Verb::Get | Verb::Update | Verb::Patch) => Ok(()),
            (true, verb) if definition.custom => {
                let what = Named { group: &definition.group, kind: &definition.plural, name: "" };
                Err(Status::not_supported(verb.name(), what))
            }
            (true, _) => Err(Status::method_not_allowed()),
        };
    }
    let across = definition.scope == Scope::Namespaced && !in_namespace;
    if across && named {
        return Err(Status::no_such_resource());
    }
    let on_object = matches!(call.verb, Verb::Get | Verb::Update | Verb::Patch | Verb::Delete);
    let possible = definition.verbs.contains(&call.verb)
        && on_object == named
        && !(across && matches!(call.verb, Verb::Create | Verb::DeleteCollection));
    if possible { Ok(()) } else { Err(Status::method_not_allowed()) }
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn parsed(path: &str) -> Option<[String; 6]> {
        let target = parse(path)?;
        Some([
            target.group.to_string(),
            target.version.to_string(),
            target.namespace.to_string(),
            target.resource.to_string(),
            target.name.to_string(),
            target.subresource.to_string(),
        ])
    }

    fn of(parts: [&str; 6]) -> Option<[String; 6]> {
        Some(parts.map(str::to_owned))
    }

    #[test]
    fn paths_are_those_of_kubernetes() {
        assert_eq!(parsed("/api/v1/services"), of(["", "v1", "", "services", "", ""]));
        assert_eq!(parsed("/api/v1/namespaces"), of(["", "v1", "", "namespaces", "", ""]));
        assert_eq!(parsed("/api/v1/namespaces/a"), of(["", "v1", "a", "namespaces", "a", ""]));
        assert_eq!(parsed("/api/v1/namespaces/a/finalize"), of(["", "v1", "a", "namespaces", "a", "finalize"]));
        assert_eq!(parsed("/api/v1/namespaces/a/services/b/status"), of(["", "v1", "a", "services", "b", "status"]));
        assert_eq!(parsed("/apis/ex.io/v1/namespaces/a/widgets"), of(["ex.io", "v1", "a", "widgets", "", ""]));
    }

    #[test]
    fn what_is_no_resource_is_left_to_discovery() {
        for path in ["/", "/api", "/api/v1", "/apis", "/apis/ex.io", "/apis/ex.io/v1", "/readyz", "/openapi/v3"] {
            assert_eq!(parsed(path), None, "{path}");
        }
    }
}
