//! Tests of the requests that the writer sends, and of its conclusions from each response.

#![expect(
    clippy::disallowed_types,
    reason = "tests look into what a server or an agent was told, and nothing awaits meanwhile"
)]

use fleetnet_types::{ObjectName, Timestamp};
use std::sync::Mutex;

use http::{HeaderMap, Request as HttpRequest, Response};
use http_body_util::Full;

use super::*;
use crate::io::client::Cluster;
use crate::limits::ERROR_MESSAGE_BYTES;
use crate::test_kit::{LEADING, Source, Thing, decode, failure};

/// Requests that the writer has sent so far, and the responses that the test server will still return.
#[derive(Default)]
struct Script {
    requests: Vec<(Method, String, HeaderMap, Value)>,
    answers: Vec<Response<Full<Bytes>>>,
}

fn answer(status: u16, body: Value) -> Response<Full<Bytes>> {
    Response::builder().status(status).body(Full::new(Bytes::from(body.to_string()))).expect("a response")
}

fn object(version: u64, uid: &str, value: &str) -> Value {
    let metadata = json!({"namespace": "ns", "name": "a", "uid": uid, "resourceVersion": version.to_string()});
    json!({"metadata": metadata, "spec": {"value": value}})
}

fn seen(version: u64, uid: &str, value: &str) -> Seen<Thing> {
    Seen::Object(decode(object(version, uid, value).to_string().as_bytes()).expect("readable"))
}

/// Also rule K3.
#[tokio::test(start_paused = true)]
async fn a_write_that_was_begun_before_the_deadline_is_not_sent_after_it() {
    let delete = || Verb::Delete { uid: "u1".into() };
    let later = Some(Instant::now() + Duration::from_millis(1));
    let gone = || answer(200, json!({"kind": "Status"}));
    let (outcome, requests) =
        carried_out_by(&Leadership::Leading { until: later }, delete(), false, vec![gone()]).await;
    assert_eq!((outcome.result, requests.len()), (WriteResult::Done, 1));
    for leadership in [Leadership::Leading { until: Some(Instant::now()) }, Leadership::Waiting { holder: None }] {
        let (outcome, requests) = carried_out_by(&leadership, delete(), false, Vec::new()).await;
        assert!(requests.is_empty(), "{requests:?}");
        let WriteResult::Failed { message, .. } = outcome.result else { panic!("{:?}", outcome.result) };
        assert_eq!(message, "not sent: this process does not lead any more");
    }
}

/// Executes a write against a server that returns these responses one after the other.
async fn carried_out(
    verb: Verb,
    metadata_only: bool,
    answers: Vec<Response<Full<Bytes>>>,
) -> (Outcome<Thing>, Vec<(Method, String, HeaderMap, Value)>) {
    carried_out_by(&LEADING, verb, metadata_only, answers).await
}

/// Executes a write of a process with this leadership.
async fn carried_out_by(
    leadership: &Leadership,
    verb: Verb,
    metadata_only: bool,
    answers: Vec<Response<Full<Bytes>>>,
) -> (Outcome<Thing>, Vec<(Method, String, HeaderMap, Value)>) {
    let (outcome, requests, _) = carried_out_in_cluster(leadership, verb, metadata_only, answers).await;
    (outcome, requests)
}

/// Executes a write as [`carried_out_by`] does. Also returns the number of restores that were noticed.
async fn carried_out_in_cluster(
    leadership: &Leadership,
    verb: Verb,
    metadata_only: bool,
    mut answers: Vec<Response<Full<Bytes>>>,
) -> (Outcome<Thing>, Vec<(Method, String, HeaderMap, Value)>, u64) {
    answers.reverse();
    let script = Arc::new(Mutex::new(Script { requests: Vec::new(), answers }));
    let shared = Arc::clone(&script);
    let service = tower::service_fn(move |request: HttpRequest<Body>| {
        let script = Arc::clone(&shared);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let mut script = script.lock().expect("no panic");
            let body = serde_json::from_slice(&body).unwrap_or_default();
            script.requests.push((parts.method, parts.uri.to_string(), parts.headers, body));
            Ok::<_, kube::Error>(script.answers.pop().expect("no more requests than answers"))
        }
    });
    let client = kube::Client::new(service, "default");
    let cluster = Arc::new(Cluster::from_clients("hub", client.clone(), client));
    let spec = Arc::new(SourceSpec { metadata_only, ..Source::Copy.spec(&cluster) });
    let (_sender, leadership) = watch::channel(leadership.clone());
    let clock = Clock::virtual_at(Timestamp::EPOCH);
    let outcome = carry_out(spec, &ObjectName::new("ns", "a"), &verb, clock, leadership).await;
    let mut script = script.lock().expect("no panic");
    assert!(script.answers.is_empty(), "answers are left: fewer requests than expected");
    let requests = std::mem::take(&mut script.requests);
    (outcome, requests, cluster.restores.count())
}

