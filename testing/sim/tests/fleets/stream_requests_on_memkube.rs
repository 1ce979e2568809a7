//! Tests of malformed, foreign and hostile requests to the slice stream, on simulated API servers with paused time.
//! Each gets a clear status, and harms no other stream.

use crate::support::OnMemkube;
use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fleetnet_proto::v1::{Acknowledgement, Hello, ProbeReply, SubscribeRequest, SubscribeResponse, subscribe_request};
use fleetnet_proto::{PROTOCOL_VERSION, SliceStreamClient, TOKEN_AUDIENCE};
use fleetnet_runtime::process::token::audience;
use futures::stream::{self, StreamExt as _};
use harness::user::Consume;
use hyper_util::rt::TokioIo;
use memkube::User;
use memkube::faults::{Fault, Faults};
use scenarios::environment::{Backend as _, Environment, FleetSpec};
use sim::connection::Connection;
use sim::fleet::Place;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use subscribe_request::Message;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tower::service_fn;

const FLEET: FleetSpec = FleetSpec::of(2).with_slice_streams();

/// Raw stream of a client that is no member agent.
struct Raw {
    requests: mpsc::Sender<SubscribeRequest>,
    responses: Streaming<SubscribeResponse>,
}

fn message(message: Message) -> SubscribeRequest {
    SubscribeRequest { message: Some(message) }
}

fn hello(cluster: &str) -> SubscribeRequest {
    let (protocol_version, cluster) = (PROTOCOL_VERSION, cluster.to_owned());
    message(Message::Hello(Hello { protocol_version, cluster, agent_version: "test".to_owned() }))
}

/// Returns what a client sends as the token of this member for the slice stream. Nobody has signed it.
fn token_of(member: &str, signature: &str) -> String {
    token_for(member, TOKEN_AUDIENCE, signature)
}

