//! Faults of the connection to an API server. The servers are listeners on this machine, so these tests use the real
//! clock.

use crate::world::{EXPORTER, World, codes, dress, is_exactly, service, show};
use anyhow::ensure;
use diagnosis::Code::{self, *};
use diagnosis::explain::Filter;
use diagnosis::read::{Limits, Target, connect};
use diagnosis::report::Verdict;
use diagnosis::snapshot::{Connection, Failure, FailureClass, Member, Reached};
use diagnosis::{Snapshot, explain, status};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Client, Config};
use memkube::Call;
use memkube::auth::PathCall;
use memkube::faults::{Fault, Faults};
use memkube::status::Status;
use sim::fleet::Place;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

/// Codes that these tests give.
pub(crate) const CODES: &[Code] = &[FN101, FN102, FN103];

/// Limits for requests that are answered, or refused at once.
const PATIENT: Limits = Limits { request: Duration::from_secs(20), whole: Duration::from_secs(20) };
/// Limits for a request that is never answered.
const IMPATIENT: Limits = Limits { request: Duration::from_millis(100), whole: Duration::from_secs(20) };

/// Runs a test on the real clock.
fn run<T>(test: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(test)
}

fn target(url: &str) -> anyhow::Result<Target> {
    let client = Client::try_from(Config::new(url.parse()?))?;
    Ok(Target {
        context: Some("member-1".to_owned()),
        server_url: url.to_owned(),
        authority: None,
        proxy: None,
        client: Ok(client),
    })
}

/// Starts a server that sends these bytes to each client, after the first bytes of the client. Without bytes it is
/// silent.
async fn server(answer: &'static str) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                while stream.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {
                    if !answer.is_empty() && stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(address)
}

/// Returns the failure of a connection.
fn failure(connection: &Connection) -> anyhow::Result<&Failure> {
    match &connection.reached {
        Reached::No(failure) => Ok(failure),
        reached => anyhow::bail!("{reached:?}"),
    }
}

/// Returns a healthy fleet whose exporter has this connection.
fn fleet_with(connection: Connection) -> anyhow::Result<Snapshot> {
    let mut snapshot = sim::paused(async { World::running(2).await?.snapshot().await })?;
    snapshot.members[EXPORTER] = Member { id: "member-1".to_owned(), connection, ..Member::default() };
    Ok(snapshot)
}

/// Fails unless a fleet whose exporter has this connection gives exactly this code.
fn gives(connection: Connection, code: Code) -> anyhow::Result<()> {
    is_exactly(&explain(&fleet_with(connection)?, &service("app"), &Filter::default()), code)
}

#[test]
fn a_context_that_does_not_exist_is_fn101() -> anyhow::Result<()> {
    let missing = Failure {
        class: FailureClass::Context,
        host: String::new(),
        port: None,
        detail: "context member-1 not found".to_owned(),
    };
    let nowhere = Target { client: Err(missing), ..run(async { target("https://127.0.0.1:1") })? };
    gives(run(async { Ok(connect(&nowhere, PATIENT).await) })?, FN101)
}

