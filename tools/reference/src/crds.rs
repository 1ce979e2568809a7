//! Command `cargo xtask crds`: writes the CustomResourceDefinitions of the types in the `api` crate, as plain manifests
//! and as templates of the Helm chart.

use anyhow::Context as _;
use fleetnet_api::crds::{Form, all, chart_template, file_name, mcs, yaml};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use std::path::{Path, PathBuf};

/// Arguments of `cargo xtask crds`.
#[derive(Debug, clap::Args)]
pub(crate) struct CrdsArgs {
    /// Write the definitions without fleetnet's additions, as the Go agents' clusters have them, into this directory
    /// instead of `deploy/crds` and the chart.
    #[arg(long, value_name = "DIR")]
    go_form: Option<PathBuf>,
}

/// Writes one file for each kind. Replaces files of the same name.
pub(crate) fn run(args: &CrdsArgs) -> anyhow::Result<()> {
    match &args.go_form {
        Some(directory) => write(&all(Form::Go), directory, yaml),
        None => {
            let (deploy, full) = (programs::root().join("deploy"), all(Form::Full));
            write(&full, &deploy.join("crds"), yaml)?;
            write(&full, &deploy.join("charts/fleetnet-crds/templates"), chart_template)?;
            write(&mcs(), &deploy.join("multicluster"), yaml)
        }
    }
}

fn write(
    definitions: &[CustomResourceDefinition],
    directory: &Path,
    text: fn(&CustomResourceDefinition) -> String,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {} for the definitions", directory.display()))?;
    for definition in definitions {
        let path = directory.join(file_name(definition));
        std::fs::write(&path, text(definition)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