fn token_for(member: &str, audience: &str, signature: &str) -> String {
    let subject = format!("system:serviceaccount:fleet-member-{member}:member-agent");
    // It expires in 2096.
    let claims = serde_json::json!({"sub": subject, "aud": [audience], "exp": 4_000_000_000_i64});
    format!("e30.{}.{signature}", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// Returns the header of a token that the hub accepts as that of the member `stranger`.
fn bearer_of_stranger() -> String {
    format!("Bearer {}", token_of("stranger", "signed"))
}

async fn channel(env: &Environment<OnMemkube>) -> anyhow::Result<Channel> {
    channel_from(env, "stranger").await
}

/// Returns a connection from the address of this member.
async fn channel_from(env: &Environment<OnMemkube>, member: &str) -> anyhow::Result<Channel> {
    let (streams, member) = (env.backend.0.streams.clone(), member.to_owned());
    let connector = service_fn(move |_| {
        let connected = streams.connect(&member, &Connection::default(), 0, None);
        async move { connected.map(TokioIo::new) }
    });
    // A small window, so that a client that never reads soon holds back the hub agent.
    let endpoint = Endpoint::from_static("http://hub").initial_stream_window_size(64 << 10);
    Ok(endpoint.connect_with_connector(connector).await?)
}

/// Opens a stream with this token, and sends this first request.
async fn open(channel: Channel, token: Option<&str>, first: SubscribeRequest) -> Result<Raw, Status> {
    let (requests, sent) = mpsc::channel(8);
    let later = stream::unfold(sent, |mut sent: mpsc::Receiver<_>| async { Some((sent.recv().await?, sent)) });
    let mut call = Request::new(stream::iter([first]).chain(later));
    if let Some(token) = token {
        let header = token.parse().map_err(|_| Status::internal("a malformed token"))?;
        call.metadata_mut().insert("authorization", header);
    }
    let mut client = SliceStreamClient::new(channel);
    Ok(Raw { requests, responses: client.subscribe(call).await?.into_inner() })
}

/// Returns the status with which a stream ends.
async fn end(raw: &mut Raw) -> anyhow::Result<Status> {
    let ended = async {
        loop {
            match raw.responses.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Status::ok("ended"),
                Err(status) => return status,
            }
        }
    };
    timeout(Duration::from_secs(120), ended).await.context("the hub agent ends the stream")
}

/// Returns how many previews the importer has acknowledged on its present stream.
fn acknowledged(env: &Environment<OnMemkube>) -> anyhow::Result<f64> {
    env.backend.0.metric(Place::Hub, "fleetnet_slice_stream_delay_seconds_count{member=\"member-2\"}")
}

/// Changes the exported slice, and checks that the importer sees it at once, by its stream.
async fn others_are_unharmed(env: &Environment<OnMemkube>, address: &str) -> anyhow::Result<()> {
    let (begun, before) = (Instant::now(), acknowledged(env)?);
    env.user(0).set_endpoints("app-1", &[address]).await?;
    env.user(1).sees("app", &[address]).await?;
    ensure!(begun.elapsed() < Duration::from_millis(100), "the change took {:?}", begun.elapsed());
    sleep(Duration::from_secs(1)).await;
    let now = acknowledged(env)?;
    ensure!(now == before + 1.0, "the stream delivered {before} and then {now} changes");
    Ok(())
}

async fn streaming(fleet: FleetSpec) -> anyhow::Result<Environment<OnMemkube>> {
    let env = Environment::<OnMemkube>::create(fleet).await?;
    env.export(&["10.1.0.1"]).await?;
    for importer in 1..fleet.members {
        env.user(importer).import("app", "app", Consume::ClusterIp).await?;
        env.user(importer).sees("app", &["10.1.0.1"]).await?;
    }
    sleep(Duration::from_secs(20)).await;
    let hub = env.backend.0.hub.memkube();
    let member = |name: &str| Some(User::new(&format!("system:serviceaccount:fleet-member-{name}:member-agent")));
    hub.set_token_for(&token_of("stranger", "signed"), TOKEN_AUDIENCE, member("stranger"));
    hub.set_token(&token_of("member-1", "for-another-audience"), member("member-1"));
    hub.set_policy(Arc::new(OwnNamespace));
    Ok(env)
}

/// Policy under which a member may patch distributed slices in its own namespace only.
struct OwnNamespace;

impl memkube::auth::Policy for OwnNamespace {
    fn allows(&self, call: &memkube::auth::Call) -> bool {
        let user = &call.user;
        let is_of_member = user.name.starts_with("system:serviceaccount:fleet-member-");
        let own = format!("system:serviceaccount:{}:", call.target.namespace);
        !is_of_member || &*call.target.resource != "endpointsliceimports" || user.name.starts_with(&own)
    }

    fn allows_path(&self, _: &User, _: &str, _: &str) -> bool {
        true
    }
}

/// Rule J14: A client opens a stream
/// Then: The hub agent serves the stream if it leads, if the hub's API server accepts the token for the audience
/// `fleetnet-slice-stream`, and if the user may patch EndpointSliceImports in the member namespace. It repeats the
/// reviews each minute, and soon after the token expires. All clients together cause at most 20 reviews a second, in
/// turns (rule K15). Requests have at most 4 kB, and a call of health without a request ends after 30 s
#[test]
fn tokens_that_are_wrong_or_of_others_are_refused_with_a_clear_status() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let own = bearer_of_member_2(&env).await?;
        let stranger = bearer_of_stranger();
        let unsigned = format!("Bearer {}", token_of("member-2", "unsigned"));
        let for_another = format!("Bearer {}", token_of("member-1", "for-another-audience"));
        let old = message(Message::Hello(Hello {
            protocol_version: 7,
            cluster: "member-2".into(),
            agent_version: String::new(),
        }));
        let table = [
            ("no token", None, hello("member-2"), Code::Unauthenticated, "no bearer token"),
            ("another scheme", Some("Basic eA=="), hello("member-2"), Code::Unauthenticated, "no bearer token"),
            ("no JSON Web Token", Some("Bearer x"), hello("member-2"), Code::Unauthenticated, "may have expired"),
            ("an unknown token", Some(&unsigned), hello("member-2"), Code::Unauthenticated, "may have expired"),
            ("another audience", Some(&for_another), hello("member-1"), Code::Unauthenticated, TOKEN_AUDIENCE),
            ("another member", Some(&stranger), hello("member-2"), Code::PermissionDenied, "fleet-member-member-2"),
            ("another version", Some(own.as_str()), old, Code::FailedPrecondition, "update the older one"),
            ("no cluster id", Some(own.as_str()), hello("../x"), Code::InvalidArgument, "malformed"),
            ("no Hello", Some(own.as_str()), SubscribeRequest::default(), Code::InvalidArgument, "must be a Hello"),
        ];
        for (why, token, first, code, text) in table {
            let status = open(channel(&env).await?, token, first).await.err().context(why)?;
            ensure!(status.code() == code && status.message().contains(text), "{why}: {status:?}");
        }
        others_are_unharmed(&env, "10.1.1.1").await
    })
}

