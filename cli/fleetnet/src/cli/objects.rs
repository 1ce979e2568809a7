//! Objects that commands create, change and delete, and the table of what they did.

pub(crate) mod decide;
pub(crate) mod quantity;

use super::contexts::connect::Cluster;
use super::contexts::failure::{Class, Failure};
use super::exit::{Exit, Stop};
use super::output::safe::Safe;
use super::output::table::{Cell, Table, Tone, column};
use super::output::{self, Format, OutputFlags, Paint, Report};
use kube::Api;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Map, Value, json};

/// What a command did with an object, or would do in a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Created,
    Updated,
    Unchanged,
    /// The object differs from what the command would write, and stays as it is.
    Kept,
    Deleted,
    /// The command removed the finalizers of an object that is being deleted.
    Released,
    /// The object is already gone.
    Absent,
}

impl Action {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Kept => "kept",
            Self::Deleted => "deleted",
            Self::Released => "released",
            Self::Absent => "absent",
        }
    }

    /// True if the action changes the object.
    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Created | Self::Updated | Self::Deleted | Self::Released)
    }

    fn tone(self) -> Tone {
        match self {
            Self::Created | Self::Updated | Self::Deleted => Tone::Good,
            Self::Kept | Self::Released => Tone::Warning,
            Self::Unchanged | Self::Absent => Tone::Plain,
        }
    }
}

/// Object with the action on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) object: Reference,
    pub(crate) cluster: String,
    pub(crate) action: Action,
    /// Reason or remark. Empty if there is none.
    pub(crate) note: String,
}

/// Kind and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) kind: String,
    /// Empty for objects without a namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Reference {
    pub(crate) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns the reference to an object of a manifest.
    pub(crate) fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        Self { kind: text(&object["kind"]), namespace: text(&metadata["namespace"]), name: text(&metadata["name"]) }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, namespace, name } = self;
        if namespace.is_empty() {
            write!(formatter, "{kind}/{name}")
        } else {
            write!(formatter, "{kind}/{namespace}/{name}")
        }
    }
}

/// Report of a command that changes objects.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    pub(crate) kind: &'static str,
    pub(crate) member: String,
    pub(crate) is_dry_run: bool,
    pub(crate) done: Vec<Done>,
}

impl Changes {
    /// Prints the report of a command with this outcome. After an error too: the user must see what has changed.
    ///
    /// # Errors
    /// The outcome, or if standard output cannot be written to.
    pub(crate) fn print(self, flags: OutputFlags, outcome: Result<Exit, Stop>) -> Result<Exit, Stop> {
        if !self.done.is_empty() {
            output::print(&self, flags)?;
        }
        if self.is_dry_run && outcome.is_ok() {
            output::note("dry run: nothing was changed");
        }
        outcome
    }
}

impl Report for Changes {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn document(&self) -> Map<String, Value> {
        let objects = self.done.iter().map(|Done { object, cluster, action, note }| {
            let mut entry =
                json!({"kind": object.kind, "name": object.name, "cluster": cluster, "action": action.word()});
            if !object.namespace.is_empty() {
                entry["namespace"] = json!(object.namespace);
            }
            if !note.is_empty() {
                entry["note"] = json!(note);
            }
            entry
        });
        let mut document = Map::new();
        document.insert("member".to_owned(), json!(self.member));
        document.insert("dryRun".to_owned(), json!(self.is_dry_run));
        document.insert("objects".to_owned(), objects.collect());
        document
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let mut table = Table::new(&[column("OBJECT"), column("CLUSTER"), column("ACTION"), column("NOTE")]);
        for Done { object, cluster, action, note } in &self.done {
            // As kubectl marks what it would do.
            let mark = if self.is_dry_run && action.is_write() { " (dry run)" } else { "" };
            let action = Cell::toned(&format!("{}{mark}", action.word()), action.tone());
            table.row([object.to_string().into(), cluster.as_str().into(), action, note.as_str().into()]);
        }
        table.render(format, has_headers, paint)
    }

    fn names(&self) -> Vec<String> {
        self.done.iter().map(|done| done.object.to_string()).collect()
    }
}

/// Returns the API of an object of a manifest.
pub(crate) fn api_of(cluster: &Cluster, object: &Value) -> Api<DynamicObject> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &text(&object["kind"])));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &resource),
        None => Api::all_with(cluster.client.clone(), &resource),
    }
}

/// Returns the error of a write. A missing right names the action, and what to do. A server that refuses a write is a
/// fault: the command could not do what it should.
pub(crate) fn write_failed(failure: Failure, verb: &str, object: &Reference) -> Stop {
    if failure.class == Class::Forbidden {
        return Stop::fault(format!(
            "context {} ({}): this user may not {verb} {object}: {}: use a context of an administrator of this cluster",
            failure.context, failure.url, failure.detail
        ));
    }
    let is_refused = failure.class == Class::Http;
    let mut stop = Stop::from(failure);
    if is_refused {
        stop.exit = Exit::Fault;
    }
    stop.why = format!("cannot {verb} {object}: {}", stop.why);
    stop
}
