//! Parser for files of calls.

use super::compare::Expected;

/// Calls of one section.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) calls: Vec<Call>,
}

pub(crate) struct Call {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) body: String,
    pub(crate) expected: Expected,
}

impl Section {
    pub(crate) fn all(file: &str) -> Vec<Self> {
        let mut sections: Vec<Self> = Vec::new();
        for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (mark, rest) = line.split_at(2);
            if mark == "= " {
                sections.push(Self { title: rest.to_owned(), calls: Vec::new() });
                continue;
            }
            let calls = &mut sections.last_mut().expect("a call is in a section").calls;
            match mark {
                "> " => calls.push(Call::parse(rest)),
                mark => calls.last_mut().expect("an answer is behind a call").expected.add(mark, rest),
            }
        }
        assert!(sections.iter().all(|section| !section.calls.is_empty()));
        sections
    }
}

impl Call {
    fn parse(line: &str) -> Self {
        let mut parts = line.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let (verb, path, mut body) = (part(), part(), part());
        let definition = match body.as_str() {
            "@rats.json" => include_str!("definitions/rats.json"),
            "@rats_tightened.json" => include_str!("definitions/rats_tightened.json"),
            "@duos.json" => include_str!("definitions/duos.json"),
            _ => "",
        };
        if !definition.is_empty() {
            definition.clone_into(&mut body);
        }
        Self { verb, path, body, expected: Expected::default() }
    }
}