/// Also rule J17.
#[test]
fn requests_that_are_malformed_end_only_their_own_stream() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let token = &bearer_of_stranger();
        let acknowledgement =
            |slice: String| message(Message::Acknowledgement(Acknowledgement { slice, generation: 7 }));
        let reply = ProbeReply { number: 99, received_micros: 0, sent_micros: 0 };
        let table = [
            ("a second Hello", hello("stranger"), Code::InvalidArgument),
            ("an empty request", SubscribeRequest::default(), Code::InvalidArgument),
            ("a reply to no probe", message(Message::ProbeReply(reply)), Code::InvalidArgument),
            ("a request of 5 kB", acknowledgement("x".repeat(5 << 10)), Code::ResourceExhausted),
        ];
        for (why, request, code) in table {
            let mut raw = open(channel(&env).await?, Some(token), hello("stranger")).await?;
            raw.requests.send(acknowledgement("unknown".to_owned())).await?;
            raw.requests.send(request).await?;
            let status = end(&mut raw).await?;
            ensure!(status.code() == code, "{why}: {status:?}");
        }
        others_are_unharmed(&env, "10.1.1.1").await
    })
}

/// Also rule J14.
#[test]
fn a_thousand_connections_harm_no_stream() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        // Each connection opens a stream and sends no Hello.
        let mut opening = Vec::new();
        for _ in 0..1_000 {
            let channel = channel(&env).await?;
            opening.push(tokio::spawn(async move {
                let mut call = Request::new(stream::pending::<SubscribeRequest>());
                call.metadata_mut().insert("authorization", bearer_of_stranger().parse().expect("a header"));
                SliceStreamClient::new(channel).subscribe(call).await.err().map(|status| status.code())
            }));
        }
        sleep(Duration::from_secs(1)).await;
        others_are_unharmed(&env, "10.1.1.1").await?;
        opens_at_once(&env).await?;
        for opening in opening {
            let code = opening.await?;
            ensure!(code == Some(Code::DeadlineExceeded), "{code:?}");
        }
        Ok(())
    })
}

/// Returns the header with a token that the hub issues for the agent of member-2.
async fn bearer_of_member_2(env: &Environment<OnMemkube>) -> anyhow::Result<String> {
    let fleet = &env.backend.0;
    let client = fleet.hub.memkube().client(User::new(&fleet.members[1].hub_user));
    Ok(format!("Bearer {}", audience::request(&client, TOKEN_AUDIENCE, fleet.clock()).await?.token))
}

/// Opens a stream of member-2 from its own address. It takes the place of the stream of its agent.
async fn opens_at_once(env: &Environment<OnMemkube>) -> anyhow::Result<()> {
    let token = bearer_of_member_2(env).await?;
    let begun = Instant::now();
    open(channel_from(env, "member-2").await?, Some(&token), hello("member-2")).await?;
    ensure!(begun.elapsed() < Duration::from_millis(200), "the stream was opened after {:?}", begun.elapsed());
    Ok(())
}

/// Also rule J14.
#[test]
fn a_thousand_forged_tokens_of_one_client_delay_no_other_client() -> anyhow::Result<()> {
    let one_address = |_: usize| IpAddr::from([10, 9, 9, 9]);
    // 256 networks of one site.
    let many_networks = |number: usize| {
        let [high, low] = u16::try_from(number).unwrap_or(0).to_be_bytes();
        IpAddr::from([0x2001, 0xdb8, 0, u16::from(low), 0, 0, 0, 1 + u16::from(high)])
    };
    delays_no_other_client(one_address)?;
    delays_no_other_client(many_networks)
}

/// Opens 1,000 streams with forged tokens from these addresses at once, and checks that another client waits for none
/// of them.
fn delays_no_other_client(address: impl Fn(usize) -> IpAddr) -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let mut opening = Vec::new();
        for number in 0..1_000 {
            env.backend.0.streams.move_to("stranger", address(number));
            let channel = channel(&env).await?;
            opening.push(tokio::spawn(async move {
                let token = format!("Bearer {}", token_of("stranger", &format!("forged-{number}")));
                open(channel, Some(&token), hello("stranger")).await.err().map(|status| status.code())
            }));
        }
        sleep(Duration::from_secs(1)).await;
        opens_at_once(&env).await?;
        let (mut reviewed, mut late) = (0, 0);
        for opening in opening {
            match opening.await? {
                Some(Code::Unauthenticated) => reviewed += 1,
                Some(Code::Unavailable) => late += 1,
                other => anyhow::bail!("{other:?}"),
            }
        }
        ensure!((190..=201).contains(&reviewed), "20 a second for 10 s: {reviewed} reviews, {late} were too late");
        Ok(())
    })
}

