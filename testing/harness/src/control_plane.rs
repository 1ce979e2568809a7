//! Real control plane for tests: etcd, kube-apiserver and optionally kube-controller-manager. Each program has a
//! supervisor process. Each control plane has a separate folder and separate ports.

mod backup;
mod controllers;
mod port;
mod shared;

pub use backup::{Backup, Revision};
pub use shared::{SHARED_USERS, shared};

use crate::audit::Audit;
use crate::eventually::{self, Deadline};
use crate::kubeconfig::Access;
use crate::limits::CONTROL_PLANE_START;
use crate::process::{Process, Signal, Spec};
use crate::watchdog;
use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::PostParams;
use kube::{Api, Client};
use port::Port;
use programs::control_plane::{Program, locate};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};
use tempfile::TempDir;

/// User of a control plane with all rights.
pub const ADMIN: &str = "admin";
/// Prefix of a service account's user name.
pub const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
/// User name with which kube-controller-manager renews its Leases. Each of its controllers uses a service account in
/// kube-system with the controller's name.
pub const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// Lifetime of a service account's token: 7 days in seconds, longer than any test run.
const TOKEN_SECONDS: u32 = 7 * 24 * 3600;

/// Settings of a control plane.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the control plane in messages, such as `hub` or `member-1`.
    pub name: String,
    /// Users besides [`ADMIN`]. They have no rights until a role is bound to them.
    pub users: Vec<String>,
    /// Controllers of kube-controller-manager to run, by upstream's names. If empty, kube-controller-manager is not
    /// started. Then nobody fills EndpointSlices, collects garbage or finishes the deletion of a namespace.
    pub controllers: Vec<String>,
    /// Interval at which kube-apiserver compacts etcd. Each compaction drops the history before the previous
    /// compaction. `None` for upstream's default of five minutes.
    pub compaction_interval: Option<Duration>,
    /// True if Services can have addresses of both families, IPv4 first.
    pub dual_stack: bool,
    /// Address at which the API server serves, and the ranges of Services' addresses, for clusters whose nodes and pods
    /// exist. If `None`, the API server serves on loopback.
    pub network: Option<Network>,
}

/// Network of a control plane whose nodes and pods exist.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Address of the API server that nodes and pods can reach.
    pub address: Ipv4Addr,
    /// Ranges of Services' addresses: `--service-cluster-ip-range`.
    pub service_ranges: &'static str,
}

impl Options {
    fn address(&self) -> Ipv4Addr {
        self.network.map_or(Ipv4Addr::LOCALHOST, |network| network.address)
    }

    fn service_ranges(&self) -> &'static str {
        match self.network {
            Some(network) => network.service_ranges,
            None if self.dual_stack => DUAL_STACK,
            None => IPV4,
        }
    }
}

