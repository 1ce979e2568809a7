//! Errors in place of answers, before or after the server executes the request. Agents repeat such requests within a
//! minute.

use super::{Dice, Disturbance, Kind, Request, Scope};
use fastrand::Rng;
use memkube::faults::{Answer, Fault};
use memkube::{Status, Verb};
use std::sync::Arc;

pub(crate) const KIND: Kind = Kind::new("answers", 6, 5..=90, fast);
pub(crate) const SLOW: Kind = Kind::new("denials", 6, 5..=90, slow).slow();

/// Statuses of requests that the server did not execute.
const REFUSED: [u16; 6] = [401, 409, 410, 429, 500, 503];
/// Statuses of requests that the server did not execute, after which an agent waits for up to 10 minutes.
const DENIED: [u16; 3] = [403, 404, 422];
/// Percentage of requests that fail if all do.
const ALWAYS: u32 = 100;
/// Statuses that a proxy answers, although the server executed the request.
const EXECUTED: [u16; 4] = [429, 500, 503, 504];

#[derive(Debug)]
struct Answers {
    scope: Scope,
    percent: u32,
    code: u16,
    is_executed: bool,
    dice: Dice,
}

fn fast(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let is_executed = rng.usize(..3) == 0;
    let code = if is_executed { EXECUTED[rng.usize(..EXECUTED.len())] } else { REFUSED[rng.usize(..REFUSED.len())] };
    answers(rng, code, is_executed)
}

fn slow(rng: &mut Rng) -> Arc<dyn Disturbance> {
    let code = DENIED[rng.usize(..DENIED.len())];
    answers(rng, code, false)
}

fn answers(rng: &mut Rng, code: u16, is_executed: bool) -> Arc<dyn Disturbance> {
    let percent = [5, 20, 60, ALWAYS][rng.usize(..4)];
    Arc::new(Answers { scope: Scope::random(rng), percent, code, is_executed, dice: Dice::new(rng) })
}

/// Returns the status with a code, as an API server answers it.
fn status(code: u16) -> Status {
    let reason: &'static str = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    Status::plain(code, reason, "the simulator answers this")
}

impl Disturbance for Answers {
    fn cuts_off(&self) -> bool {
        self.percent == ALWAYS
    }

    fn request(&self, request: Request<'_>) -> Option<Fault> {
        let call = request.call;
        // A read has no 409 or 422, and only lists and watches have 410.
        let is_possible = match self.code {
            409 | 422 => call.verb.writes(),
            410 => matches!(call.verb, Verb::List | Verb::Watch),
            _ => true,
        };
        if !is_possible || !self.scope.has(request) || !self.dice.hits(self.percent) {
            return None;
        }
        let status = status(self.code);
        Some(if self.is_executed {
            Fault { answer: Answer::Replaced(Box::new(status)), ..Fault::default() }
        } else {
            Fault { refuse: Some(status), ..Fault::default() }
        })
    }
}
