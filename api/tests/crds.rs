//! Tests of the CustomResourceDefinitions that fleetnet installs: the files in `deploy/crds` are current and have the
//! published names of the group.
#![allow(clippy::unwrap_used, reason = "a test may end at what it did not expect")]

use fleetnet_api::crds::{Form, REVISION, all, chart_template, file_name, mcs, yaml};
use fleetnet_api::names::labels;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the names and texts of the files in a folder of `deploy/` that begin with the name of a group.
fn committed(folder: &str) -> BTreeMap<String, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(folder);
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_definition =
            ["networking.fleet.azure.com_", "multicluster.x-k8s.io_"].iter().any(|it| name.starts_with(it));
        is_definition.then(|| (name, std::fs::read_to_string(&path).unwrap()))
    };
    let missing = |error| panic!("deploy/{folder}: {error}: run `cargo xtask crds`");
    std::fs::read_dir(&directory).unwrap_or_else(missing).filter_map(read).collect()
}

#[test]
fn the_files_in_deploy_and_in_the_chart_are_current() {
    type Text = fn(&CustomResourceDefinition) -> String;
    let folders = [
        ("crds", all(Form::Full), yaml as Text),
        ("charts/fleetnet-crds/templates", all(Form::Full), chart_template as Text),
        ("multicluster", mcs(), yaml as Text),
    ];
    for (folder, definitions, text) in folders {
        let committed = committed(folder);
        let generated: BTreeMap<String, String> =
            definitions.iter().map(|definition| (file_name(definition), text(definition))).collect();
        let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&committed), names(&generated), "run `cargo xtask crds` and remove what is not of its making");
        for (name, text) in &generated {
            assert!(committed[name] == *text, "deploy/{folder}/{name} is not current: run `cargo xtask crds`");
        }
    }
}

#[test]
fn the_revision_is_raised_once_for_what_differs_from_the_previous_release() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/harness/src/fleet/previous");
    let read = |entry: std::io::Result<std::fs::DirEntry>| -> CustomResourceDefinition {
        let path = entry.unwrap().path();
        serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
    };
    let mut previous: Vec<CustomResourceDefinition> = std::fs::read_dir(folder).unwrap().map(read).collect();
    previous.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    let revision_of = |definition: &CustomResourceDefinition| -> u32 {
        let labels = definition.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(labels::CRD_REVISION)).map_or(0, |revision| revision.parse().unwrap())
    };
    let revision = previous.iter().map(revision_of).max().unwrap();
    let specs = |definitions: &[CustomResourceDefinition]| -> Vec<_> {
        definitions.iter().map(|definition| definition.spec.clone()).collect()
    };
    let expected = if specs(&previous) == specs(&all(Form::Full)) { revision } else { revision + 1 };
    assert_eq!(REVISION, expected, "set REVISION in api/src/crds.rs to {expected}, then run `cargo xtask crds`");
}

