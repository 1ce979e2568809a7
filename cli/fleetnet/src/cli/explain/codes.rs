//! The table of fault codes on the command line.

use crate::cli::output::safe::Safe;
use crate::cli::output::table::{Table, column, wide};
use crate::cli::output::{Format, Paint, Report};
use diagnosis::Code;
use diagnosis::agents::AgentNamespaces;
use diagnosis::codes::{Entry, Texts, table};
use serde_json::{Map, Value, json};

/// Parses a fault code, such as `FN203`.
pub(super) fn code(written: &str) -> Result<Code, String> {
    Code::named(written).ok_or_else(|| "no such code: fleetnet explain --list-codes lists all codes".to_owned())
}

/// All codes, or one, with the namespaces of the agents in their commands.
pub(crate) struct Codes {
    pub(crate) code: Option<Code>,
    pub(crate) agents: AgentNamespaces,
}

impl Codes {
    fn entries(&self) -> Vec<&'static Entry> {
        table().filter(|entry| self.code.is_none_or(|code| entry.code == code)).collect()
    }
}

impl Report for Codes {
    fn kind(&self) -> &'static str {
        "Codes"
    }

    fn document(&self) -> Map<String, Value> {
        let codes = self.entries().into_iter().map(|entry| {
            let reasons: Vec<&str> = entry.reasons.iter().map(|reason| reason.as_str()).collect();
            let Texts { meaning, evidence, confirm } = entry.texts(&self.agents);
            json!({
                "code": entry.code.id(), "title": entry.title, "ok": entry.ok, "meaning": meaning, "evidence": evidence,
                "confirm": confirm, "remedy": entry.remedy, "reasons": reasons, "notice": entry.is_notice(),
            })
        });
        Map::from_iter([("codes".to_owned(), codes.collect())])
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        if let (Some(_), [entry]) = (self.code, &self.entries()[..]) {
            return one(entry, &self.agents);
        }
        let mut codes = Table::new(&[column("CODE"), column("FAULT"), wide("EVIDENCE"), column("REMEDY")]);
        for entry in self.entries() {
            let evidence = entry.texts(&self.agents).evidence;
            codes.row([entry.code.id().into(), entry.title.into(), evidence.into(), entry.remedy.into()]);
        }
        codes.render(format, has_headers, paint)
    }

    fn names(&self) -> Vec<String> {
        self.entries().into_iter().map(|entry| format!("code/{}", entry.code)).collect()
    }
}

fn one(entry: &Entry, agents: &AgentNamespaces) -> Safe {
    let Texts { meaning, evidence, confirm } = entry.texts(agents);
    let reasons: Vec<&str> = entry.reasons.iter().map(|reason| reason.as_str()).collect();
    let mut text = format!("{}: {}\n\n{}\n\n", entry.code, entry.title, meaning);
    for (word, value) in
        [("evidence", &*evidence), ("confirm", &confirm), ("reasons", &reasons.join(", ")), ("remedy", entry.remedy)]
    {
        if !value.is_empty() {
            text.push_str(&format!("{word:<9} {value}\n"));
        }
    }
    if entry.is_notice() {
        text.push_str("\nThis is a notice: it degrades the fleet, and is never the cause of missing endpoints.\n");
    }
    Safe::block(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_in_upper_and_lower_case() {
        assert_eq!(code("fn203"), Ok(Code::FN203));
        assert!(code("FN999").unwrap_err().contains("--list-codes"));
    }

    #[test]
    fn one_code_is_a_page_and_all_are_a_table() {
        let agents = AgentNamespaces { members: "fabric".parse().unwrap(), ..AgentNamespaces::default() };
        let page = Codes { code: Some(Code::FN203), agents: agents.clone() }
            .lines(Format::Table, true, Paint::Plain)
            .to_string();
        assert!(page.starts_with("FN203: ") && page.contains("\nremedy    "), "{page}");
        assert!(page.contains("\nconfirm   kubectl --context MEMBER -n fabric logs "), "{page}");
        let all = Codes { code: None, agents };
        assert_eq!(all.lines(Format::Table, false, Paint::Plain).as_str().lines().count(), Code::ALL.len());
        assert_eq!(all.document()["codes"].as_array().unwrap().len(), Code::ALL.len());
        assert_eq!(all.names()[0], "code/FN101");
    }
}
