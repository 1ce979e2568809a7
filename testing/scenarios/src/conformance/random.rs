//! Random cases for the conformance suite. [`case`] makes a case from a seed, and [`shorter`] leaves out one call of a
//! case.
//!
//! A watch is open during the whole case, and its events are compared at the end.
//!
//! A case uses few names in few kinds, so that calls affect the same objects. So some creates find existing objects,
//! some writes have an old resourceVersion, and some deletions wait for a finalizer.

use super::script::{Action, Call, Case, Step};
use std::fmt::Write as _;

/// Number of calls in one random case.
const CALLS: u64 = 14;
/// Kinds whose objects random cases create and change.
const KINDS: [Kind; 5] = [
    Kind {
        path: "{cm}",
        header: "",
        bodies: &[r#""data":{"k":"1"}"#, r#""data":{"k":"2","l":null}"#, r#""data":null"#],
    },
    Kind {
        path: "{svc}",
        header: "",
        bodies: &[
            r#""spec":{"ports":[{"port":80}]}"#,
            r#""spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81}]}"#,
            r#""spec":{"sessionAffinity":"ClientIP"}"#,
        ],
    },
    Kind {
        path: "{slice}",
        header: "",
        bodies: &[
            r#""addressType":"IPv4","endpoints":null"#,
            r#""addressType":"IPv4","endpoints":[{"addresses":["10.1.1.1"]}],"ports":[{"port":80}]"#,
            r#""addressType":"IPv6","endpoints":null"#,
        ],
    },
    Kind {
        path: "{lease}",
        header: "",
        bodies: &[r#""spec":{"holderIdentity":"a"}"#, r#""spec":{"leaseDurationSeconds":0}"#, r#""spec":null"#],
    },
    Kind {
        path: "{widget}",
        header: r#""apiVersion":"conformance.test/v1","kind":"Widget","#,
        bodies: &[
            r#""spec":{"colour":"red"}"#,
            r#""spec":{"size":7,"bogus":1},"status":{"phase":"x"}"#,
            r#""spec":{"colour":"violet"}"#,
            r#""spec":{"once":"a","range":{"low":3}}"#,
            r#""status":{"phase":"Ready"}"#,
            r#""spec":{"size":null}"#,
        ],
    },
];

struct Kind {
    path: &'static str,
    header: &'static str,
    bodies: &'static [&'static str],
}

/// Random numbers from a seed.
struct Random(fastrand::Rng);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.0.usize(..of.len())]
    }
}

/// Returns the random case of a seed. The response to each call is stored under the name `s<line>`, and later calls use
/// it.
#[must_use]
pub fn case(seed: u64) -> Case {
    let mut random = Random(fastrand::Rng::with_seed(seed));
    let kind = random.pick(&KINDS);
    let (mut steps, mut kept) = (vec![open(&mut random, kind)], Vec::new());
    for line in 1..=CALLS {
        let line = usize::try_from(line).expect("a small number");
        let call = call(&mut random, kind, &kept);
        // Do not store lists: other writers advance the resourceVersion of a list, so no later call may use it.
        let is_list = call.method == "GET" && call.path.contains('?');
        let save = (!is_list).then(|| format!("s{line}"));
        kept.extend(save.clone());
        steps.push(Step { line, code: None, action: Action::Send(call), save, differs: None });
    }
    steps.extend(read_to_the_end(kind));
    let namespace = format!("random-{seed}");
    Case { theme: "random".to_owned(), title: format!("seed {seed}"), namespace, steps }
}

/// Returns a step that opens a watch for the whole case. The watch selects all objects, or objects with a label that
/// calls add and remove.
fn open(random: &mut Random, kind: &Kind) -> Step {
    let selection = random.pick(&["", "", "&labelSelector=q%3D1"]);
    let path = format!("{}?watch=1{selection}", kind.path);
    let watch = Call::new("OPEN", &path, "").expect("the verb is one");
    Step { line: 0, code: None, action: Action::Open("w".to_owned(), watch), save: None, differs: None }
}

