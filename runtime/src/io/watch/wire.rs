//! Wire format of watches and lists: query strings, lines, events, list pages and error responses. Has no state.

use fleetnet_types::{ObjectName, Uid};
use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    engine::logic::Logic,
    errors::cut,
    io::source::SourceSpec,
    limits::{CONTINUE_TOKEN_BYTES, ERROR_BODY_BYTES, WATCH_LINE_BYTES},
};

/// Annotation of the bookmark after the last initial event (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST_ONLY: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const JSON: &str = "application/json";
/// Characters that must be percent-encoded in a query (RFC 3986: all but the unreserved characters).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Builds a watch request that starts with all existing objects (`sendInitialEvents`) and continues with changes.
pub(super) fn streaming_list_request<L: Logic>(spec: &SourceSpec<L>, timeout_seconds: u64) -> Request<Body> {
    let query = format!(
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
         &resourceVersion=&timeoutSeconds={timeout_seconds}"
    );
    request(spec, &query, if spec.metadata_only { METADATA_ONLY } else { JSON })
}

/// Builds a watch request that continues after the version `after`.
pub(super) fn watch_request<L: Logic>(spec: &SourceSpec<L>, after: u64, timeout_seconds: u64) -> Request<Body> {
    let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={after}&timeoutSeconds={timeout_seconds}");
    request(spec, &query, if spec.metadata_only { METADATA_ONLY } else { JSON })
}

/// Builds the request for the page that `token` names, or for the first page if `token` is `None`. Without a
/// resourceVersion, the server returns the most recent state, never a cached one.
pub(super) fn page_request<L: Logic>(spec: &SourceSpec<L>, objects: usize, token: Option<&str>) -> Request<Body> {
    let query = page_query(objects, token);
    request(spec, &query, if spec.metadata_only { METADATA_LIST_ONLY } else { JSON })
}

pub(super) fn page_query(objects: usize, token: Option<&str>) -> String {
    match token {
        Some(token) => format!("limit={objects}&continue={}", utf8_percent_encode(token, RESERVED)),
        None => format!("limit={objects}"),
    }
}

fn request<L: Logic>(spec: &SourceSpec<L>, query: &str, accept: &'static str) -> Request<Body> {
    let path = spec.resource.collection_path(spec.namespace.as_deref());
    let selector = spec.name.map(|name| format!("&fieldSelector=metadata.name%3D{name}")).unwrap_or_default();
    Request::get(format!("{path}?{query}{selector}"))
        .header(header::ACCEPT, accept)
        // No compression: it would delay single events until a block is full.
        .header(header::ACCEPT_ENCODING, "identity")
        .body(Body::empty())
        .expect("a path of DNS labels and an encoded query form a URI")
}

/// Reader that returns the lines of a response body as they arrive.
pub(super) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// Length of the start of the buffer that is known to have no line end, and need not be searched again.
    scanned: usize,
}

/// Reason why a body ended before its regular end.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("the connection was cut: {0}")]
    Cut(String),
    #[error("an event is longer than {WATCH_LINE_BYTES} bytes")]
    TooLong,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), scanned: 0 }
    }

    /// Returns the next line without its line end. `None` once the server has ended the body after a whole line.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        loop {
            if let Some(found) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') {
                let length = self.scanned + found;
                if length > WATCH_LINE_BYTES {
                    return Err(LineError::TooLong);
                }
                let mut line = self.buffer.split_to(length + 1).freeze();
                line.truncate(length);
                self.scanned = 0;
                return Ok(Some(line));
            }
            self.scanned = self.buffer.len();
            if self.scanned > WATCH_LINE_BYTES {
                return Err(LineError::TooLong);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffer.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
                Some(Err(error)) => return Err(LineError::Cut(error.to_string())),
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(LineError::Cut("in the middle of an event".to_owned())),
            }
        }
    }
}

