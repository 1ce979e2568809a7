//! Targets for the answers to lists and watches.

use crate::message::check_message;
use crate::server::{block_on, received};
use bytes::Bytes;
use fleetnet_runtime::fuzzing::{self, WatchLine};
use http::Uri;
use serde::de::IgnoredAny;
use std::time::Duration;

/// Reads a watch whose body arrives in pieces. The first 4 bytes of the input are the lengths of the pieces, in turn;
/// the other bytes are the body.
///
/// The pieces do not matter, each line is an event or names the reason why it is none, and only a body that ends within
/// a line was cut.
pub fn watch_stream(bytes: &[u8]) {
    let Some((lengths, body)) = bytes.split_at_checked(4) else { return };
    let (lines, end) = block_on(read(pieces(lengths, body)));
    let whole = block_on(read(vec![Bytes::copy_from_slice(body)]));
    assert_eq!((&lines, &end), (&whole.0, &whole.1), "the pieces of a body change its events");

    assert_eq!(lines.len(), body.iter().filter(|byte| **byte == b'\n').count(), "a line is lost or read twice");
    let is_cut = body.last().is_some_and(|byte| *byte != b'\n');
    assert_eq!(end.is_some(), is_cut, "the end of the body: {end:?}");
    lines.iter().for_each(check_line);
}

async fn read(pieces: Vec<Bytes>) -> (Vec<WatchLine>, Option<String>) {
    let response = received(200, None, pieces).await.expect("the server answers");
    fuzzing::watch_lines(response.into_body()).await
}

fn pieces(lengths: &[u8], mut body: &[u8]) -> Vec<Bytes> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        // A long body of pieces without bytes would never end.
        let length = usize::from(*length).max(usize::from(pieces.len() > body.len())).min(body.len());
        let (piece, rest) = body.split_at(length);
        pieces.push(Bytes::copy_from_slice(piece));
        body = rest;
        if body.is_empty() {
            break;
        }
    }
    pieces
}

fn check_line(line: &WatchLine) {
    match line {
        WatchLine::Applied(json) => {
            serde_json::from_slice::<IgnoredAny>(json).expect("the object of an event is JSON");
        }
        WatchLine::Deleted { name, uid, .. } => {
            assert!(!name.name.is_empty() && !uid.is_empty(), "a deleted object has no name or no UID");
        }
        WatchLine::Bookmark { .. } => {}
        WatchLine::Error { message, .. } | WatchLine::Malformed(message) => check_message(message),
    }
}

/// Reads a page of a list. Each item is a part of the page, and the next page can be requested.
pub fn list_page(bytes: &[u8]) {
    match fuzzing::list_page(bytes) {
        Ok(page) => {
            let inside = bytes.as_ptr_range();
            for item in page.items {
                assert!(inside.contains(&item.as_ptr()), "an item is copied");
                serde_json::from_str::<IgnoredAny>(item).expect("an item is JSON");
            }
            if let Some(query) = page.next_query {
                let uri: Result<Uri, _> = format!("/apis/networking.example/v1/slices?{query}").parse();
                uri.expect("the next page has a URI");
            }
        }
        Err(why) => check_message(&why),
    }
}

/// Reads the answer to a refused list, watch or write. The first line of the input is the header `Retry-After`, the
/// other lines are the body. The message is short, and a wait time is not zero.
pub fn error_answer(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (header, body) = bytes.split_at(end);
    let header = std::str::from_utf8(header).ok().filter(|header| !header.is_empty());
    let refusal = block_on(async {
        let response = received(429, header, vec![Bytes::copy_from_slice(body)]).await?;
        Some(fuzzing::refusal(response).await)
    });
    if let Some(refusal) = refusal {
        check_message(&refusal.message);
        check_wait(refusal.retry_after);
    }
    let (refusal, _reason) = fuzzing::refused_write(429, body);
    check_message(&refusal.message);
    check_wait(refusal.retry_after);
}

fn check_wait(wait: Option<Duration>) {
    assert_ne!(wait, Some(Duration::ZERO), "a wait of no time");
}
