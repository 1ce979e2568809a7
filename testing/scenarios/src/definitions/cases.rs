//! Invalid objects: the difference of each object from a valid one, and the server's expected error.

use serde_json::{Value, json};

/// Change that makes the valid object of a kind invalid.
pub(super) struct Case {
    pub(super) change: Change,
    /// Text that the server's error must contain.
    pub(super) error: &'static str,
}

pub(super) enum Change {
    /// Sets the object's name.
    Name(String),
    /// Applies this merge patch to the object.
    Object(Value),
    /// Applies a merge patch to the object's status. The value contains only fields of the status, without the
    /// enclosing `status`.
    Status(Value),
}

impl Case {
    /// Returns the change as text, for messages.
    pub(super) fn change(&self) -> String {
        match &self.change {
            Change::Name(name) => format!("the name {name}"),
            Change::Object(patch) => patch.to_string(),
            Change::Status(patch) => format!("status {patch}"),
        }
    }
}

fn name_of(length: usize) -> Case {
    Case { change: Change::Name("n".repeat(length)), error: "metadata.name max length is 63" }
}

fn object(patch: Value, error: &'static str) -> Case {
    Case { change: Change::Object(patch), error }
}

fn spec(patch: Value, error: &'static str) -> Case {
    object(json!({"spec": patch}), error)
}

fn status(patch: Value, error: &'static str) -> Case {
    Case { change: Change::Status(patch), error }
}

/// Returns a case whose status has one condition: a valid condition that `patch` makes invalid.
fn condition(patch: Value, error: &'static str) -> Case {
    let mut condition = good_condition();
    if let (Some(condition), Value::Object(patch)) = (condition.as_object_mut(), patch) {
        condition.extend(patch);
        condition.retain(|_, value| !value.is_null());
    }
    status(json!({"conditions": [condition]}), error)
}

fn good_condition() -> Value {
    json!({
        "type": "Conflict", "status": "False", "reason": "NoConflictFound", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    })
}

fn repeated_condition() -> Case {
    status(json!({"conditions": [good_condition(), good_condition()]}), "status.conditions[1]: Duplicate value")
}

pub(super) fn multi_cluster_service() -> Vec<Case> {
    vec![
        name_of(64),
        object(json!({"spec": null}), "spec: Required value"),
        spec(json!({"serviceImport": {"name": null}}), "spec.serviceImport.name: Required value"),
        spec(json!({"serviceImport": {"name": "App"}}), "spec.serviceImport.name in body should match"),
        spec(json!({"serviceImport": {"name": ""}}), "spec.serviceImport.name in body should match"),
        spec(json!({"serviceImport": {"name": "n".repeat(64)}}), "spec.serviceImport.name: Too long"),
        spec(json!({"type": "NodePort"}), "spec.type: Unsupported value: \"NodePort\""),
        condition(json!({"status": "Perhaps"}), "status.conditions[0].status: Unsupported value: \"Perhaps\""),
        repeated_condition(),
    ]
}

pub(super) fn service_export() -> Vec<Case> {
    vec![
        name_of(64),
        condition(json!({"status": "Perhaps"}), "status.conditions[0].status: Unsupported value: \"Perhaps\""),
        condition(json!({"reason": ""}), "conditions[0].reason in body should be at least 1 chars long"),
        condition(json!({"reason": "no camel"}), "conditions[0].reason in body should match"),
        condition(json!({"reason": null}), "status.conditions[0].reason: Required value"),
        condition(json!({"message": null}), "status.conditions[0].message: Required value"),
        condition(json!({"message": "m".repeat(32_769)}), "status.conditions[0].message: Too long"),
        condition(json!({"lastTransitionTime": null}), "status.conditions[0].lastTransitionTime: Required value"),
        condition(json!({"lastTransitionTime": "noon"}), "must be of type date-time: \"noon\""),
        condition(json!({"observedGeneration": -1}), "conditions[0].observedGeneration in body should be greater"),
        condition(json!({"type": "not a type"}), "conditions[0].type in body should match"),
        repeated_condition(),
    ]
}

