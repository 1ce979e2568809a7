//! ServiceExport: a user's request to export the Service of the same name. Both versions have the same schema. v1beta1
//! is the stored version.
#![expect(unreachable_pub, reason = "the derived schema repeats the struct inside a function")]

use super::shared::conditions_schema;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use v1beta1::ServiceExport;

/// State of the export.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ServiceExportStatus {
    /// Conditions of the export. Valid is true if the Service may be exported. Conflict is true if the export disagrees
    /// with those of other clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
}

/// Declares a version of ServiceExport.
macro_rules! version {
    ($(#[$doc:meta])* $module:ident, $version:literal) => {
        $(#[$doc])*
        pub mod $module {
            use super::ServiceExportStatus;
            use kube::{CustomResource, KubeSchema};
            use serde::{Deserialize, Serialize};

            /// ServiceExport has no spec, because its name is that of the Service to export.
            #[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
            #[kube(
                group = "networking.fleet.azure.com",
                version = $version,
                kind = "ServiceExport",
                plural = "serviceexports",
                shortname = "svcexport",
                category = "fleet-networking",
                namespaced,
                no_spec,
                status = "ServiceExportStatus",
                derive = "PartialEq",
                doc = "ServiceExport declares that the Service of the same name is exported to the fleet.",
                printcolumn(
                    name = "Is-Valid",
                    type_ = "string",
                    json_path = ".status.conditions[?(@.type=='Valid')].status"
                ),
                printcolumn(
                    name = "Is-Conflicted",
                    type_ = "string",
                    json_path = ".status.conditions[?(@.type=='Conflict')].status"
                ),
                printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
                validation = Rule::new("size(self.metadata.name) < 64").message("metadata.name max length is 63")
            )]
            pub struct ServiceExportFields {}
        }
    };
}

version! {
    /// Version v1alpha1 of ServiceExport, which a server still serves but no longer stores.
    v1alpha1, "v1alpha1"
}

version! {
    /// Version v1beta1 of ServiceExport, which a server stores.
    v1beta1, "v1beta1"
}
