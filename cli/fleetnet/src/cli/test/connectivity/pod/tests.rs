//! Tests of pods on an API server in memory. A front answers for the log, which the server does not have.

use super::*;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::ResourceExt;
use kube::api::ListParams;
use kube::client::Body;
use memkube::faults::{Answer, Fault, Faults};
use memkube::status::Status;
use memkube::{BoxError, Call, MemKube, Options, User, Verb};
use std::sync::Arc;
use tower::Service as _;

const LOG: &str = "fleetnet-result 0 0 \n";
const SHOP: &str = "shop";

/// API server with the namespace of the pods.
struct Server(MemKube);

impl Server {
    async fn start() -> Self {
        let now: jiff::Timestamp = "2026-11-23T06:00:00Z".parse().unwrap();
        let memkube = MemKube::new(Options::new(Arc::new(move || now), 1));
        memkube.add_workloads();
        let server = Self(memkube);
        let namespace = serde_json::from_value(json!({"metadata": {"name": SHOP}})).unwrap();
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(server.client());
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        server
    }

    fn client(&self) -> kube::Client {
        self.0.client(User::new("admin"))
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), SHOP)
    }

    /// Returns the server as the command knows it.
    fn cluster(&self) -> Cluster {
        let memkube = self.0.clone();
        let front = tower::service_fn(move |request: Request<Body>| {
            let memkube = memkube.clone();
            async move { answer(&memkube, request).await }
        });
        Cluster {
            context: "east".to_owned(),
            agent_namespace: diagnosis::agents::AgentNamespace::default(),
            client: kube::Client::new(front, "default"),
            config: kube::Config::new("http://east.example".parse().unwrap()),
            version: String::new(),
            request_timeout: Duration::from_secs(5),
        }
    }

    /// Waits for a pod, and gives it a status. Returns the pod.
    async fn give(&self, status: &Value) -> Pod {
        loop {
            let pods = self.pods().list(&ListParams::default()).await.unwrap().items;
            let Some(pod) = pods.into_iter().next() else {
                sleep(Duration::from_millis(10)).await;
                continue;
            };
            let patch = kube::api::Patch::Merge(json!({"status": status}));
            return self.pods().patch_status(&pod.name_any(), &Default::default(), &patch).await.unwrap();
        }
    }

    async fn names(&self) -> Vec<String> {
        self.pods().list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect()
    }

    fn deny(&self, verb: Verb) {
        self.0.set_policy(Arc::new(move |call: &Call| call.verb != verb));
    }
}

async fn answer(
    memkube: &MemKube,
    request: Request<Body>,
) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
    if request.uri().path().ends_with("/log") {
        return Ok(Response::new(Full::from(LOG).map_err(|never| match never {}).boxed_unsync()));
    }
    let answered = memkube.service(User::new("admin")).call(request).await?;
    Ok(answered.map(|body| body.boxed_unsync()))
}

/// Runs a pod of this server. `meanwhile` runs at the same time.
async fn run<T>(server: &Server, limit: Duration, shutdown: &Shutdown, meanwhile: impl Future<Output = T>) -> (End, T) {
    let cluster = server.cluster();
    let prober = Prober { cluster: &cluster, namespace: SHOP, image: "busybox", timeout: limit, shutdown };
    tokio::join!(Box::pin(prober.run("true")), Box::pin(meanwhile))
}

fn waiting(reason: &str) -> Value {
    json!({"phase": "Pending", "containerStatuses": [{
        "name": "connectivity", "image": "busybox", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": reason, "message": "no such image"}},
    }]})
}

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_pod_with_few_rights_runs_the_script_and_is_deleted() {
    let server = Server::start().await;
    let (_trigger, shutdown) = Shutdown::new();
    let (end, pod) = run(&server, LONG, &shutdown, server.give(&json!({"phase": "Succeeded"}))).await;
    assert_eq!((end.log.as_str(), end.leftover), (LOG, None));
    assert!(server.names().await.is_empty());
    let spec = serde_json::to_value(pod.spec.unwrap()).unwrap();
    assert_eq!(spec["containers"][0]["command"], json!(["sh", "-c", "true"]));
    assert_eq!((&spec["activeDeadlineSeconds"], &spec["automountServiceAccountToken"]), (&json!(90), &json!(false)));
    let security = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
    });
    assert_eq!(spec["containers"][0]["securityContext"], security);
    assert_eq!(pod.metadata.labels.unwrap()["app.kubernetes.io/name"], NAME);
}

