//! Access for clients that an API server accepts, as in controller-runtime. A TokenReview shows who the client is, and
//! a SubjectAccessReview shows if this user may do what the client asks for.
//!
//! Every client that can connect can send tokens. So reviews have a maximum rate, which clients share in turns, and
//! answers are cached for a short time.

use std::collections::BTreeMap;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::limits::{REVIEW_DENIAL_TTL, REVIEW_GRANT_STALE, REVIEW_GRANT_TTL, REVIEW_SPACING, REVIEWED_TOKENS};
pub use crate::process::pace::Client;
use crate::process::pace::Turns;
use crate::process::reviews::{Reviews, Wanted};

/// Answer of the API server about a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    Granted,
    /// The API server does not accept the token.
    Unauthenticated,
    /// The user with this name has no right to do this.
    Denied(String),
}

/// Question if the user of a token may do something.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    pub token: &'a str,
    /// Audience that the token must be for; `None` for tokens for the API server.
    pub audience: Option<&'static str>,
    pub wanted: Wanted<'a>,
}

/// How long a grant is used without another review.
#[derive(Clone, Copy, Debug)]
struct Grants {
    /// In general.
    fresh: Duration,
    /// While the API server does not answer.
    stale: Duration,
}

/// Decides which clients have access.
pub struct Guard {
    reviews: Reviews,
    grants: Grants,
    answers: Mutex<Answers>,
    turns: Turns,
}

impl Guard {
    /// Returns a guard of metrics that asks the API server of `client`. While the API server does not answer, a client
    /// that it accepted before keeps its access for some minutes: metrics are needed most while an API server is down.
    #[must_use]
    pub fn of_metrics(client: kube::Client) -> Self {
        Self::new(client, Grants { fresh: REVIEW_GRANT_TTL, stale: REVIEW_GRANT_STALE })
    }

    /// Returns a guard that asks the API server of `client` again for each access that it grants.
    #[must_use]
    pub fn of_each_access(client: kube::Client) -> Self {
        Self::new(client, Grants { fresh: Duration::ZERO, stale: Duration::ZERO })
    }

    fn new(client: kube::Client, grants: Grants) -> Self {
        let (answers, turns) = (Mutex::default(), Turns::every(REVIEW_SPACING));
        Self { reviews: Reviews::new(client), grants, answers, turns }
    }

    /// Returns the access of a client.
    ///
    /// # Errors
    /// If the API server gives no answer.
    pub async fn access(&self, client: Client, question: Question<'_>) -> Result<Access, kube::Error> {
        let hash = hash(question);
        if let Some(access) = self.fresh(&hash).await {
            return Ok(access);
        }
        let mut turn = self.turns.take(client).await;
        // While this request waited, another request with the same token may have got an answer.
        if let Some(access) = self.fresh(&hash).await {
            return Ok(access);
        }
        turn.begin().await;
        match self.review(question).await {
            Ok(access) => {
                self.answers.lock().await.insert(hash, access.clone(), Instant::now());
                Ok(access)
            }
            Err(error) if self.answers.lock().await.was_granted(&hash, self.grants.stale, Instant::now()) => {
                tracing::debug!(%error, "a client keeps its access, because the API server does not answer");
                Ok(Access::Granted)
            }
            Err(error) => Err(error),
        }
    }

    async fn fresh(&self, hash: &QuestionHash) -> Option<Access> {
        self.answers.lock().await.fresh(hash, self.grants.fresh, Instant::now())
    }

    async fn review(&self, Question { token, audience, wanted }: Question<'_>) -> Result<Access, kube::Error> {
        let Some(user) = self.reviews.user(token, audience).await? else { return Ok(Access::Unauthenticated) };
        let is_granted = self.reviews.may(&user, wanted).await?;
        Ok(if is_granted { Access::Granted } else { Access::Denied(user.username.unwrap_or_default()) })
    }
}

/// SHA-256 of a question. The cache has no tokens, so they cannot leak from it.
type QuestionHash = [u8; 32];

fn hash(Question { token, audience, wanted }: Question<'_>) -> QuestionHash {
    Sha256::new().chain_update(token).chain_update(format!("\0{audience:?} {wanted:?}")).finalize().into()
}

