//! API servers in memory for the commands: over HTTPS, or over a front that also answers TokenRequests.

use crate::program::run;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use fleetnet_api::crd::MemberAgent;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use memkube::serve::{self, Https};
use memkube::{BoxError, Context, Definition, MemKube, Object, Options, Scope, Status, Strategy, User};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sim::Server;
use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::Service as _;

/// User of the kubeconfigs. Each server has one of this name, with its own token.
pub(crate) const ADMIN: &str = "admin";
/// Time at which the tests' tokens expire, in seconds: 2100-01-01.
const EXPIRES: i64 = 4_102_444_800;

/// Kind of the API server that the commands use and that has no rules of its own in memory.
#[derive(Debug)]
struct Plain;

impl Strategy for Plain {
    fn prepare_for_create(&self, _: &mut Context<'_>, _: &mut Object) -> Result<(), Status> {
        Ok(())
    }
}

/// API server with a kubeconfig.
pub(crate) struct Cluster {
    pub(crate) server: Server,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) url: String,
    _https: Option<Https>,
    front: Option<(JoinHandle<()>, Arc<AtomicBool>)>,
}

impl Cluster {
    async fn server(name: &str, seed: u64) -> Server {
        let now: jiff::Timestamp = "2026-11-23T06:00:00Z".parse().unwrap();
        let server = Server::start(name, Options::new(Arc::new(move || now), seed)).await.unwrap();
        for (group, kind, plural) in [("", "ResourceQuota", "resourcequotas"), ("apps", "Deployment", "deployments")] {
            let definition = Definition::built_in(group, "v1", kind, plural, Scope::Namespaced);
            server.memkube().register(definition, Box::new(Plain));
        }
        server
    }

    /// Starts a server that listens on HTTPS. The context is `admin@<name>`.
    pub(crate) async fn https(folder: &Path, name: &str) -> Self {
        let seed = name.bytes().map(u64::from).sum();
        let server = Self::server(name, seed).await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let options = serve::Options { name: name.to_owned(), seed: [1; 32], users: vec![User::new(ADMIN)] };
        let https = Https::start(server.memkube(), listener, options).unwrap();
        let kubeconfig = folder.join(name);
        std::fs::write(&kubeconfig, https.kubeconfig(ADMIN).unwrap()).unwrap();
        Self { server, kubeconfig, url: https.url().to_owned(), _https: Some(https), front: None }
    }

    /// Starts a hub that also answers TokenRequests. The server in memory has none, so this hub has its own HTTP front,
    /// without TLS. The context is `admin@hub`.
    pub(crate) async fn with_tokens(folder: &Path) -> Self {
        let server = Self::server("hub", 1).await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let revoked = Arc::new(AtomicBool::new(false));
        let front = tokio::spawn(accept(listener, server.memkube().clone(), Arc::clone(&revoked)));
        let kubeconfig = folder.join("hub");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "admin@hub",
            "contexts": [{"name": "admin@hub", "context": {"cluster": "hub", "user": ADMIN}}],
            "clusters": [{"name": "hub", "cluster": {"server": url}}],
            "users": [{"name": ADMIN, "user": {"token": ADMIN}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        Self { server, kubeconfig, url, _https: None, front: Some((front, revoked)) }
    }

    /// Makes the hub refuse all tokens that it granted before.
    pub(crate) fn revoke(&self, is_revoked: bool) {
        self.front.as_ref().unwrap().1.store(is_revoked, Ordering::Relaxed);
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.server.admin()
    }

    /// Flag with the kubeconfig.
    pub(crate) fn flag(&self) -> String {
        format!("--kubeconfig={}", self.kubeconfig.display())
    }

    /// UID of the cluster.
    pub(crate) async fn uid(&self) -> String {
        let namespaces: Api<Namespace> = Api::all(self.client());
        namespaces.get("kube-system").await.unwrap().metadata.uid.unwrap()
    }

    /// Creates an object.
    pub(crate) async fn create<K>(&self, namespace: &str, object: Value) -> K
    where
        K: Clone + Debug + DeserializeOwned + Serialize,
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let api: Api<K> = Api::namespaced(self.client(), namespace);
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
    }

    pub(crate) async fn secret(&self, namespace: &str, name: &str) -> Option<Secret> {
        let secrets: Api<Secret> = Api::namespaced(self.client(), namespace);
        secrets.get_opt(name).await.unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some((front, _)) = &self.front {
            front.abort();
        }
    }
}

/// Writes the Secret for the hub into a cluster, with a token of a member.
pub(crate) async fn hub_secret(cluster: &Cluster, member: &str) {
    let claims = json!({"sub": format!("system:serviceaccount:fleet-member-{member}:member-agent"), "exp": EXPIRES});
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "fleet-system");
    if secrets.get_opt("fleetnet-hub").await.unwrap().is_some() {
        secrets.delete("fleetnet-hub", &DeleteParams::default()).await.unwrap();
    }
    let secret = json!({"metadata": {"name": "fleetnet-hub"}, "stringData": {"token": token(&claims)}});
    cluster.create::<Secret>("fleet-system", secret).await;
}

