//! Lists in pages: for servers that do not stream lists, and for streams that do not come to an end.

use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use tokio::time::timeout;

use super::wire::{self, Page, Refusal};
use super::{End, WatchEvent, Watcher};
use crate::limits::{LIST_PAGE_BYTES, LIST_PAGE_OBJECTS, LIST_PAGE_TIMEOUT};
use crate::logic::Logic;

impl<L: Logic> Watcher<L> {
    /// Reads everything in pages, all of them at the version of the first.
    pub(super) async fn list_by_pages(&mut self) -> Result<(), End> {
        let mut page = self.page(None).await?;
        let resource_version = page.resource_version;
        self.tell(WatchEvent::ListStarted).await?;
        loop {
            for item in &page.items {
                let event = match (self.spec.decode)(item.get().as_bytes()) {
                    Ok(observed) => WatchEvent::Applied(observed),
                    Err(unreadable) => WatchEvent::Unreadable(unreadable),
                };
                self.tell(event).await?;
            }
            let Some(token) = page.next else { break };
            page = self.page(Some(&token)).await?;
        }
        self.page_objects = LIST_PAGE_OBJECTS;
        self.listed(resource_version).await
    }

    async fn page(&mut self, token: Option<&str>) -> Result<Page, End> {
        let page = self.request_page(self.page_objects, token).await;
        match page {
            Ok(page) => {
                self.heard();
                Ok(page)
            }
            Err(PageError::Refused(refusal)) => Err(self.refused(refusal)),
            Err(PageError::TooLong) => {
                self.page_objects = (self.page_objects / 4).max(1);
                let objects = self.page_objects;
                Err(End::failed(
                    "page_too_long",
                    format!("a page of the list is longer than {LIST_PAGE_BYTES} bytes; asking for {objects} objects"),
                ))
            }
            Err(PageError::Failed(message)) => Err(End::failed("list_failed", message)),
        }
    }

    async fn request_page(&self, objects: usize, token: Option<&str>) -> Result<Page, PageError> {
        let request = wire::page_request(&self.spec, objects, token);
        let answer = async {
            let response = self.spec.cluster.requests.send(request).await.map_err(PageError::failed)?;
            if !response.status().is_success() {
                return Err(PageError::Refused(Refusal::read(response).await));
            }
            let body = read_page(response.into_body()).await?;
            Page::parse(&body).map_err(PageError::Failed)
        };
        timeout(LIST_PAGE_TIMEOUT, answer)
            .await
            .unwrap_or_else(|_| Err(PageError::Failed(format!("no page of the list within {LIST_PAGE_TIMEOUT:?}"))))
    }

    /// Whether the server is behind what it has told already. A watch from a version that the server has not reached
    /// (again) is silent and loses everything up to it: that looks like a quiet kind, so a quiet watch is checked.
    pub(super) async fn server_went_back(&self) -> bool {
        let Some(position) = self.position else { return false };
        matches!(self.request_page(1, None).await, Ok(page) if page.resource_version < position)
    }
}

enum PageError {
    Refused(Refusal),
    TooLong,
    Failed(String),
}

impl PageError {
    fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

async fn read_page(body: Body) -> Result<bytes::Bytes, PageError> {
    match Limited::new(body, LIST_PAGE_BYTES).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(PageError::TooLong),
        Err(error) => Err(PageError::failed(error)),
    }
}
