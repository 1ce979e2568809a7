//! Access to the metrics for clients that the API server accepts, as in controller-runtime. A TokenReview shows who the client is,
//! and a SubjectAccessReview shows if this user may `get` the path `/metrics`.
//!
//! Every client in the pod network can send tokens. So reviews have a maximum rate, and answers are cached for a short time. While
//! the API server does not answer, a client that it accepted before keeps its access for some minutes: metrics are needed most
//! while an API server is down.

use std::collections::BTreeMap;

use http::HeaderValue;
use kube::Client;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::limits::{REVIEW_DENIAL_TTL, REVIEW_GRANT_STALE, REVIEW_GRANT_TTL, REVIEW_SPACING, REVIEWED_TOKENS};
use crate::reviews::{Reviews, Wanted, bearer};

/// Answer of the API server about a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Granted,
    /// The client sent no token that the API server accepts.
    Unauthenticated,
    /// The user with this name has no right to read the metrics.
    Denied(String),
}

/// Decides which clients may read the metrics.
pub struct Guard {
    reviews: Reviews,
    answers: Mutex<Answers>,
    /// Time of the last review. Locked during a review, so that one review runs at a time.
    last_review: Mutex<Option<Instant>>,
}

impl Guard {
    /// Returns a guard that asks the API server of `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { reviews: Reviews::new(client), answers: Mutex::new(Answers::default()), last_review: Mutex::new(None) }
    }

    /// Returns the access of a client with this header `Authorization`.
    ///
    /// # Errors
    /// If the API server gives no answer.
    pub(super) async fn access(&self, authorization: Option<&HeaderValue>) -> Result<Access, kube::Error> {
        let Some(token) = authorization.and_then(bearer) else { return Ok(Access::Unauthenticated) };
        let hash = Sha256::digest(token.as_bytes()).into();
        if let Some(access) = self.answers.lock().await.fresh(&hash, Instant::now()) {
            return Ok(access);
        }
        let mut last_review = self.last_review.lock().await;
        // While this request waited, another request with the same token may have got an answer.
        if let Some(access) = self.answers.lock().await.fresh(&hash, Instant::now()) {
            return Ok(access);
        }
        if let Some(last) = *last_review {
            // fault K12.2: sleep_until(last + REVIEW_SPACING).await ~> let _ = (last, REVIEW_SPACING)
            sleep_until(last + REVIEW_SPACING).await;
        }
        *last_review = Some(Instant::now());
        match self.review(token).await {
            Ok(access) => {
                self.answers.lock().await.insert(hash, access.clone(), Instant::now());
                Ok(access)
            }
            Err(error) if self.answers.lock().await.was_granted(&hash, Instant::now()) => {
                tracing::debug!(%error, "a client keeps its access to the metrics, because the API server does not answer");
                Ok(Access::Granted)
            }
            Err(error) => Err(error),
        }
    }

    async fn review(&self, token: &str) -> Result<Access, kube::Error> {
        let Some(user) = self.reviews.user(token, None).await? else { return Ok(Access::Unauthenticated) };
        let may_read = self.reviews.may(&user, Wanted::Path("/metrics")).await?;
        Ok(if may_read { Access::Granted } else { Access::Denied(user.username.unwrap_or_default()) })
    }
}

/// SHA-256 of a token. The cache has no tokens, so they cannot leak from it.
type TokenHash = [u8; 32];

/// Latest answers of the API server, by token.
#[derive(Debug, Default)]
struct Answers(BTreeMap<TokenHash, (Access, Instant)>);

impl Answers {
    /// Returns the answer about a token, if it is not too old to be used without a review.
    fn fresh(&self, token: &TokenHash, now: Instant) -> Option<Access> {
        let (access, at) = self.0.get(token)?;
        let lifetime = if *access == Access::Granted { REVIEW_GRANT_TTL } else { REVIEW_DENIAL_TTL };
        (now < *at + lifetime).then(|| access.clone())
    }

    /// True if the API server granted access to this token recently. The answer is used while there is no newer one.
    fn was_granted(&self, token: &TokenHash, now: Instant) -> bool {
        self.0.get(token).is_some_and(|(access, at)| *access == Access::Granted && now < *at + REVIEW_GRANT_STALE)
    }

