//! Rules of Leases.

use super::shape::{Shape, Struct, TEXT, always, present};
use super::{Context, Findings, Strategy, Undecodable, shape};
use crate::object::{Object, at};
use crate::status::FieldError;
use serde_json::Value;

static LEASE: Struct = Struct { name: "v1.Lease", fields: &[always("spec", Shape::Struct(&SPEC))] };

static SPEC: Struct = Struct {
    name: "v1.LeaseSpec",
    fields: &[
        present("holderIdentity", TEXT),
        present("leaseDurationSeconds", Shape::Int32),
        present("acquireTime", Shape::MicroTime),
        present("renewTime", Shape::MicroTime),
        present("leaseTransitions", Shape::Int32),
        present("strategy", Shape::Text("v1.CoordinatedLeaseStrategy")),
        present("preferredHolder", TEXT),
    ],
};

/// Fields that kube-apiserver drops while the feature gate `CoordinatedLeaderElection` is off, as it is by default.
const GATED: [&str; 2] = ["strategy", "preferredHolder"];

/// Strategy of Leases. A replace creates an absent Lease. An update of a Lease must have a resourceVersion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease;

impl Strategy for Lease {
    fn decode(&self, _: &str, object: &mut Object, findings: &mut Findings) -> Result<(), Undecodable> {
        shape::read(&LEASE, object, findings)?;
        if let Some(Value::Object(spec)) = object.get_mut("spec") {
            GATED.iter().for_each(|name| drop(spec.remove(*name)));
        }
        Ok(())
    }

    fn validate(&self, _: &mut Context<'_>, object: &Object) -> Vec<FieldError> {
        let number = |field: &str| at(object, field).and_then(Value::as_i64);
        let mut errors = Vec::new();
        if let Some(seconds) = number("spec.leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            let why = "must be greater than 0";
            errors.push(FieldError::invalid("spec.leaseDurationSeconds", &Value::from(seconds), why));
        }
        if let Some(count) = number("spec.leaseTransitions").filter(|count| *count < 0) {
            let why = "must be greater than or equal to 0";
            errors.push(FieldError::invalid("spec.leaseTransitions", &Value::from(count), why));
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }
}
