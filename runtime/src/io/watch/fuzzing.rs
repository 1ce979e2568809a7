//! Entry points of the fuzz targets to the wire format of watches and lists.

use std::time::Duration;

use fleetnet_types::{ObjectName, Uid};
use http::Response;
use kube::client::Body;

use super::wire::{ErrorAnswer, Event, Lines, Page, page_query, parse_event};

/// Line of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchLine {
    /// Event ADDED or MODIFIED, with the object's JSON.
    Applied(Vec<u8>),
    Deleted {
        name: ObjectName,
        uid: Uid,
        resource_version: u64,
    },
    Bookmark {
        resource_version: u64,
        ends_list: bool,
    },
    Error {
        code: u16,
        message: String,
    },
    /// Reason why the line is no event.
    Malformed(String),
}

/// Page of a list.
#[derive(Debug)]
pub struct ListPage<'a> {
    pub resource_version: u64,
    /// Query that requests the next page. `None` on the last page.
    pub next_query: Option<String>,
    pub items: Vec<&'a str>,
}

/// Response to a request that the server refused.
#[derive(Debug)]
pub struct Refusal {
    /// Message for the log.
    pub message: String,
    /// Wait time that the server requests.
    pub retry_after: Option<Duration>,
}

/// Returns the lines of a watch, and the reason if the body ended before its regular end.
pub async fn watch_lines(body: Body) -> (Vec<WatchLine>, Option<String>) {
    let (mut lines, mut read) = (Lines::new(body), Vec::new());
    loop {
        match lines.next().await {
            Ok(Some(line)) => read.push(watch_line(&line)),
            Ok(None) => return (read, None),
            Err(error) => return (read, Some(error.to_string())),
        }
    }
}

fn watch_line(line: &[u8]) -> WatchLine {
    match parse_event(line) {
        Ok(Event::Applied(json)) => WatchLine::Applied(json.to_vec()),
        Ok(Event::Deleted { name, uid, resource_version }) => WatchLine::Deleted { name, uid, resource_version },
        Ok(Event::Bookmark { resource_version, ends_list }) => WatchLine::Bookmark { resource_version, ends_list },
        Ok(Event::Error { code, message }) => WatchLine::Error { code, message },
        Err(why) => WatchLine::Malformed(why),
    }
}

/// Parses a page of a list.
pub fn list_page(body: &[u8]) -> Result<ListPage<'_>, String> {
    let page = Page::parse(body)?;
    Ok(ListPage {
        resource_version: page.resource_version,
        next_query: page.next.map(|token| page_query(1, Some(&token))),
        items: page.items.into_iter().map(|item| item.get()).collect(),
    })
}

/// Reads the response to a list or watch that the server refused.
pub async fn refusal(response: Response<Body>) -> Refusal {
    let ErrorAnswer { status: _, message, retry_after } = ErrorAnswer::read(response).await;
    Refusal { message, retry_after }
}
