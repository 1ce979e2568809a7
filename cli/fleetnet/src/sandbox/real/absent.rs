//! Servers for `--real` in a build without the feature `real`: a type that has no values.

use crate::sandbox::measure::Ledger;
use fleetnet_runtime::io::client::Cluster;
use std::path::Path;

/// etcd and kube-apiserver of one cluster, which this build cannot start.
pub(crate) enum OnProcesses {}

pub(crate) async fn start(_: &[String]) -> anyhow::Result<(OnProcesses, Vec<OnProcesses>)> {
    anyhow::bail!(crate::args::NO_REAL)
}

impl OnProcesses {
    pub(crate) fn admin(&self) -> kube::Client {
        match *self {}
    }

    pub(crate) async fn cluster(&self, _: &str, _: &str) -> anyhow::Result<Cluster> {
        match *self {}
    }

    pub(crate) async fn ledger(&self, _: &str) -> anyhow::Result<Ledger> {
        match *self {}
    }

    pub(crate) async fn make_namespace(&self, _: &str) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) async fn admit(&self, _: &str) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) async fn admit_mcs_api(&self) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) async fn add_workloads(&self) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) async fn freeze(&self) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) async fn thaw(&self) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) async fn publish(&self, _: &str, _: &Path) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) async fn end(self) -> anyhow::Result<()> {
        match self {}
    }
}
