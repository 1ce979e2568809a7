//! Faults in running fleets and in snapshots, each with the code that the diagnosis must give.

use crate::world::{is_exactly, service};
use diagnosis::explain::Filter;
use diagnosis::report::Explanation;
use diagnosis::{Code, Snapshot, explain};
use futures::future::LocalBoxFuture;

/// Fault in a running fleet, and the code that the diagnosis must give.
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) play: fn() -> LocalBoxFuture<'static, anyhow::Result<Explanation>>,
}

/// Defines a list of faults, each as `CODE: function`.
macro_rules! faults {
    ($list:ident: $($code:ident: $play:ident,)+) => {
        pub(crate) const $list: &[$crate::fault::Fault] =
            &[$($crate::fault::Fault { code: $code, play: || Box::pin($play()) }),+];
    };
}
pub(crate) use faults;

/// Fault in the snapshot of a healthy fleet, and the code that the diagnosis must give.
pub(crate) struct Altered {
    pub(crate) code: Code,
    pub(crate) alter: fn(&mut Snapshot),
}

/// Defines a list of faults in a snapshot, each as `CODE: closure`.
macro_rules! altered {
    ($list:ident: $($code:ident: $alter:expr,)+) => {
        pub(crate) const $list: &[$crate::fault::Altered] =
            &[$($crate::fault::Altered { code: $code, alter: $alter }),+];
    };
}
pub(crate) use altered;

/// Fails unless each of these diagnoses gives exactly its code.
pub(crate) fn all_give_exactly(
    played: impl IntoIterator<Item = (Code, anyhow::Result<Explanation>)>,
) -> anyhow::Result<()> {
    let failure = |(code, played): (Code, anyhow::Result<Explanation>)| {
        let error = played.and_then(|explanation| is_exactly(&explanation, code)).err()?;
        Some(format!("{code}: {error:#}"))
    };
    let failures: Vec<String> = played.into_iter().filter_map(failure).collect();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// Fails unless each of these faults in the snapshot of a healthy fleet gives exactly its code.
pub(crate) fn all_alter(healthy: &Snapshot, faults: &[Altered]) -> anyhow::Result<()> {
    all_give_exactly(faults.iter().map(|fault| {
        let mut snapshot = healthy.clone();
        (fault.alter)(&mut snapshot);
        (fault.code, Ok(explain(&snapshot, &service("app"), &Filter::default())))
    }))
}
