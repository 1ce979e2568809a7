//! Watched sources: the versions of their objects, and the states of their views.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::fights::State;
use super::logic::{Change, Resource, Verb, WatchNews, WatchState};
use super::message::WatchEvent;
use super::outcome::{Outcome, Reread, Seen, WriteResult};
use super::sent::Sent;
use super::slots::{ClusterIndex, Target};
use super::source_info::SourceInfo;
use super::versions::{Progress, Versions};
use fleetnet_types::ObjectName;

/// State of the agent's view of one source, for `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    pub cluster: String,
    pub resource: Resource,
    /// True if the agent works without this source.
    pub optional: bool,
    pub state: WatchState,
}

impl SourceStatus {
    /// True if the first list has ended, or if the kind is known to be absent.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self.state, WatchState::Complete | WatchState::Absent)
    }
}

/// What a message of a watch changes for the agent.
#[derive(Debug, PartialEq)]
pub(crate) enum SourceNews<S, O> {
    Changes(S, Vec<Change<O>>),
    Watch(S, WatchNews),
}

/// Sources of an agent, in the order of their ids.
#[derive(Debug)]
pub(crate) struct Sources<S, O> {
    sources: BTreeMap<S, Source<S, O>>,
    /// Names of the clusters, by their index.
    sides: Vec<String>,
}

#[derive(Debug)]
struct Source<S, O> {
    info: SourceInfo<S>,
    cluster: ClusterIndex,
    versions: Versions<O>,
    state: WatchState,
    /// Number of restores of the server that its watches had noticed when they requested the last list of this source.
    restores: u64,
    /// True if the source was completely listed before. The view then has objects, which become outdated if the server
    /// stops providing the kind.
    was_complete: bool,
    /// True while the watch is connected to its server, or has not failed yet.
    is_connected: bool,
}

impl<S: Copy + Ord + Debug, O: Clone> Sources<S, O> {
    pub(crate) fn new(infos: Vec<SourceInfo<S>>) -> Self {
        let (mut sources, mut sides) = (BTreeMap::new(), Vec::<String>::new());
        for info in infos {
            let cluster = sides.iter().position(|side| *side == info.side).unwrap_or_else(|| {
                sides.push(info.side.clone());
                sides.len() - 1
            });
            let source = Source {
                cluster,
                versions: Versions::default(),
                state: WatchState::Incomplete,
                restores: 0,
                was_complete: false,
                is_connected: true,
                info,
            };
            sources.insert(source.info.source, source);
        }
        Self { sources, sides }
    }

    /// Returns the names of the clusters, by their index.
    pub(crate) fn sides(&self) -> &[String] {
        &self.sides
    }

    /// Returns the progress of the observations of a source, for its watch.
    pub(crate) fn progress(&self, id: S) -> Progress {
        self.sources.get(&id).map(|source| source.versions.progress()).unwrap_or_default()
    }

    pub(crate) fn info(&self, id: S) -> Option<&SourceInfo<S>> {
        self.sources.get(&id).map(|source| &source.info)
    }

    pub(crate) fn cluster(&self, id: S) -> Option<ClusterIndex> {
        self.sources.get(&id).map(|source| source.cluster)
    }

