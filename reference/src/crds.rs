//! Command `cargo xtask crds`: writes the CustomResourceDefinitions of the types in the `api` crate, as plain manifests and as
//! templates of the Helm chart.

use anyhow::Context as _;
use fleetnet_api::crds::{Form, all, chart_template, file_name, yaml};
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
        Some(directory) => write(Form::Go, directory, yaml),
        None => {
            write(Form::Full, &programs::root().join("deploy/crds"), yaml)?;
            write(Form::Full, &programs::root().join("deploy/charts/fleetnet-crds/templates"), chart_template)
        }
    }
}

fn write(form: Form, directory: &Path, text: fn(&CustomResourceDefinition) -> String) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {} for the definitions", directory.display()))?;
    for definition in all(form) {
        let path = directory.join(file_name(&definition));
        std::fs::write(&path, text(&definition)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
