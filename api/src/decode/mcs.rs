//! Decoder of parts for the API group `multicluster.x-k8s.io`.

use crate::crd::internal_service_export::RawSelector;
use crate::lenient::{Few, Field, Short, records};
use crate::limits::{LABEL_BYTES_MAX, NAMESPACED_NAME_BYTES_MAX};
use crate::wire::{Plain, Rule, Strict};
use fleetnet_core::limits::{CLUSTER_SELECTORS_MAX, EXPORTED_ANNOTATION_BYTES_MAX, EXPORTED_LABELS_MAX};
use fleetnet_core::model::{ExportedBy, IpFamily, McsExport, McsProperties};
use fleetnet_types::{Text, Timestamp};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Number of IP families.
// no limit: there are two
const FAMILIES: usize = 2;

pub(super) type Families = Few<IpFamily, FAMILIES>;
pub(super) type NamedValues = Few<RawNamedValue, EXPORTED_LABELS_MAX>;
pub(super) type ShortText = Short<Text, LABEL_BYTES_MAX>;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawMcsExport {
    only: Field<bool>,
    export_creation_timestamp: Field<Timestamp>,
    recreated: Field<bool>,
    cluster_selectors: Field<Few<RawSelector, CLUSTER_SELECTORS_MAX>>,
    ip_families: Field<Families>,
    internal_traffic_policy: Field<ShortText>,
    traffic_distribution: Field<ShortText>,
    exported_labels: Field<NamedValues>,
    exported_annotations: Field<NamedValues>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RawNamedValue {
    name: Field<Short<Text, NAMESPACED_NAME_BYTES_MAX>>,
    value: Field<Short<Text, EXPORTED_ANNOTATION_BYTES_MAX>>,
}

records!(RawMcsExport, RawNamedValue);

pub(super) fn mcs_part(raw: RawMcsExport) -> Result<McsExport, &'static str> {
    Ok(McsExport {
        exported_by: if raw.only.or_default() { ExportedBy::McsApi } else { ExportedBy::Both },
        properties: mcs_properties(
            raw.ip_families,
            [raw.internal_traffic_policy, raw.traffic_distribution],
            [raw.exported_labels, raw.exported_annotations],
        ),
        export_created: raw.export_creation_timestamp.value(),
        is_recreated: raw.recreated.or_default(),
        cluster_selectors: Strict::<Plain<_>>::read(raw.cluster_selectors, "clusterSelectors is not a list")?,
    })
}

/// Returns the properties from the fields `ipFamilies`, `internalTrafficPolicy` and `trafficDistribution`,
/// `exportedLabels` and `exportedAnnotations`. Two kinds have these fields.
pub(super) fn mcs_properties(
    ip_families: Field<Families>,
    [internal_traffic_policy, traffic_distribution]: [Field<ShortText>; 2],
    [labels, annotations]: [Field<NamedValues>; 2],
) -> McsProperties {
    McsProperties {
        families: ip_families.list().or_default(),
        internal_traffic_policy: internal_traffic_policy.text().value(),
        traffic_distribution: traffic_distribution.text().value(),
        labels: named_values(labels),
        annotations: named_values(annotations),
    }
}

/// Returns labels or annotations. Entries without a name are left out.
fn named_values(raw: Field<NamedValues>) -> BTreeMap<Text, Text> {
    let entry = |raw: RawNamedValue| Some((raw.name.text().value()?, raw.value.text().or_default()));
    raw.list().or_default().into_iter().filter_map(entry).collect()
}
