//! Reader of conditions that the Go agents and fleetnet 0.1.0 left on a ServiceExport. They show weight 0 only in the message
//! of `Valid`.
//!
//! This is the only place where a decision reads a message. It matters only while a withdrawal is unfinished, because without
//! the cleanup finalizer there is nothing to decide. So this module can go once no upgrade from 0.1.0 and no move from Go
//! agents is supported any more.

use crate::model::Condition;
use fleetnet_types::ObjectName;

/// True if the message of the condition `Valid` says that the export's weight is 0.
pub(super) fn is_weight_zero(export: &ObjectName, valid: &Condition) -> bool {
    // fault S24.4: *valid.message == *format!("exported service {export} with 0 weight") ~> { let _ = (export, valid); false }
    *valid.message == *format!("exported service {export} with 0 weight")
}