/// Returns cases with an invalid status. These cases apply to ServiceImport and to InternalServiceImport.
fn import_status() -> Vec<Case> {
    vec![
        status(json!({"type": "NodePort"}), "status.type: Unsupported value: \"NodePort\""),
        status(json!({"ips": ["10.0.0.1", "10.0.0.2"]}), "status.ips: Too many: 2: must have at most 1 item"),
        status(json!({"ports": [{"name": "http"}]}), "status.ports[0].port: Required value"),
        status(json!({"ports": [{"port": 0}]}), "ports[0].port in body should be greater than or equal to 1"),
        status(json!({"ports": [{"port": 80, "protocol": "HTTP"}]}), "status.ports[0].protocol: Unsupported value"),
        status(json!({"clusters": [{}]}), "status.clusters[0].cluster: Required value"),
        status(json!({"clusters": [{"cluster": "a"}, {"cluster": "a"}]}), "status.clusters[1]: Duplicate value"),
    ]
}

pub(super) fn service_import() -> Vec<Case> {
    let mut cases = import_status();
    cases.push(name_of(64));
    cases
}

/// Returns cases with an invalid spec. These cases apply to EndpointSliceExport and to EndpointSliceImport.
fn slice_spec() -> Vec<Case> {
    vec![
        object(json!({"spec": null}), "spec: Required value"),
        spec(json!({"addressType": "FQDN"}), "spec.addressType: Unsupported value: \"FQDN\""),
        spec(json!({"endpoints": null}), "spec.endpoints: Required value"),
        spec(json!({"endpoints": [{}]}), "spec.endpoints[0].addresses: Required value"),
        spec(
            json!({"endpoints": [{"addresses": []}]}),
            "spec.endpoints[0].addresses in body should have at least 1 items",
        ),
        spec(
            json!({"endpoints": [{"addresses": vec!["10.0.0.1"; 101]}]}),
            "spec.endpoints[0].addresses: Too many: 101: must have at most 100 items",
        ),
        spec(
            json!({"endpoints": [{"addresses": ["10.0.0.1"], "hostname": "a.b"}]}),
            "spec.endpoints[0].hostname in body should match",
        ),
        spec(
            json!({"drainingEndpoints": [{"addresses": []}]}),
            "spec.drainingEndpoints[0].addresses in body should have at least 1 items",
        ),
        spec(
            json!({"endpoints": vec![json!({"addresses": ["10.0.0.1"]}); 1001]}),
            "spec.endpoints: Too many: 1001: must have at most 1000 items",
        ),
        spec(
            json!({"drainingEndpoints": vec![json!({"addresses": ["10.0.0.1"]}); 1001]}),
            "spec.drainingEndpoints: Too many: 1001: must have at most 1000 items",
        ),
        spec(
            json!({"endpoints": [{"addresses": [""]}]}),
            "spec.endpoints[0].addresses[0] in body should be at least 1 chars long",
        ),
        spec(json!({"endpoints": [{"addresses": ["a".repeat(254)]}]}), "spec.endpoints[0].addresses[0]: Too long"),
        spec(
            json!({"ports": vec![json!({"port": 80}); 1001]}),
            "spec.ports: Too many: 1001: must have at most 1000 items",
        ),
        spec(json!({"ports": [{"name": "a".repeat(64)}]}), "spec.ports[0].name: Too long"),
        spec(
            json!({"ownerServiceReference": {"name": ""}}),
            "spec.ownerServiceReference.name in body should be at least 1 chars long",
        ),
        spec(json!({"endpointSliceReference": {"uid": "a".repeat(254)}}), "spec.endpointSliceReference.uid: Too long"),
        spec(json!({"ports": [{"port": "web"}]}), "spec.ports[0].port in body must be of type integer"),
        spec(json!({"endpointSliceReference": null}), "spec.endpointSliceReference: Required value"),
        spec(json!({"endpointSliceReference": {"uid": null}}), "spec.endpointSliceReference.uid: Required value"),
        spec(json!({"endpointSliceReference": {"exportedSince": "noon"}}), "must be of type date-time: \"noon\""),
        spec(json!({"ownerServiceReference": {"name": null}}), "spec.ownerServiceReference.name: Required value"),
    ]
}

pub(super) fn endpoint_slice_export() -> Vec<Case> {
    slice_spec()
}

pub(super) fn endpoint_slice_import() -> Vec<Case> {
    slice_spec()
}

