//! Invariants of plans, checked before any write of a plan is sent.
//!
//! A broken invariant is a bug in this program. The engine logs and counts the bug, drops the plan of this key, and
//! plans the key again after [`crate::limits::BROKEN_INVARIANT_DELAY`]. The process continues, because the plans of
//! other keys are correct. In tests, a broken invariant panics.

use std::collections::BTreeSet;
use std::fmt::{self, Debug};

use crate::engine::logic::{Request, Verb};
use crate::engine::slots::Target;

/// Broken invariant of a plan, and the object of the wrong write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) invariant: Invariant,
    /// Source, namespace and name of the object of the wrong write.
    object: String,
}

/// Rule that every plan must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invariant {
    /// A plan writes each object at most once, because its writes run in any order.
    OneWriteToAnObject,
    /// A delete has a UID as its precondition. Without the UID, it could delete a later object of the same name.
    DeleteHasUid,
}

impl Invariant {
    /// Returns the value of the metric's label `invariant`.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::OneWriteToAnObject => "one_write_to_an_object",
            Self::DeleteHasUid => "delete_has_uid",
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, object } = self;
        match invariant {
            Invariant::OneWriteToAnObject => write!(f, "two writes to {object}"),
            Invariant::DeleteHasUid => write!(f, "a delete of {object} without a UID"),
        }
    }
}

/// Checks the writes of a plan.
pub(crate) fn check<S: Copy + Ord + Debug, R>(writes: &[Request<S, R>]) -> Result<(), Broken> {
    let mut targets = BTreeSet::new();
    for request in writes {
        let broken = |invariant| Err(Broken { invariant, object: named(request) });
        if !targets.insert(Target::of(request)) {
            return broken(Invariant::OneWriteToAnObject);
        }
        if matches!(&request.verb, Verb::Delete { uid } if uid.is_empty()) {
            return broken(Invariant::DeleteHasUid);
        }
    }
    Ok(())
}

fn named<S: Debug, R>(Request { source, name, .. }: &Request<S, R>) -> String {
    format!("{source:?} {name}")
}

/// Panics in tests, so that no test overlooks a broken invariant.
pub(crate) fn panic_in_tests(broken: &Broken, key: &impl Debug) {
    #[cfg(test)]
    if tests::IN_PRODUCTION.get() {
        return;
    }
    #[allow(clippy::manual_assert, reason = "production only logs")]
    if cfg!(debug_assertions) {
        panic!("the plan of {key:?} breaks an invariant: {broken}");
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use fleetnet_types::ObjectName;

    use super::*;
    use crate::test_kit::Source;

    thread_local! {
        /// True while this thread behaves as in production, where a broken invariant does not panic. For tests of that
        /// behaviour.
        pub(crate) static IN_PRODUCTION: Cell<bool> = const { Cell::new(false) };
    }

    fn delete(name: &str, uid: &str) -> Request<Source, String> {
        let verb = Verb::Delete { uid: uid.into() };
        Request { source: Source::Copy, name: ObjectName::new("work", name), verb, receipt: None }
    }

    /// Also rule A15.
    #[test]
    fn a_plan_that_breaks_an_invariant_is_found_and_its_object_is_named() {
        let good = [delete("one", "uid-1"), delete("other", "uid-2")];
        assert_eq!(check(&good), Ok(()));
        let violation = |writes: &[Request<Source, String>]| check(writes).unwrap_err().to_string();
        let twice = [delete("one", "uid-1"), delete("other", "uid-2"), delete("one", "uid-3")];
        assert_eq!(violation(&twice), "two writes to Copy work/one");
        assert_eq!(violation(&[delete("one", "")]), "a delete of Copy work/one without a UID");
    }
    #[test]
    #[should_panic(expected = "the plan of \"key\" breaks an invariant: two writes to Copy work/one")]
    fn a_broken_invariant_panics_in_tests() {
        let broken = check(&[delete("one", "uid-1"), delete("one", "uid-1")]).unwrap_err();
        panic_in_tests(&broken, &"key");
    }
}
