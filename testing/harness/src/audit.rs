//! Writes that an API server received, counted for each user from the server's audit log.
//!
//! The server logs each request twice: before the server handles the request, and after the response. The second entry
//! may appear a moment after the response. So a reader sends an additional request, the marker, and waits for its
//! entry. Then the reader waits until every request that was logged before the marker has a second entry. From then on
//! the counts are final.

use crate::eventually::Deadline;
use anyhow::Context as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use tokio::sync::Mutex;

pub struct Audit {
    path: PathBuf,
    admin: kube::Client,
    reader: Mutex<Reader>,
}

/// Position in an audit log: the number of writes before this position. The log contains the response to every request
/// before it.
#[derive(Clone, Copy, Debug)]
pub struct Mark(pub usize);

/// Positions in the audit logs of all clusters of a fleet.
#[derive(Clone, Debug)]
pub struct FleetMark {
    pub hub: Mark,
    pub members: Vec<Mark>,
}

/// Writes in every cluster of a fleet, since a [`FleetMark`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FleetLedger {
    pub hub: Ledger,
    pub members: Vec<Ledger>,
}

/// Write that an API server received.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Entry {
    pub user: String,
    /// Verb: `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// Plural name of the resource. A subresource follows after a slash.
    pub resource: String,
    /// Namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name of the object; empty if the server chose the name.
    pub name: String,
    /// HTTP status of the server's response.
    pub status: u16,
}

/// Writes that a server received, in the order of the responses.
///
/// The text form has a line for each combination of user, verb, resource and namespace, sorted. The line begins with
/// the number of writes. A service account is shown by name only. Failed writes have separate lines that end with the
/// HTTP status:
///
/// ```text
///   100 patch endpointsliceexports in fleet-member-a by member-agent-1
///     1 patch endpointsliceexports in fleet-member-a by member-agent-1: 409
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ledger(pub Vec<Entry>);

impl fmt::Debug for Audit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Audit").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Audit {
    /// Returns a reader of the audit log at `path`. The reader sends its additional requests (markers) as `admin`.
    #[must_use]
    pub fn new(path: PathBuf, admin: kube::Client) -> Self {
        Self { path, admin, reader: Mutex::new(Reader::default()) }
    }

    /// Returns the present position in the log. The responses to all requests until now are before this position.
    ///
    /// # Errors
    /// If the server does not respond, or the log is unreadable or not complete in time.
    pub async fn mark(&self) -> anyhow::Result<Mark> {
        self.settle().await.map(|reader| Mark(reader.writes.len()))
    }

    /// Returns the writes between the position `mark` and now.
    pub async fn since(&self, mark: Mark) -> anyhow::Result<Ledger> {
        let reader = self.settle().await?;
        Ok(Ledger(reader.writes.iter().skip(mark.0).map(|write| write.entry.clone()).collect()))
    }

    /// Returns the times at which the server received writes after the position `mark`, in the order of the responses.
    /// Only writes that fulfil `condition` count.
    pub async fn times(&self, mark: Mark, condition: impl Fn(&Entry) -> bool) -> anyhow::Result<Vec<Timestamp>> {
        let reader = self.settle().await?;
        let writes = reader.writes.iter().skip(mark.0).filter(|write| condition(&write.entry));
        Ok(writes.map(|write| write.received.0).collect())
    }

    async fn settle(&self) -> anyhow::Result<tokio::sync::MutexGuard<'_, Reader>> {
        let mut reader = self.reader.lock().await;
        reader.markers += 1;
        let marker = format!("/version?audit-marker={}", reader.markers);
        let request = http::Request::get(&marker).body(Vec::new())?;
        self.admin
            .request_text(request)
            .await
            .context("the API server does not answer to a marker for its audit log")?;
        let deadline = Deadline::start();
        let mut awaited: Option<BTreeSet<String>> = None;
        loop {
            reader.read(&self.path)?;
            if awaited.is_none() && reader.last_marker == marker {
                awaited = Some(reader.open.clone());
            }
            if awaited.as_ref().is_some_and(|awaited| awaited.is_disjoint(&reader.open)) {
                return Ok(reader);
            }
            deadline.pause(|| format!("{} is not complete", self.path.display())).await?;
        }
    }
}

