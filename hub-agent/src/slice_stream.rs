//! Flags of the slice stream: its addresses and its certificate.

use crate::flags::Flags;
use crate::stream::{Message, Server};
use anyhow::Context as _;
use fleetnet_agent::host_port::HostPort;
use fleetnet_core::model::SliceStreamOffer;
use fleetnet_runtime::limits::CERTIFICATE_REREAD_AFTER;
use fleetnet_runtime::process::admin::{BindAddress, Certificates, Server as CertificateUse};
use fleetnet_runtime::process::lease;
use fleetnet_runtime::process::listeners::Listeners;
use futures::future::{BoxFuture, FutureExt as _};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Checks the flags of the slice stream.
///
/// # Errors
/// If a value is malformed, or if another flag is missing. The message names the flag.
pub(crate) fn check(flags: &Flags) -> Result<(), String> {
    let is_on = address(flags)? != BindAddress::Off;
    let advertised = advertised(flags)?;
    if !is_on && advertised.is_some() {
        return Err(
            "--slice-stream-advertise-address needs --slice-stream-bind-address: the address to listen on".to_owned()
        );
    }
    if is_on && flags.slice_stream_cert_path.is_none() && advertised.is_none() {
        return Err(
            "--slice-stream-bind-address needs --slice-stream-cert-path, the folder with tls.crt and tls.key, or \
                    --slice-stream-advertise-address for a self-signed certificate"
                .to_owned(),
        );
    }
    Ok(())
}

fn address(flags: &Flags) -> Result<BindAddress, String> {
    flags.slice_stream_bind_address.parse().map_err(|error| format!("--slice-stream-bind-address: {error}"))
}

fn advertised(flags: &Flags) -> Result<Option<HostPort>, String> {
    let address = flags.slice_stream_advertise_address.as_deref().filter(|address| !address.is_empty());
    let malformed = |error| format!("--slice-stream-advertise-address: {error}");
    address.map(|address| address.parse().map_err(malformed)).transpose()
}

/// Open listener of the slice stream.
pub(crate) struct Listener {
    listener: TcpListener,
    certificates: Arc<Certificates>,
    advertised: Option<HostPort>,
    listeners: Listeners,
}

impl Listener {
    /// Listens on the address in the flags, on the thread of the listeners. `None` if the slice stream is off.
    pub(crate) async fn open(flags: &Flags, listeners: &Listeners) -> anyhow::Result<Option<Self>> {
        let address = address(flags).map_err(anyhow::Error::msg)?;
        if address == BindAddress::Off {
            return Ok(None);
        }
        let advertised = advertised(flags).map_err(anyhow::Error::msg)?;
        let failed = format!("cannot listen on {address} for the slice stream");
        let listener = listeners.run(async move { address.listen().await }).await;
        let listener = listener.context(failed)?;
        let folder = flags.slice_stream_cert_path.as_deref();
        let host = advertised.as_ref().map_or_else(lease::hostname, |advertised| advertised.host.clone());
        let certificates = Certificates::open(CertificateUse::SLICE_STREAM, folder, &host).await?;
        tracing::info!(address = %listener.local_addr()?, "serving the slice stream");
        let certificates = Arc::new(certificates);
        Ok(Some(Self { listener, certificates, advertised, listeners: listeners.clone() }))
    }

    /// Returns the tasks that serve the streams, and the task that offers them to the members, if they are advertised.
    /// All run on the thread of the listeners. `server` has the task that must run beside it.
    pub(crate) fn tasks(
        self,
        (server, beside): (Server, BoxFuture<'static, ()>),
        inbox: mpsc::Sender<Message>,
    ) -> impl Iterator<Item = BoxFuture<'static, ()>> {
        let Self { listener, certificates, advertised, listeners } = self;
        let offer = advertised.map(|address| offer(address, Arc::clone(&certificates), inbox).boxed());
        let tasks = [server.listen(listener, certificates), beside].into_iter().chain(offer);
        tasks.map(move |task| listeners.run(task).boxed())
    }
}