/// Starts a hub, and the cluster of a member west.
pub(crate) async fn hub_and_west(folder: &Path) -> (Cluster, Cluster) {
    (Cluster::https(folder, "hub").await, Cluster::https(folder, "west").await)
}

/// Gives a member its access to the hub, as `fleetnet join` does.
pub(crate) async fn admit(hub: &Cluster, member: &str) {
    run(["join", member, "--apply", &hub.flag()]).await.expect(0);
}

/// Writes the MemberAgent of a member, whose cluster has this UID.
pub(crate) async fn heard(hub: &Cluster, member: &str, uid: &str) {
    let agent = json!({
        "apiVersion": "networking.fleet.azure.com/v1alpha1", "kind": "MemberAgent", "metadata": {"name": member},
        "spec": {"version": "1", "renewTime": "2026-11-22T03:48:02.123456Z", "clusterUid": uid},
    });
    hub.create::<MemberAgent>(&format!("fleet-member-{member}"), agent).await;
}

/// Server that accepts connections and never answers.
pub(crate) struct Silent {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Silent {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accept = async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.push(stream);
            }
        };
        Self { address, task: tokio::spawn(accept) }
    }

    /// Writes a copy of a kubeconfig that leads to this server. Its context has this name.
    pub(crate) fn in_place_of(&self, kubeconfig: &Path, context: &str, folder: &Path) -> PathBuf {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        let mut config: Value = serde_saphyr::from_str(&text).unwrap();
        config["clusters"][0]["cluster"]["server"] = format!("https://{}", self.address).into();
        (config["contexts"][0]["name"], config["current-context"]) = (context.into(), context.into());
        let copy = folder.join(format!("silent-{context}"));
        std::fs::write(&copy, config.to_string()).unwrap();
        copy
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns a folder for kubeconfigs.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

async fn accept(listener: TcpListener, memkube: MemKube, revoked: Arc<AtomicBool>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (memkube, revoked) = (memkube.clone(), Arc::clone(&revoked));
        let service = service_fn(move |request| answer(memkube.clone(), Arc::clone(&revoked), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// Answers a request: the bearer token is the name of the admin or a token with claims.
async fn answer(
    memkube: MemKube,
    revoked: Arc<AtomicBool>,
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
    let bearer =
        request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let user = match bearer {
        Some(ADMIN) => ADMIN.to_owned(),
        Some(token) if !revoked.load(Ordering::Relaxed) => subject(token).unwrap_or_default(),
        _ => String::new(),
    };
    if user.is_empty() {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized",
                            "message": "Unauthorized", "code": 401});
        return Ok(reply(StatusCode::UNAUTHORIZED, &status));
    }
    let path = request.uri().path().to_owned();
    let account = path.strip_prefix("/api/v1/namespaces/").and_then(|rest| rest.strip_suffix("/token"));
    if let Some((namespace, name)) = account.and_then(|rest| rest.split_once("/serviceaccounts/"))
        && request.method() == Method::POST
    {
        let subject = format!("system:serviceaccount:{namespace}:{name}");
        let body: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
        let claims = json!({"sub": subject, "exp": EXPIRES, "asked": body["spec"]["expirationSeconds"]});
        let status = json!({"token": token(&claims), "expirationTimestamp": "2100-01-01T00:00:00Z"});
        return Ok(reply(StatusCode::CREATED, &json!({"spec": body["spec"], "status": status})));
    }
    let answered = memkube.service(User::new(&user)).call(request).await?;
    Ok(answered.map(|body| body.boxed_unsync()))
}

fn reply(code: StatusCode, body: &Value) -> Response<UnsyncBoxBody<Bytes, BoxError>> {
    let body = Full::from(body.to_string()).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).header(header::CONTENT_TYPE, "application/json").body(body).unwrap()
}

/// Returns a token with these claims.
pub(crate) fn token(claims: &Value) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// Returns the claims of a token.
pub(crate) fn claims(token: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?).ok()
}

fn subject(token: &str) -> Option<String> {
    Some(claims(token)?["sub"].as_str()?.to_owned())
}
