//! Tests of the protobuf decoder, with bodies that kubectl 1.35 sent.

use super::{Error, parse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

const CONFIG_MAP: &str = "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEioKGAoEY29uZhIAGgRwcm9kIgAqADIAOABCABIOCgVjb2xvchIFZ3JlZW4aACIA";
const NODE_PORT: &str = "azhzAAoNCgJ2MRIHU2VydmljZRJxCiMKA3dlYhIAGgRwcm9kIgAqADIAOABCAFoKCgNhcHASA3dlYhJGCiAKBzgwLWh0\
                         dHASA1RDUBhQIgoIARAAGgRodHRwKIDrARIKCgNhcHASA3dlYhoAIghOb2RlUG9ydDoAQgBSAFoAYABoABoCCgAaACIA";
const SECRET: &str = "azhzAAoMCgJ2MRIGU2VjcmV0EiEKFQoBcxIAGgRwcm9kIgAqADIAOABCABIGCgFhEgFiGgAaACIA";

fn bytes(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

#[test]
fn what_is_empty_is_left_out() {
    let object = parse(&bytes(CONFIG_MAP)).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "conf", "namespace": "prod"},
        "data": {"color": "green"},
    });
    assert_eq!(object, expected);
}

#[test]
fn numbers_texts_lists_and_maps_are_those_of_json() {
    let object = parse(&bytes(NODE_PORT)).unwrap();
    let expected = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "prod", "labels": {"app": "web"}},
        "spec": {
            "ports": [{"name": "80-http", "protocol": "TCP", "port": 80, "targetPort": "http", "nodePort": 30080}],
            "selector": {"app": "web"}, "type": "NodePort",
        },
    });
    assert_eq!(object, expected);
}

#[test]
fn bytes_become_base64() {
    assert_eq!(parse(&bytes(SECRET)).unwrap()["data"], json!({"a": "Yg=="}));
}

#[test]
fn a_body_that_ends_early_is_broken_wherever_it_ends() {
    let whole = bytes(NODE_PORT);
    // The body is the prefix (4 bytes), the field `typeMeta` (15 bytes), the field `raw`, and two empty fields (2 bytes each).
    // A body that ends after the prefix or after one of the first three fields is valid: absent fields count as empty.
    let ends = [4, 19, whole.len() - 4, whole.len() - 2];
    for length in (0..whole.len()).filter(|length| !ends.contains(length)) {
        let outcome = parse(&whole[..length]);
        assert!(outcome.is_err(), "{length} bytes: {outcome:?}");
    }
}

#[test]
fn a_kind_that_is_not_held_is_named() {
    let mut body = bytes(SECRET);
    let place = body.windows(6).position(|window| window == b"Secret").unwrap();
    body[place..place + 6].copy_from_slice(b"Volume");
    let error = parse(&body).unwrap_err();
    assert_eq!(error, Error::NotHeld("Volume in version \"v1\"".to_owned()));
    assert_eq!(error.to_string(), "protobuf is not held for Volume in version \"v1\": send application/json");
}

#[test]
fn numbers_without_an_end_are_broken() {
    let endless = [b"k8s\0".as_slice(), &[0xFF; 32]].concat();
    assert_eq!(parse(&endless), Err(Error::Broken));
}