/// Also rule J24.
#[test]
fn a_thousand_tokens_of_another_kind_cost_no_review() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let begun = Instant::now();
        for number in 0..1_000 {
            let token = match number % 2 {
                0 => format!("Bearer static-{number}"),
                _ => format!("Bearer {}", token_for("stranger", "vault", &format!("signed-{number}"))),
            };
            let status = open(channel(&env).await?, Some(&token), hello("stranger")).await.err().context("refused")?;
            ensure!(status.code() == Code::Unauthenticated, "{token}: {status:?}");
        }
        ensure!(begun.elapsed() < Duration::from_secs(1), "they were refused within {:?}", begun.elapsed());
        Ok(())
    })
}

/// Also rule J14.
#[test]
fn calls_of_health_and_reflection_are_as_limited_as_streams() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let mut health = HealthClient::new(channel(&env).await?);
        let request = |bytes: usize| HealthCheckRequest { service: "x".repeat(bytes) };
        let status = health.check(request(0)).await?.into_inner().status();
        ensure!(status == ServingStatus::Serving, "{status:?}");
        let code = |result: Result<_, Status>| result.err().map(|status| status.code());
        let long = code(health.check(request(5 << 10)).await.map(drop));
        ensure!(long == Some(Code::OutOfRange), "{long:?}");

        let mut with_header = async |bytes: usize| {
            let mut call = Request::new(request(0));
            call.metadata_mut().insert("padding", "x".repeat(bytes).parse()?);
            anyhow::Ok(health.check(call).await.is_ok())
        };
        ensure!(with_header(4 << 10).await? && !with_header(32 << 10).await?, "a token is shorter than 8 KiB");

        let mut reflection = ServerReflectionClient::new(channel(&env).await?);
        let ask = |text: String| ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::FileContainingSymbol(text)),
        };
        let mut answers = reflection.server_reflection_info(stream::iter([ask("fleetnet.v1.SliceStream".into())]));
        ensure!(answers.await?.into_inner().message().await?.is_some(), "the protocol is described");
        answers = reflection.server_reflection_info(stream::iter([ask("x".repeat(5 << 10))]));
        // The service ends the call without a status.
        let long = answers.await?.into_inner().message().await;
        ensure!(matches!(long, Ok(None)), "{long:?}");

        // A call whose request never comes.
        let mut calls = tonic::client::Grpc::new(channel(&env).await?);
        calls.ready().await?;
        let path = PathAndQuery::from_static("/grpc.health.v1.Health/Check");
        let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
        let begun = Instant::now();
        let answer = calls.client_streaming(Request::new(stream::pending()), path, codec);
        let late = code(timeout(Duration::from_secs(60), answer).await.context("the call ends")?.map(drop));
        ensure!(late == Some(Code::DeadlineExceeded) && begun.elapsed().as_secs() == 30, "{late:?} {begun:?}");
        Ok(())
    })
}

/// Rule J22: A client makes many calls on one connection to the slice stream, or opens no stream on it
/// Then: A connection takes 100 calls. After 5 minutes without an open stream, the hub agent closes it
#[test]
fn a_connection_takes_100_calls_and_without_a_stream_lives_for_five_minutes() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let (streams, opened) = (env.backend.0.streams.clone(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&opened);
        let connector = service_fn(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let connected = streams.connect("stranger", &Connection::default(), 0, None);
            async move { connected.map(TokioIo::new) }
        });
        let opened = || opened.load(Ordering::Relaxed);
        // The channel opens another connection when the last one has ended.
        let channel = Endpoint::from_static("http://hub").connect_with_connector(connector).await?;
        let mut health = HealthClient::new(channel);
        let mut answered = 0;
        while opened() == 1 && answered <= 100 {
            let is_answered = health.check(HealthCheckRequest::default()).await.is_ok();
            answered += usize::from(is_answered && opened() == 1);
        }
        ensure!(answered == 100, "the first connection took {answered} calls");

        let (begun, last) = (Instant::now(), opened());
        while opened() == last && begun.elapsed() < Duration::from_secs(600) {
            sleep(Duration::from_secs(10)).await;
            // Fails if the connection ends meanwhile.
            let _ = health.check(HealthCheckRequest::default()).await;
        }
        ensure!((290..=320).contains(&begun.elapsed().as_secs()), "it lived for {:?}", begun.elapsed());
        others_are_unharmed(&env, "10.1.1.1").await
    })
}