/// Offers the slice stream at this address to the members, and offers it again each time the authorities of the
/// certificate are replaced. Ends with the engine.
async fn offer(address: HostPort, certificates: Arc<Certificates>, inbox: mpsc::Sender<Message>) {
    let mut last: Option<Arc<str>> = None;
    while !inbox.is_closed() {
        let authorities = certificates.authorities().await;
        if last.as_ref() != Some(&authorities) {
            let offer = SliceStreamOffer { address: address.to_string().into(), ca_bundle: (&*authorities).into() };
            // Fails only when the engine has ended.
            let _ = inbox.send(Message::Offer(offer)).await;
            last = Some(authorities);
        }
        sleep(CERTIFICATE_REREAD_AFTER).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use std::io::Read as _;
    use std::path::Path;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::timeout;

    /// Rule J20: A flag of the slice stream needs another flag, or `--object-lag` is above 30 s
    /// Then: The hub agent does not start, and names the flags
    ///
    /// Also rule G1.
    #[test]
    fn a_flag_that_is_missing_or_malformed_is_named() {
        let error = |flags: &[&str]| {
            let flags = Flags::try_parse_from([&["hub-agent"], flags].concat()).expect("flags");
            check(&flags).err().unwrap_or_default()
        };
        assert_eq!(error(&[]), "", "it is off");
        let bind = "--slice-stream-bind-address=:8443";
        assert_eq!(error(&[bind, "--slice-stream-cert-path=/certificate"]), "");
        assert!(error(&[bind]).starts_with("--slice-stream-bind-address needs --slice-stream-cert-path"));
        assert!(error(&["--slice-stream-bind-address=x"]).starts_with("--slice-stream-bind-address: "));
        let advertise = "--slice-stream-advertise-address=hub:8443";
        assert_eq!(error(&[bind, advertise]), "", "the certificate is self-signed");
        assert!(error(&[advertise]).starts_with("--slice-stream-advertise-address needs --slice-stream-bind-address"));
        let malformed = error(&[bind, "--slice-stream-advertise-address=hub"]);
        assert_eq!(malformed, "--slice-stream-advertise-address: \"hub\" is not HOST:PORT");
    }

    fn write(folder: &Path, authority: &str) {
        let certificate = rcgen::generate_simple_self_signed(["hub".to_owned()]).expect("a certificate");
        let files = [("tls.crt", certificate.cert.pem()), ("tls.key", certificate.signing_key.serialize_pem())];
        for (name, content) in files.into_iter().chain([("ca.crt", authority.to_owned())]) {
            std::fs::write(folder.join(name), content).expect("a folder");
        }
    }

    /// Also rule K14.
    #[tokio::test]
    async fn connections_are_accepted_while_the_thread_of_the_engine_is_busy() {
        let bind = ["--slice-stream-bind-address=127.0.0.1:0", "--slice-stream-advertise-address=hub:8443"];
        let flags = Flags::try_parse_from(["hub-agent"].into_iter().chain(bind)).expect("flags");
        let listeners = Listeners::start().expect("a thread");
        let opened = Listener::open(&flags, &listeners).await.expect("a free port").expect("it is on");
        let address = opened.listener.local_addr().expect("it listens");
        listeners.runtime().spawn(async move {
            let (mut stream, _) = opened.listener.accept().await?;
            stream.write_all(b"accepted").await
        });
        // This thread does nothing else until the answer is there.
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert_eq!(answer, "accepted");
    }

    /// Also rule J18.
    #[tokio::test(start_paused = true)]
    async fn a_replaced_authority_is_offered_within_ten_seconds() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "one");
        let certificates = Certificates::open(CertificateUse::SLICE_STREAM, Some(folder.path()), "hub").await;
        let (inbox, mut offers) = mpsc::channel(1);
        let address = "hub:8443".parse().expect("an address");
        let _task = tokio::spawn(offer(address, Arc::new(certificates.expect("files")), inbox));
        let mut next = async || match timeout(Duration::from_secs(60), offers.recv()).await.expect("an offer in time") {
            Some(Message::Offer(offer)) => (offer.address.to_string(), offer.ca_bundle.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(next().await, ("hub:8443".to_owned(), "one".to_owned()));
        write(folder.path(), "two");
        assert_eq!(next().await, ("hub:8443".to_owned(), "two".to_owned()));
    }
}
