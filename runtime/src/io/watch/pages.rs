//! Lists in pages, for servers that do not stream lists and for streams that do not end.

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use tokio::time::timeout;

use super::wire::{self, ErrorAnswer, Page};
use super::{End, Watcher};
use crate::engine::logic::Logic;
use crate::engine::message::WatchEvent;
use crate::limits::{LIST_PAGE_BYTES, LIST_PAGE_OBJECTS, LIST_PAGE_TIMEOUT, WATCH_ANSWER_TIMEOUT};

impl<L: Logic> Watcher<L> {
    /// Lists all objects in pages, all at the version of the first page. Only one page is in memory at a time.
    pub(super) async fn list_by_pages(&mut self) -> Result<(), End> {
        self.page_objects = LIST_PAGE_OBJECTS;
        let mut version_of_list = None;
        let mut token = None;
        let requested = self.progress.mark();
        loop {
            let body = self.page(token.as_deref()).await?;
            let page = parse(&body)?;
            if version_of_list.is_none() {
                self.emit(WatchEvent::ListStarted { requested, restores: self.restores }).await?;
            }
            let resource_version = *version_of_list.get_or_insert(page.resource_version);
            for item in &page.items {
                let event = match (self.spec.decode)(item.get().as_bytes()) {
                    Ok(observed) => WatchEvent::Applied(observed),
                    Err(undecodable) => WatchEvent::Undecodable(undecodable),
                };
                self.emit(event).await?;
            }
            token = page.next;
            if token.is_none() {
                return self.listed(resource_version).await;
            }
        }
    }

    /// Requests the page that `token` names, or the first page if `token` is `None`. If the page is too long, requests
    /// it again with fewer objects.
    async fn page(&mut self, token: Option<&str>) -> Result<Bytes, End> {
        loop {
            match self.request_page(self.page_objects, token).await {
                Err(PageError::TooLong) if self.page_objects > 1 => {
                    self.page_objects = (self.page_objects / 4).max(1);
                    tracing::debug!(
                        side = self.spec.cluster.name,
                        kind = self.spec.resource.kind,
                        objects = self.page_objects,
                        "a page of the list is longer than {LIST_PAGE_BYTES} bytes: asking for fewer objects"
                    );
                }
                answer => {
                    let page = answer.map_err(|error| self.page_failed(error))?;
                    self.heard();
                    return Ok(page);
                }
            }
        }
    }

    /// Returns the server's current revision: the version of a list of one object.
    pub(super) async fn revision(&self) -> Result<u64, End> {
        let body = timeout(WATCH_ANSWER_TIMEOUT, self.request_page(1, None))
            .await
            .map_err(|_| End::no_answer())?
            .map_err(|error| self.page_failed(error))?;
        Ok(parse(&body)?.resource_version)
    }

    async fn request_page(&self, objects: usize, token: Option<&str>) -> Result<Bytes, PageError> {
        let request = wire::page_request(&self.spec, objects, token);
        let answer = async {
            let response = self.spec.cluster.requests.send(request).await.map_err(PageError::failed)?;
            if !response.status().is_success() {
                return Err(PageError::ErrorAnswer(ErrorAnswer::read(response).await));
            }
            read_page(response.into_body()).await
        };
        timeout(LIST_PAGE_TIMEOUT, answer)
            .await
            .unwrap_or_else(|_| Err(PageError::Failed(format!("no page of the list within {LIST_PAGE_TIMEOUT:?}"))))
    }

    fn page_failed(&self, error: PageError) -> End {
        match error {
            PageError::ErrorAnswer(error_answer) => self.end_of_error(error_answer),
            PageError::TooLong => {
                let plural = self.spec.resource.plural;
                End::failed(
                    "page_too_long",
                    format!("one of the {plural} is longer than {LIST_PAGE_BYTES} bytes: make it smaller or delete it"),
                )
            }
            PageError::Failed(message) => End::failed("list_failed", message),
        }
    }
}

enum PageError {
    ErrorAnswer(ErrorAnswer),
    TooLong,
    Failed(String),
}

impl PageError {
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

fn parse(body: &[u8]) -> Result<Page<'_>, End> {
    Page::parse(body).map_err(|why| End::failed("list_failed", why))
}

async fn read_page(body: Body) -> Result<Bytes, PageError> {
    let mut body = Limited::new(body, LIST_PAGE_BYTES);
    let mut page = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => page.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => return Err(PageError::TooLong),
            Err(error) => return Err(PageError::failed(error)),
        }
    }
    Ok(page.freeze())
}
