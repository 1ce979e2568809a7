//! Expected writes of the main job. Each ledger is an array of three parts: writes in the hub, in the exporter and in
//! the importer.

use crate::environment::Environment;
use crate::ledger::counts;
use std::collections::BTreeMap;

/// Returns the expected writes for the first export of a Service with one slice: in the hub, in the exporter and in the
/// importer.
pub(super) fn first_export<B>(env: &Environment<B>) -> [BTreeMap<String, usize>; 3] {
    let (exporter, user) = (&env.members[0].hub_namespace, &env.namespace);
    [
        counts(&[
            (1, format!("create internalserviceexports in {exporter} by member-agent")),
            (1, format!("patch internalserviceexports in {exporter} by hub-agent")),
            (1, format!("create serviceimports in {user} by hub-agent")),
            (1, format!("patch serviceimports/status in {user} by hub-agent")),
            (1, format!("patch internalserviceexports/status in {exporter} by hub-agent")),
            (1, format!("create endpointsliceexports in {exporter} by member-agent")),
        ]),
        counts(&[
            (2, format!("patch serviceexports/status in {user} by member-agent")),
            (1, format!("patch serviceexports in {user} by member-agent")),
        ]),
        BTreeMap::new(),
    ]
}

/// Returns the expected writes for the first import of a Service with one exported slice: in the hub, in the exporter
/// and in the importer.
pub(super) fn first_import<B>(env: &Environment<B>) -> [BTreeMap<String, usize>; 3] {
    let [exporter, importer] = [&env.members[0].hub_namespace, &env.members[1].hub_namespace];
    let user = &env.namespace;
    [
        counts(&[
            (1, format!("create internalserviceimports in {importer} by member-agent")),
            (1, format!("patch internalserviceimports in {importer} by hub-agent")),
            (1, format!("patch serviceimports in {user} by hub-agent")),
            (1, format!("patch internalserviceimports/status in {importer} by hub-agent")),
            (1, format!("patch endpointsliceexports in {exporter} by hub-agent")),
            (1, format!("create endpointsliceimports in {importer} by hub-agent")),
            (1, format!("patch endpointsliceimports in {importer} by member-agent")),
        ]),
        BTreeMap::new(),
        counts(&[
            (2, format!("patch multiclusterservices in {user} by member-agent")),
            (2, format!("patch multiclusterservices/status in {user} by member-agent")),
            (1, format!("create serviceimports in {user} by member-agent")),
            (1, format!("patch serviceimports/status in {user} by member-agent")),
            (1, "create services in fleet-system by member-agent".to_owned()),
            (1, "create endpointslices in fleet-system by member-agent".to_owned()),
        ]),
    ]
}

/// Returns the expected writes for the removal of an imported Service's only export, with one slice: in the hub, in the
/// exporter and in the importer.
pub(super) fn unexport<B>(env: &Environment<B>) -> [BTreeMap<String, usize>; 3] {
    let [exporter, importer] = [&env.members[0].hub_namespace, &env.members[1].hub_namespace];
    let user = &env.namespace;
    [
        counts(&[
            (1, format!("delete internalserviceexports in {exporter} by member-agent")),
            (1, format!("patch internalserviceexports in {exporter} by hub-agent")),
            (1, format!("delete serviceimports in {user} by hub-agent")),
            (1, format!("patch serviceimports in {user} by hub-agent")),
            (1, format!("patch internalserviceimports/status in {importer} by hub-agent")),
            (1, format!("patch internalserviceimports in {importer} by hub-agent")),
            (1, format!("delete endpointsliceexports in {exporter} by member-agent")),
            (1, format!("delete endpointsliceimports in {importer} by hub-agent")),
            (1, format!("patch endpointsliceexports in {exporter} by hub-agent")),
            (1, format!("patch endpointsliceimports in {importer} by member-agent")),
        ]),
        counts(&[(1, format!("patch serviceexports in {user} by member-agent"))]),
        counts(&[
            (1, format!("patch serviceimports/status in {user} by member-agent")),
            (1, format!("patch multiclusterservices/status in {user} by member-agent")),
            (1, format!("patch multiclusterservices in {user} by member-agent")),
            (1, "delete services in fleet-system by member-agent".to_owned()),
            (1, "delete endpointslices in fleet-system by member-agent".to_owned()),
        ]),
    ]
}

/// Returns the expected writes for the removal of an import with one slice: in the hub, in the exporter and in the
/// importer.
pub(super) fn unimport<B>(env: &Environment<B>) -> [BTreeMap<String, usize>; 3] {
    let [exporter, importer] = [&env.members[0].hub_namespace, &env.members[1].hub_namespace];
    let user = &env.namespace;
    [
        counts(&[
            (1, format!("delete internalserviceimports in {importer} by member-agent")),
            (1, format!("patch internalserviceimports in {importer} by hub-agent")),
            (1, format!("patch serviceimports in {user} by hub-agent")),
            (1, format!("delete endpointsliceimports in {importer} by hub-agent")),
            (1, format!("patch endpointsliceimports in {importer} by member-agent")),
            (1, format!("patch endpointsliceexports in {exporter} by hub-agent")),
        ]),
        BTreeMap::new(),
        counts(&[
            (1, format!("patch multiclusterservices in {user} by member-agent")),
            (1, format!("delete serviceimports in {user} by member-agent")),
            (1, format!("patch serviceimports in {user} by member-agent")),
            (1, "delete services in fleet-system by member-agent".to_owned()),
            (1, "delete endpointslices in fleet-system by member-agent".to_owned()),
        ]),
    ]
}
