//! Tests of the memory that one hostile member can take. The member writes the largest objects that the definitions
//! allow until the hub agent refuses them, and then three times as many. The smallest objects of a member that uses its
//! whole quota are not refused.

use crate::{Hub, MEMBER_FAN_OUT, MEMBER_MEMORY_MIB};
use fleetnet_api::decode::decode;
use fleetnet_core::hub::NamespacePolicy;
use fleetnet_core::model::Kind;
use fleetnet_runtime::{Change, Logic as _};
use fleetnet_types::Timestamp;
use prometheus::Registry;
use serde_json::{Value, json};

/// Manifest of the hub agent, whose container has a limit of memory.
const MANIFEST: &str = include_str!("../../deploy/hub-agent.yaml");
/// Number of slices that the quota of a member allows.
const QUOTA: usize = 5_000;
/// Number of exports that the quota of a member allows, and number of claims.
const QUOTA_OF_SERVICES: usize = 2_000;

/// Returns the limit of the container's memory in bytes.
fn memory_limit() -> usize {
    let limit = MANIFEST.split("limits: {memory: ").nth(1).and_then(|rest| rest.split("Mi}").next());
    limit.and_then(|mib| mib.parse::<usize>().ok()).expect("a limit in MiB") << 20
}

/// Text in place of the number of an object.
const NUMBER: &str = "NUMBER";

fn metadata() -> Value {
    let (name, uid) = (format!("hostile-work-app-{NUMBER}"), format!("uid-{NUMBER}"));
    json!({ "namespace": "fleet-member-hostile", "name": name, "uid": uid, "resourceVersion": "7", "generation": 1 })
}

fn reference() -> Value {
    let (name, uid) = (format!("app-{NUMBER}"), format!("uid-source-{NUMBER}"));
    json!({ "clusterId": "hostile", "namespace": "work", "name": name, "uid": uid, "resourceVersion": "1", "generation": 1,
            "namespacedName": format!("work/{name}") })
}

fn slice(address: &str, addresses: usize) -> Value {
    let endpoint = json!({ "addresses": vec![address; addresses], "hostname": "h", "zone": "z" });
    json!({
        "metadata": metadata(),
        "spec": {
            "addressType": "IPv6",
            "endpoints": vec![endpoint; 1_000],
            "endpointSliceReference": reference(),
            "ownerServiceReference": { "namespace": "work", "name": "app", "namespacedName": "work/app" },
        },
    })
}

/// Returns objects that need much memory in different ways, and few bytes in etcd. Each has a bound in bytes if the
/// view keeps nothing of what makes it large.
fn largest() -> [(Kind, Value, Option<usize>); 6] {
    let port = |port: usize| json!({ "name": format!("p{port}"), "port": port, "targetPort": "p" });
    let ports: Vec<Value> = (1..=1_000).map(port).collect();
    let values: Vec<Value> =
        (0..32).map(|it| json!({ "name": format!("n{it}"), "value": "v".repeat(1_024) })).collect();
    let mcs = json!({ "only": true, "exportedLabels": values, "exportedAnnotations": values });
    let export = |spec: Value| json!({ "metadata": metadata(), "spec": spec });
    let finalizers: Vec<String> = (0..1_000).map(|it| format!("a.example/{it}")).collect();
    let mut claim = export(json!({ "serviceImportReference": reference() }));
    claim["metadata"]["finalizers"] = finalizers.into();
    let mcs = json!({ "serviceReference": reference(), "multicluster": mcs });
    [
        (Kind::EndpointSliceExport, slice("a", 100), Some(8_192)),
        (Kind::EndpointSliceExport, slice("::", 8), None),
        (Kind::EndpointSliceExport, slice("FD00:0::1", 8), None),
        (Kind::InternalServiceExport, export(json!({ "ports": ports, "serviceReference": reference() })), None),
        (Kind::InternalServiceExport, export(mcs), None),
        (Kind::InternalServiceImport, claim, None),
    ]
}

fn hub() -> Hub {
    let mut hub = Hub::new(NamespacePolicy::Off, &Registry::new())
        .expect("its metrics are new")
        .with_member_memory(MEMBER_MEMORY_MIB)
        .with_member_fan_out(MEMBER_FAN_OUT);
    hub.complete();
    hub
}

/// Stores an object, and plans what it requeues.
fn take(hub: &mut Hub, kind: Kind, json: &str) {
    let object = decode(kind, json.as_bytes()).expect("the object is decodable");
    let mut requeue = Vec::new();
    hub.observe(kind, Change::Applied(object), Timestamp::EPOCH, &mut requeue);
    for key in requeue {
        if let Some(effect) = hub.plan(&key, Timestamp::EPOCH).effect {
            hub.planned(&key, effect, Timestamp::EPOCH);
        }
    }
}

/// Also rule T51.
#[test]
fn the_largest_objects_of_a_member_take_at_most_its_share_of_the_memory_of_the_hub_agent() {
    let share = usize::try_from(MEMBER_MEMORY_MIB).expect("a small number") << 20;
    assert!(8 * share <= memory_limit(), "four hostile members at once leave half of the memory to the others");
    for (which, (kind, json, bound)) in largest().into_iter().enumerate() {
        let (template, mut hub) = (json.to_string(), hub());
        let (mut stored, mut until) = (0, if bound.is_some() { 20 } else { QUOTA });
        let used = allocation_counter::measure(|| {
            while stored < until {
                take(&mut hub, kind, &template.replace(NUMBER, &stored.to_string()));
                stored += 1;
                if until == QUOTA && hub.refuses("fleet-member-hostile") {
                    until = 4 * stored;
                }
            }
        });
        let kept = usize::try_from(used.bytes_current).expect("memory is kept");
        // A refused object is remembered by its name.
        let most = bound.map_or(share + stored * 1_024, |bound| bound * stored);
        assert!(kept <= most, "{which}: {kept} bytes are kept for {stored} objects");
        assert!(bound.is_some() || stored < QUOTA, "{which}: the budget refuses before the quota");
        assert!(2 * kept < memory_limit(), "{which}: {kept} bytes are kept for {stored} objects");
    }
}

/// Also rule T51.
#[test]
fn the_smallest_objects_of_a_full_quota_fit_into_the_memory_of_a_member() {
    let service =
        json!({ "namespace": "work", "name": format!("app-{NUMBER}"), "namespacedName": format!("work/app-{NUMBER}") });
    let mut small = slice("10.0.0.1", 1);
    (small["spec"]["addressType"], small["spec"]["ownerServiceReference"]) = ("IPv4".into(), service);
    small["spec"]["endpoints"] = json!([{ "addresses": ["10.0.0.1"] }]);
    let ports = json!([{ "name": "http", "port": 80 }]);
    let export = json!({ "metadata": metadata(), "spec": { "ports": ports, "serviceReference": reference() } });
    let claim = json!({ "metadata": metadata(), "spec": { "serviceImportReference": reference() } });
    let quota = [
        (Kind::EndpointSliceExport, small, QUOTA),
        (Kind::InternalServiceExport, export, QUOTA_OF_SERVICES),
        (Kind::InternalServiceImport, claim, QUOTA_OF_SERVICES),
    ];
    let mut hub = hub();
    for (kind, json, number) in quota {
        let template = json.to_string();
        (0..number).for_each(|at| take(&mut hub, kind, &template.replace(NUMBER, &at.to_string())));
        assert!(!hub.refuses("fleet-member-hostile"), "{number} objects of kind {kind:?} fit");
    }
}
