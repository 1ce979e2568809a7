//! Bodies of responses.

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Body of a response: chunks of a complete response, or the events of a watch.
pub struct Body(Kind);

enum Kind {
    Chunks(VecDeque<Bytes>),
    Watch(Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>),
}

impl Body {
    pub(crate) fn chunks(chunks: Vec<Bytes>) -> Self {
        Self(Kind::Chunks(chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect()))
    }

    pub(crate) fn watch(stream: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Self {
        Self(Kind::Watch(Box::pin(stream)))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Chunks(chunks) => write!(formatter, "Body({} chunks)", chunks.len()),
            Kind::Watch(_) => formatter.write_str("Body(watch)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.get_mut().0 {
            Kind::Chunks(chunks) => Poll::Ready(chunks.pop_front().map(|chunk| Ok(Frame::data(chunk)))),
            Kind::Watch(stream) => stream.as_mut().poll_next(context).map_ok(Frame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Chunks(chunks) if chunks.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Chunks(chunks) => SizeHint::with_exact(chunks.iter().map(|chunk| chunk.len() as u64).sum()),
            Kind::Watch(_) => SizeHint::default(),
        }
    }
}

/// Error for a request that gets no response, because the connection breaks.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
