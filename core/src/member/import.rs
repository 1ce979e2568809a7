//! Import: creates Services and slices in a member from ServiceImports and distributed slices in the hub.
//!
//! ```text
//!  MultiClusterService ─► ServiceImport ─► InternalServiceImport (the claim, in the hub)
//!          │                    ◄── status ──┘
//!          └─► derived Service ◄── bound to ── imported EndpointSlice ◄── EndpointSliceImport (in the hub)
//! ```

mod binding;
mod candidates;
mod claim;
mod load_balancer;
mod multi_cluster_service;
mod owned;
mod selected;
mod selectors;
mod silent;
mod slice;
mod target;

use crate::plan::Plan;
use std::ops::ControlFlow;

pub(crate) use binding::{binding, derived_service};
pub(crate) use candidates::candidates;
pub(crate) use claim::{plan_import, plan_unclaimed_import};
pub(crate) use multi_cluster_service::plan_multi_cluster_service;
pub(crate) use slice::plan_slice;
pub(crate) use target::{Listing, granted_claims, listing};

/// Outcome of a step of a plan: the plan, if it ends with this step.
type Step<T = ()> = ControlFlow<Plan, T>;

/// Returns the outcome of a step that ends with this plan, if there is one.
fn end_with(plan: Option<Plan>) -> Step {
    plan.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Returns the plan of all its steps.
fn all(steps: Step<Plan>) -> Plan {
    match steps {
        ControlFlow::Continue(plan) | ControlFlow::Break(plan) => plan,
    }
}
