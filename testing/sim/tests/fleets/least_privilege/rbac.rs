//! RBAC of a simulated server from manifests, with a record of the used rights.

use anyhow::{Context as _, bail};
use harness::fleet::manifests;
use memkube::auth::{Call, Policy, Verb};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use sim::server::ADMIN;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Right of one user to use one verb on one resource.
#[derive(Clone, Debug)]
struct Grant {
    user: String,
    /// Namespace of the RoleBinding; `None` for a right in all namespaces.
    namespace: Option<String>,
    group: String,
    /// Resource, such as `services` or `serviceexports/status`.
    resource: String,
    /// Names of the objects that the grant allows; empty for all objects.
    names: Vec<String>,
    verb: String,
    privilege: Privilege,
}

/// Right that a manifest grants, as text without the user: `Role of hub-agent.yaml: get leases.coordination.k8s.io`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Privilege {
    /// Kind of the role, and the name of its manifest.
    pub(crate) role: String,
    /// Verb, resource and group.
    pub(crate) what: String,
}

impl fmt::Display for Privilege {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.role, self.what)
    }
}

/// Record of the used rights and of the denied requests, for all servers and scenarios.
#[derive(Debug, Default)]
pub(crate) struct Record {
    granted: Mutex<BTreeSet<Privilege>>,
    used: Mutex<BTreeSet<Privilege>>,
    denied: Mutex<BTreeSet<String>>,
}

impl Record {
    /// Returns the granted rights that no request has used.
    pub(crate) fn unused(&self) -> Vec<Privilege> {
        let used = self.used.lock();
        self.granted.lock().iter().filter(|privilege| !used.contains(*privilege)).cloned().collect()
    }

    /// Returns the requests that were denied.
    pub(crate) fn denied(&self) -> Vec<String> {
        self.denied.lock().iter().cloned().collect()
    }
}

/// RBAC policy of one server.
#[derive(Debug)]
pub(crate) struct Rbac {
    /// Grants, the widest first. If several grants allow a request, the request counts as a use of the first one. So a
    /// narrow grant beside a wide one counts as unused.
    grants: Vec<Grant>,
    record: Arc<Record>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    #[serde(default)]
    api_groups: Vec<String>,
    /// Empty in a rule about non-resource URLs, which memkube does not check.
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    resource_names: Vec<String>,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Rbac {
    /// Builds the policy from manifests with their names. The record shows these names.
    pub(crate) fn of(named: &[(&str, &str)], record: &Arc<Record>) -> anyhow::Result<Self> {
        let mut grants = Vec::new();
        for (name, manifest) in named {
            grants.extend(granted_by(name, manifest).with_context(|| (*name).to_owned())?);
        }
        grants.sort_by_key(|grant: &Grant| grant.namespace.is_some());
        record.granted.lock().extend(grants.iter().map(|grant| grant.privilege.clone()));
        Ok(Self { grants, record: Arc::clone(record) })
    }
}

fn granted_by(manifest_name: &str, manifest: &str) -> anyhow::Result<Vec<Grant>> {
    let objects = manifests::objects(manifest)?;
    let of_kind = |wanted: &'static str| {
        objects.iter().filter(move |object| object.types.as_ref().is_some_and(|types| types.kind == wanted))
    };
    let mut grants = Vec::new();
    for (binding_kind, role_kind) in [("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")] {
        for binding in of_kind(binding_kind) {
            let role_name = binding.data["roleRef"]["name"].as_str().context("a binding names a role")?;
            if binding.data["roleRef"]["kind"] != role_kind {
                bail!("{binding_kind} {role_name} is of a kind that is not read here");
            }
            let is_it = |role: &&kube::core::DynamicObject| {
                role.metadata.name.as_deref() == Some(role_name)
                    && role.metadata.namespace == binding.metadata.namespace
            };
            let role = of_kind(role_kind).find(is_it).with_context(|| format!("no {role_kind} {role_name}"))?;
            let rules: Vec<Rule> = read(&role.data["rules"])?;
            let subjects: Vec<Subject> = read(&binding.data["subjects"])?;
            for subject in subjects {
                if subject.kind != "ServiceAccount" {
                    bail!("the subject {} is no ServiceAccount", subject.name);
                }
                let user = format!("system:serviceaccount:{}:{}", subject.namespace, subject.name);
                let role = format!("{role_kind} of {manifest_name}");
                grants.extend(
                    rules.iter().flat_map(|rule| grants_of(rule, &user, binding.metadata.namespace.as_deref(), &role)),
                );
            }
        }
    }
    Ok(grants)
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> anyhow::Result<T> {
    Ok(serde_json::from_value(value.clone())?)
}

fn grants_of(rule: &Rule, user: &str, namespace: Option<&str>, role: &str) -> Vec<Grant> {
    let mut grants = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let what = format!("{verb} {resource}.{group}").trim_end_matches('.').to_owned();
                grants.push(Grant {
                    user: user.to_owned(),
                    namespace: namespace.map(str::to_owned),
                    group: group.clone(),
                    resource: resource.clone(),
                    names: rule.resource_names.clone(),
                    verb: verb.clone(),
                    privilege: Privilege { role: role.to_owned(), what },
                });
            }
        }
    }
    grants
}

impl Grant {
    fn allows(&self, call: &Call) -> bool {
        let target = &call.target;
        let resource = match &*target.subresource {
            "" => target.resource.to_string(),
            subresource => format!("{}/{subresource}", target.resource),
        };
        *self.user == *call.user.name
            && self.namespace.as_deref().is_none_or(|namespace| *namespace == *target.namespace)
            && *self.group == *target.group
            && self.resource == resource
            && (self.names.is_empty() || self.names.iter().any(|name| **name == *target.name))
            && self.verb == call.verb.name()
    }
}

impl Policy for Rbac {
    fn allows(&self, call: &Call) -> bool {
        if &*call.user.name == ADMIN {
            return true;
        }
        match self.grants.iter().find(|grant| grant.allows(call)) {
            Some(grant) => {
                self.record.used.lock().insert(grant.privilege.clone());
                true
            }
            None => {
                let target = &call.target;
                let denied = format!(
                    "{} may not {} {}/{} in {:?}",
                    call.user.name,
                    Verb::name(call.verb),
                    call.qualified_resource(),
                    target.subresource,
                    target.namespace
                );
                self.record.denied.lock().insert(denied);
                false
            }
        }
    }
}
