//! ServiceExport of either API, and the outcome of its export in the hub.

use super::evidence::{condition, created};
use super::step_result::{Site, Stop};
use crate::report::Api;
use fleetnet_api::crd::{InternalServiceExport, ServiceExport, mcs};
use fleetnet_core::conditions::{CONFLICT, MCS_CONFLICT};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::Resource as _;

/// ServiceExport of one of the two APIs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Export<'a> {
    Fleet(&'a ServiceExport),
    Mcs(&'a mcs::ServiceExport),
}

impl<'a> Export<'a> {
    pub(super) fn meta(self) -> &'a ObjectMeta {
        match self {
            Self::Fleet(export) => export.meta(),
            Self::Mcs(export) => export.meta(),
        }
    }

    pub(super) fn condition(self, type_: &str) -> Option<&'a Condition> {
        let conditions = match self {
            Self::Fleet(export) => export.status.as_ref().and_then(|status| status.conditions.as_ref()),
            Self::Mcs(export) => export.status.as_ref().and_then(|status| status.conditions.as_ref()),
        };
        condition(conditions, type_)
    }

    pub(super) fn created(self) -> Option<jiff::Timestamp> {
        match self {
            Self::Fleet(export) => created(export),
            Self::Mcs(export) => created(export),
        }
    }

    pub(super) fn broken(self, site: Site<'_>, field: &str, value: &str) -> Stop {
        match self {
            Self::Fleet(export) => site.broken(export, field, value),
            Self::Mcs(export) => site.broken(export, field, value),
        }
    }

    pub(super) fn broken_condition(self, site: Site<'_>, condition: &Condition) -> Stop {
        match self {
            Self::Fleet(export) => site.broken_condition(export, condition),
            Self::Mcs(export) => site.broken_condition(export, condition),
        }
    }
}

/// True if this API exports the Service of an InternalServiceExport.
pub(crate) fn is_by(export: &InternalServiceExport, api: Api) -> bool {
    let part = export.spec.multicluster.as_ref();
    match api {
        Api::Fleet => part.is_none_or(|part| part.only != Some(true)),
        Api::Mcs => part.is_some(),
    }
}

/// Returns the outcome of the conflict resolution of an export, or of its merge by the standard API.
pub(crate) fn outcome(export: &InternalServiceExport, api: Api) -> Option<&Condition> {
    of_internal_export(export, outcome_type(api))
}

pub(super) const fn outcome_type(api: Api) -> &'static str {
    match api {
        Api::Fleet => CONFLICT,
        Api::Mcs => MCS_CONFLICT,
    }
}

pub(crate) fn of_export<'a>(export: &'a ServiceExport, type_: &str) -> Option<&'a Condition> {
    condition(export.status.as_ref().and_then(|status| status.conditions.as_ref()), type_)
}

pub(super) fn of_internal_export<'a>(export: &'a InternalServiceExport, type_: &str) -> Option<&'a Condition> {
    condition(export.status.as_ref().and_then(|status| status.conditions.as_ref()), type_)
}