/// Latest answers of the API server.
#[derive(Debug, Default)]
struct Answers(BTreeMap<QuestionHash, (Access, Instant)>);

impl Answers {
    /// Returns the answer to a question, if it is not too old to be used without a review.
    fn fresh(&self, hash: &QuestionHash, grants_for: Duration, now: Instant) -> Option<Access> {
        let (access, at) = self.0.get(hash)?;
        let lifetime = if *access == Access::Granted { grants_for } else { REVIEW_DENIAL_TTL };
        (now < *at + lifetime).then(|| access.clone())
    }

    /// True if the API server granted this recently. The answer is used while there is no newer one.
    fn was_granted(&self, hash: &QuestionHash, stale_for: Duration, now: Instant) -> bool {
        self.0.get(hash).is_some_and(|(access, at)| *access == Access::Granted && now < *at + stale_for)
    }

    /// Stores an answer. If there are too many, drops the oldest denial, or else the oldest grant. So a client without
    /// access cannot displace the answers about others.
    fn insert(&mut self, hash: QuestionHash, access: Access, now: Instant) {
        self.0.retain(|_, (_, at)| now < *at + REVIEW_GRANT_STALE);
        self.0.remove(&hash);
        if self.0.len() >= REVIEWED_TOKENS {
            let order = |(_, (access, at)): &(&QuestionHash, &(Access, Instant))| (*access == Access::Granted, *at);
            let oldest = self.0.iter().min_by_key(order).map(|(hash, _)| *hash);
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        self.0.insert(hash, (access, now));
    }
}

/// Without the token.
impl std::fmt::Debug for Question<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Question").field("audience", &self.audience).field("wanted", &self.wanted).finish()
    }
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Guard")
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the double is a plain function, which cannot await a lock")]
pub(crate) mod tests {
    use super::*;
    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;
    use std::time::Duration;
    use tower::{BoxError, ServiceExt as _, service_fn};

    /// API server that knows two users: `scraper` may read the metrics, `other` may not. Their tokens are their names.
    /// Records the reviews.
    #[derive(Clone, Default)]
    pub(crate) struct Reviewer(Arc<std::sync::Mutex<State>>);

    #[derive(Default)]
    struct State {
        reviews: Vec<Value>,
        is_down: bool,
        is_revoked: bool,
    }

    impl Reviewer {
        pub(crate) fn client(&self) -> kube::Client {
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
            kube::Client::new(service.map_err(BoxError::from), "default")
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

    const CLIENT: Client = Client::Stranger(IpAddr::V4(Ipv4Addr::LOCALHOST));

    fn question(token: &str) -> Question<'_> {
        Question { token, audience: None, wanted: Wanted::Path("/metrics") }
    }

    async fn access(guard: &Guard, token: &str) -> Access {
        guard.access(CLIENT, question(token)).await.unwrap()
    }

