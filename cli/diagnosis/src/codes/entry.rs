//! Code, and entry of the table with its texts.

use crate::agents::AgentNamespaces;
use fleetnet_core::reasons::Reason;
use serde::{Serialize, Serializer};
use std::fmt;

/// Entry of a code in the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub code: Code,
    /// Fault in a few words.
    pub title: &'static str,
    /// The same if there is no fault.
    pub ok: &'static str,
    pub(super) meaning: &'static str,
    pub(super) evidence: &'static str,
    pub(super) confirm: &'static str,
    pub remedy: &'static str,
    /// Reasons of docs/reference/events.md that agents report for this fault.
    pub reasons: &'static [Reason],
    pub class: Class,
}

/// Meaning of a code for the endpoints of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Endpoints are missing.
    Fault,
    /// The fleet is degraded, but this is never the cause of missing endpoints.
    Notice,
    /// This user cannot see whether endpoints are missing. A later fault is the cause.
    NotKnown,
}

/// Texts of a code that depend on the namespaces of the agents.
#[derive(Clone, Debug)]
pub struct Texts {
    pub meaning: String,
    /// Objects and fields that show the fault.
    pub evidence: String,
    /// Command that confirms the fault. `HUB`, `EXPORTER`, `IMPORTER` and `MEMBER` stand for kubeconfig contexts.
    pub confirm: String,
}

impl Entry {
    /// Returns the texts for a fleet whose agents run in these namespaces.
    #[must_use]
    pub fn texts(&self, agents: &AgentNamespaces) -> Texts {
        let filled = |text: &str| {
            let text = text.replace("<agent-namespace>", &agents.members);
            text.replace("<hub-agent-namespace>", &agents.hub)
        };
        Texts { meaning: filled(self.meaning), evidence: filled(self.evidence), confirm: filled(self.confirm) }
    }

    pub(super) const fn new(code: Code, title: &'static str, meaning: &'static str) -> Self {
        Self { code, title, ok: "", meaning, evidence: "", confirm: "", remedy: "", reasons: &[], class: Class::Fault }
    }

    pub(super) const fn ok(self, ok: &'static str) -> Self {
        Self { ok, ..self }
    }

    pub(super) const fn seen(self, evidence: &'static str, confirm: &'static str) -> Self {
        Self { evidence, confirm, ..self }
    }

    pub(super) const fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    pub(super) const fn reasons(self, reasons: &'static [Reason]) -> Self {
        Self { reasons, ..self }
    }

    pub(super) const fn notice(self) -> Self {
        Self { class: Class::Notice, ..self }
    }

    pub(super) const fn not_known(self) -> Self {
        Self { class: Class::NotKnown, ..self }
    }

    #[must_use]
    pub fn is_notice(&self) -> bool {
        self.class == Class::Notice
    }
}

macro_rules! codes {
    ($($code:ident)+) => {
        /// Fault code: `FN` and three digits. The first digit is the group.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($code),+
        }

        impl Code {
            /// All codes, in the order in which `explain` walks the steps.
            pub const ALL: &[Self] = &[$(Self::$code),+];

            /// Returns the code as text, such as `FN203`.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$code => stringify!($code)),+
                }
            }
        }
    };
}

codes! {
    FN101 FN102 FN103 FN104 FN105 FN106 FN107 FN108 FN109 FN110 FN111 FN112
    FN201 FN202 FN203 FN204 FN205 FN206 FN207 FN208 FN209 FN210 FN211 FN212 FN213 FN214 FN215
    FN301 FN302 FN303 FN304 FN305 FN306 FN307 FN308 FN309 FN310 FN311 FN312 FN313 FN314 FN315 FN316 FN317 FN318
    FN319 FN320 FN321 FN322 FN323
    FN401 FN402 FN403 FN404 FN405 FN406 FN407 FN408 FN409 FN410 FN411 FN412 FN413
    FN501 FN502 FN503 FN504 FN505 FN506
    FN601 FN602 FN603 FN604 FN605 FN606 FN607 FN608 FN609 FN610 FN611 FN612 FN613 FN614 FN615 FN616 FN617 FN618
    FN701 FN702 FN703 FN704 FN705 FN706 FN707 FN708 FN709 FN710 FN711
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}