/// Running control plane. Its programs end when this value is dropped, or when the test process ends in any way.
pub struct ControlPlane {
    options: Options,
    folder: PathBuf,
    /// Pairs of user and token.
    tokens: Vec<(String, String)>,
    access: Vec<Access>,
    admin: kube::Client,
    audit: Audit,
    // Rust drops the fields in this order, so etcd ends after its API server. Without etcd, the API server would log
    // errors.
    controller_manager: Option<Process>,
    api_server: Process,
    etcd: Process,
    etcd_port: Port,
    /// Those that ran before [`ControlPlane::restore`]. They have no clients. The supervisor of the first one removes
    /// the folder.
    former: Vec<Process>,
    port: Port,
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { options, folder, .. } = self;
        formatter
            .debug_struct("ControlPlane")
            .field("name", &options.name)
            .field("folder", folder)
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts a control plane and waits until it is ready.
    ///
    /// # Errors
    /// If a program cannot be found or does not start. If it does not start, the error contains the last lines of its
    /// log.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let name = options.name.clone();
        Self::start_unnamed(options).await.with_context(|| format!("cannot start the control plane {name}"))
    }

    async fn start_unnamed(options: Options) -> anyhow::Result<Self> {
        // `locate` builds missing programs for minutes, or waits for the same build by another test. So do not count
        // this time in the test's time limit, and use a blocking thread.
        let pause = watchdog::pause();
        let programs = tokio::task::spawn_blocking(|| locate(Program::Etcd)).await?;
        programs?;
        drop(pause);
        watchdog::waits_for(|| format!("the control plane {} to be ready", options.name));
        let folder = TempDir::with_prefix("fleetnet-control-plane-")?;
        write_policy(folder.path())?;
        let tokens = write_tokens(folder.path(), &options.users)?;
        let (etcd, etcd_port) = start_etcd(&options.name, &folder.path().join("etcd"), Some(folder.path())).await?;
        // From here on, etcd's supervisor removes the folder, even if this process is killed.
        let folder = folder.keep();
        let port = Port::reserve(options.address())?;
        let (api_server, access) = start_api_server(&options, &folder, &etcd_port, &port, &tokens).await?;
        let admin = access.first().context("the first user is the admin")?.client().await?;
        let audit = Audit::new(folder.join("audit.log"), admin.clone());
        let controllers = options.controllers.clone();
        let mut started = Self {
            options,
            folder,
            tokens,
            access,
            admin,
            audit,
            controller_manager: None,
            api_server,
            etcd,
            etcd_port,
            former: Vec::new(),
            port,
        };
        if !controllers.is_empty() {
            let controllers: Vec<&str> = controllers.iter().map(String::as_str).collect();
            started.controller_manager = Some(started.start_controller_manager(&controllers, &[]).await?);
        }
        Ok(started)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.options.name
    }

    #[must_use]
    pub fn admin(&self) -> kube::Client {
        self.admin.clone()
    }

    /// Returns the address and the credentials of `user`. A service account, with the user name
    /// `system:serviceaccount:<namespace>:<name>`, gets a token like that of a pod.
    ///
    /// # Errors
    /// If there is no such user.
    pub async fn access(&self, user: &str) -> anyhow::Result<Access> {
        let known = self.access.iter().find(|access| access.user == user);
        if let Some(account) = user.strip_prefix(SERVICE_ACCOUNT) {
            let (namespace, name) = account.split_once(':').context("a service account has a namespace and a name")?;
            let access = self.access.first().context("the first user is the admin")?;
            let token = self.request_token(namespace, name).await?;
            return Ok(Access { user: user.to_owned(), token, ..access.clone() });
        }
        known.cloned().with_context(|| format!("the control plane {} was started without a user {user}", self.name()))
    }

    async fn request_token(&self, namespace: &str, account: &str) -> anyhow::Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let wanted = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": [], "expirationSeconds": TOKEN_SECONDS},
        });
        let request = http::Request::post(&path).header(http::header::CONTENT_TYPE, "application/json");
        let answer = self.admin.request::<Value>(request.body(wanted.to_string().into_bytes())?).await;
        let answer = answer.with_context(|| format!("{} gives no token for {namespace}/{account}", self.name()))?;
        answer["status"]["token"].as_str().map(str::to_owned).with_context(|| format!("no token in {answer}"))
    }

    /// Returns a kubeconfig file for [`ADMIN`].
    pub fn admin_kubeconfig(&self) -> anyhow::Result<PathBuf> {
        self.access.first().context("the first user is the admin")?.write_kubeconfig(&self.folder)
    }

    pub async fn kubeconfig(&self, user: &str) -> anyhow::Result<PathBuf> {
        self.access(user).await?.write_kubeconfig(&self.folder)
    }

    pub async fn token_file(&self, user: &str) -> anyhow::Result<PathBuf> {
        self.access(user).await?.write_token(&self.folder)
    }

    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Returns the folder with the data of the control plane. The folder is removed when the control plane ends.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the process ids of the control plane's programs and of their supervisors.
    #[must_use]
    pub fn pids(&self) -> Vec<i32> {
        self.processes().flat_map(Process::pids).collect()
    }

    /// Returns the last output lines of the control plane's programs, for messages of failures.
    #[must_use]
    pub fn tail(&self) -> String {
        self.processes().map(|process| process.log().tail()).collect::<Vec<_>>().join("\n")
    }

    /// Freezes the API server: connections stay open, but requests get no response, as if the network was interrupted.
    pub async fn freeze(&self) -> anyhow::Result<()> {
        self.api_server.signal(Signal::Stop).await
    }

    /// Resumes the API server after [`ControlPlane::freeze`].
    pub async fn thaw(&self) -> anyhow::Result<()> {
        self.api_server.signal(Signal::Cont).await
    }

    /// Creates a namespace if it does not exist.
    pub async fn create_namespace(&self, name: &str) -> anyhow::Result<()> {
        let made = create_namespace(&self.admin(), name).await;
        made.with_context(|| format!("cannot make the namespace {name} in {}", self.name()))
    }

    /// Applies CRDs in YAML, and waits until the server serves each kind, because the server needs a moment after a
    /// change of a CRD.
    ///
    /// # Errors
    /// If the server rejects a CRD, for example because of an unknown field.
    pub async fn apply_definitions(&self, documents: &[String]) -> anyhow::Result<()> {
        for document in documents {
            let name = self.apply_definition(document).await?;
            eventually::usable(&self.admin(), &name).await?;
        }
        Ok(())
    }

    async fn apply_definition(&self, document: &str) -> anyhow::Result<String> {
        let named = document.lines().find_map(|line| line.strip_prefix("  name: "));
        let name = named.context("a definition has its name in a line of its metadata")?.trim().to_owned();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let parameters = "fieldManager=fleetnet-tests&force=true&fieldValidation=Strict";
        let request = http::Request::patch(format!("{path}/{name}?{parameters}"))
            .header(http::header::CONTENT_TYPE, "application/apply-patch+yaml")
            .body(document.as_bytes().to_vec())?;
        let answer = self.admin.request::<serde_json::Value>(request).await;
        answer.with_context(|| format!("{} refuses the definition {name}", self.name()))?;
        Ok(name)
    }

    /// Ends the control plane and waits until its programs have ended and its folder is removed.
    pub async fn end(self) -> anyhow::Result<()> {
        for process in self.controller_manager.into_iter().chain([self.api_server, self.etcd]).chain(self.former) {
            process.end().await?;
        }
        Ok(())
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.controller_manager.iter().chain([&self.api_server, &self.etcd]).chain(&self.former)
    }
}

