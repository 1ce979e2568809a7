//! Tests of Services that ask for topology hints.

use super::*;

/// Cases of kube-controller-manager's `Test_hintsEnabled`.
#[test]
fn the_nineteen_cases_of_the_annotation() {
    let (hints, mode) = (ANNOTATION_TOPOLOGY_HINTS, ANNOTATION_TOPOLOGY_MODE);
    let cases: [(&[(&str, &str)], bool); 19] = [
        (&[], false),
        (&[("topology-hints", "enabled")], false),
        (&[(hints, "enabled")], false),
        (&[(hints, "aUto")], false),
        (&[(hints, "auto")], true),
        (&[(hints, "Auto")], true),
        (&[(hints, "disabled")], false),
        (&[(mode, "enabled")], false),
        (&[(mode, "aUto")], false),
        (&[(mode, "auto")], true),
        (&[(mode, "Auto")], true),
        (&[(mode, "disabled")], false),
        (&[(mode, "enabled")], false),
        (&[(mode, "aUto")], false),
        (&[(mode, "auto")], true),
        (&[(mode, "Auto")], true),
        (&[(mode, "disabled")], false),
        (&[(mode, "disabled"), (hints, "auto")], true),
        (&[(mode, "auto"), (hints, "disabled")], false),
    ];
    for (annotations, expected) in cases {
        let mut service = Service::default();
        service.metadata.annotations = annotations.iter().copied().collect();
        assert_eq!(is_topology_aware(&service), expected, "{annotations:?}");
    }
}