#[tokio::test]
async fn a_pod_that_never_starts_is_deleted_and_says_why() {
    let server = Server::start().await;
    let (_trigger, shutdown) = Shutdown::new();
    let (end, _) = run(&server, LONG, &shutdown, server.give(&waiting("ImagePullBackOff"))).await;
    let missing = "the pod cannot start: ImagePullBackOff: no such image".to_owned();
    assert_eq!(end, End { log: String::new(), missing, leftover: None });
    let short = Duration::from_millis(1);
    let (end, _) = run(&server, short, &shutdown, server.give(&waiting("ContainerCreating"))).await;
    assert!(end.missing.starts_with("the pod has not started within 1ms: "), "{end:?}");
    assert!(server.names().await.is_empty());
}

#[tokio::test]
async fn a_signal_ends_the_wait_and_the_pod_is_deleted() {
    let server = Server::start().await;
    let (trigger, shutdown) = Shutdown::new();
    let interrupt = async {
        server.give(&waiting("ContainerCreating")).await;
        trigger.request();
    };
    let (end, ()) = run(&server, LONG, &shutdown, interrupt).await;
    assert_eq!((end.missing.as_str(), end.leftover), (INTERRUPTED, None));
    assert!(server.names().await.is_empty());
}

#[tokio::test]
async fn a_pod_that_may_not_be_created_or_deleted_is_reported() {
    let server = Server::start().await;
    let (trigger, shutdown) = Shutdown::new();
    server.deny(Verb::Create);
    let (end, ()) = run(&server, LONG, &shutdown, async {}).await;
    assert!(
        end.missing.starts_with("a pod could not be created: context east") && end.missing.contains("Forbidden"),
        "{end:?}"
    );
    assert_eq!(end.leftover, None);
    server.deny(Verb::Delete);
    trigger.request();
    let (end, ()) = run(&server, LONG, &shutdown, async {}).await;
    let name = server.names().await.remove(0);
    let command = format!("kubectl --context east -n shop delete pod {name}");
    assert!(end.leftover.unwrap().contains(&command));
}

#[test]
fn states_of_pods() {
    let state = |status: Value| State::of(&serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap());
    let container = |state: Value| {
        json!({"phase": "Pending", "containerStatuses": [{
            "name": "a", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state,
        }]})
    };
    let unscheduled = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]});
    let table = [
        (json!({}), State::Waiting("no node runs it yet".to_owned())),
        (unscheduled, State::Waiting("Unschedulable: 0/3 nodes".to_owned())),
        (container(json!({"running": {}})), State::Running),
        (container(json!({"terminated": {"exitCode": 0}})), State::Running),
        (waiting("ErrImagePull"), State::Waiting("ErrImagePull: no such image".to_owned())),
        (waiting("InvalidImageName"), State::Hopeless("InvalidImageName: no such image".to_owned())),
        (json!({"phase": "Succeeded"}), State::Ended(String::new())),
        (json!({"phase": "Failed", "reason": "Evicted"}), State::Ended(" (Evicted)".to_owned())),
    ];
    for (status, expected) in table {
        assert_eq!(state(status.clone()), expected, "{status}");
    }
}

/// Lets creates of pods take effect and answer with an error, as after a time limit of the server.
struct LateAnswer;

impl Faults for LateAnswer {
    fn request(&self, call: &Call) -> Fault {
        let is_create = call.verb == Verb::Create && &*call.target.resource == "pods";
        let failed = || Answer::Replaced(Box::new(Status::plain(504, "Timeout", "a test lets it be late")));
        Fault { answer: if is_create { failed() } else { Answer::Whole }, ..Fault::default() }
    }
}

#[tokio::test]
async fn a_pod_that_was_created_although_the_server_answered_with_an_error_is_deleted() {
    let server = Server::start().await;
    let (_trigger, shutdown) = Shutdown::new();
    server.0.set_faults(Some(Arc::new(LateAnswer)));
    let (end, ()) = run(&server, LONG, &shutdown, async {}).await;
    assert!(end.missing.contains("504") && end.leftover.is_none(), "{}", end.missing);
    assert!(server.names().await.is_empty());
}