/// Starts etcd on a reserved port, and waits until it serves. If `scratch` is given, the supervisor of etcd removes
/// this folder after etcd has ended.
async fn start_etcd(name: &str, data: &Path, scratch: Option<&Path>) -> anyhow::Result<(Process, Port)> {
    let port = Port::reserve(Ipv4Addr::LOCALHOST)?;
    let client_url = port.url("http");
    let mut arguments = flags(&[
        ("--listen-client-urls", &client_url),
        ("--advertise-client-urls", &client_url),
        ("--listen-peer-urls", "http://127.0.0.1:0"),
        ("--log-level", "info"),
    ]);
    arguments.extend(["--unsafe-no-fsync", "--socket-reuse-port"].map(OsString::from));
    arguments.extend([OsString::from("--data-dir"), data.as_os_str().to_owned()]);
    let etcd = start(Program::Etcd, name, data, arguments, scratch.map(Path::to_path_buf)).await?;
    etcd.log().find("that it serves", |line| line.contains("serving client traffic").then_some(())).await?;
    Ok((etcd, port))
}

/// Starts kube-apiserver on a reserved port, and waits until it is ready. Returns the process and the access of each
/// user.
async fn start_api_server(
    options: &Options,
    folder: &Path,
    etcd: &Port,
    port: &Port,
    tokens: &[(String, String)],
) -> anyhow::Result<(Process, Vec<Access>)> {
    let deadline = Deadline::after(CONTROL_PLANE_START);
    let arguments = api_server_arguments(options, folder, etcd, port);
    let process = start(Program::ApiServer, &options.name, folder, arguments, None).await?;
    let access = ready(&process, folder, &port.url("https"), tokens, &deadline).await?;
    Ok((process, access))
}

/// Range of Services' addresses in a single-stack control plane.
const IPV4: &str = "10.0.0.0/16";
/// Ranges of Services' addresses in a dual-stack control plane.
const DUAL_STACK: &str = "10.0.0.0/16,2001:db8:1::/112";

fn api_server_arguments(options: &Options, folder: &Path, etcd: &Port, port: &Port) -> Vec<OsString> {
    let address = port.address.ip().to_string();
    let mut arguments = flags(&[
        ("--etcd-servers", &etcd.url("http")),
        ("--secure-port", &port.address.port().to_string()),
        ("--bind-address", &address),
        ("--advertise-address", &address),
        ("--endpoint-reconciler-type", "none"),
        ("--service-cluster-ip-range", options.service_ranges()),
        // The fake kubelets of the crate `packets` have no host names that can be resolved.
        ("--kubelet-preferred-address-types", "InternalIP"),
        ("--authorization-mode", "RBAC"),
        ("--service-account-issuer", "https://kubernetes.default.svc"),
        ("--disable-admission-plugins", "ServiceAccount"),
        // On by default from Kubernetes 1.36, so that the names of Services are those of newer servers and of memkube.
        ("--feature-gates", "RelaxedServiceNameValidation=true"),
        // The audit log is one file that is never rotated, because its reader follows it.
        ("--audit-log-maxsize", "100000"),
    ]);
    // A boolean flag takes no second argument.
    arguments.push("--permit-port-sharing".into());
    if let Some(interval) = options.compaction_interval {
        arguments.push(format!("--etcd-compaction-interval={}ms", interval.as_millis()).into());
    }
    // kube-apiserver makes a key for its own certificate in this folder. The same key signs service accounts' tokens,
    // so the harness needs no key of its own.
    for (flag, file) in [
        ("--cert-dir", "certificates"),
        ("--service-account-key-file", "certificates/apiserver.key"),
        ("--service-account-signing-key-file", "certificates/apiserver.key"),
        ("--token-auth-file", "tokens.csv"),
        ("--audit-policy-file", "audit-policy.json"),
        ("--audit-log-path", "audit.log"),
    ] {
        arguments.extend([OsString::from(flag), folder.join(file).into_os_string()]);
    }
    arguments
}

