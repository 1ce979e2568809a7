//! What should be done about the slices of one Service.

mod draft;

pub use draft::{AssignHints, Draft, LeaveHints, Update};
