//! Tests of the list of Services.

use super::*;
use crate::fixture::{conditions, healthy, meta, object, reference};
use crate::snapshot::Listing;
use serde_json::json;

#[test]
fn a_service_has_its_exporters_importers_and_endpoints() {
    let found = services(&healthy(), None);
    assert_eq!(found.verdict, Verdict::Healthy);
    let expected = ServiceRow {
        namespace: "shop".to_owned(),
        name: "app".to_owned(),
        type_: Some("ClusterSetIP".to_owned()),
        exporters: vec!["west".to_owned()],
        importers: vec!["east".to_owned()],
        endpoints: 1,
        conflicts: Vec::new(),
        ready: true,
    };
    assert_eq!(found.services, [expected]);
    assert_eq!(services(&healthy(), Some("other")).services, []);
}

#[test]
fn a_conflict_is_a_fault_and_its_endpoints_do_not_count() {
    let mut snapshot = healthy();
    let conflicted = json!({
        "metadata": meta("fleet-member-east", "shop-app"),
        "spec": {"ports": [], "serviceReference": reference("east", "Service", "app")},
        "status": {"conditions": conditions("Conflict", "True", "ConflictFound")},
    });
    let exports = snapshot.hub.internal_exports.objects_mut().expect("they are known");
    exports.push(object("InternalServiceExport", conflicted));
    let slice = json!({"metadata": meta("fleet-member-east", "east-slice"), "spec": crate::fixture::slice_spec()});
    let slices = snapshot.hub.slice_exports.objects_mut().expect("they are known");
    slices.push(object("EndpointSliceExport", slice));
    let found = services(&snapshot, None);
    assert_eq!(found.verdict, Verdict::Fault);
    let row = &found.services[0];
    assert_eq!((row.exporters.len(), row.conflicts.as_slice(), row.endpoints), (2, ["east".to_owned()].as_slice(), 1));
    assert!(!row.ready);
}

#[test]
fn a_claim_that_is_not_granted_is_not_ready() {
    let mut snapshot = healthy();
    snapshot.hub.service_imports.objects_mut().expect("they are known")[0].metadata.annotations = None;
    let found = services(&snapshot, None);
    assert_eq!((found.verdict, found.services[0].ready), (Verdict::Healthy, false));
}

#[test]
fn a_kind_that_was_not_read_is_named() {
    let mut snapshot = healthy();
    snapshot.hub.claims = Listing::Denied("forbidden".to_owned());
    let found = services(&snapshot, None);
    assert_eq!(found.verdict, Verdict::NotKnown);
    assert_eq!(found.not_known, ["hub: InternalServiceImports: denied: forbidden"]);
}