/// Waits until the server is ready. Returns the access of each user.
async fn ready(
    process: &Process,
    folder: &Path,
    server_url: &str,
    tokens: &[(String, String)],
    deadline: &Deadline,
) -> anyhow::Result<Vec<Access>> {
    let authority = folder.join("certificates/apiserver.crt");
    loop {
        if let Ok(authority_pem) = fs::read_to_string(&authority) {
            let access: Vec<Access> = tokens
                .iter()
                .map(|(user, token)| Access {
                    server_url: server_url.to_owned(),
                    authority_pem: authority_pem.clone(),
                    user: user.clone(),
                    token: token.clone(),
                })
                .collect();
            // Stop waiting for a response when kube-apiserver ends or the deadline passes.
            let answered = tokio::select! {
                answered = answers(&access) => answered,
                () = process.until_ended() => false,
                () = deadline.passed() => false,
            };
            if answered {
                return Ok(access);
            }
        }
        if process.ended().is_some() {
            process.log().ended().await?;
            bail!("kube-apiserver ended\n{}", process.log().tail());
        }
        deadline.pause(|| format!("kube-apiserver is not ready\n{}", process.log().tail())).await?;
    }
}

/// True if the server is ready and has created the namespace `default`. Clients expect this namespace in every cluster.
async fn answers(access: &[Access]) -> bool {
    let Some(admin) = access.first() else { return false };
    // Without a client, the server is not ready: it may still be writing the file with its certificate.
    let Ok(client) = admin.client().await else { return false };
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else {
        return false;
    };
    let ready = client.request_text(request).await.is_ok_and(|answer| answer == "ok");
    ready && Api::<Namespace>::all(client).get("default").await.is_ok()
}

async fn start(
    program: Program,
    name: &str,
    folder: &Path,
    arguments: Vec<OsString>,
    scratch: Option<PathBuf>,
) -> anyhow::Result<Process> {
    let invocation = locate(program)?;
    let arguments = invocation.first_argument.map(OsString::from).into_iter().chain(arguments).collect();
    let name = format!("{} of {name}", program.name());
    // Some of these programs need a home directory for caches.
    let environment = vec![("HOME".to_owned(), folder.as_os_str().to_owned())];
    Process::start(Spec { name, file: invocation.file, arguments, environment, scratch }).await
}

fn flags(pairs: &[(&str, &str)]) -> Vec<OsString> {
    pairs.iter().flat_map(|(flag, value)| [OsString::from(flag), OsString::from(value)]).collect()
}

/// Writes an audit policy that logs every request, without the objects.
fn write_policy(folder: &Path) -> anyhow::Result<()> {
    let policy = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}"#;
    fs::write(folder.join("audit-policy.json"), policy).context("cannot write the audit policy")
}

/// Creates a bearer token for each user, and writes the tokens to a file. Returns pairs of user and token. The first
/// token is that of [`ADMIN`].
fn write_tokens(folder: &Path, users: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    // Predictable tokens are good enough: they protect only a test's server on loopback.
    let token = |user: &str| (user.to_owned(), format!("token-of-{user}"));
    let tokens: Vec<_> = std::iter::once(token(ADMIN)).chain(users.iter().map(|user| token(user))).collect();
    let lines = tokens.iter().map(|(user, token)| {
        let group = if user == ADMIN { ",system:masters" } else { "" };
        format!("{token},{user},{user}{group}\n")
    });
    fs::write(folder.join("tokens.csv"), lines.collect::<String>()).context("cannot write the tokens")?;
    Ok(tokens)
}

/// Creates a namespace if it does not exist.
pub async fn create_namespace(client: &Client, name: &str) -> kube::Result<()> {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    match Api::all(client.clone()).create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        made => made.map(drop),
    }
}
