//! Server for tests of kinds, and the parser for files of calls.

use crate::compare::Expected;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use memkube::{MemKube, Options, Service, User};
use serde_json::Value;
use std::sync::Arc;
use tower::Service as _;

/// Response to a call.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

pub(crate) struct Server(Service);

impl Server {
    pub(crate) fn new() -> Self {
        let now = || Timestamp::from_second(1_767_225_600).unwrap();
        let server = MemKube::new(Options::new(Arc::new(now), 1));
        Self(server.service(User::new("admin")))
    }

    /// Makes a call. The verb `MERGE` sends a merge patch, and the verb `YAML` creates an object from YAML.
    pub(crate) async fn call(&mut self, verb: &str, path: &str, body: &str) -> Answer {
        let (method, content_type) = match verb {
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "YAML" => ("POST", "application/yaml"),
            verb => (verb, "application/json"),
        };
        let body = Full::new(Bytes::from(body.to_owned()));
        let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
        let response = self.0.call(request.body(body).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Answer { code, body }
    }

    pub(crate) async fn expect(&mut self, verb: &str, path: &str, body: &str, code: u16) {
        let answer = self.call(verb, path, body).await;
        assert_eq!(answer.code, code, "{verb} {path}: {}", answer.body);
    }
}

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
