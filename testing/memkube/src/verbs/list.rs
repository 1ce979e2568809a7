//! The verb list, with paging.

use super::Work;
use super::options::{ListOptions, Wanted};
use super::page::Token;
use crate::faults;
use crate::object::Object;
use crate::registry::ResourceId;
use crate::selector::Selection;
use crate::server::State;
use crate::service::{Content, Reply};
use crate::status::Status;
use crate::store::{Key, Stored};
use crate::wire::{Form, Request};
use bytes::Bytes;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Objects of a resource at an earlier revision.
pub(super) struct Past {
    pub(super) revision: u64,
    pub(super) objects: BTreeMap<Key, Arc<Stored>>,
}

/// Part of a list.
struct Page {
    items: Vec<Arc<Stored>>,
    /// Key of the last item, and number of items on later pages. `None` on the last page.
    more: Option<(String, usize)>,
}

impl Work<'_> {
    pub(super) fn list(&mut self, seen: faults::State) -> Result<Reply, Status> {
        let (metadata, items) = self.asked(seen)?;
        Ok(Reply::new(200, Content::Json(self.listed(&metadata, &items)?)))
    }

    /// Returns the `metadata` of the list, and the objects that match the options and selectors of the request.
    pub(super) fn asked(&self, seen: faults::State) -> Result<(Object, Vec<Arc<Stored>>), Status> {
        let options = ListOptions::of(&self.request.query, false)?;
        let selection = Selection::of(self.request, self.state)?;
        let (begin, past) = self.source(&options, seen)?;
        let revision = past.as_ref().map_or(self.state.store.revision(), |past| past.revision);
        let page = self.page(past.as_ref(), &selection, begin.as_deref(), options.limit);
        let mut metadata = Object::new();
        metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        if let Some((last, remaining)) = &page.more {
            let token = Token::after(revision, last);
            metadata.insert("continue".to_owned(), json!(token.encode()));
            if selection.is_all() {
                metadata.insert("remainingItemCount".to_owned(), json!(remaining));
            }
        } else if self.request.definition.custom && !matches!(self.request.form, Form::Table { .. }) {
            // kube-apiserver always writes `continue` in lists of custom resources, but not in their tables.
            metadata.insert("continue".to_owned(), json!(""));
        }
        Ok((metadata, page.items))
    }

    /// Returns the first key of the requested page, or `None` for the first page. Also returns the earlier state that
    /// the page shows, or `None` for the current state.
    fn source(&self, options: &ListOptions, seen: faults::State) -> Result<(Option<String>, Option<Past>), Status> {
        let resource = self.request.resource();
        if !options.continue_token.is_empty() {
            let token = Token::decode(&options.continue_token)?;
            if !matches!(options.wanted, Wanted::Newest | Wanted::Any) {
                let message = "specifying resource version is not allowed when using continue";
                return Err(Status::bad_request(message));
            }
            let Some(revision) = token.revision else {
                return Ok((Some(token.start), None));
            };
            return match self.state.at(&resource, revision) {
                Some(past) => Ok((Some(token.start), Some(past))),
                None => Err(token.expired()),
            };
        }
        if let Wanted::Exactly(revision) = options.wanted {
            let past = self.state.at(&resource, revision);
            let past = past.ok_or_else(|| Status::expired("The resourceVersion for the provided list is too old."))?;
            return Ok((None, Some(past)));
        }
        Ok((None, self.state.past(self.request, seen)))
    }

    fn page(&self, past: Option<&Past>, selection: &Selection, begin: Option<&str>, limit: Option<usize>) -> Page {
        let resource = self.request.resource();
        let namespace = self.request.namespace();
        let after = |stored: &&Arc<Stored>| begin.is_none_or(|begin| stored.key.text() >= begin);
        let matching = |stored: &&Arc<Stored>| selection.matches(stored);
        let limit = limit.unwrap_or(usize::MAX);
        let collect = |mut objects: &mut dyn Iterator<Item = &Arc<Stored>>| {
            let items: Vec<Arc<Stored>> = (&mut objects).take(limit).cloned().collect();
            let remaining = objects.count();
            let last = items.last().map(|stored| stored.key.text().to_owned());
            Page { items, more: last.filter(|_| remaining > 0).map(|last| (last, remaining)) }
        };
        match past {
            Some(past) => {
                let here = |stored: &&Arc<Stored>| namespace.is_empty() || stored.key.namespace() == namespace;
                collect(&mut past.objects.values().filter(here).filter(after).filter(matching))
            }
            None => collect(&mut self.state.store.list(&resource, namespace).filter(after).filter(matching)),
        }
    }

    pub(super) fn listed(&self, metadata: &Object, items: &[Arc<Stored>]) -> Result<Vec<Bytes>, Status> {
        let encoder = self.encoder()?;
        let registered = self.state.registry.get(&self.request.resource());
        let (begin, end) = encoder.list_frame(metadata);
        let mut chunks = vec![begin];
        for (index, stored) in items.iter().enumerate() {
            if index > 0 {
                chunks.push(Bytes::from_static(b","));
            }
            chunks.extend(encoder.item(registered, stored));
        }
        chunks.push(end);
        Ok(chunks)
    }
}

impl State {
    /// Returns the objects of a resource at a revision. Returns `None` if the event log starts after this revision.
    pub(super) fn at(&self, resource: &ResourceId, revision: u64) -> Option<Past> {
        let objects = match self.store.table(resource) {
            Some(table) => table.at(revision).ok()?,
            None => BTreeMap::new(),
        };
        Some(Past { revision, objects })
    }

    /// Returns the earlier state that a fault selects for the request, or `None` for the current state.
    pub(super) fn past(&self, request: &Request, seen: faults::State) -> Option<Past> {
        match seen {
            faults::State::Newest => None,
            faults::State::At(_) | faults::State::Behind(_) => self.at(&request.resource(), self.seen(request, seen)),
        }
    }

    /// Revision of the state that a request reads.
    pub(super) fn seen(&self, request: &Request, seen: faults::State) -> u64 {
        let newest = self.store.revision();
        let revision = match seen {
            faults::State::Newest => return newest,
            faults::State::At(revision) => revision.min(newest),
            faults::State::Behind(revisions) => newest.saturating_sub(revisions),
        };
        let oldest = self.store.table(&request.resource()).map_or(0, |table| table.oldest());
        revision.max(oldest)
    }
}

impl Request {
    /// Namespace of the objects of a request.
    ///
    /// Empty for all namespaces, and for cluster-scoped objects such as Namespaces. This matters for a path such as
    /// `/api/v1/namespaces/prod`: memkube parses `prod` as the namespace and as the name of the object.
    pub(crate) fn namespace(&self) -> &str {
        match self.definition.scope {
            crate::registry::Scope::Cluster => "",
            crate::registry::Scope::Namespaced => &self.call.target.namespace,
        }
    }
}
