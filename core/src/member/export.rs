//! Export: writes a member's Services and source slices to the hub, and the outcome of conflict resolution to the
//! ServiceExport.
//!
//! A ServiceExport requests the export of the Service with the same name. The member agent creates an
//! InternalServiceExport in the hub. After the hub agent has accepted the export, the member agent creates an
//! EndpointSliceExport for each slice of the Service.
//!
//! A ServiceExport of the standard API requests the export too (`mcs`). A Service has one InternalServiceExport
//! and one set of exported slices for both APIs.
//!
//! The module `eligibility` decides which Services and slices are exported, `slice` writes the exported slices,
//! `withdrawal` removes them, and `source` finds a slice and its exports for both.
//!
//! The UID in the reference of the EndpointSliceExport identifies the source slice. So the export stays connected to
//! its source slice if a user edits labels or annotations (B1b in docs/contributors/behaviour.md).

mod earlier_versions;
mod eligibility;
mod in_hub;
mod mcs;
mod recorded;
mod service;
mod slice;
mod source;
mod weight;
mod withdrawal;

pub(crate) use eligibility::exportable;
pub(crate) use service::plan_service;
pub(crate) use slice::plan_slice;
pub use weight::weight;
