//! Evidence of a fault: a field of an object in a cluster, with the command that shows it again.

use super::age::age;
use super::step_result::{Site, Stop};
use crate::limits::SETTLED_SECONDS;
use crate::report::Evidence;
use crate::snapshot::MissingRight;
use fleetnet_types::ObjectName;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::{Resource, ResourceExt as _};

impl<'a> Site<'a> {
    /// Returns the cluster id of a member, or `hub`.
    pub(crate) fn cluster(self) -> &'a str {
        match self {
            Self::Hub(_) => "hub",
            Self::Member(member) => &member.id,
        }
    }

    pub(crate) fn connection(self) -> &'a crate::snapshot::Connection {
        match self {
            Self::Hub(hub) => &hub.connection,
            Self::Member(member) => &member.connection,
        }
    }

    /// Returns the evidence that this field of an object is.
    pub(crate) fn shown<K>(self, object: &K, field: &str, value: impl Into<String>) -> Evidence
    where
        K: Resource<DynamicType = ()>,
    {
        let namespace = object.namespace().unwrap_or_default();
        let mut evidence = self.evidence::<K>(&namespace, &object.name_any());
        evidence.field = field.to_owned();
        evidence.value = value.into();
        evidence
    }

    /// Returns a fault that this field of an object shows.
    pub(crate) fn broken<K>(self, object: &K, field: &str, value: impl Into<String>) -> Stop
    where
        K: Resource<DynamicType = ()>,
    {
        Stop::Broken(Box::new(self.shown(object, field, value)))
    }

    /// Returns a fault that this condition of an object shows.
    pub(crate) fn broken_condition<K>(self, object: &K, condition: &Condition) -> Stop
    where
        K: Resource<DynamicType = ()>,
    {
        let Condition { type_, status, reason, message, last_transition_time, .. } = condition;
        let field = format!("status.conditions[{type_}]");
        let stop = self.broken(object, &field, format!("{status} {reason}: {message}"));
        stop.at(Some(last_transition_time.0))
    }

    /// Returns a fault that a missing object shows.
    pub(crate) fn lacks<K>(self, namespace: &str, name: &str) -> Stop
    where
        K: Resource<DynamicType = ()>,
    {
        let mut evidence = self.evidence::<K>(namespace, name);
        "not found".clone_into(&mut evidence.value);
        Stop::Broken(Box::new(evidence))
    }

    /// Returns a fault that the missing object of a Service shows, whose name nobody knows before it exists.
    pub(crate) fn lacks_for<K>(self, namespace: &str, service: &ObjectName) -> Stop
    where
        K: Resource<DynamicType = ()>,
    {
        self.lacks_of_kind::<K>(namespace, format!("none for Service {service}"))
    }

    /// Returns a fault that a missing object without a known name shows.
    pub(crate) fn lacks_of_kind<K>(self, namespace: &str, value: String) -> Stop
    where
        K: Resource<DynamicType = ()>,
    {
        Stop::Broken(Box::new(Evidence { value, ..self.evidence::<K>(namespace, "") }))
    }

    fn evidence<K>(self, namespace: &str, name: &str) -> Evidence
    where
        K: Resource<DynamicType = ()>,
    {
        let (plural, group) = (K::plural(&()), K::group(&()));
        let dot = if group.is_empty() { "" } else { "." };
        Evidence {
            cluster: self.cluster().to_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            command: command(
                self.connection().context.as_deref(),
                namespace,
                &["get", &format!("{plural}{dot}{group}"), name],
            ),
            ..Evidence::default()
        }
    }
}

impl Stop {
    /// Adds the time of the change to the evidence.
    pub(crate) fn at(mut self, time: Option<Timestamp>) -> Self {
        if let (Self::Broken(evidence), Some(time)) = (&mut self, time) {
            evidence.time = Some(time.to_string());
        }
        self
    }

    /// Sets the remedy of this cause, in place of that of the code.
    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        if let Self::Broken(evidence) = &mut self {
            evidence.remedy = Some(remedy.into());
        }
        self
    }
}