    /// Returns each source with the state of its view.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&SourceInfo<S>, WatchState)> {
        self.sources.values().map(|source| (&source.info, source.state))
    }

    pub(crate) fn known(&self, target: &Target<S>) -> State {
        let known = self.sources.get(&target.source)?.versions.known(&target.name);
        known.map(|(uid, version)| (uid.clone(), version))
    }

    /// True if the response to an equal write had exactly the known version of the object.
    pub(crate) fn is_echo(&self, target: &Target<S>, content: u64) -> bool {
        self.sources.get(&target.source).is_some_and(|source| source.versions.echoed(&target.name, content))
    }

    /// Takes in a message of the source's watch. Returns what it changes for the agent, in order.
    pub(crate) fn take(&mut self, id: S, event: WatchEvent<O>) -> Vec<SourceNews<S, O>> {
        let Some(source) = self.sources.get_mut(&id) else { return Vec::new() };
        let (versions, mut changes) = (&mut source.versions, Vec::new());
        match event {
            WatchEvent::ListStarted { requested, restores } => {
                versions.list_started(requested);
                return self.list_started(id, restores);
            }
            WatchEvent::ListEnded { resource_version } => {
                versions.list_ended(resource_version, &mut changes);
                return self.list_ended(id, changes);
            }
            WatchEvent::NotServed { status, .. } => return self.not_served(id, status),
            // The watch has already logged the failure. The view does not change, because no newer state is known.
            WatchEvent::Failed { .. } => return self.set_connected(id, false).into_iter().collect(),
            WatchEvent::Resumed => return self.set_connected(id, true).into_iter().collect(),
            WatchEvent::Applied(observed) => versions.seen(observed, &mut changes),
            WatchEvent::Undecodable(undecodable) => versions.undecodable(&undecodable, &mut changes),
            WatchEvent::Deleted { name, uid, resource_version } => {
                versions.deleted(&name, &uid, resource_version, &mut changes);
            }
            WatchEvent::Response(observed) => {
                versions.answered(observed, &mut changes);
            }
            WatchEvent::Gone { name, uid } => versions.gone(&name, &uid, &mut changes),
        }
        vec![SourceNews::Changes(id, changes)]
    }

    /// Starts a list. If its request followed a restore of the server, the kinds that were listed before become unknown
    /// until they are listed again.
    fn list_started(&mut self, id: S, restores: u64) -> Vec<SourceNews<S, O>> {
        let Some(source) = self.sources.get_mut(&id) else { return Vec::new() };
        if restores > source.restores {
            source.versions.list_follows_restore();
        }
        let cluster = source.cluster;
        let is_doubtful =
            |other: &Source<S, O>| other.cluster == cluster && other.was_complete && other.restores < restores;
        let doubtful: Vec<S> = self.sources.values().filter(|it| is_doubtful(it)).map(|it| it.info.source).collect();
        let mut news = Vec::new();
        for doubtful in doubtful {
            news.push(SourceNews::Watch(doubtful, WatchNews::Restored));
            news.extend(self.set_state(doubtful, WatchState::Unknown));
        }
        if let Some(source) = self.sources.get_mut(&id) {
            source.restores = restores;
        }
        news.push(SourceNews::Watch(id, WatchNews::Listing(true)));
        news.push(SourceNews::Changes(id, Vec::new()));
        news
    }

    fn list_ended(&mut self, id: S, changes: Vec<Change<O>>) -> Vec<SourceNews<S, O>> {
        let Some(source) = self.sources.get_mut(&id) else { return Vec::new() };
        source.was_complete = true;
        let mut news = vec![SourceNews::Changes(id, changes)];
        news.extend(self.set_connected(id, true));
        news.push(SourceNews::Watch(id, WatchNews::Listing(false)));
        if !self.is_before_restore(id) {
            news.extend(self.set_state(id, WatchState::Complete));
        }
        news
    }

    /// True if the last list of a source was requested before a restore of the server that the list of another kind
    /// shows.
    fn is_before_restore(&self, id: S) -> bool {
        let Some(source) = self.sources.get(&id) else { return false };
        let mut of_server = self.sources.values().filter(|other| other.cluster == source.cluster);
        of_server.any(|other| other.restores > source.restores)
    }

    /// Handles a 403 or 404 to a list or watch of a source. The new state of the view:
    ///
    /// - The source was completely listed before: unknown after a 404, and after a 403 if the source sets
    ///   `freezes_when_forbidden`. After any other 403, the view stays in use.
    /// - The source was never completely listed: absent if the source is optional, otherwise incomplete.
    fn not_served(&mut self, id: S, status: u16) -> Vec<SourceNews<S, O>> {
        let mut news: Vec<_> = self.set_connected(id, false).into_iter().collect();
        let Some(source) = self.sources.get(&id) else { return news };
        let state = match (source.was_complete, source.info.optional) {
            (true, _) if status == 404 || source.info.freezes_when_forbidden => WatchState::Unknown,
            (true, _) => source.state,
            (false, true) => WatchState::Absent,
            (false, false) => WatchState::Incomplete,
        };
        news.extend(self.set_state(id, state));
        news
    }

    fn set_connected(&mut self, id: S, is_connected: bool) -> Option<SourceNews<S, O>> {
        let source = self.sources.get_mut(&id)?;
        let before = std::mem::replace(&mut source.is_connected, is_connected);
        (before != is_connected).then_some(SourceNews::Watch(id, WatchNews::Connected(is_connected)))
    }

    fn set_state(&mut self, id: S, state: WatchState) -> Option<SourceNews<S, O>> {
        let source = self.sources.get_mut(&id).filter(|source| source.state != state)?;
        source.state = state;
        tracing::info!(
            side = source.info.side, resource = %source.info.resource, state = state.as_str(),
            objects = source.versions.len(), "the view of a kind changed its state"
        );
        Some(SourceNews::Watch(id, WatchNews::State(state)))
    }

    /// Takes in the state of the object that the responses to a write show.
    pub(crate) fn take_outcome<K, R>(&mut self, sent: &Sent<K, S, R>, outcome: &Outcome<O>) -> Vec<Change<O>> {
        let mut changes = Vec::new();
        let (request, Outcome { result, is_answered, seen, .. }) = (&sent.request, outcome);
        let Some(source) = self.sources.get_mut(&request.source) else { return changes };
        match seen {
            Seen::Object(observed) => {
                let is_current = source.versions.answered(observed.clone(), &mut changes);
                // Only a response to the write itself proves that the same write would change nothing now. A response
                // to a GET does not.
                if is_current && *result == WriteResult::Done && *is_answered {
                    source.versions.remember_echo(&request.name, sent.content);
                }
            }
            Seen::Gone => {
                let meant = match &request.verb {
                    Verb::Delete { uid } => Some(uid),
                    Verb::Create { .. } | Verb::Patch { .. } | Verb::Replace { .. } => {
                        sent.known_before.as_ref().map(|(uid, _)| uid)
                    }
                };
                if let Some(uid) = meant {
                    source.versions.gone(&request.name, uid, &mut changes);
                }
            }
            Seen::Nothing => {}
        }
        changes
    }

    /// Takes in an object that was read because the view did not keep it before. The view may not have the object
    /// although its version is known.
    pub(crate) fn take_reread(&mut self, id: S, name: ObjectName, found: Reread<O>) -> Vec<Change<O>> {
        let mut changes = Vec::new();
        match (self.sources.get_mut(&id), found) {
            (Some(source), Reread::Found(observed)) => {
                let is_known =
                    source.versions.known(&observed.name) == Some((&observed.uid, observed.resource_version));
                if is_known {
                    changes.push(Change::Applied(observed.object));
                } else {
                    source.versions.answered(observed, &mut changes);
                }
            }
            (Some(_), Reread::Undecodable) => changes.push(Change::Undecodable { name }),
            (_, Reread::Nothing) | (None, _) => {}
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::versions::Mark;

    const A: u8 = 1;
    const B: u8 = 2;

    fn sources() -> Sources<u8, &'static str> {
        let info = |source| SourceInfo {
            source,
            side: "hub".to_owned(),
            resource: Resource { group: "toy.io", version: "v1", kind: "Toy", plural: "toys" },
            label: "Toy",
            optional: source == B,
            freezes_when_forbidden: false,
            ends_denials: false,
        };
        Sources::new(vec![info(A), info(B)])
    }

    fn list(sources: &mut Sources<u8, &'static str>, id: u8, restores: u64) -> Vec<SourceNews<u8, &'static str>> {
        let mut news = sources.take(id, WatchEvent::ListStarted { requested: Mark::default(), restores });
        news.extend(sources.take(id, WatchEvent::ListEnded { resource_version: 1 }));
        news.retain(|news| matches!(news, SourceNews::Watch(..)));
        news
    }

    fn state(id: u8, state: WatchState) -> SourceNews<u8, &'static str> {
        SourceNews::Watch(id, WatchNews::State(state))
    }

    fn not_served(sources: &mut Sources<u8, &'static str>, id: u8, status: u16) -> Vec<SourceNews<u8, &'static str>> {
        sources.take(id, WatchEvent::NotServed { status, message: String::new() })
    }

    #[test]
    fn a_list_after_a_restore_makes_the_other_kinds_of_the_server_unknown_until_their_next_list() {
        let mut sources = sources();
        let listing = |id, begins| SourceNews::Watch(id, WatchNews::Listing(begins));
        for id in [A, B] {
            assert_eq!(
                list(&mut sources, id, 0),
                [listing(id, true), listing(id, false), state(id, WatchState::Complete)]
            );
        }
        let restored = |id| SourceNews::Watch(id, WatchNews::Restored);
        let unknown = [A, B].map(|id| [restored(id), state(id, WatchState::Unknown)]);
        let after = [listing(A, true), listing(A, false), state(A, WatchState::Complete)];
        let expected: Vec<_> = unknown.into_iter().flatten().chain(after).collect();
        assert_eq!(list(&mut sources, A, 1), expected);
        assert_eq!(list(&mut sources, B, 0), [listing(B, true), listing(B, false)], "requested before the restore");
        let states: Vec<WatchState> = sources.states().map(|(_, state)| state).collect();
        assert_eq!(states, [WatchState::Complete, WatchState::Unknown]);
    }

    #[test]
    fn a_kind_that_is_not_served_is_unknown_only_if_it_was_listed_before() {
        let mut sources = sources();
        let lost = |id| SourceNews::Watch(id, WatchNews::Connected(false));
        assert_eq!(not_served(&mut sources, A, 404), [lost(A)], "it was incomplete before");
        assert_eq!(not_served(&mut sources, B, 403), [lost(B), state(B, WatchState::Absent)]);
        list(&mut sources, B, 0);
        assert_eq!(not_served(&mut sources, B, 403), [lost(B)], "the view stays in use");
        assert_eq!(not_served(&mut sources, B, 404), [state(B, WatchState::Unknown)]);
    }
}
