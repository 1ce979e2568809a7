//! Reader of conditions that the Go agents and fleetnet 0.1.0 wrote to a ServiceExport. These agents show weight 0 only
//! in the message of the condition `Valid`.
//!
//! No other rule reads a message of a condition. The message matters only while a withdrawal is unfinished, that is,
//! while the ServiceExport still has its cleanup finalizer. Delete this module when upgrades from 0.1.0 and migrations
//! from Go agents are no longer supported.

use crate::model::Condition;
use fleetnet_types::ObjectName;

/// True if the message of the condition `Valid` shows that the export's weight is 0.
pub(super) fn is_weight_zero(export: &ObjectName, valid: &Condition) -> bool {
    *valid.message == *format!("exported service {export} with 0 weight")
}
