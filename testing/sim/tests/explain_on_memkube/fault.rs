//! Faults in running fleets, each with the code that the diagnosis must give.

use diagnosis::Code;
use diagnosis::report::Explanation;
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