/// Reader of an audit log: the position up to which the log was read, and the writes found so far.
#[derive(Debug, Default)]
struct Reader {
    offset: u64,
    markers: usize,
    last_marker: String,
    /// Ids (`auditID`) of writes that have no response yet.
    open: BTreeSet<String>,
    writes: Vec<Write>,
}

/// Write, with the time at which the server received the write.
#[derive(Debug)]
struct Write {
    entry: Entry,
    received: MicroTime,
}

impl Reader {
    fn read(&mut self, path: &PathBuf) -> anyhow::Result<()> {
        let context = || format!("cannot read the audit log {}", path.display());
        let mut file = std::fs::File::open(path).with_context(context)?;
        file.seek(SeekFrom::Start(self.offset)).with_context(context)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).with_context(context)?;
        // Leave the text after the last line end for the next read: the server has not finished this line yet.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.take(serde_json::from_slice(line).with_context(context)?);
        }
        self.offset += u64::try_from(whole)?;
        Ok(())
    }

    fn take(&mut self, line: AuditEvent) {
        if line.stage == "RequestReceived" {
            if line.is_write() {
                self.open.insert(line.audit_id);
            } else if line.request_uri.contains("audit-marker=") {
                self.last_marker = line.request_uri;
            }
        } else if self.open.remove(&line.audit_id) {
            self.writes.push(line.write());
        }
    }
}

/// Event of the audit log, in the form of `audit.k8s.io/v1`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditEvent {
    stage: String,
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    request_received_timestamp: MicroTime,
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
}

/// User of a request; empty if the server rejected the token.
#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl AuditEvent {
    fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    fn write(self) -> Write {
        let ObjectRef { resource, subresource, namespace, name } = self.object_ref;
        let resource = if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") };
        let status = self.response_status.code;
        let entry = Entry { user: self.user.username, verb: self.verb, resource, namespace, name, status };
        Write { entry, received: self.request_received_timestamp }
    }
}

impl Ledger {
    #[must_use]
    pub fn filter(&self, wanted: impl Fn(&Entry) -> bool) -> Self {
        Self(self.0.iter().filter(|entry| wanted(entry)).cloned().collect())
    }

    #[must_use]
    pub fn of_user(&self, user: &str) -> Self {
        self.filter(|entry| entry.user == user)
    }

    /// Returns the writes of the agents: of every user whose name contains `agent`.
    #[must_use]
    pub fn of_agents(&self) -> Self {
        self.filter(|entry| entry.user.contains("agent"))
    }

    /// Returns the writes without those of Leases, heartbeats and Events, because the number of such writes depends on
    /// time.
    #[must_use]
    pub fn objects(&self) -> Self {
        self.filter(|entry| !entry.is_lease() && !entry.is_heartbeat() && !entry.is_event())
    }

    #[must_use]
    pub fn leases(&self) -> Self {
        self.filter(Entry::is_lease)
    }

    /// Returns the writes of MemberAgents: heartbeats of members, and status updates by the hub agent.
    #[must_use]
    pub fn heartbeats(&self) -> Self {
        self.filter(Entry::is_heartbeat)
    }

    #[must_use]
    pub fn events(&self) -> Self {
        self.filter(Entry::is_event)
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of writes for each line of the ledger's text form.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.0 {
            *counts.entry(entry.kind()).or_default() += 1;
        }
        counts
    }
}

impl Entry {
    fn is_lease(&self) -> bool {
        self.resource == "leases"
    }

    /// True for a write of a MemberAgent: a heartbeat of the member, or a status update by the hub agent.
    #[must_use]
    pub fn is_heartbeat(&self) -> bool {
        self.resource.starts_with("memberagents")
    }