/// Returns steps that create the object `end`, and read the watch's events up to this object. No other call uses this
/// object.
fn read_to_the_end(kind: &Kind) -> [Step; 2] {
    let object = format!(r#"{{{}"metadata":{{"name":"end","labels":{{"q":"1"}}}},{}}}"#, kind.header, kind.bodies[0]);
    let create = Call::new("POST", kind.path, &object).expect("the verb is one");
    let step = |action| Step { line: 0, code: None, action, save: None, differs: None };
    [step(Action::Send(create)), step(Action::ReadUntil("w".to_owned(), "end".to_owned()))]
}

fn call(random: &mut Random, kind: &Kind, kept: &[String]) -> Call {
    let name = *random.pick(&["a", "a", "b"]);
    let body = *random.pick(kind.bodies);
    let meta = metadata(random, name, kept);
    // memkube rejects null in a map of texts, which only a merge patch needs.
    let object = format!("{{{}{meta},{}}}", kind.header, body.replace(r#","l":null"#, ""));
    let item = format!("{}/{name}", kind.path);
    let (verb, path, body) = match random.below(16) {
        0..=3 => ("POST", kind.path.to_owned(), object),
        4 | 5 => ("PUT", item, object),
        6..=8 => ("MERGE", item, format!("{{{meta},{body}}}")),
        // Do not patch metadata together with the status: a real server would record this change in managedFields, and
        // memkube has no managedFields.
        9 => ("MERGE", format!("{item}/status"), format!("{{{body}}}")),
        10 => ("JSON", item, json_patch(random)),
        11 | 12 => ("DELETE", item, delete_options(random, kept)),
        13 => ("GET", item, String::new()),
        14 => ("GET", format!("{}?{}", kind.path, selection(random)), String::new()),
        _ => ("MERGE", item, r#"{"metadata":{"finalizers":null}}"#.to_owned()),
    };
    let path = if random.below(12) == 0 && verb != "GET" { with_parameter(random, &path) } else { path };
    Call::new(verb, &path, &body).expect("the verbs are written above")
}

/// Returns JSON with a name and other metadata that a client may send. resourceVersions and UIDs come from an earlier
/// response.
fn metadata(random: &mut Random, name: &str, kept: &[String]) -> String {
    let mut meta = format!(r#""metadata":{{"name":"{name}""#);
    if random.below(3) == 0 {
        let value = random.pick(&["1", "2"]);
        let _ = write!(meta, r#","labels":{{"q":"{value}"}}"#);
    }
    if random.below(5) == 0 {
        meta.push_str(r#","finalizers":["example.com/f"]"#);
    }
    if random.below(4) == 0 && !kept.is_empty() {
        let _ = write!(meta, r#","resourceVersion":"${{{}.metadata.resourceVersion}}""#, earlier(random, kept));
    }
    if random.below(10) == 0 {
        meta.push_str(r#","annotations":{"a":"b"},"generation":7"#);
    }
    meta.push('}');
    meta
}

/// Returns the name of one of the last three stored responses.
fn earlier<'a>(random: &mut Random, kept: &'a [String]) -> &'a str {
    random.pick::<String>(&kept[kept.len().saturating_sub(3)..])
}

fn json_patch(random: &mut Random) -> String {
    let operations = [
        r#"[{"op":"add","path":"/metadata/labels","value":{"q":"1"}}]"#,
        r#"[{"op":"remove","path":"/metadata/labels/q"}]"#,
        r#"[{"op":"test","path":"/metadata/name","value":"a"},{"op":"add","path":"/metadata/annotations","value":{"x":"y"}}]"#,
        r#"[{"op":"remove","path":"/metadata/finalizers"}]"#,
    ];
    (*random.pick(&operations)).to_owned()
}

fn delete_options(random: &mut Random, kept: &[String]) -> String {
    match random.below(6) {
        0 if !kept.is_empty() => {
            let earlier = earlier(random, kept);
            format!(r#"{{"preconditions":{{"resourceVersion":"${{{earlier}.metadata.resourceVersion}}"}}}}"#)
        }
        1 => r#"{"preconditions":{"uid":"other"}}"#.to_owned(),
        2 => r#"{"propagationPolicy":"Background"}"#.to_owned(),
        _ => String::new(),
    }
}

fn selection(random: &mut Random) -> &'static str {
    let selections = ["labelSelector=q%3D1", "labelSelector=!q", "fieldSelector=metadata.name%3Da", "limit=1", ""];
    random.pick::<&'static str>(&selections)
}

fn with_parameter(random: &mut Random, path: &str) -> String {
    format!("{path}?{}", random.pick(&["dryRun=All", "fieldValidation=Strict", "fieldValidation=Ignore"]))
}

/// Returns the cases that result from leaving out any one call.
pub fn shorter(case: &Case) -> impl Iterator<Item = Case> + '_ {
    (0..case.steps.len()).rev().map(|left_out| {
        let mut case = case.clone();
        case.steps.remove(left_out);
        case
    })
}

/// Returns a case as text, in the form of the files in `table/`.
#[must_use]
pub fn as_table(case: &Case) -> String {
    let mut text = format!("== {}\n", case.title);
    for step in &case.steps {
        let save = step.save.as_ref().map(|save| format!(" => {save}")).unwrap_or_default();
        let _ = writeln!(text, "{step}{save}");
    }
    text
}
