//! States of a container.

/// State of a container, and of its previous run.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    pub(super) state: State,
    pub(super) last: Option<Ended>,
    pub(super) restarts: u32,
    pub(super) is_ready: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) enum State {
    /// The pod has no network yet.
    #[default]
    Creating,
    /// The container cannot start, for this reason.
    Failed(String),
    /// The container runs since this time.
    Running(String),
    Ended(Ended),
}

/// End of a container.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) started_at: String,
    pub(super) finished_at: String,
}
