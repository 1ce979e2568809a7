//! Rules of the hub agent: which export is accepted, who may export and import, and which member gets which slice.
//!
//! | file | rules |
//! |---|---|
//! | [`view`] | everything that the hub agent knows, and the keys that a change affects |
//! | [`conflict`] | from many exports of one Service to one ServiceImport: the accepted and the conflicted exports |
//! | [`claims`] | the members that may import a Service, exclusively or shared |
//! | [`rights`] | the members that may export from, and import from, a namespace of the hub |
//! | [`distribute`] | the importers that get a slice |

pub mod claims;
pub mod conflict;
pub mod distribute;
pub mod rights;
pub mod view;

pub use view::{Key, View};
pub(crate) use view::{Source, live};