    /// Stores an answer. If there are too many, drops the oldest denial, or else the oldest grant. So a client without access
    /// cannot displace the answers about others.
    fn insert(&mut self, token: TokenHash, access: Access, now: Instant) {
        self.0.retain(|_, (_, at)| now < *at + REVIEW_GRANT_STALE);
        self.0.remove(&token);
        if self.0.len() >= REVIEWED_TOKENS {
            let order = |(_, (access, at)): &(&TokenHash, &(Access, Instant))| (*access == Access::Granted, *at);
            let oldest = self.0.iter().min_by_key(order).map(|(token, _)| *token);
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        self.0.insert(token, (access, now));
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Guard")
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the double is a plain function, which cannot await a lock")]
pub(super) mod tests {
    use super::*;
    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::sync::Arc;
    use std::time::Duration;
    use tower::{BoxError, ServiceExt as _, service_fn};

    /// API server that knows two users: `scraper` may read the metrics, `other` may not. Their tokens are their names. Records
    /// the reviews.
    #[derive(Clone, Default)]
    pub(in super::super) struct Reviewer(Arc<std::sync::Mutex<State>>);

    #[derive(Default)]
    struct State {
        reviews: Vec<Value>,
        is_down: bool,
        is_revoked: bool,
    }

    impl Reviewer {
        pub(in super::super) fn client(&self) -> Client {
            let state = Arc::clone(&self.0);
            let service = service_fn(move |request: Request<Body>| {
                let state = Arc::clone(&state);
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect_bytes().await.unwrap();
                    let review: Value = serde_json::from_slice(&body).unwrap();
                    let mut state = state.lock().unwrap();
                    let answer = answer(&path, review.clone(), state.is_revoked);
                    state.reviews.push(review["spec"].clone());
                    let status = if state.is_down { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::CREATED };
                    let body = Body::from(serde_json::to_vec(&answer).unwrap());
                    Ok::<_, BoxError>(Response::builder().status(status).body(body).unwrap())
                }
            });
            Client::new(service.map_err(BoxError::from), "default")
        }

        fn reviews(&self) -> usize {
            self.0.lock().unwrap().reviews.len()
        }
    }

    fn answer(path: &str, mut review: Value, is_revoked: bool) -> Value {
        let spec = &review["spec"];
        let status = match path {
            "/apis/authentication.k8s.io/v1/tokenreviews" => match spec["token"].as_str() {
                Some(name @ ("scraper" | "other")) => {
                    json!({"authenticated": true, "user": {
                        "username": name, "uid": "1", "groups": ["g"], "extra": {"e": ["v"]},
                    }})
                }
                _ => json!({"authenticated": false, "error": "invalid bearer token", "user": {}}),
            },
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => {
                json!({"allowed": spec["user"] == "scraper" && !is_revoked})
            }
            _ => panic!("{path}"),
        };
        review["status"] = status;
        review
    }

    fn header(text: &str) -> HeaderValue {
        HeaderValue::from_bytes(text.as_bytes()).unwrap()
    }

    async fn access(guard: &Guard, authorization: &str) -> Access {
        guard.access(Some(&header(authorization))).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_needs_a_token_of_a_user_who_may_read_the_metrics() {
        let reviewer = Reviewer::default();
        let guard = Guard::new(reviewer.client());
        assert_eq!(guard.access(None).await.unwrap(), Access::Unauthenticated);
        for (authorization, expected, reviews) in [
            ("Basic c2NyYXBlcg==", Access::Unauthenticated, 0),
            ("Bearer ", Access::Unauthenticated, 0),
            ("scraper", Access::Unauthenticated, 0),
            ("Bearer nobody", Access::Unauthenticated, 1),
            ("Bearer other", Access::Denied("other".to_owned()), 3),
            ("bearer scraper", Access::Granted, 5),
        ] {
            assert_eq!(access(&guard, authorization).await, expected, "{authorization}");
            assert_eq!(reviewer.reviews(), reviews, "{authorization}");
        }
        assert_eq!(
            guard.access(Some(&header(&format!("Bearer {}", "a".repeat(65_536))))).await.unwrap(),
            Access::Unauthenticated
        );
        assert_eq!(reviewer.reviews(), 5, "no token is that long");
        let last = reviewer.0.lock().unwrap().reviews.last().cloned().unwrap();
        let expected = json!({
            "user": "scraper", "uid": "1", "groups": ["g"], "extra": {"e": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        });
        assert_eq!(last, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_cached_for_a_short_time() {
        let reviewer = Reviewer::default();
        let guard = Guard::new(reviewer.client());
        access(&guard, "Bearer scraper").await;
        access(&guard, "Bearer nobody").await;
        assert_eq!(reviewer.reviews(), 3);
        tokio::time::advance(Duration::from_secs(9)).await;
        access(&guard, "Bearer scraper").await;
        access(&guard, "Bearer nobody").await;
        assert_eq!(reviewer.reviews(), 3);
        tokio::time::advance(Duration::from_secs(2)).await;
        access(&guard, "Bearer nobody").await;
        assert_eq!(reviewer.reviews(), 4, "a denial counts for 10 s");
        access(&guard, "Bearer scraper").await;
        assert_eq!(reviewer.reviews(), 4);
        reviewer.0.lock().unwrap().is_revoked = true;
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(access(&guard, "Bearer scraper").await, Access::Denied("scraper".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_was_accepted_keeps_its_access_for_five_minutes_while_the_api_server_does_not_answer() {
        let reviewer = Reviewer::default();
        let guard = Guard::new(reviewer.client());
        access(&guard, "Bearer scraper").await;
        access(&guard, "Bearer other").await;
        reviewer.0.lock().unwrap().is_down = true;
        tokio::time::advance(Duration::from_secs(290)).await;
        assert_eq!(access(&guard, "Bearer scraper").await, Access::Granted);
        assert!(guard.access(Some(&header("Bearer other"))).await.is_err());
        assert!(guard.access(Some(&header("Bearer new"))).await.is_err());
        tokio::time::advance(Duration::from_secs(20)).await;
        assert!(guard.access(Some(&header("Bearer scraper"))).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_tokens_costs_20_reviews_a_second_and_displaces_no_accepted_client() {
        let reviewer = Reviewer::default();
        let guard = Guard::new(reviewer.client());
        access(&guard, "Bearer scraper").await;
        let begun = Instant::now();
        for number in 0..200 {
            access(&guard, &format!("Bearer forged-{number}")).await;
        }
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        assert_eq!(guard.answers.lock().await.0.len(), REVIEWED_TOKENS);
        let reviews = reviewer.reviews();
        assert_eq!(access(&guard, "Bearer scraper").await, Access::Granted);
        assert_eq!(reviewer.reviews(), reviews, "its answer is still cached");
    }
}