    /// Also rule K12.
    #[tokio::test(start_paused = true)]
    async fn a_client_needs_a_token_of_a_user_who_may_read_the_metrics() {
        let reviewer = Reviewer::default();
        let guard = Guard::of_metrics(reviewer.client());
        for (token, expected, reviews) in [
            ("nobody", Access::Unauthenticated, 1),
            ("other", Access::Denied("other".to_owned()), 3),
            ("scraper", Access::Granted, 5),
        ] {
            assert_eq!(access(&guard, token).await, expected, "{token}");
            assert_eq!(reviewer.reviews(), reviews, "{token}");
        }
        let last = reviewer.0.lock().unwrap().reviews.last().cloned().unwrap();
        let expected = json!({
            "user": "scraper", "uid": "1", "groups": ["g"], "extra": {"e": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        });
        assert_eq!(last, expected);
    }

    /// Also rule K12.
    #[tokio::test(start_paused = true)]
    async fn answers_are_cached_for_a_short_time() {
        let reviewer = Reviewer::default();
        let guard = Guard::of_metrics(reviewer.client());
        access(&guard, "scraper").await;
        access(&guard, "nobody").await;
        assert_eq!(reviewer.reviews(), 3);
        tokio::time::advance(Duration::from_secs(9)).await;
        access(&guard, "scraper").await;
        access(&guard, "nobody").await;
        assert_eq!(reviewer.reviews(), 3);
        tokio::time::advance(Duration::from_secs(2)).await;
        access(&guard, "nobody").await;
        assert_eq!(reviewer.reviews(), 4, "a denial counts for 10 s");
        access(&guard, "scraper").await;
        assert_eq!(reviewer.reviews(), 4);
        reviewer.0.lock().unwrap().is_revoked = true;
        tokio::time::advance(Duration::from_secs(50)).await;
        assert_eq!(access(&guard, "scraper").await, Access::Denied("scraper".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_was_accepted_keeps_its_access_for_five_minutes_while_the_api_server_does_not_answer() {
        let reviewer = Reviewer::default();
        let guard = Guard::of_metrics(reviewer.client());
        access(&guard, "scraper").await;
        access(&guard, "other").await;
        reviewer.0.lock().unwrap().is_down = true;
        tokio::time::advance(Duration::from_secs(290)).await;
        assert_eq!(access(&guard, "scraper").await, Access::Granted);
        assert!(guard.access(CLIENT, question("other")).await.is_err());
        assert!(guard.access(CLIENT, question("new")).await.is_err());
        tokio::time::advance(Duration::from_secs(20)).await;
        assert!(guard.access(CLIENT, question("scraper")).await.is_err());
    }

    /// Also rule K12.
    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_tokens_costs_20_reviews_a_second_and_displaces_no_accepted_client() {
        let reviewer = Reviewer::default();
        let guard = Guard::of_metrics(reviewer.client());
        access(&guard, "scraper").await;
        let begun = Instant::now();
        for number in 0..200 {
            access(&guard, &format!("forged-{number}")).await;
        }
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        assert_eq!(guard.answers.lock().await.0.len(), REVIEWED_TOKENS);
        let reviews = reviewer.reviews();
        assert_eq!(access(&guard, "scraper").await, Access::Granted);
        assert_eq!(reviewer.reviews(), reviews, "its answer is still cached");
    }

    /// Also rule K12.
    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_tokens_delays_another_client_by_one_review() {
        let guard = Arc::new(Guard::of_each_access(Reviewer::default().client()));
        let mut flood = tokio::task::JoinSet::new();
        for number in 0..200 {
            let guard = Arc::clone(&guard);
            flood.spawn(async move { guard.access(CLIENT, question(&format!("forged-{number}"))).await });
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        for client in [Client::Stranger(IpAddr::from([10, 0, 0, 1])), Client::Accepted] {
            let begun = Instant::now();
            assert_eq!(guard.access(client, question("scraper")).await.unwrap(), Access::Granted);
            assert!(begun.elapsed() <= 2 * REVIEW_SPACING, "{client:?} waited for {:?}", begun.elapsed());
        }
        assert!(flood.join_all().await.iter().all(|access| matches!(access, Ok(Access::Unauthenticated))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_guard_of_each_access_caches_denials_only_and_one_answer_for_each_question() {
        let reviewer = Reviewer::default();
        let guard = Guard::of_each_access(reviewer.client());
        let reviewed = async |question| {
            let before = reviewer.reviews();
            let access = guard.access(CLIENT, question).await;
            (access.unwrap(), reviewer.reviews() - before)
        };
        let denied = || Access::Denied("other".to_owned());
        let elsewhere = Question { wanted: Wanted::Path("/other"), ..question("other") };
        assert_eq!(reviewed(question("scraper")).await, (Access::Granted, 2));
        assert_eq!(reviewed(question("scraper")).await, (Access::Granted, 2));
        assert_eq!(reviewed(question("other")).await, (denied(), 2));
        assert_eq!(reviewed(question("other")).await, (denied(), 0));
        assert_eq!(reviewed(elsewhere).await, (denied(), 2), "another question");
        assert_eq!(reviewed(Question { audience: Some("x"), ..question("other") }).await.1, 1, "another audience");
        reviewer.0.lock().unwrap().is_down = true;
        assert!(guard.access(CLIENT, question("scraper")).await.is_err());
    }
}
