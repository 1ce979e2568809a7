//! Renewal of the token for the hub, with its metrics.

use crate::metrics::{TOKEN_RENEWAL_FAILING, TOKEN_RENEWALS};
use crate::settings::TokenSecret;
use fleetnet_runtime::FlowId;
use fleetnet_runtime::backoff::Jitter;
use fleetnet_runtime::engine::leadership::Leadership;
use fleetnet_runtime::io::client::Cluster;
use fleetnet_runtime::process::token::renewal::{Outcome, Renewal, RenewalError};
use futures::future::{BoxFuture, FutureExt as _};
use prometheus::Registry;
use tokio::sync::watch;

/// Returns the task that renews the token while this process leads. Its metrics are registered at once, so that each
/// replica exports them.
pub(crate) fn renew(
    secret: &TokenSecret,
    hub: &Cluster,
    member: &Cluster,
    identity: &str,
    registry: &Registry,
) -> prometheus::Result<impl FnOnce(watch::Receiver<Leadership>) -> BoxFuture<'static, ()> + Send + use<>> {
    let renewals = TOKEN_RENEWALS.counters(registry)?;
    let failing = TOKEN_RENEWAL_FAILING.gauge(registry)?;
    for result in ["done", "unneeded", "failed"] {
        renewals.with_label_values(&[result]).inc_by(0);
    }
    let report = move |outcome: &Result<Outcome, RenewalError>| {
        let result = match outcome {
            Ok(Outcome::Renewed(_)) => "done",
            Ok(Outcome::NotRenewable(_)) => "unneeded",
            Err(_) => "failed",
        };
        renewals.with_label_values(&[result]).inc();
        failing.set(i64::from(outcome.is_err()));
    };
    let renewal = Renewal {
        issuer: hub.clone(),
        own: member.clone(),
        secret_namespace: secret.namespace.clone(),
        secret_name: secret.name.clone(),
        token_file: secret.token_file.clone(),
    };
    let jitter = Jitter::new(FlowId::of(identity).0);
    Ok(move |leadership| renewal.run(leadership, jitter, report).boxed())
}