/// Returns 200 addresses that only this change has.
fn addresses(change: u8) -> Vec<String> {
    (0..200).map(|host| format!("10.1.{change}.{host}")).collect()
}

/// Rule J15: A member does not answer a probe within 20 s
/// Then: The hub agent ends the stream (DEADLINE_EXCEEDED)
#[test]
fn a_subscriber_that_never_reads_loses_its_stream_and_delays_nobody() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = streaming(FleetSpec::of(3).with_slice_streams()).await?;
        env.backend.0.stop(Place::Member(1)).await?;
        let token = bearer_of_member_2(&env).await?;
        let raw = open(channel(&env).await?, Some(&token), hello("member-2")).await?;
        let (mut waiting, mut slowest) = (0.0, Duration::ZERO);
        for number in 0..200 {
            // Long slices fill the buffers of the connection.
            let addresses = addresses(number);
            let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
            let begun = Instant::now();
            env.user(0).set_endpoints("app-1", &addresses).await?;
            env.user(2).sees("app", &addresses).await?;
            slowest = slowest.max(begun.elapsed());
            let depth = env.backend.0.metric(Place::Hub, "fleetnet_slice_stream_queue_depth{member=\"member-2\"}")?;
            waiting = depth.max(waiting);
            sleep(Duration::from_millis(200)).await;
        }
        ensure!(slowest < Duration::from_millis(100), "another member saw a change after {slowest:?}");
        ensure!(waiting == 1.0, "previews of one slice wait: {waiting}");
        let refusals = "fleetnet_slice_stream_refusals_total{code=\"DEADLINE_EXCEEDED\"}";
        let refused = env.backend.0.metric(Place::Hub, refusals)?;
        ensure!(refused == 1.0, "{refused} streams ended so");
        drop(raw);
        env.backend.0.start(Place::Member(1))?;
        env.user(1).sees("app", &addresses(199).iter().map(String::as_str).collect::<Vec<_>>()).await.map(drop)
    })
}

/// Replies to the probes of a stream until it ends.
async fn reply(raw: &mut Raw) {
    while let Ok(Some(response)) = raw.responses.message().await {
        use fleetnet_proto::v1::subscribe_response::Message as Response;
        if let Some(Response::Probe(probe)) = response.message {
            let reply = ProbeReply { number: probe.number, received_micros: 0, sent_micros: 0 };
            // Fails if the stream has just ended.
            let _ = raw.requests.send(message(Message::ProbeReply(reply))).await;
        }
    }
}

/// Returns how many streams the hub agent refused or ended with this code.
fn refusals(env: &Environment<OnMemkube>, code: &str) -> anyhow::Result<f64> {
    env.backend.0.metric(Place::Hub, &format!("fleetnet_slice_stream_refusals_total{{code=\"{code}\"}}"))
}

/// Also rule J14.
#[test]
fn a_member_without_rights_any_more_loses_its_stream_within_a_minute() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let mut raw = open(channel(&env).await?, Some(&bearer_of_stranger()), hello("stranger")).await?;
        env.backend.0.hub.memkube().set_token_for(&token_of("stranger", "signed"), TOKEN_AUDIENCE, None);
        timeout(Duration::from_secs(62), reply(&mut raw)).await.context("the stream ends within a minute")?;
        ensure!(refusals(&env, "UNAUTHENTICATED")? == 1.0, "one stream ended so");
        others_are_unharmed(&env, "10.1.1.1").await
    })
}

/// Rule J23: Reviews of an open stream are delayed or get no answer, or its token lives for years
/// Then: Reviews of open streams come before those of new ones. If a review gets no answer, the stream stays open,
/// until its token expires or for 5 minutes after the last positive review. An hour after its start, the stream ends
/// (UNAUTHENTICATED), also if the token is valid for longer. So the member agent renews each token after 40 minutes at
/// the latest
#[test]
fn a_flood_from_its_own_address_does_not_delay_the_end_of_a_stream() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let mut raw = open(channel(&env).await?, Some(&bearer_of_stranger()), hello("stranger")).await?;
        let mut flood = JoinSet::new();
        for client in 0..300 {
            let channel = channel(&env).await?;
            flood.spawn(async move {
                for number in 0_u64.. {
                    let token = format!("Bearer {}", token_of("stranger", &format!("forged-{client}-{number}")));
                    // Refused, most often because no review is in time.
                    let _ = open(channel.clone(), Some(&token), hello("stranger")).await;
                }
            });
        }
        sleep(Duration::from_secs(1)).await;
        env.backend.0.hub.memkube().set_token_for(&token_of("stranger", "signed"), TOKEN_AUDIENCE, None);
        timeout(Duration::from_secs(62), reply(&mut raw)).await.context("the stream ends within a minute")?;
        flood.shutdown().await;
        let late = refusals(&env, "UNAVAILABLE")?;
        ensure!(late > 300.0, "reviews of {late} streams were too late");
        others_are_unharmed(&env, "10.1.1.1").await
    })
}

