//! Tests that the CustomResourceDefinitions in `deploy/multicluster` equal those of the Go module
//! `sigs.k8s.io/mcs-api`, apart from descriptions.

use anyhow::Context as _;
use fleetnet_api::crds::{file_name, mcs, yaml};
use fleetnet_api::names::labels;
use serde_json::Value;

#[test]
fn the_definitions_equal_those_of_the_go_module_apart_from_descriptions() -> anyhow::Result<()> {
    let folder = programs::mcs_api::locate()?.join("config/crd");
    let ours = mcs();
    assert_eq!(ours.len(), std::fs::read_dir(&folder)?.filter(|entry| is_yaml(entry.as_ref())).count());
    for definition in ours {
        let path = folder.join(file_name(&definition));
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut theirs: Value = serde_saphyr::from_str(&text)?;
        let mut ours: Value = serde_saphyr::from_str(&yaml(&definition))?;
        let labels = ours["metadata"]["labels"].as_object_mut().context("no labels")?;
        assert_eq!(labels.remove(labels::PART_OF), Some("fleetnet".into()));
        theirs["metadata"].as_object_mut().context("no metadata")?.remove("annotations");
        remove_descriptions(&mut ours);
        remove_descriptions(&mut theirs);
        assert_eq!(ours, theirs, "{}", path.display());
    }
    Ok(())
}

fn is_yaml(entry: Result<&std::fs::DirEntry, &std::io::Error>) -> bool {
    entry.is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "yaml"))
}

/// Removes the descriptions of a schema at every depth. A property with this name stays: its value is a schema.
fn remove_descriptions(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|name, value| name != "description" || !value.is_string());
            object.values_mut().for_each(remove_descriptions);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}