fn create() -> Verb {
    Verb::Create { body: json!({"metadata": {"name": "a"}, "spec": {"value": "x"}}).into() }
}

fn patch() -> Verb {
    Verb::Patch { subresource: None, resource_version: 7, body: json!({"spec": {"value": "x"}}).into() }
}

fn delete() -> Verb {
    Verb::Delete { uid: "uid-1".into() }
}

#[tokio::test]
async fn a_create_posts_the_whole_object_to_its_collection() {
    let (outcome, requests) = carried_out(create(), false, vec![answer(201, object(8, "uid-1", "x"))]).await;
    let (method, path, headers, body) = &requests[0];
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/apis/toy.io/v1/namespaces/ns/copies"));
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["accept"], "application/json");
    assert_eq!(*body, json!({"metadata": {"name": "a"}, "spec": {"value": "x"}}));
    assert_eq!((outcome.result, outcome.seen), (WriteResult::Done, seen(8, "uid-1", "x")));
}

/// Rule Q6: A write changes or deletes an object
/// Then: The request to change an object has the object's resourceVersion as its precondition. The request to delete an
/// object has the object's UID as its precondition
#[tokio::test]
async fn a_patch_carries_the_version_as_its_precondition_and_nothing_else() {
    let verb = Verb::Patch {
        subresource: Some("status"),
        resource_version: 7,
        body: json!({"metadata": {"labels": {"l": null}}, "status": {"ready": true}}).into(),
    };
    let (_, requests) = carried_out(verb, false, vec![answer(200, object(8, "uid-1", "x"))]).await;
    let (method, path, headers, body) = &requests[0];
    assert_eq!((method.as_str(), path.as_str()), ("PATCH", "/apis/toy.io/v1/namespaces/ns/copies/a/status"));
    assert_eq!(headers["content-type"], "application/merge-patch+json");
    assert_eq!(*body, json!({"metadata": {"labels": {"l": null}, "resourceVersion": "7"}, "status": {"ready": true}}));
}

#[tokio::test]
async fn a_replacement_puts_the_whole_object_with_the_version_as_its_precondition() {
    let whole = json!({"metadata": {"name": "a", "labels": {"l": "m"}}, "spec": {"value": "x"}});
    let verb = Verb::Replace { resource_version: 7, body: whole.into() };
    assert_eq!(verb.as_str(), "update", "the name of Kubernetes");
    let (outcome, requests) = carried_out(verb, false, vec![answer(200, object(8, "uid-1", "x"))]).await;
    let (method, path, headers, body) = &requests[0];
    assert_eq!((method.as_str(), path.as_str()), ("PUT", "/apis/toy.io/v1/namespaces/ns/copies/a"));
    assert_eq!(headers["content-type"], "application/json");
    let sent = json!({"metadata": {"name": "a", "labels": {"l": "m"}, "resourceVersion": "7"}, "spec": {"value": "x"}});
    assert!(outcome.is_answered);
    assert_eq!((body, outcome.result, outcome.seen), (&sent, WriteResult::Done, seen(8, "uid-1", "x")));
}

/// Also rule Q7.
#[tokio::test]
async fn a_replacement_without_an_answer_was_carried_out_where_a_later_version_has_all_of_it() {
    for (version, value, is_done) in [(8, "x", true), (8, "y", false), (7, "x", false)] {
        let verb = Verb::Replace { resource_version: 7, body: json!({"spec": {"value": "x"}}).into() };
        let found = answer(200, object(version, "uid-1", value));
        let (outcome, requests) = carried_out(verb, false, vec![answer(500, json!({})), found]).await;
        assert_eq!(requests.len(), 2, "one GET");
        assert_eq!(outcome.result == WriteResult::Done, is_done, "{version} {value}: {:?}", outcome.result);
    }
}

