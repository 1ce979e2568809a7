//! Entry point of requests: a [`tower::Service`] for one user.

mod body;
mod reply;

pub use body::{Body, BoxError};
pub(crate) use reply::{Content, Reply};

use crate::auth::User;
use crate::server::MemKube;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::task::{Context, Poll};

/// Service for the requests of one user.
#[derive(Clone, Debug)]
pub struct Service {
    server: MemKube,
    user: User,
}

impl Service {
    pub(crate) fn new(server: MemKube, user: User) -> Self {
        Self { server, user }
    }
}

impl MemKube {
    /// Returns the service for the requests of a user.
    #[must_use]
    pub fn service(&self, user: User) -> Service {
        Service::new(self.clone(), user)
    }

    /// Returns a client for a user, in this process.
    #[must_use]
    pub fn client(&self, user: User) -> kube::Client {
        kube::Client::new(self.service(user), "default")
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(crate::wire::answer(self.server.clone(), self.user.clone(), request))
    }
}