#[test]
fn each_failure_to_reach_a_server_has_its_class_and_code() -> anyhow::Result<()> {
    let connections = run(async {
        // A bound socket that does not listen refuses connections, and nobody else can get its port.
        let socket = TcpSocket::new_v4()?;
        socket.bind("127.0.0.1:0".parse()?)?;
        let address = socket.local_addr()?;
        let refusing = format!("http://{address}");
        let through_proxy = Target {
            server_url: "https://hub.example".to_owned(),
            proxy: Some(refusing.clone()),
            ..target(&refusing)?
        };
        // A label of more than 63 characters has no address, and no resolver has to be asked.
        let nameless = target(&format!("https://{}.invalid:6443", "x".repeat(64)))?;
        let without_tls = server("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await?;
        let broken = server("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\n\r\nno\n").await?;
        let unauthorized = server("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").await?;
        let mut connections = Vec::new();
        for (target, class, code) in [
            (nameless, FailureClass::Dns, FN102),
            (target(&format!("https://{address}"))?, FailureClass::Tcp, FN102),
            (target(&format!("https://{without_tls}"))?, FailureClass::Tls, FN102),
            (through_proxy, FailureClass::Proxy, FN102),
            (target(&format!("http://{broken}"))?, FailureClass::Http(502), FN102),
            (target(&format!("http://{unauthorized}"))?, FailureClass::Unauthorized, FN103),
        ] {
            connections.push((connect(&target, PATIENT).await, class, code));
        }
        Ok(connections)
    })?;
    for (connection, class, code) in connections {
        let failure = failure(&connection)?;
        ensure!(failure.class == class, "{connection:?}");
        ensure!(class != FailureClass::Dns || failure.port == Some(6443), "{connection:?}");
        ensure!(class != FailureClass::Http(502) || failure.detail == "no", "{connection:?}");
        gives(connection, code)?;
    }
    Ok(())
}

#[test]
fn a_server_that_never_answers_is_not_known_and_no_fault() -> anyhow::Result<()> {
    let connection = run(async {
        let address = server("").await?;
        Ok(connect(&target(&format!("http://{address}"))?, IMPATIENT).await)
    })?;
    ensure!(failure(&connection)?.class == FailureClass::Timeout, "{connection:?}");
    is_not_known(&fleet_with(connection)?)
}

fn is_not_known(snapshot: &Snapshot) -> anyhow::Result<()> {
    let explanation = explain(snapshot, &service("app"), &Filter::default());
    let is_right = codes(&explanation).is_empty() && explanation.verdict == Verdict::NotKnown;
    ensure!(is_right, "{}", show(&explanation));
    Ok(())
}

#[test]
fn a_cluster_without_a_context_is_not_known_and_no_fault() -> anyhow::Result<()> {
    is_not_known(&fleet_with(Connection::default())?)
}

/// Server that answers no request of the operator.
struct Silent;

impl Silent {
    fn fault(user: &str) -> Fault {
        let delay = if user == sim::server::ADMIN { Duration::from_secs(3_600) } else { Duration::ZERO };
        Fault { delay_before: delay, ..Fault::default() }
    }
}

impl Faults for Silent {
    fn request(&self, call: &Call) -> Fault {
        Self::fault(&call.user.name)
    }

    fn path(&self, call: &PathCall) -> Fault {
        Self::fault(&call.user.name)
    }
}

#[test]
fn a_fleet_of_which_one_server_never_answers_is_read_in_time_and_not_known() -> anyhow::Result<()> {
    sim::paused(async {
        for place in [Place::Hub, Place::Member(EXPORTER)] {
            let world = World::running(2).await?;
            world.memkube(place).set_faults(Some(Arc::new(Silent)));
            let begun = tokio::time::Instant::now();
            let mut snapshot = world.read(Limits::default()).await;
            ensure!(begun.elapsed() <= Limits::default().whole, "{place:?}: {:?}", begun.elapsed());
            dress(&mut snapshot)?;
            is_not_known(&snapshot)?;
            let expected = if place == Place::Hub { Verdict::NotKnown } else { Verdict::Healthy };
            ensure!(status(&snapshot).verdict == expected, "{place:?}: {:#?}", status(&snapshot));
        }
        Ok(())
    })
}

#[test]
fn a_list_of_several_pages_is_read_whole() -> anyhow::Result<()> {
    sim::paused(async {
        let world = World::empty(2).await?;
        for number in 0..501 {
            let account = serde_json::json!({"metadata": {"name": format!("account-{number}")}});
            world.in_hub(EXPORTER).create::<ServiceAccount>(account).await?;
        }
        let snapshot = world.read(Limits::default()).await;
        let accounts = snapshot.hub.accounts.objects().count();
        ensure!(accounts == 501 + 2, "{accounts} accounts, with those of the two members");
        Ok(())
    })
}

#[test]
fn a_server_that_throttles_is_fn706_and_what_it_did_not_list_is_not_known() -> anyhow::Result<()> {
    sim::paused(async {
        let world = World::running(2).await?;
        world.refuse_operator(Place::Member(EXPORTER), "endpointslices", Status::too_many_requests(1));
        let explanation = world.explain(&Filter::default()).await?;
        let is_right = codes(&explanation) == [FN706].into() && explanation.verdict == Verdict::NotKnown;
        ensure!(is_right, "{}", show(&explanation));
        Ok(())
    })
}