/// API server that reviews no tokens.
struct NoReviews;

impl Faults for NoReviews {
    fn request(&self, call: &memkube::auth::Call) -> Fault {
        let is_review = &*call.target.resource == "tokenreviews";
        let refuse = is_review.then(|| memkube::Status::plain(503, "ServiceUnavailable", "no reviews"));
        Fault { refuse, ..Fault::default() }
    }
}

/// Also rule J23.
#[test]
fn a_stream_without_a_positive_review_ends_after_five_minutes() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let mut raw = open(channel(&env).await?, Some(&bearer_of_stranger()), hello("stranger")).await?;
        env.backend.0.hub.memkube().set_faults(Some(Arc::new(NoReviews)));
        let begun = Instant::now();
        timeout(Duration::from_secs(600), reply(&mut raw)).await.context("the stream ends")?;
        ensure!((299..=301).contains(&begun.elapsed().as_secs()), "it ended after {:?}", begun.elapsed());
        Ok(())
    })
}

/// Also rule J23.
#[test]
fn a_stream_with_a_token_that_lives_for_years_ends_after_an_hour() -> anyhow::Result<()> {
    sim::paused(async {
        let env = streaming(FLEET).await?;
        let mut raw = open(channel(&env).await?, Some(&bearer_of_stranger()), hello("stranger")).await?;
        let begun = Instant::now();
        timeout(Duration::from_secs(7_200), reply(&mut raw)).await.context("the stream ends")?;
        ensure!((3_599..=3_601).contains(&begun.elapsed().as_secs()), "it ended after {:?}", begun.elapsed());
        ensure!(refusals(&env, "UNAUTHENTICATED")? == 1.0, "one stream ended so");
        others_are_unharmed(&env, "10.1.1.1").await
    })
}

/// Also rule J14.
#[test]
fn a_replica_that_does_not_lead_has_no_streams() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = streaming(FLEET).await?;
        env.backend.0.start_replica(Place::Hub, 1)?;
        env.backend.0.ready().await?;
        let streams = env.backend.0.streams.clone();
        let connector = service_fn(move |_| {
            let connected = streams.connect("stranger", &Connection::default(), 1, None);
            async move { connected.map(TokioIo::new) }
        });
        let channel = Endpoint::from_static("http://hub").connect_with_connector(connector).await?;
        let refused = open(channel, Some(&bearer_of_stranger()), hello("stranger")).await.err().context("refused")?;
        ensure!(refused.code() == Code::Unavailable && refused.message().contains("does not lead"), "{refused:?}");
        Ok(())
    })
}

/// Also rule J13.
#[test]
fn a_hub_clock_that_is_set_back_an_hour_delays_nothing() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::<OnMemkube>::create(FLEET).await?;
        env.backend.0.set_own_clock(Place::Hub, 0);
        env.backend.0.kill(Place::Hub).await;
        env.backend.0.start(Place::Hub)?;
        env.export_and_import(&["10.1.0.1"]).await?;
        sleep(Duration::from_secs(60)).await;
        for (number, hours) in [(1, -1), (2, 1), (3, -1)] {
            env.user(0).set_endpoints("app-1", &[&format!("10.1.1.{number}")]).await?;
            env.backend.0.move_own_clock(Place::Hub, hours * 3_600_000_000);
            sleep(Duration::from_secs(2)).await;
            others_are_unharmed(&env, &format!("10.1.2.{number}")).await?;
            sleep(Duration::from_secs(7)).await;
            let copies = kube::Api::<fleetnet_api::crd::EndpointSliceImport>::all(env.backend.hub());
            let copies = copies.list(&kube::api::ListParams::default()).await?;
            let address = format!("10.1.2.{number}");
            let is_written = copies.items.iter().all(|copy| copy.spec.slice.endpoints[0].addresses[0] == address);
            ensure!(is_written, "the object is written after its lag, whatever the clock says");
        }
        Ok(())
    })
}
