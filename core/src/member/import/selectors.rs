//! Cluster selectors of a MultiClusterService: its claim carries them to the hub agent, which evaluates them.

use crate::conditions::{self, CLUSTER_SELECTORS_VALID, ConditionValue, DesiredCondition};
use crate::member::view::Reader;
use crate::model::{InternalServiceImport, MultiClusterService};
use crate::plan::{Patch, Write};

/// Returns the write of the selectors to the claim. While they are malformed, the claim keeps those that it has.
pub(super) fn write(
    view: Reader<'_>,
    request: Option<&MultiClusterService>,
    claim: &InternalServiceImport,
) -> Option<Write> {
    let wanted = match &request?.cluster_selectors {
        _ if view.settings().cluster_selection.is_none() => Vec::new(),
        Ok(selectors) => selectors.clone(),
        Err(_) => return None,
    };
    (claim.selectors != wanted).then(|| Write::patch(&claim.meta, Patch::ClaimSelectors(wanted)))
}

/// Returns the desired condition `ClusterSelectorsValid` of a MultiClusterService. `None` if it is absent and stays so.
pub(super) fn condition(
    view: Reader<'_>,
    request: &MultiClusterService,
    component: &'static str,
) -> Option<DesiredCondition> {
    view.settings().cluster_selection.as_ref()?;
    let value = match &request.cluster_selectors {
        Err(why) => ConditionValue::cluster_selectors_malformed(
            "MultiClusterService",
            &request.meta.name,
            &view.settings().cluster,
            why,
        ),
        Ok(_) => {
            conditions::find(&request.conditions, CLUSTER_SELECTORS_VALID)?;
            ConditionValue::cluster_selectors_read()
        }
    };
    Some(DesiredCondition::new(CLUSTER_SELECTORS_VALID, value, component))
}
