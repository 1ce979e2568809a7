//! Exit codes of the commands. They do not depend on the format of the output.

use super::contexts::failure::{Class, Failure};
use std::process::ExitCode;

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything is as it should be, or the command has done what it should.
    Healthy,
    /// A fault was found, or the command could not do what it should.
    Fault,
    /// The command line or a kubeconfig is wrong.
    Usage,
    /// Not everything could be read.
    Incomplete,
    /// The time limit of `--wait` passed.
    Timeout,
}

impl Exit {
    /// Number that the process ends with.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Healthy => 0,
            Self::Fault => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Timeout => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Error that ends a command, with its exit code. Its text is one line.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct Stop {
    pub(crate) exit: Exit,
    /// Class of the failure of a connection or request; `None` if it was another error.
    pub(crate) class: Option<Class>,
    pub(crate) why: String,
}

impl Stop {
    /// Returns the error of a wrong command line.
    pub(crate) fn usage(why: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, class: None, why: why.into() }
    }

    /// Returns the error of a command that cannot do what it should.
    pub(crate) fn fault(why: impl Into<String>) -> Self {
        Self { exit: Exit::Fault, class: None, why: why.into() }
    }

    /// Returns the error of a command for which not everything could be read.
    pub(crate) fn not_known(why: impl Into<String>) -> Self {
        Self { exit: Exit::Incomplete, class: None, why: why.into() }
    }

    /// Returns the error of a time limit that has passed.
    pub(crate) fn timeout(why: impl Into<String>) -> Self {
        Self { exit: Exit::Timeout, class: None, why: why.into() }
    }
}

impl From<Failure> for Stop {
    /// A wrong context or kubeconfig is a usage error. A cluster that does not answer or refuses is not known.
    fn from(failure: Failure) -> Self {
        let exit = match failure.class {
            Class::NoContext | Class::Kubeconfig => Exit::Usage,
            _ => Exit::Incomplete,
        };
        Self { exit, class: Some(failure.class), why: failure.to_string() }
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::fault(format!("standard output cannot be written to: {error}"))
    }
}
