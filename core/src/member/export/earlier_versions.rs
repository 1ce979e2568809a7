//! Reader for what the Go agents and fleetnet 0.1.0 left on a ServiceExport. They tell weight 0 only by the message of `Valid`.
//!
//! This is the only place where a decision reads a message. It matters only while a withdrawal is unfinished, because without
//! the cleanup finalizer there is nothing to decide. So it may go once no upgrade from 0.1.0 and no move from Go agents is
//! supported any more.

use crate::model::Condition;
use fleetnet_types::ObjectName;

/// True if the message of `Valid` tells that the weight of the export is 0.
pub(super) fn is_weight_zero(export: &ObjectName, valid: &Condition) -> bool {
    // fault S24.4: *valid.message == *format!("exported service {export} with 0 weight") ~> { let _ = (export, valid); false }
    *valid.message == *format!("exported service {export} with 0 weight")
}