pub(super) fn internal_service_export() -> Vec<Case> {
    vec![
        spec(json!({"ports": null}), "spec.ports: Required value"),
        spec(
            json!({"ports": vec![json!({"port": 80}); 1001]}),
            "spec.ports: Too many: 1001: must have at most 1000 items",
        ),
        spec(json!({"ports": [{"port": 80, "name": "a".repeat(64)}]}), "spec.ports[0].name: Too long"),
        spec(
            json!({"serviceReference": {"name": ""}}),
            "spec.serviceReference.name in body should be at least 1 chars long",
        ),
        spec(json!({"ports": [{"port": 65_536}]}), "spec.ports[0].port in body should be less than or equal to 65535"),
        spec(
            json!({"ports": [{"port": 80, "protocol": "HTTP"}]}),
            "spec.ports[0].protocol: Unsupported value: \"HTTP\"",
        ),
        spec(json!({"ports": [{"port": 80, "targetPort": true}]}), "spec.ports[0].targetPort"),
        spec(json!({"serviceReference": null}), "spec.serviceReference: Required value"),
        spec(json!({"serviceReference": {"clusterId": null}}), "spec.serviceReference.clusterId: Required value"),
        spec(json!({"sessionAffinity": "Sometimes"}), "spec.sessionAffinity: Unsupported value: \"Sometimes\""),
        spec(json!({"headless": "yes"}), "spec.headless in body must be of type boolean"),
        spec(json!({"multicluster": {"ipFamilies": ["IPv5"]}}), "spec.multicluster.ipFamilies[0]: Unsupported value"),
        spec(
            json!({"multicluster": {"exportedLabels": vec![json!({"name": "a", "value": "b"}); 33]}}),
            "spec.multicluster.exportedLabels: Too many: 33: must have at most 32 items",
        ),
        condition(json!({"status": "Perhaps"}), "status.conditions[0].status: Unsupported value: \"Perhaps\""),
        repeated_condition(),
    ]
}

pub(super) fn internal_service_import() -> Vec<Case> {
    let mut cases = import_status();
    cases.extend([
        object(json!({"spec": null}), "spec: Required value"),
        spec(json!({"serviceImportReference": null}), "spec.serviceImportReference: Required value"),
        spec(json!({"serviceImportReference": {"name": null}}), "spec.serviceImportReference.name: Required value"),
        spec(
            json!({"serviceImportReference": {"namespace": ""}}),
            "spec.serviceImportReference.namespace in body should be at least 1 chars long",
        ),
        spec(
            json!({"serviceImportReference": {"generation": "7"}}),
            "spec.serviceImportReference.generation in body must be of type integer",
        ),
    ]);
    cases
}

pub(super) fn member_agent() -> Vec<Case> {
    vec![
        object(json!({"spec": null}), "spec: Required value"),
        spec(json!({"version": null}), "spec.version: Required value"),
        spec(json!({"renewTime": null}), "spec.renewTime: Required value"),
        spec(json!({"renewTime": "soon"}), "spec.renewTime in body must be of type date-time"),
        spec(json!({"plannedStopTime": 7}), "spec.plannedStopTime in body must be of type"),
        spec(json!({"features": "IPv6"}), "spec.features in body must be of type array"),
        spec(json!({"features": ["IPv6", "IPv6"]}), "spec.features[1]: Duplicate value: \"IPv6\""),
        spec(json!({"features": [""]}), "spec.features[0] in body should be at least 1 chars long"),
    ]
}

pub(super) fn merged_service_import() -> Vec<Case> {
    vec![
        object(json!({"spec": null}), "spec: Required value"),
        spec(json!({"serviceReference": null}), "spec.serviceReference: Required value"),
        spec(json!({"type": null}), "spec.type: Required value"),
        spec(json!({"type": "LoadBalancer"}), "spec.type: Unsupported value: \"LoadBalancer\""),
        spec(json!({"ipFamilies": ["IPv5"]}), "spec.ipFamilies[0]: Unsupported value: \"IPv5\""),
        spec(json!({"clusters": null}), "spec.clusters: Required value"),
        spec(json!({"clusters": [{}]}), "spec.clusters[0].cluster: Required value"),
        spec(
            json!({"exportedAnnotations": [{"name": "a", "value": "b".repeat(1_025)}]}),
            "spec.exportedAnnotations[0].value: Too long",
        ),
    ]
}