#[derive(Debug)]
pub(super) enum Event<'a> {
    /// Event ADDED or MODIFIED, with the object's JSON.
    Applied(&'a [u8]),
    /// Event DELETED, with the object's identity and the version of the deletion.
    Deleted { name: ObjectName, uid: Uid, resource_version: u64 },
    /// Event BOOKMARK. `ends_list` is true if the bookmark ends the initial list.
    Bookmark { resource_version: u64, ends_list: bool },
    /// Event ERROR, with the server's status.
    Error { code: u16, message: String },
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize, Default)]
struct RawObject {
    #[serde(default)]
    metadata: RawMetadata,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawMetadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawStatus {
    code: u16,
    message: String,
    reason: String,
    details: Option<RawDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawDetails {
    retry_after_seconds: u64,
}

/// Parses one line of a watch.
pub(super) fn parse_event(line: &[u8]) -> Result<Event<'_>, String> {
    let raw: RawEvent<'_> =
        serde_json::from_slice(line).map_err(|error| cut(format!("it is not a watch event: {error}")))?;
    match &*raw.kind {
        "ADDED" | "MODIFIED" => Ok(Event::Applied(raw.object.get().as_bytes())),
        "DELETED" => parse_deleted(raw.object),
        "BOOKMARK" => parse_bookmark(raw.object),
        "ERROR" => {
            let status: RawStatus = serde_json::from_str(raw.object.get()).unwrap_or_default();
            Ok(Event::Error { code: status.code, message: status_text(&status) })
        }
        other => Err(cut(format!("its type {other:?} is not known"))),
    }
}

fn parse_metadata(object: &RawValue) -> Result<(RawMetadata, u64), String> {
    let object: RawObject =
        serde_json::from_str(object.get()).map_err(|error| cut(format!("its metadata: {error}")))?;
    let version = object.metadata.resource_version.parse().map_err(|_| "it has no resourceVersion".to_owned())?;
    Ok((object.metadata, version))
}

fn parse_deleted<'a>(object: &RawValue) -> Result<Event<'a>, String> {
    let (metadata, resource_version) = parse_metadata(object)?;
    if metadata.name.is_empty() || metadata.uid.is_empty() {
        return Err("a deleted object has no name or no UID".to_owned());
    }
    let RawMetadata { namespace, name, uid, .. } = metadata;
    Ok(Event::Deleted { name: ObjectName::new(namespace, name), uid: uid.into(), resource_version })
}

fn parse_bookmark<'a>(object: &RawValue) -> Result<Event<'a>, String> {
    let (metadata, resource_version) = parse_metadata(object)?;
    let annotations = metadata.annotations.unwrap_or_default();
    let ends_list = annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true");
    Ok(Event::Bookmark { resource_version, ends_list })
}

/// Page of a list. The objects borrow from the bytes of the response, so nothing is copied.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) resource_version: u64,
    /// Token that continues the list with the next page. `None` on the last page.
    pub(super) next: Option<String>,
    pub(super) items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawList<'a> {
    metadata: RawListMetadata,
    #[serde(default, borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawListMetadata {
    resource_version: String,
    #[serde(default)]
    r#continue: String,
}

impl<'a> Page<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, String> {
        let raw: RawList<'a> =
            serde_json::from_slice(body).map_err(|error| cut(format!("the answer is not a list: {error}")))?;
        let version = &raw.metadata.resource_version;
        let resource_version =
            version.parse().map_err(|_| cut(format!("the list's resourceVersion {version:?} is not a number")))?;
        let token = raw.metadata.r#continue;
        if token.len() > CONTINUE_TOKEN_BYTES {
            return Err(format!("the list's continue token is longer than {CONTINUE_TOKEN_BYTES} bytes"));
        }
        Ok(Self {
            resource_version,
            next: Some(token).filter(|token| !token.is_empty()),
            items: raw.items.unwrap_or_default(),
        })
    }
}

/// Error response to a list or watch request.
#[derive(Debug)]
pub(super) struct ErrorAnswer {
    pub(super) status: StatusCode,
    /// Message in the server's response.
    pub(super) message: String,
    /// Wait time in the server's `Retry-After` header.
    pub(super) retry_after: Option<Duration>,
}

impl ErrorAnswer {
    /// Reads the body of an error response, up to a limit.
    pub(super) async fn read(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ERROR_BODY_BYTES).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let status: RawStatus = serde_json::from_slice(&body).unwrap_or_default();
        let details_seconds = status.details.as_ref().map(|details| details.retry_after_seconds);
        let seconds = retry_after_seconds(&head.headers).or(details_seconds).filter(|seconds| *seconds > 0);
        Self {
            status: head.status,
            message: format!("{}: {}", head.status, status_text(&status)),
            retry_after: seconds.map(Duration::from_secs),
        }
    }
}