/// Sends a PUT of `body` on version 7, whose response is a 500. The GET afterwards returns `found`. Returns two values:
/// true if the writer concludes that the PUT was executed, and `Outcome::is_answered`.
async fn replaced(body: Value, found: Value) -> (bool, bool) {
    let verb = Verb::Replace { resource_version: 7, body: body.into() };
    let (outcome, _) = carried_out(verb, false, vec![answer(500, json!({})), answer(200, found)]).await;
    (outcome.result == WriteResult::Done, outcome.is_answered)
}

#[tokio::test]
async fn a_replacement_without_an_answer_that_only_takes_away_was_not_carried_out_where_all_is_there_still() {
    let body = |spec: Value| json!({"apiVersion": "toy.io/v1", "metadata": {"uid": "uid-1", "labels": {"l": "m"}}, "spec": spec});
    let found = |version: u64, spec: Value| {
        let mut found = object(version, "uid-1", "x");
        (found["metadata"]["labels"], found["spec"]) = (json!({"l": "m"}), spec);
        (found["metadata"]["generation"], found["status"]) = (json!(3), json!({"ready": true}));
        found
    };
    let ends = [json!({"a": "1", "zone": "z"}), json!({"a": "2"})];
    let both = || found(8, json!({"value": "x", "ends": ends}));
    let cases = [
        ("an endpoint", json!({"value": "x", "ends": [ends[0]]})),
        ("all endpoints", json!({"value": "x", "ends": []})),
        ("the whole list", json!({"value": "x"})),
        ("a zone", json!({"value": "x", "ends": [{"a": "1"}, {"a": "2"}]})),
    ];
    for (what, spec) in cases {
        assert_eq!(replaced(body(spec.clone()), both()).await, (false, false), "{what}");
        assert_eq!(replaced(body(spec.clone()), found(8, spec)).await, (true, false), "{what}");
    }
    let spec = || json!({"value": "x", "ends": null});
    assert!(
        replaced(body(json!({"value": "x", "ends": []})), found(8, spec())).await.0,
        "an empty list may read as none"
    );
    let mut labelled = found(8, spec());
    labelled["metadata"]["labels"]["more"] = json!("by another, or before");
    assert!(!replaced(body(spec()), labelled).await.0);
    let mut another = found(8, spec());
    another["metadata"]["uid"] = json!("uid-2");
    assert!(!replaced(body(spec()), another).await.0, "made anew under its name");
}

/// Also rule Q6.
#[tokio::test]
async fn a_delete_carries_the_uid_as_its_precondition() {
    let (outcome, requests) = carried_out(delete(), false, vec![answer(200, json!({"status": "Success"}))]).await;
    let (method, path, _, body) = &requests[0];
    assert_eq!((method.as_str(), path.as_str()), ("DELETE", "/apis/toy.io/v1/namespaces/ns/copies/a"));
    assert_eq!(*body, json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "uid-1"}}));
    assert_eq!((outcome.result, outcome.seen), (WriteResult::Done, Seen::Gone));
}

