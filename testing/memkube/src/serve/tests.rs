//! Tests of HTTPS: authentication, responses and closing.

use super::{Https, Options};
use crate::clock::TokioClock;
use crate::{MemKube, User};
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};

/// Time limit for closing, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

fn memkube() -> MemKube {
    MemKube::new(crate::Options::new(Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)), 1))
}

async fn serve(server: &MemKube, seed: u8) -> Https {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let users = vec![User::new("admin"), User::new("reader").with_groups(vec!["readers".to_owned()])];
    let options = Options { name: "hub".to_owned(), seed: [seed; 32], users };
    Https::start(server, listener, options).unwrap()
}

async fn config(https: &Https, user: &str) -> Config {
    let kubeconfig = Kubeconfig::from_yaml(&https.kubeconfig(user).unwrap()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    config
}

async fn client(https: &Https, user: &str) -> Client {
    Client::try_from(config(https, user).await).unwrap()
}

async fn code(client: &Client, path: &str) -> u16 {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    match client.request_text(request).await {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(other) => panic!("{path}: {other}"),
    }
}

#[tokio::test]
async fn a_client_with_a_kubeconfig_is_its_user() {
    let server = memkube();
    let https = serve(&server, 1).await;
    let namespaces = Api::<Namespace>::all(client(&https, "reader").await);
    let names: Vec<_> =
        namespaces.list(&ListParams::default()).await.unwrap().into_iter().filter_map(|it| it.metadata.name).collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let entries: Vec<_> = server.audit().entries;
    let users: Vec<_> = entries.iter().map(|entry| (&*entry.call.user.name, entry.call.user.groups.to_vec())).collect();
    assert_eq!(users, [("reader", vec!["readers".to_owned()])]);
}

#[tokio::test]
async fn without_a_token_that_is_known_only_health_and_version_are_answered() {
    let https = serve(&memkube(), 1).await;
    let mut nobody = config(&https, "admin").await;
    nobody.auth_info = AuthInfo::default();
    let nobody = Client::try_from(nobody).unwrap();
    for (path, expected) in [("/readyz", 200), ("/version", 200), ("/api", 401), ("/api/v1/namespaces", 401)] {
        assert_eq!(code(&nobody, path).await, expected, "{path}");
    }
    let mut stranger = config(&https, "admin").await;
    stranger.auth_info = AuthInfo { token: Some("nonsense".to_owned().into()), ..AuthInfo::default() };
    let stranger = Client::try_from(stranger).unwrap();
    assert_eq!(code(&stranger, "/api/v1/namespaces").await, 401);
    assert_eq!(code(&stranger, "/readyz").await, 401);
}

#[tokio::test]
async fn keys_and_tokens_come_from_the_seed() {
    let server = memkube();
    let (one, same, other) = (serve(&server, 1).await, serve(&server, 1).await, serve(&server, 2).await);
    assert_eq!((one.authority_pem(), one.token("admin")), (same.authority_pem(), same.token("admin")));
    assert_ne!(one.authority_pem(), other.authority_pem());
    assert_ne!(one.token("admin"), other.token("admin"));
    assert_ne!(one.token("admin"), one.token("reader"));
    assert_eq!((one.token("nobody"), one.kubeconfig("nobody")), (None, None));
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let server = memkube();
    let (one, other) = (serve(&server, 1).await, serve(&server, 2).await);
    let mut config = config(&one, "admin").await;
    config.cluster_url = other.url().parse().unwrap();
    let error = Client::try_from(config).unwrap().apiserver_version().await.unwrap_err();
    assert!(
        format!("{error:?}").contains("BadSignature") || format!("{error:?}").contains("UnknownIssuer"),
        "{error:?}"
    );
}

#[tokio::test]
async fn ending_ends_watches_and_idle_connections_and_frees_the_port() {
    let server = memkube();
    let https = serve(&server, 1).await;
    let client = client(&https, "admin").await;
    let watch = http::Request::get("/api/v1/namespaces?watch=1").body(Vec::new()).unwrap();
    let mut lines = client.request_stream(watch).await.unwrap().lines();
    assert!(lines.try_next().await.unwrap().unwrap().contains("ADDED"));
    let address: SocketAddr = https.url().trim_start_matches("https://").parse().unwrap();
    let socket = listener(address).expect("it listens");
    let mut mute = TcpStream::connect(address).await.unwrap();
    tokio::time::timeout(LIMIT, https.end()).await.expect("nothing has to be waited for");
    let mut rest = lines.try_collect::<Vec<_>>().await.unwrap();
    rest.retain(|line| !line.contains("ADDED"));
    assert_eq!(rest, [""; 0]);
    assert_eq!(mute.read(&mut [0; 8]).await.unwrap_or_default(), 0);
    assert_eq!(server.open_watches(), 0);
    assert_ne!(listener(address), Some(socket), "its port is free again");
}

/// Inode of the socket that listens at an address. The port does not identify the socket, because another process may
/// use the port a moment later.
fn listener(address: SocketAddr) -> Option<u64> {
    let SocketAddr::V4(address) = address else { panic!("{address} is not of IPv4") };
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port());
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let sockets = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // In a line of `/proc/net/tcp`, column 2 is the address, column 4 the state (0A is LISTEN), and column 10 the
    // inode.
    sockets.filter(|socket| socket[1] == local && socket[3] == "0A").find_map(|socket| socket[9].parse().ok())
}

#[tokio::test]
async fn dropping_cuts_what_is_open() {
    let server = memkube();
    let https = serve(&server, 1).await;
    let client = client(&https, "admin").await;
    let watch = http::Request::get("/api/v1/namespaces?watch=1").body(Vec::new()).unwrap();
    let mut lines = client.request_stream(watch).await.unwrap().lines();
    assert!(lines.try_next().await.unwrap().unwrap().contains("ADDED"));
    drop(https);
    let rest = tokio::time::timeout(LIMIT, lines.try_collect::<Vec<_>>()).await;
    assert!(rest.expect("it has been cut").is_err());
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_with_413() {
    let https = serve(&memkube(), 1).await;
    let config_maps = Api::<ConfigMap>::default_namespaced(client(&https, "admin").await);
    let mut large = ConfigMap::default();
    large.metadata.name = Some("large".to_owned());
    large.data = Some([("it".to_owned(), "x".repeat(4 << 20))].into());
    match config_maps.create(&PostParams::default(), &large).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!((status.code, status.reason.as_str()), (413, "RequestEntityTooLarge"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn kubeconfigs_of_two_clusters_merge_without_a_loss() {
    let one = |cluster: &str| {
        let text = super::kubeconfig::text(cluster, &format!("https://{cluster}"), "authority", "kubectl", cluster);
        Kubeconfig::from_yaml(&text).unwrap()
    };
    let merged = one("hub").merge(one("member-1")).unwrap();
    let users: Vec<_> = merged.auth_infos.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(users, ["kubectl@hub", "kubectl@member-1"]);
    for context in &merged.contexts {
        let of = context.context.as_ref().unwrap();
        assert_eq!(of.user.as_deref(), Some(&*context.name));
        assert_eq!(context.name, format!("kubectl@{}", of.cluster));
    }
    assert_eq!(merged.current_context.as_deref(), Some("kubectl@hub"));
}