#[test]
fn braces_in_a_description_do_not_begin_an_action_of_the_charts_template() {
    let mut definition = all(Form::Full).remove(0);
    definition.spec.names.short_names = Some(vec!["{{ fail }}".to_owned()]);
    let template = chart_template(&definition);
    assert!(template.contains(r#"{{ "{{" }} fail }}"#), "{template}");
}

#[test]
fn the_yaml_reads_back_as_the_definition_it_was_made_from() {
    for definitions in [all(Form::Full), all(Form::Go), mcs()] {
        for definition in definitions {
            let read: CustomResourceDefinition = serde_saphyr::from_str(&yaml(&definition)).unwrap();
            assert_eq!(read, definition);
        }
    }
}

#[test]
fn each_kind_has_its_names_versions_columns_and_subresources() {
    let valid = ("Is-Valid", "string", ".status.conditions[?(@.type=='Valid')].status");
    let conflicted = ("Is-Conflicted", "string", ".status.conditions[?(@.type=='Conflict')].status");
    let age = ("Age", "date", ".metadata.creationTimestamp");
    let import = ("Service-Import", "string", ".spec.serviceImport.name");
    // fleetnet adds these columns: the name that clients call, and the type of an import.
    let derived = ("Derived-Service", "string", r".metadata.labels.networking\.fleet\.azure\.com/derived-service");
    let added = [derived, ("Type", "string", ".status.type")];
    let address = ("External-IP", "string", ".status.loadBalancer.ingress[0].ip");
    let agent = [
        ("Version", "string", ".spec.version"),
        ("Hub-Version", "string", ".status.version"),
        ("Renewed", "date", ".spec.renewTime"),
        ("Stopped", "date", ".spec.plannedStopTime"),
        ("Silence", "string", ".status.silence.phase"),
        ("Exports", "integer", ".status.exportedServices"),
        ("Endpoints", "integer", ".status.exportedEndpoints"),
        ("Imports", "integer", ".status.importedServices"),
        ("Exported-Slices", "integer", ".status.exportedSlices"),
        ("Imported-Slices", "integer", ".status.importedSlices"),
        ("Slice-Stream", "string", ".spec.sliceStream.reason"),
        ("Understands", "string", ".spec.features"),
        ("Cluster-UID", "string", ".spec.clusterUid"),
        age,
    ];
    let merged = [
        ("Service", "string", ".spec.serviceReference.namespacedName"),
        ("Type", "string", ".spec.type"),
        ("Clusters", "string", ".spec.clusters[*].cluster"),
        age,
    ];
    let expected: [Facts<'_>; 9] = [
        ("EndpointSliceExport", "endpointsliceexports", &[], &["v1alpha1 stored status"], &[]),
        ("EndpointSliceImport", "endpointsliceimports", &[], &["v1alpha1 stored"], &[]),
        ("InternalServiceExport", "internalserviceexports", &["internalsvcexport"], &["v1alpha1 stored status"], &[]),
        ("InternalServiceImport", "internalserviceimports", &["internalsvcimport"], &["v1alpha1 stored status"], &[]),
        ("MemberAgent", "memberagents", &[], &["v1alpha1 stored status"], &agent),
        ("MergedServiceImport", "mergedserviceimports", &[], &["v1alpha1 stored"], &merged),
        (
            "MultiClusterService",
            "multiclusterservices",
            &["mcs"],
            &["v1alpha1 stored status"],
            &[import, derived, address, valid, age],
        ),
        (
            "ServiceExport",
            "serviceexports",
            &["svcexport"],
            &["v1alpha1 status", "v1beta1 stored status"],
            &[valid, conflicted, age],
        ),
        ("ServiceImport", "serviceimports", &["svcimport"], &["v1alpha1 stored status"], &[added[1], age]),
    ];
    for form in [Form::Full, Form::Go] {
        let definitions = all(form);
        // The Go agents do not have these kinds.
        let is_go = |facts: &&Facts<'_>| !matches!(facts.0, "MemberAgent" | "MergedServiceImport");
        let expected: Vec<_> = expected.iter().filter(|facts| form == Form::Full || is_go(facts)).collect();
        assert_eq!(definitions.len(), expected.len());
        for (definition, facts) in definitions.iter().zip(expected) {
            let mut columns = facts.4.to_vec();
            if form == Form::Go && facts.0 == "ServiceImport" {
                columns.clear();
            }
            columns.retain(|column| form == Form::Full || !added.contains(column));
            check_facts(definition, facts, &columns);
        }
    }
}

/// Expected facts of a definition: kind, plural, short names, versions, printer columns of every version (name, type,
/// path).
type Facts<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str], &'a [(&'a str, &'a str, &'a str)]);

fn check_facts(definition: &CustomResourceDefinition, facts: &Facts<'_>, columns: &[(&str, &str, &str)]) {
    let (kind, plural, short_names, versions, _) = facts;
    let spec = &definition.spec;
    assert_eq!(definition.metadata.name.as_deref(), Some(&*format!("{plural}.networking.fleet.azure.com")));
    assert_eq!(spec.group, "networking.fleet.azure.com");
    assert_eq!(spec.scope, "Namespaced");
    assert!(spec.conversion.is_none(), "{kind}");
    let names = &spec.names;
    assert_eq!((&*names.kind, &*names.plural), (*kind, *plural));
    assert_eq!(names.singular, Some(kind.to_lowercase()));
    assert_eq!(names.list_kind, Some(format!("{kind}List")));
    assert_eq!(names.short_names.clone().unwrap_or_default(), *short_names);
    assert_eq!(names.categories, Some(vec!["fleet-networking".to_owned()]));
    assert_eq!(spec.versions.iter().map(version_in_words).collect::<Vec<_>>(), *versions, "{kind}");
    for version in &spec.versions {
        let found = version.additional_printer_columns.iter().flatten();
        let found: Vec<_> = found.map(|column| (&*column.name, &*column.type_, &*column.json_path)).collect();
        assert_eq!(found, columns, "{kind} {}", version.name);
    }
}

fn version_in_words(version: &CustomResourceDefinitionVersion) -> String {
    let mut words = version.name.clone();
    assert!(version.served && version.deprecated.is_none());
    if version.storage {
        words += " stored";
    }
    if let Some(subresources) = &version.subresources {
        assert!(subresources.scale.is_none());
        assert!(subresources.status.is_some());
        words += " status";
    }
    words
}
