//! Effects of a fault on a response.

use crate::faults::{Answer, Fault};
use crate::service::{Body, BoxError, Reply};
use http::Response;

/// Applies the fault to a response: delays, replaces or drops the response.
pub(super) async fn suffered(fault: &Fault, reply: Reply) -> Result<Response<Body>, BoxError> {
    if !fault.delay_after.is_zero() {
        tokio::time::sleep(fault.delay_after).await;
    }
    match &fault.answer {
        Answer::Whole => Ok(reply.into_response()),
        Answer::Replaced(status) => Ok(Reply::from(&**status).into_response()),
        Answer::Cut => Err("connection reset by peer (a fault that was asked for)".into()),
        Answer::Never => std::future::pending().await,
    }
}