/// Returns a kubectl command that shows an object. If the name is empty, the command shows all objects of the kind.
fn command(context: Option<&str>, namespace: &str, words: &[&str]) -> String {
    let mut command = "kubectl".to_owned();
    for (flag, value) in [("--context", context.unwrap_or_default()), ("-n", namespace)] {
        if !value.is_empty() {
            command += &format!(" {flag} {}", quoted(value));
        }
    }
    for word in words.iter().filter(|word| !word.is_empty()) {
        command += &format!(" {}", quoted(word));
    }
    command + " -o yaml"
}

/// Returns the flag of kubectl with the context of a cluster; empty without a context.
pub(crate) fn context_flag(site: Site<'_>) -> String {
    let context = site.connection().context.as_deref();
    context.map(|context| format!(" --context {}", quoted(context))).unwrap_or_default()
}

/// Returns a word for a shell: hostile names in objects must not become commands.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@=,".contains(letter);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Returns the time of the last change of an object: the newest entry of managedFields, or the creation.
pub(crate) fn changed<K: Resource>(object: &K) -> Option<Timestamp> {
    let fields = object.meta().managed_fields.iter().flatten();
    let newest = fields.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max();
    newest.or_else(|| created(object))
}

/// Returns the time of the last write of an object by a manager of this field, in whole seconds. An entry that does not
/// list its fields counts.
pub(crate) fn written<K: Resource>(object: &K, field: &str) -> Option<Timestamp> {
    let entries = object.meta().managed_fields.iter().flatten();
    let of_field = entries.filter(|entry| entry.fields_v1.as_ref().is_none_or(|fields| !fields.0[field].is_null()));
    of_field.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

/// Returns the time of the last change of an exported or distributed slice in the hub: of the object, or of the
/// exporter's slice. `exported` is by the exporter's clock. A time far in the future comes from a wrong clock, and does
/// not count.
pub(super) fn slice_changed<K: Resource>(hub: Site<'_>, object: &K, exported: Option<&MicroTime>) -> Option<Timestamp> {
    let is_past = |since: &Timestamp| age(hub, Some(*since)).is_some_and(|age| age >= -SETTLED_SECONDS);
    changed(object).max(exported.map(|since| since.0).filter(is_past))
}

/// Returns the time of the creation of an object.
pub(crate) fn created<K: Resource>(object: &K) -> Option<Timestamp> {
    object.meta().creation_timestamp.as_ref().map(|Time(time)| *time)
}

/// Returns the condition of a type.
pub(crate) fn condition<'a>(conditions: Option<&'a Vec<Condition>>, type_: &str) -> Option<&'a Condition> {
    conditions?.iter().find(|condition| condition.type_ == type_)
}

/// Returns a fault that a missing right shows.
pub(crate) fn missing_right(site: Site<'_>, right: &MissingRight) -> Stop {
    let MissingRight { user, verb, group, resource, namespace } = right;
    let dot = if group.is_empty() { "" } else { "." };
    let scope = if namespace.is_empty() { " -A".to_owned() } else { format!(" -n {namespace}") };
    let context = context_flag(site);
    Stop::Broken(Box::new(Evidence {
        cluster: site.cluster().to_owned(),
        kind: "SubjectAccessReview".to_owned(),
        namespace: namespace.clone(),
        name: user.clone(),
        field: "status.allowed".to_owned(),
        value: format!("false for {verb} {resource}{dot}{group}"),
        command: format!("kubectl{context} auth can-i {verb} {resource}{dot}{group}{scope} --as={}", quoted(user)),
        ..Evidence::default()
    }))
}

/// Returns the field of an annotation in evidence.
pub(crate) fn annotation(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_context_and_namespace_and_quotes_what_a_shell_would_run() {
        let get = ["get", "services", "app"];
        assert_eq!(command(Some("west"), "shop", &get), "kubectl --context west -n shop get services app -o yaml");
        assert_eq!(command(None, "", &["get", "namespaces", ""]), "kubectl get namespaces -o yaml");
        let hostile = command(Some("a b; rm -rf '/'"), "", &get);
        assert_eq!(hostile, r"kubectl --context 'a b; rm -rf '\''/'\''' get services app -o yaml");
    }
}
