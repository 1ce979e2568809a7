//! Targets for the answers to writes.

use crate::message::check_message;
use fleetnet_runtime::fuzzing;
use serde_json::Value;

/// Compares the object in the answer to a write with the write. The first line of the input is the object, the second
/// line is the merge patch or the new object.
///
/// An object equals itself, both as a patch and as a replacement. A merge patch that was applied changes nothing.
pub fn write_answer(bytes: &[u8]) {
    let mut lines = bytes.splitn(2, |byte| *byte == b'\n');
    let (object, patch) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let (lingers, is_final) = fuzzing::deletion_state(object);
    assert!(!(lingers && is_final), "an object stays and is gone");
    let Ok(object) = serde_json::from_slice::<Value>(object) else { return };
    assert!(fuzzing::is_patched(&object, &object), "a patch with the object itself changes the object");
    assert!(fuzzing::is_replaced(&object, &object), "a replacement with the object itself changes the object");
    let Ok(patch) = serde_json::from_slice::<Value>(patch) else { return };
    let mut patched = object.clone();
    json_patch::merge(&mut patched, &patch);
    assert!(fuzzing::is_patched(&patched, &patch), "the patch {patch} is not in the result {patched}");
    if fuzzing::is_replaced(&object, &patch) {
        assert!(fuzzing::is_replaced(&patch, &object) || !has_uid(&patch), "the comparison depends on the order");
    }
}

fn has_uid(object: &Value) -> bool {
    !object["metadata"]["uid"].is_null()
}

/// Names the other writers in `metadata.managedFields`. The text is short and has no control characters.
pub fn managed_fields(bytes: &[u8]) {
    let Ok(fields) = serde_json::from_slice::<Value>(bytes) else { return };
    let object = serde_json::json!({ "metadata": { "managedFields": fields } });
    let text = fuzzing::field_managers(&object, "fleetnet-member-agent");
    check_message(&text);
    assert!(text.len() <= fuzzing::field_managers_bytes_max(), "{} bytes: {text}", text.len());
    assert!(!text.contains(char::is_control), "a control character: {text:?}");
}
