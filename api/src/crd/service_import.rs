//! ServiceImport: in the hub, the merged Service of all accepted exports; in a member, the copy of the hub's ServiceImport.
#![expect(unreachable_pub, reason = "the derived schema repeats the struct inside a function")]

use super::shared::ServiceImportStatus;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// ServiceImport has no spec, because its name is that of the imported Service.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "networking.fleet.azure.com",
    version = "v1alpha1",
    kind = "ServiceImport",
    plural = "serviceimports",
    shortname = "svcimport",
    category = "fleet-networking",
    namespaced,
    no_spec,
    status = "ServiceImportStatus",
    derive = "PartialEq",
    doc = "ServiceImport stands for a Service that is exported by other clusters of the fleet.",
    validation = Rule::new("size(self.metadata.name) < 64").message("metadata.name max length is 63")
)]
pub struct ServiceImportFields {}
