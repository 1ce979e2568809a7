//! Messages of the slice stream.

use crate::message::check_message;
use fleetnet_core::clocks::{Probe, Samples};
use fleetnet_proto::v1::{
    Preview, ProbeReply, SubscribeRequest, SubscribeResponse, subscribe_request, subscribe_response,
};
use fleetnet_types::Timestamp;
use prost::Message as _;

/// Response of the hub agent to a member agent. A malformed preview gets a short reason. A preview that decodes must
/// decode to the same value after it was encoded again.
///
/// # Panics
/// If a promise is broken.
pub fn subscribe_response(bytes: &[u8]) {
    let Ok(response) = SubscribeResponse::decode(bytes) else { return };
    let again = SubscribeResponse::decode(&*response.encode_to_vec()).expect("what was encoded decodes");
    assert_eq!(again.encode_to_vec(), response.encode_to_vec(), "a response changes when it is encoded again");
    let Some(subscribe_response::Message::Preview(preview)) = response.message else { return };
    match preview.into_model() {
        Err(malformed) => check_message(&malformed.to_string()),
        Ok((slice, spec)) => {
            let encoded = Preview::new(&slice, &spec).expect("the address type of a preview");
            assert_eq!(encoded.into_model(), Ok((slice, spec)), "a preview changes when it is encoded again");
        }
    }
}

/// Request of a member agent to the hub agent. A refused first request gets a short reason. The reply to a probe may
/// have any times.
///
/// # Panics
/// If a promise is broken.
pub fn subscribe_request(bytes: &[u8]) {
    let Ok(request) = SubscribeRequest::decode(bytes) else { return };
    let again = SubscribeRequest::decode(&*request.encode_to_vec()).expect("what was encoded decodes");
    assert_eq!(again, request, "a request changes when it is encoded again");
    if let Some(subscribe_request::Message::ProbeReply(ProbeReply { received_micros, sent_micros, .. })) =
        request.message
    {
        let mut samples = Samples::default();
        for (sent, arrived) in [(0, 1), (sent_micros, received_micros), (i64::MIN, i64::MAX)] {
            let (sent, arrived) = (Timestamp(sent), Timestamp(arrived));
            samples.observe(Probe {
                sent,
                received: Timestamp(received_micros),
                replied: Timestamp(sent_micros),
                arrived,
            });
            let clock = samples.clock(arrived);
            assert!(clock.is_none_or(|clock| clock.uncertainty_micros > 0), "an exact clock: {clock:?}");
        }
    }
    if let Err(refusal) = hub_agent::fuzzing::first_request(request) {
        check_message(refusal.message());
    }
}
