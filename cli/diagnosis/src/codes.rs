//! Fault codes: the one table from which help, documentation, JSON output and alert annotations take their text.
//!
//! | file | codes |
//! |---|---|
//! | `access.rs` | FN1xx: access to the clusters, and installation |
//! | `membership.rs` | FN2xx: membership of a cluster in the fleet |
//! | `export.rs` | FN3xx: export from the exporting member to the hub |
//! | `claim.rs` | FN4xx: claim of the importing member in the hub |
//! | `distribution.rs` | FN5xx: distribution of slices in the hub |
//! | `import.rs` | FN6xx: derived Service and imported slices |
//! | `result.rs` | FN7xx: result |
//! | `entry.rs` | list of all codes, and the type of their entries |
//!
//! Invariant: a code never changes its meaning, and is never used for another fault.

mod access;
mod claim;
mod distribution;
mod entry;
mod export;
mod import;
mod membership;
mod result;

pub use entry::{Class, Code, Entry, Texts};

use serde::Serialize;

/// Group of codes: a part of the way from exporter to importer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    Access,
    Membership,
    Export,
    Claim,
    Distribution,
    Import,
    Result,
}

impl Group {
    /// All groups, in the order of their codes.
    pub const ALL: [Self; 7] =
        [Self::Access, Self::Membership, Self::Export, Self::Claim, Self::Distribution, Self::Import, Self::Result];

    /// Returns the group in words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Access => "Access and installation",
            Self::Membership => "Membership",
            Self::Export => "Export",
            Self::Claim => "Claim",
            Self::Distribution => "Distribution",
            Self::Import => "Derived Service and imported slices",
            Self::Result => "Result",
        }
    }

    /// Returns the codes of the group with their texts.
    #[must_use]
    pub const fn entries(self) -> &'static [Entry] {
        match self {
            Self::Access => access::CODES,
            Self::Membership => membership::CODES,
            Self::Export => export::CODES,
            Self::Claim => claim::CODES,
            Self::Distribution => distribution::CODES,
            Self::Import => import::CODES,
            Self::Result => result::CODES,
        }
    }
}

/// Returns the whole table, in the order of the codes.
pub fn table() -> impl Iterator<Item = &'static Entry> {
    Group::ALL.into_iter().flat_map(Group::entries)
}

impl Code {
    /// Returns the code with this id, in upper or lower case.
    #[must_use]
    pub fn named(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.id().eq_ignore_ascii_case(id))
    }

    /// Returns the group of the code.
    #[must_use]
    pub fn group(self) -> Group {
        let group = Group::ALL.into_iter().find(|group| group.entries().iter().any(|entry| entry.code == self));
        group.expect("a test checks that each code has an entry")
    }

    /// Returns the code's texts.
    #[must_use]
    pub fn entry(self) -> &'static Entry {
        table().find(|entry| entry.code == self).expect("a test checks that each code has an entry")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::AgentNamespaces;
    use fleetnet_core::reasons::Reason;

    #[test]
    fn each_code_has_one_complete_entry_in_the_order_of_the_codes() {
        assert_eq!(Code::ALL.len(), 98);
        assert!(table().map(|entry| entry.code).eq(Code::ALL.iter().copied()));
        for entry in table() {
            for text in [entry.title, entry.ok, entry.meaning, entry.evidence, entry.confirm, entry.remedy] {
                assert!(!text.is_empty(), "{} has an empty text", entry.code);
                assert!(!text.contains('\n') && !text.contains("  "), "{}: {text:?}", entry.code);
            }
            for text in [entry.title, entry.ok, entry.confirm] {
                assert!(!text.ends_with('.'), "{}: {text:?}", entry.code);
            }
            for text in [entry.meaning, entry.remedy] {
                assert!(text.ends_with('.'), "{}: {text:?}", entry.code);
            }
        }
    }

    #[test]
    fn texts_have_the_namespaces_of_the_agents() {
        let [hub, members] = ["hub-ns", "member-ns"].map(|name| name.parse().expect("a name"));
        let agents = AgentNamespaces { hub, members };
        for entry in table() {
            let Texts { meaning, evidence, confirm } = entry.texts(&agents);
            for text in [entry.title, entry.ok, entry.remedy, &meaning, &evidence, &confirm] {
                let has_another = text.contains("fleet-system") || text.contains("agent-namespace>");
                assert!(!has_another, "{}: {text}", entry.code);
            }
        }
        let confirm = |code: Code| code.entry().texts(&agents).confirm;
        assert_eq!(confirm(Code::FN107), "kubectl --context MEMBER -n member-ns get deployments,pods");
        assert!(confirm(Code::FN408).starts_with("kubectl --context HUB -n hub-ns get deployments -l "));
        let usual = Code::FN409.entry().texts(&AgentNamespaces::default());
        assert!(usual.meaning.ends_with("kube-node-lease and fleet-system never import."), "{usual:?}");
    }

    #[test]
    fn titles_are_different() {
        let mut titles: Vec<&str> = table().flat_map(|entry| [entry.title, entry.ok]).collect();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), 2 * 98);
    }

    #[test]
    fn the_first_digit_is_the_group() {
        for code in Code::ALL {
            let digit = code.id()[2..3].parse::<usize>().expect("a digit");
            assert_eq!(code.group(), Group::ALL[digit - 1], "{code}");
        }
    }

    #[test]
    fn notices_are_those_that_never_explain_missing_endpoints() {
        let notices: Vec<&str> = table().filter(|entry| entry.is_notice()).map(|entry| entry.code.id()).collect();
        assert_eq!(
            notices,
            [
                "FN106", "FN111", "FN112", "FN210", "FN212", "FN215", "FN320", "FN322", "FN408", "FN604", "FN610",
                "FN611", "FN617", "FN705", "FN706", "FN711"
            ]
        );
    }

    #[test]
    fn a_code_is_found_by_its_id_in_any_case() {
        assert_eq!(Code::named("fn203"), Some(Code::FN203));
        assert_eq!(Code::named("FN999"), None);
    }

    #[test]
    fn every_warning_of_the_agents_belongs_to_a_code() {
        let has_code = |reason: &&Reason| table().any(|entry| entry.reasons.contains(reason));
        let without: Vec<&Reason> =
            Reason::ALL.iter().filter(|reason| reason.is_warning()).filter(|reason| !has_code(reason)).collect();
        assert!(without.is_empty(), "{without:?} belong to no code");
    }
}
