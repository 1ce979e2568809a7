//! Rules of Leases.

use super::typed::{self, default};
use super::{Context, Findings, Strategy, Undecodable};
use crate::columns::{AGE, Column, NAME};
use crate::object::{Object, at};
use crate::status::FieldError;
use k8s_openapi::api::coordination::v1;
use serde_json::{Value, json};

/// Strategy of Leases. A replace creates an absent Lease. An update of a Lease must have a resourceVersion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease;

impl Strategy for Lease {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        typed::decode::<v1::Lease>(object, findings)?;
        default(object, "spec", json!({}));
        Ok(())
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let least = [("spec.leaseDurationSeconds", 1), ("spec.leaseTransitions", 0)];
        let number = |field: &str| at(object, field).and_then(Value::as_i64);
        let wrong = least.into_iter().filter(|(field, least)| number(field).is_some_and(|number| number < *least));
        wrong
            .map(|(field, least)| FieldError::invalid(field, &Value::Null, &format!("must be at least {least}")))
            .collect()
    }

    fn columns(&self, _: &str) -> Vec<Column> {
        vec![Column::text(NAME.0, NAME.1), Column::text("Holder", "spec.holderIdentity"), Column::age(AGE.0, AGE.1)]
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