fn retry_after_seconds(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

fn status_text(status: &RawStatus) -> String {
    match (status.message.is_empty(), status.reason.is_empty()) {
        (false, _) => cut(status.message.clone()),
        (true, false) => cut(status.reason.clone()),
        (true, true) => "the server gave no reason".to_owned(),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the doubles are plain functions, which cannot await a lock")]
mod tests {
    use futures::StreamExt as _;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    /// Returns an HTTP body that arrives in these pieces, as kube's client wraps it.
    async fn body(pieces: Vec<Result<&'static str, &'static str>>) -> Body {
        let pieces = std::sync::Mutex::new(Some(pieces));
        let service = tower::service_fn(move |_: Request<Body>| {
            let pieces = pieces.lock().unwrap().take().unwrap();
            let frames = futures::stream::iter(pieces)
                .map(|piece| piece.map(|text| Frame::data(Bytes::from_static(text.as_bytes()))));
            let response = Response::new(StreamBody::new(frames.map(|frame| frame.map_err(std::io::Error::other))));
            std::future::ready(Ok::<_, std::io::Error>(response))
        });
        kube::Client::new(service, "default").send(Request::new(Body::empty())).await.unwrap().into_body()
    }

    async fn all_lines(body: Body) -> (Vec<String>, Option<String>) {
        let mut lines = Lines::new(body);
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Ok(Some(line)) => read.push(String::from_utf8(line.to_vec()).unwrap()),
                Ok(None) => return (read, None),
                Err(error) => return (read, Some(error.to_string())),
            }
        }
    }

    #[tokio::test]
    async fn lines_are_found_however_the_body_is_cut_into_pieces() {
        let (read, error) = all_lines(body(vec![Ok("one\ntw"), Ok(""), Ok("o\nth"), Ok("ree\n")]).await).await;
        assert_eq!(read, ["one", "two", "three"]);
        assert_eq!(error, None);
    }

    #[tokio::test]
    async fn a_body_that_ends_inside_a_line_was_cut() {
        let (read, error) = all_lines(body(vec![Ok("one\ntw")]).await).await;
        assert_eq!(read, ["one"]);
        assert_eq!(error.as_deref(), Some("the connection was cut: in the middle of an event"));

        let (read, error) = all_lines(body(vec![Ok("one\n"), Err("reset")]).await).await;
        assert_eq!(read, ["one"]);
        assert!(error.unwrap().starts_with("the connection was cut: "));
    }

    #[tokio::test]
    async fn a_line_without_an_end_fails() {
        let megabyte: &'static str = String::leak("x".repeat(1 << 20));
        let (read, error) = all_lines(body(vec![Ok(megabyte); 10]).await).await;
        assert!(read.is_empty());
        assert_eq!(error.as_deref(), Some("an event is longer than 8388608 bytes"));
    }

    #[test]
    fn events_are_distinguished_by_type() {
        assert!(matches!(
            parse_event(br#"{"type":"ADDED","object":{"a":1}}"#),
            Ok(Event::Applied(object)) if object == br#"{"a":1}"#
        ));
        assert!(matches!(
            parse_event(br#"{"type":"DELETED","object":{"metadata":{"name":"n","uid":"u","resourceVersion":"7"}}}"#),
            Ok(Event::Deleted { name, uid, resource_version: 7 })
                if name.to_string() == "n" && &*uid == "u"
        ));
        assert!(matches!(
            parse_event(br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#),
            Ok(Event::Bookmark { resource_version: 9, ends_list: false })
        ));
        let end = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",
            "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        assert!(matches!(parse_event(end), Ok(Event::Bookmark { resource_version: 9, ends_list: true })));
        assert!(matches!(
            parse_event(br#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#),
            Ok(Event::Error { code: 410, message }) if message == "too old"
        ));
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        for line in [
            &br#"{"type":"ADDED""#[..],
            br#"{"type":"RENAMED","object":{}}"#,
            br#"{"type":"DELETED","object":{"metadata":{"resourceVersion":"7"}}}"#,
            br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"seven"}}}"#,
        ] {
            assert!(parse_event(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn a_page_contains_its_version_its_items_and_the_next_page() {
        let json = r#"{"metadata":{"resourceVersion":"12","continue":"a/b="},"items":[{"n":1},{"n":2}]}"#;
        let page = Page::parse(json.as_bytes()).unwrap();
        assert_eq!((page.resource_version, page.next.as_deref()), (12, Some("a/b=")));
        let items: Vec<_> = page.items.iter().map(|item| item.get()).collect();
        assert_eq!(items, [r#"{"n":1}"#, r#"{"n":2}"#]);
        let answer = json.as_bytes().as_ptr_range();
        assert!(items.iter().all(|item| answer.contains(&item.as_ptr())), "the answer is not copied");

        let last = Page::parse(br#"{"metadata":{"resourceVersion":"12"},"items":null}"#).unwrap();
        assert!(last.next.is_none() && last.items.is_empty());
        assert!(Page::parse(br#"{"kind":"Status"}"#).is_err());
    }

    #[test]
    fn a_continue_token_that_fits_into_no_uri_is_an_error() {
        let page = |length: usize| {
            format!(r#"{{"metadata":{{"resourceVersion":"12","continue":"{}"}}}}"#, "/".repeat(length)).into_bytes()
        };
        let (longest, longer) = (page(CONTINUE_TOKEN_BYTES), page(CONTINUE_TOKEN_BYTES + 1));
        let token = Page::parse(&longest).unwrap().next.unwrap();
        let uri = format!("/apis/group/v1/plural?{}", page_query(500, Some(&token)));
        assert!(uri.parse::<http::Uri>().is_ok());
        assert_eq!(Page::parse(&longer).unwrap_err(), "the list's continue token is longer than 16384 bytes");
    }

    #[test]
    fn a_message_does_not_repeat_a_long_text_of_the_server() {
        let long = "x".repeat(10_000);
        let event = |kind: &str, message: &str| {
            parse_event(format!(r#"{{"type":"{kind}","object":{{"code":500,"message":"{message}"}}}}"#).as_bytes()).map(
                |event| match event {
                    Event::Error { message, .. } => message,
                    other => panic!("{other:?}"),
                },
            )
        };
        let page = |json: String| Page::parse(json.as_bytes()).unwrap_err();
        let deleted = format!(r#"{{"type":"DELETED","object":{{"metadata":"{long}"}}}}"#);
        let messages = [
            event("ERROR", &long).unwrap(),
            event(&long, "").unwrap_err(),
            parse_event(format!("{long:?}").as_bytes()).unwrap_err(),
            parse_event(deleted.as_bytes()).unwrap_err(),
            page(format!(r#"{{"metadata":{{"resourceVersion":"{long}"}}}}"#)),
            page(format!("{long:?}")),
        ];
        for message in messages {
            assert!(message.len() < 2100 && message.ends_with('…'), "{} bytes: {message:.80}", message.len());
        }
    }

    #[test]
    fn tokens_are_encoded() {
        assert_eq!(utf8_percent_encode("aZ9-_.~/+= ", RESERVED).to_string(), "aZ9-_.~%2F%2B%3D%20");
    }

    #[tokio::test]
    async fn an_error_answer_has_the_message_of_the_server_and_its_retry_after() {
        let by_header = Response::builder()
            .status(429)
            .header("Retry-After", "3")
            .body(Body::from(br#"{"message":"slow down","details":{"retryAfterSeconds":9}}"#.to_vec()))
            .unwrap();
        let error_answer = ErrorAnswer::read(by_header).await;
        assert_eq!(error_answer.message, "429 Too Many Requests: slow down");
        assert_eq!(error_answer.retry_after, Some(Duration::from_secs(3)));

        let by_details = Response::builder()
            .status(503)
            .body(Body::from(br#"{"details":{"retryAfterSeconds":9}}"#.to_vec()))
            .unwrap();
        assert_eq!(ErrorAnswer::read(by_details).await.retry_after, Some(Duration::from_secs(9)));

        let bare = Response::builder().status(500).body(Body::from(b"oops".to_vec())).unwrap();
        let error_answer = ErrorAnswer::read(bare).await;
        assert_eq!(error_answer.message, "500 Internal Server Error: the server gave no reason");
        assert_eq!(error_answer.retry_after, None);
    }
}