    fn is_event(&self) -> bool {
        self.resource == "events"
    }

    fn kind(&self) -> String {
        let place = if self.namespace.is_empty() { String::new() } else { format!(" in {}", self.namespace) };
        let status = if self.status < 400 { String::new() } else { format!(": {}", self.status) };
        // Show a service account by its name only, without `system:serviceaccount:<namespace>:`.
        let user = self.user.rsplit(':').next().unwrap_or_default();
        format!("{} {}{place} by {user}{status}", self.verb, self.resource)
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in self.counts() {
            writeln!(formatter, "{count:>5} {kind}")?;
        }
        Ok(())
    }
}

impl FleetLedger {
    /// Returns the ledgers of the hub and then of each member.
    pub fn clusters(&self) -> impl Iterator<Item = &Ledger> {
        std::iter::once(&self.hub).chain(&self.members)
    }

    /// Returns the writes of the agents without Leases, heartbeats and Events.
    #[must_use]
    pub fn objects(&self) -> Self {
        let objects = |ledger: &Ledger| ledger.of_agents().objects();
        Self { hub: objects(&self.hub), members: self.members.iter().map(objects).collect() }
    }
}

impl fmt::Display for FleetLedger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "hub:\n{}", self.hub)?;
        for (index, ledger) in self.members.iter().enumerate() {
            write!(formatter, "member {}:\n{ledger}", index + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;
    use std::io::Write as _;

    fn line(stage: &str, id: &str, verb: &str, resource: &str, status: u16) -> String {
        format!(
            "{{\"stage\":\"{stage}\",\"auditID\":\"{id}\",\"requestURI\":\"/x\",\
             \"requestReceivedTimestamp\":\"2026-01-01T00:00:00.000000Z\",\"verb\":\"{verb}\",\"user\":{{\"username\":\"u\"}},\
             \"objectRef\":{{\"resource\":\"{resource}\",\"namespace\":\"n\"}},\"responseStatus\":{{\"code\":{status}}}}}\n"
        )
    }

    #[test]
    fn a_write_counts_once_when_it_is_answered_and_stays_open_until_then() {
        let mut log = tempfile::NamedTempFile::new().expect("a file");
        let mut reader = Reader::default();
        let answered = line("ResponseComplete", "1", "patch", "services", 200);
        let (half, rest) = answered.split_at(30);
        log.write_all((line("RequestReceived", "1", "patch", "services", 0) + half).as_bytes()).expect("written");
        reader.read(&log.path().to_path_buf()).expect("read");
        assert_eq!((reader.open.len(), reader.writes.len()), (1, 0));
        log.write_all(rest.as_bytes()).expect("written");
        reader.read(&log.path().to_path_buf()).expect("read");
        assert_eq!((reader.open.len(), reader.writes.len()), (0, 1));
    }

    #[test]
    fn reads_are_not_in_the_ledger_and_failed_writes_are_counted_apart() {
        let mut log = tempfile::NamedTempFile::new().expect("a file");
        let mut reader = Reader::default();
        for (id, verb, resource, status) in [
            ("1", "get", "services", 200),
            ("2", "patch", "services", 200),
            ("3", "patch", "services", 409),
            ("4", "update", "leases", 200),
        ] {
            log.write_all(line("RequestReceived", id, verb, resource, 0).as_bytes()).expect("written");
            log.write_all(line("ResponseComplete", id, verb, resource, status).as_bytes()).expect("written");
        }
        reader.read(&log.path().to_path_buf()).expect("read");
        let ledger = super::Ledger(reader.writes.into_iter().map(|write| write.entry).collect());
        assert_eq!(
            ledger.objects().to_string(),
            "    1 patch services in n by u\n    1 patch services in n by u: 409\n"
        );
        assert_eq!(ledger.leases().count(), 1);
    }
}