#[tokio::test]
async fn a_source_of_metadata_asks_for_metadata() {
    let (_, requests) = carried_out(patch(), true, vec![answer(200, object(8, "uid-1", "x"))]).await;
    assert_eq!(requests[0].2["accept"], "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
}

#[tokio::test]
async fn a_delete_answered_with_the_object_as_services_are_is_done() {
    let (outcome, _) = carried_out(delete(), false, vec![answer(200, object(8, "uid-1", "x"))]).await;
    assert_eq!((outcome.result, outcome.seen), (WriteResult::Done, Seen::Gone));
}

#[tokio::test]
async fn the_patch_that_takes_the_last_finalizer_ends_the_object() {
    let mut ending = object(8, "uid-1", "x");
    ending["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
    ending["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    let (outcome, _) = carried_out(patch(), false, vec![answer(200, ending.clone())]).await;
    assert_eq!((outcome.result, outcome.seen), (WriteResult::Done, Seen::Gone));

    ending["metadata"]["finalizers"] = json!(["another.io/keeps"]);
    let (outcome, _) = carried_out(patch(), false, vec![answer(200, ending.clone())]).await;
    assert!(matches!(outcome.seen, Seen::Object(observed) if observed.object.deleting));
    let (outcome, _) = carried_out(delete(), false, vec![answer(200, ending)]).await;
    assert!(matches!(outcome.seen, Seen::Object(observed) if observed.object.deleting));
}

#[tokio::test]
async fn an_answer_that_cannot_be_decoded_is_a_failure() {
    let (outcome, _) = carried_out(patch(), false, vec![answer(200, json!({"metadata": {}}))]).await;
    assert_eq!(outcome.seen, Seen::Nothing);
    let message = "done, but the answer is undecodable: no resourceVersion".to_owned();
    assert_eq!(outcome.result, WriteResult::Failed { message, retry_after: None });
}

#[tokio::test]
async fn each_error_answer_has_its_meaning() {
    let about_object = ("copies", "a");
    let about_namespace = ("namespaces", "a");
    let cases = [
        (create(), 400, "BadRequest", about_object, "refused", Seen::Nothing),
        (create(), 413, "RequestEntityTooLarge", about_object, "refused", Seen::Nothing),
        (create(), 422, "Invalid", about_object, "refused", Seen::Nothing),
        (create(), 403, "Forbidden", about_object, "denied", Seen::Nothing),
        (create(), 404, "NotFound", about_namespace, "denied", Seen::Nothing),
        (create(), 404, "NotFound", ("", ""), "denied", Seen::Nothing),
        (create(), 405, "MethodNotAllowed", about_object, "denied", Seen::Nothing),
        (patch(), 404, "NotFound", about_object, "denied", Seen::Gone),
        (patch(), 404, "NotFound", about_namespace, "denied", Seen::Nothing),
        (delete(), 404, "NotFound", about_object, "done", Seen::Gone),
        (delete(), 404, "NotFound", about_namespace, "denied", Seen::Nothing),
        (delete(), 404, "", ("", ""), "denied", Seen::Nothing),
        (patch(), 401, "Unauthorized", ("", ""), "failed", Seen::Nothing),
        (patch(), 429, "TooManyRequests", ("", ""), "failed", Seen::Nothing),
    ];
    for (verb, code, reason, about, result, seen) in cases {
        let (status, body) = failure(code, reason, "no", about);
        let (outcome, requests) = carried_out(verb.clone(), false, vec![answer(status, body)]).await;
        assert_eq!(outcome.result.as_str(), result, "{verb:?} {code} {reason} {about:?}");
        assert_eq!(outcome.seen, seen, "{verb:?} {code} {reason} {about:?}");
        assert_eq!(requests.len(), 1);
    }
}

#[tokio::test]
async fn a_terminating_namespace_is_recognised_by_the_cause_and_not_by_the_message() {
    let terminating = "namespace ns is being terminated";
    let denied = async |causes: Value| {
        let (status, mut body) = failure(403, "Forbidden", terminating, ("copies", "a"));
        body["details"]["causes"] = causes;
        let (outcome, _) = carried_out(create(), false, vec![answer(status, body)]).await;
        match outcome.result {
            WriteResult::Denied { status: 403, reason, message } if message.ends_with(terminating) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        denied(json!([{"reason": "NamespaceTerminating", "field": "metadata.namespace"}])).await,
        "NamespaceTerminating"
    );
    assert_eq!(denied(json!([{"reason": "FieldValueInvalid"}])).await, "Forbidden", "what a policy says is its own");
    assert_eq!(denied(json!([])).await, "Forbidden");
}

/// Also rule Q4.
#[tokio::test]
async fn a_conflict_is_followed_by_one_get() {
    for verb in [create(), patch(), delete()] {
        let (status, body) = failure(409, "Conflict", "no", ("copies", "a"));
        let answers = vec![answer(status, body), answer(200, object(9, "uid-2", "y"))];
        let (outcome, requests) = carried_out(verb, false, answers).await;
        assert_eq!(outcome.result, WriteResult::Conflict { message: "409 no".to_owned() });
        assert_eq!(outcome.seen, seen(9, "uid-2", "y"));
        assert_eq!((requests[1].0.as_str(), requests[1].1.as_str()), ("GET", "/apis/toy.io/v1/namespaces/ns/copies/a"));
    }
}

/// Also rule V4.
#[tokio::test]
async fn a_get_that_shows_an_older_object_than_before_shows_that_the_server_was_restored() {
    for (verb, version, is_restored) in [
        (patch(), 6, true),
        (patch(), 7, false),
        (patch(), 9, false),
        (Verb::Replace { resource_version: 7, body: json!({"spec": {"value": "x"}}).into() }, 6, true),
        // These have no precondition.
        (create(), 6, false),
        (delete(), 6, false),
    ] {
        for status in [409, 500] {
            let (status, body) = failure(status, "Conflict", "no", ("copies", "a"));
            let answers = vec![answer(status, body), answer(200, object(version, "uid-1", "y"))];
            let (outcome, _, restores) = carried_out_in_cluster(&LEADING, verb.clone(), false, answers).await;
            assert_eq!(outcome.seen, seen(version, "uid-1", "y"));
            assert_eq!(restores, u64::from(is_restored), "{verb:?} {version}");
        }
    }
}

/// Rule Q7: The agent does not know if the server executed a write (timeout, 5xx)
/// Then: The agent sends one GET, and retries the write only if the object does not show the result of the write. If
/// the request was never sent, the agent sends no GET
#[tokio::test]
async fn what_a_get_shows_settles_an_unknown_outcome() {
    let gone = failure(404, "NotFound", "no", ("copies", "a"));
    let at = |version, uid, value| (200, object(version, uid, value));
    let forbidden = failure(403, "Forbidden", "no", ("copies", "a"));
    let mut lingering = object(8, "uid-1", "x");
    lingering["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z");
    lingering["metadata"]["finalizers"] = json!(["toy.io/keep"]);
    let cases = [
        ("created", create(), at(8, "uid-1", "x"), "done"),
        ("created otherwise by another", create(), at(8, "uid-1", "y"), "failed"),
        ("not created", create(), gone.clone(), "failed"),
        ("patched", patch(), at(8, "uid-1", "x"), "done"),
        ("patched, and equal before", patch(), at(7, "uid-1", "x"), "failed"),
        ("patched otherwise by another", patch(), at(8, "uid-1", "y"), "failed"),
        ("gone under the patch", patch(), gone.clone(), "failed"),
        ("deleted", delete(), gone, "done"),
        ("deleted and made again", delete(), at(8, "uid-2", "x"), "done"),
        ("deleted and held by a finalizer", delete(), (200, lingering), "done"),
        ("not deleted", delete(), at(7, "uid-1", "x"), "failed"),
        ("unknown still", create(), forbidden, "failed"),
    ];
    for (case, verb, (status, body), result) in cases {
        let (broken, broken_body) = failure(500, "InternalError", "no", ("", ""));
        let answers = vec![answer(broken, broken_body), answer(status, body)];
        let (outcome, requests) = carried_out(verb, false, answers).await;
        assert_eq!(outcome.result.as_str(), result, "{case}");
        assert_eq!(requests.len(), 2, "{case}");
    }
}

#[tokio::test]
async fn a_server_that_names_a_time_has_turned_the_request_away() {
    for code in [429, 503] {
        let (_, body) = failure(code, "TooManyRequests", "later", ("", ""));
        let mut error = answer(code, body);
        error.headers_mut().insert("retry-after", http::HeaderValue::from_static("7"));
        let (outcome, requests) = carried_out(patch(), false, vec![error]).await;
        let message = format!("{code} later");
        assert_eq!(outcome.result, WriteResult::Failed { message, retry_after: Some(Duration::from_secs(7)) });
        assert_eq!(requests.len(), 1);
    }
}

#[tokio::test]
async fn a_page_of_a_proxy_instead_of_a_status_is_reported_shortened() {
    let page = Response::builder().status(403).body(Full::new(Bytes::from("é".repeat(5_000)))).expect("a response");
    let (outcome, _) = carried_out(patch(), false, vec![page]).await;
    let WriteResult::Denied { status: 403, message, .. } = outcome.result else { panic!("{:?}", outcome.result) };
    assert!(message.starts_with("403 éé") && message.ends_with('…'));
    assert!(message.len() <= ERROR_MESSAGE_BYTES + '…'.len_utf8());
}

#[test]
fn the_content_of_a_write_leaves_its_precondition_out() {
    let patch = |subresource, resource_version, value: &str| {
        Verb::content(&Verb::Patch { subresource, resource_version, body: json!({"spec": {"value": value}}).into() })
    };
    assert_eq!(patch(None, 7, "x"), patch(None, 8, "x"));
    assert_ne!(patch(None, 7, "x"), patch(None, 7, "y"));
    assert_ne!(patch(None, 7, "x"), patch(Some("status"), 7, "x"));
    assert_ne!(Verb::content(&create()), Verb::content(&patch_of_create()));
    assert_ne!(Verb::content(&delete()), Verb::content(&Verb::Delete { uid: "uid-2".into() }));
}

/// Returns a patch with the same body as [`create`].
fn patch_of_create() -> Verb {
    Verb::Patch {
        subresource: None,
        resource_version: 0,
        body: json!({"metadata": {"name": "a"}, "spec": {"value": "x"}}).into(),
    }
}

#[test]
fn an_object_contains_a_patch_that_would_not_change_it() {
    let spec = json!({"list": [1, 2], "ports": [{"port": 80, "nodePort": 30080}]});
    let object = json!({"metadata": {"labels": {"a": "1"}, "uid": "u"}, "spec": spec});
    let contained = [
        json!({"spec": {"list": [1, 2]}}),
        json!({"spec": {"ports": [{"port": 80}]}}),
        json!({"metadata": {"labels": {"a": "1", "gone": null}}}),
        json!({"status": null}),
        json!({"status": {"nothing": null}}),
        json!({}),
    ];
    for patch in contained {
        assert!(contains(&object, &patch), "{patch}");
    }
    let not_contained = [
        json!({"spec": {"list": [1]}}),
        json!({"spec": {"list": [2, 1]}}),
        json!({"spec": {"ports": [{"port": 81}]}}),
        json!({"metadata": {"labels": {"a": null}}}),
        json!({"metadata": {"labels": {"b": "2"}}}),
        json!({"status": {"ready": true}}),
    ];
    for patch in not_contained {
        assert!(!contains(&object, &patch), "{patch}");
    }
}

#[tokio::test]
async fn a_connection_that_is_refused_was_never_used() {
    // Uses a real client and a port on which nothing listens.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let config = kube::Config::new(format!("http://{address}").parse().expect("a URL"));
    let cluster = Cluster::from_config("hub", config, "test").expect("a cluster");
    let request = HttpRequest::get("/").body(Body::empty()).expect("a request");
    let error = cluster.requests.send(request).await.expect_err("nobody listens");
    assert!(never_sent(&error), "{error:?}");
}

#[test]
fn contents_are_equal_but_for_times_where_only_times_differ() {
    let create = |spec: Value| Verb::Create { body: json!({"spec": spec}).into() };
    let base =
        json!({"at": "2027-01-15T08:00:00.000042Z", "stamp": "2027-01-15T08:00:00Z 3f2a", "n": 1, "list": ["a", "b"]});
    let with = |field: &str, value: Value| {
        let mut spec = base.clone();
        spec[field] = value;
        spec
    };
    let table = [
        ("a later time", with("at", json!("2027-01-15T09:17:31.5Z")), true),
        ("a time without a fraction", with("at", json!("2027-01-15T09:17:31Z")), true),
        ("another time before the same text", with("stamp", json!("2031-12-31T23:59:59Z 3f2a")), true),
        ("another text after the time", with("stamp", json!("2027-01-15T08:00:00Z 3f2b")), false),
        ("no time", with("at", json!("2027-01-15")), false),
        ("a text in place of a time", with("at", json!("a time")), false),
        ("null", with("at", Value::Null), false),
        ("another number", with("n", json!(2)), false),
        ("another order", with("list", json!(["b", "a"])), false),
        ("one more", with("list", json!(["a", "b", "c"])), false),
        ("one field more", with("more", json!({})), false),
    ];
    let [exact, timeless] = [Verb::content, Verb::timeless_content];
    for (what, spec, is_alike) in table {
        let alike = timeless(&create(spec.clone())) == timeless(&create(base.clone()));
        assert_eq!(alike, is_alike, "{what}");
        assert_ne!(exact(&create(spec)), exact(&create(base.clone())), "{what}");
    }
    let patch =
        |resource_version| Verb::Patch { subresource: None, resource_version, body: json!({"spec": base}).into() };
    assert_eq!(timeless(&patch(1)), timeless(&patch(2)), "the precondition is no content");
    assert_ne!(timeless(&patch(1)), timeless(&create(base.clone())));
}
