//! Slice streams of members that have no agent: each acknowledges previews at once, answers probes, and records when
//! changes arrive.

use crate::limits::STREAM_REQUESTS;
use crate::objects::marker_in;
use anyhow::Context as _;
use fleetnet_proto::v1::{
    Acknowledgement, Hello, ProbeReply, SubscribeRequest, SubscribeResponse, subscribe_request, subscribe_response,
};
use fleetnet_proto::{PROTOCOL_VERSION, SliceStreamClient};
use fleetnet_runtime::clock::Clock;
use futures::stream::{self, StreamExt as _};
use hyper_util::rt::TokioIo;
use member_agent::stream::{Authorities, Dialer};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};
use tower::service_fn;

/// Open streams.
pub struct Subscribers {
    arrived: Arc<Mutex<BTreeMap<u32, Vec<Instant>>>>,
    streams: JoinSet<anyhow::Result<()>>,
}

impl Subscribers {
    /// Opens a stream for each of these members, given as cluster id and token.
    pub async fn open(members: Vec<(String, String)>, hub: SocketAddr, authority: &Path) -> anyhow::Result<Self> {
        let (arrived, mut streams) = (Arc::new(Mutex::new(BTreeMap::new())), JoinSet::new());
        for (cluster, token) in members {
            let channel = connect(hub, authority).await.with_context(|| format!("the connection of {cluster}"))?;
            let (requests, responses) = subscribe(channel, &cluster, &token).await?;
            streams.spawn(serve(requests, responses, Arc::clone(&arrived)));
        }
        Ok(Self { arrived, streams })
    }

    /// Returns the times at which previews with this marker arrived.
    ///
    /// # Errors
    /// If a stream has ended.
    pub fn of(&mut self, marker: u32) -> anyhow::Result<Vec<Instant>> {
        if let Some(ended) = self.streams.try_join_next() {
            ended??;
            anyhow::bail!("the hub agent closed a stream");
        }
        Ok(self.arrived.lock().get(&marker).cloned().unwrap_or_default())
    }
}

async fn connect(hub: SocketAddr, authority: &Path) -> anyhow::Result<Channel> {
    let dialer = Dialer::tls(&hub.to_string(), Authorities::File(authority.to_owned())).map_err(anyhow::Error::msg)?;
    let connector = service_fn(move |_| {
        let dialed = dialer.dial();
        async move { dialed.await.map(TokioIo::new) }
    });
    Ok(Endpoint::from_static("http://hub").connect_with_connector(connector).await?)
}

async fn subscribe(
    channel: Channel,
    cluster: &str,
    token: &str,
) -> anyhow::Result<(mpsc::Sender<SubscribeRequest>, Streaming<SubscribeResponse>)> {
    let (requests, sent) = mpsc::channel(STREAM_REQUESTS);
    let (protocol_version, cluster) = (PROTOCOL_VERSION, cluster.to_owned());
    let hello = Hello { protocol_version, cluster, agent_version: "bench".to_owned() };
    let later = stream::unfold(sent, |mut sent: mpsc::Receiver<_>| async { Some((sent.recv().await?, sent)) });
    let mut call = Request::new(stream::iter([request(subscribe_request::Message::Hello(hello))]).chain(later));
    call.metadata_mut().insert("authorization", format!("Bearer {token}").parse()?);
    Ok((requests, SliceStreamClient::new(channel).subscribe(call).await?.into_inner()))
}

fn request(message: subscribe_request::Message) -> SubscribeRequest {
    SubscribeRequest { message: Some(message) }
}

async fn serve(
    requests: mpsc::Sender<SubscribeRequest>,
    mut responses: Streaming<SubscribeResponse>,
    arrived: Arc<Mutex<BTreeMap<u32, Vec<Instant>>>>,
) -> anyhow::Result<()> {
    let clock = Clock::system();
    while let Some(response) = responses.message().await? {
        match response.message {
            Some(subscribe_response::Message::Preview(preview)) => {
                let address = preview.endpoints.first().and_then(|endpoint| endpoint.addresses.first());
                let marker = address.and_then(|address| marker_in(&format!("\"{address}\"")));
                arrived.lock().entry(marker.context("a preview without a marker")?).or_default().push(Instant::now());
                let generation = preview.source.context("a preview without a source")?.generation;
                let acknowledgement = Acknowledgement { slice: preview.slice, generation };
                requests.send(request(subscribe_request::Message::Acknowledgement(acknowledgement))).await?;
            }
            Some(subscribe_response::Message::Probe(probe)) => {
                let now = clock.now().0;
                let reply = ProbeReply { number: probe.number, received_micros: now, sent_micros: now };
                requests.send(request(subscribe_request::Message::ProbeReply(reply))).await?;
            }
            Some(subscribe_response::Message::Welcome(_)) | None => {}
        }
    }
    Ok(())
}
