//! Tests that every rule of `tidy` finds violations.

use super::source::Tree;
use super::{architecture, behaviour, citations, commits, depth, docs, layout, limits, metrics, names, reasons};

fn tree(files: &[(&str, &str)]) -> Tree {
    Tree::of(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
}

#[test]
fn a_module_without_a_first_line_is_found() {
    let tree = tree(&[("a/src/lib.rs", "//! What it is.\n"), ("a/src/b.rs", "use x;\n"), ("a/b.txt", "no module\n")]);
    assert_eq!(layout::modules_without_a_first_line(&tree), ["a/src/b.rs"]);
}

#[test]
fn a_file_that_is_no_module_is_found() {
    let tree = tree(&[
        ("a/src/lib.rs", "mod b;\n// mod lost;\n#[path = \"odd_place.rs\"]\nmod odd;\n"),
        ("a/src/b.rs", "mod c;\n"),
        ("a/src/b/c.rs", ""),
        ("a/src/b/d.rs", ""),
        ("a/src/odd_place.rs", ""),
        ("a/src/lost.rs", ""),
        ("a/src/bin/tool.rs", ""),
        ("a/tests/one.rs", ""),
        ("a/tests/many/main.rs", "mod first;\n"),
        ("a/tests/many/first.rs", ""),
        ("a/tests/many/second.rs", ""),
    ]);
    assert_eq!(layout::orphans(&tree), ["a/src/b/d.rs", "a/src/lost.rs", "a/tests/many/second.rs"]);
}

#[test]
fn a_long_file_is_found_but_its_tests_do_not_count() {
    let code = "fn f() {}\n".repeat(499);
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "fn f() {}\n".repeat(300));
    let tree = tree(&[
        ("a/src/fits.rs", &format!("{code}{tests}")),
        ("a/src/long.rs", &format!("{code}{code}{tests}")),
        ("a/src/lib.rs", "#[cfg(test)]\n#[path = \"checks.rs\"]\nmod checks;\n#[cfg(test)]\nmod toy;\n"),
        ("a/src/checks.rs", &code.repeat(2)),
        ("a/src/toy.rs", &code.repeat(2)),
        ("a/tests/whole.rs", &code.repeat(2)),
    ]);
    assert_eq!(layout::long_files(&tree), ["a/src/long.rs: 999 lines"]);
}

#[test]
fn a_long_function_is_found_whatever_its_text_and_comments_say() {
    let body = |lines: usize| "    let brace = \"}\"; let quote = '\"'; // }\n".repeat(lines);
    let fits = format!("fn fits<'a>(array: [u8; 2]) {{\n{}}}\n", body(68));
    let long = format!("pub async fn long() -> X where X: Y {{\n{}}}\n", body(69));
    let tree = tree(&[("a/src/lib.rs", &format!("{fits}trait T {{ fn none(); }}\n{long}"))]);
    assert_eq!(layout::long_functions(&tree), ["a/src/lib.rs:72: long has 71 lines"]);
}

#[test]
fn a_long_or_deep_function_of_core_is_found_but_not_its_comments_and_tests() {
    let body = |lines: usize| format!("    // why\n\n{}", "    f(\"}\");\n".repeat(lines));
    let fits = format!("fn fits() {{\n{}}}\n", body(38));
    let long = format!("fn long() {{\n{}}}\n", body(39));
    let deep = "fn deep() { if a { if a { if a { if a {} } } } }\n";
    let tests = format!("#[cfg(test)]\nmod tests {{\n{long}{deep}}}\n");
    let tree = tree(&[
        ("core/src/lib.rs", &format!("{fits}{long}{deep}{tests}")),
        ("core/tests/rules/main.rs", &format!("{long}{deep}")),
        ("a/src/lib.rs", &format!("{long}{deep}")),
    ]);
    assert_eq!(
        layout::large_functions_of_core(&tree),
        [
            "core/src/lib.rs:43: long has 41 lines of code and a depth of 0",
            "core/src/lib.rs:86: deep has 1 lines of code and a depth of 4",
        ]
    );
}

#[test]
fn the_depth_of_a_function_counts_blocks_of_control_flow_arms_and_closures_but_no_values() {
    for (depth, code) in [
        (0, "a();"),
        (0, "let a = x == Kind::Service; Foo { b: 1 }"),
        (1, "if a { b(); } else if c { d(); } else { e(); }"),
        (1, "let Some(x) = y else { return; };"),
        (1, "let x = Foo { a: if b { 1 } else { 2 } };"),
        (1, "if a == b && let Some(c) = d(Foo { x: 1 }) && e { g() }"),
        (1, "move || { a }"),
        (1, "match x { A => Foo { a: 1 }, B if c => Foo { a } }"),
        (2, "if let 1..=5 = a { if b { } }"),
        (3, "for Foo { a } in c { match a { X { y } if y => { g(); } Z => h() } }"),
        (3, "match a { 1..=5 => { if b { } } _ => { } }"),
        (4, "xs.map(|x| { if let Foo { a } = x { while true { loop { } } } });"),
    ] {
        assert_eq!(depth::of(&format!("fn f<'a>() -> impl Iterator + use<'a> {{ {code} }}")), depth, "{code}");
    }
}

#[test]
fn spaces_at_the_end_of_a_line_are_found() {
    let tree = tree(&[("a.md", "good\nbad \n"), ("b.md", "no end"), ("Cargo.lock", "bad ")]);
    assert_eq!(layout::loose_ends(&tree), ["a.md:2", "b.md: no line end at its end"]);
}

#[test]
fn paths_of_one_machine_are_found_but_not_parts_of_other_paths() {
    let (home, project) = (concat!("/ro", "ot/x"), concat!("see ../sha", "red/design"));
    let fine = concat!("/api/v1/namespaces/wo", "rk/services and {namespace}/wo", "rk/x");
    let tree = tree(&[("a.md", &format!("{fine}\n{home}\n{project}\n"))]);
    assert_eq!(layout::machine_paths(&tree), [concat!("a.md:2: /ro", "ot/"), concat!("a.md:3: sha", "red/")]);
}

#[test]
fn a_dependency_of_core_that_is_not_pure_is_found_however_deep() {
    let lock = "[[package]]\nname = \"sha2\"\ndependencies = [\n \"digest\",\n]\n\n\
                [[package]]\nname = \"digest\"\ndependencies = [\n \"tokio-util 0.7.0\",\n]\n";
    let manifest = "[package]\nname = \"x\"\n\n[dependencies]\nsha2.workspace = true\nserde = \"1\"\n\n\
                    [dev-dependencies]\ntokio = \"1\"\n";
    let tree = tree(&[("core/Cargo.toml", manifest), ("Cargo.lock", lock)]);
    assert_eq!(
        architecture::impure_dependencies(&tree),
        [
            "core/Cargo.toml: serde is not on the short list of what core may depend on",
            "core/Cargo.toml: tokio-util is below core"
        ]
    );
}

#[test]
fn a_cli_that_depends_on_test_code_is_found_but_not_through_an_optional_dependency() {
    let sim = "[package]\nname = \"sim\"\n\n[dependencies]\nharness.workspace = true\n";
    let fleetnet = |more: &str| format!("[package]\nname = \"fleetnet\"\n\n[dependencies]\n{more}\n");
    let found = |more: &str| {
        architecture::crates_not_apart(&tree(&[
            ("cli/fleetnet/Cargo.toml", &fleetnet(more)),
            ("testing/sim/Cargo.toml", sim),
        ]))
    };
    let wrong = "fleetnet depends on harness, but users install the CLI, and tests are no part of it";
    assert_eq!(found("sim.workspace = true"), [wrong]);
    assert_eq!(found("harness.workspace = true"), [wrong]);
    assert_eq!(found("harness = { workspace = true, optional = true }"), [""; 0]);
}

#[test]
fn a_clock_in_core_is_found_but_not_in_its_tests_or_comments() {
    let text = "//! Instant.\nfn f() { Instant::now(); }\n#[cfg(test)]\nmod tests { use std::env; }\n";
    let tree = tree(&[("core/src/lib.rs", text), ("core/tests/all.rs", "use std::env;\n")]);
    assert_eq!(architecture::impure_core(&tree), ["core/src/lib.rs:2: Instant"]);
}

#[test]
fn a_bool_parameter_in_core_is_found_but_not_one_of_its_tests_or_of_another_crate() {
    let text = "struct S { b: bool }\nimpl S {\n    fn f(self, n: u8, b: bool) {}\n}\nfn g() -> bool { true }\n\
                mod tests {\n    fn h(b: bool) {}\n}\n";
    let tree = tree(&[("core/src/lib.rs", text), ("core/tests/all.rs", text), ("api/src/lib.rs", text)]);
    assert_eq!(architecture::bool_parameters(&tree), ["core/src/lib.rs:3: f"]);
}

#[test]
fn requests_are_found_in_agents_and_in_modules_of_the_runtime_that_have_no_business_with_them() {
    let text = "fn f() { let pods: Api<Pod> = g(); }\n";
    let tree = tree(&[
        ("hub-agent/src/lib.rs", text),
        ("runtime/src/engine.rs", text),
        ("runtime/src/io/writer.rs", text),
        ("testing/scenarios/src/lib.rs", text),
    ]);
    assert_eq!(architecture::requests_in_agents(&tree), ["hub-agent/src/lib.rs:1: Api<"]);
    assert_eq!(architecture::requests_in_runtime(&tree), ["runtime/src/engine.rs:1: Api<"]);
}

#[test]
fn a_label_of_our_group_is_found_outside_api_but_not_the_names_of_leases() {
    let label = concat!("const L: &str = \"networking.fleet", ".azure.com/x\";\n");
    let lease = concat!("const L: &str = \"2bf2b407.mcs.hub.networking.fleet", ".azure.com\";\n");
    let tree = tree(&[
        ("api/src/names.rs", label),
        ("core/src/a.rs", &format!("{lease}{label}")),
        ("core/src/b.rs", &format!("// {label}#[cfg(test)]\nmod tests {{\n{label}}}\n")),
        ("tests/tests/a.rs", label),
    ]);
    assert_eq!(architecture::names_outside_api(&tree), ["core/src/a.rs:2"]);
}

#[test]
fn a_queue_without_a_named_limit_is_found() {
    let tree = tree(&[
        ("a/src/limits.rs", "pub const ORDERS: usize = 1;\n"),
        ("a/src/lib.rs", "fn f() { mpsc::channel(limits::ORDERS); mpsc::unbounded_channel(); }\n"),
        ("a/src/b.rs", "fn f() {\n    mpsc::channel(7)\n}\n"),
    ]);
    assert_eq!(
        limits::queues_without_limit(&tree),
        ["a/src/b.rs:2: a/src/limits.rs has no 7", "a/src/lib.rs:1: unbounded_channel"]
    );
}

#[test]
fn a_limit_outside_limits_rs_is_found_unless_a_mark_explains_it() {
    let tree = tree(&[
        ("core/src/limits.rs", "pub const FEW: usize = 1;\n"),
        ("core/src/a.rs", "/// Most.\nconst MOST: usize = 1;\nconst NAME: &str = \"a\";\n"),
        ("core/src/b.rs", "pub(crate) const RANGE: std::ops::RangeInclusive<u64> = 1..=2;\n"),
        ("core/src/c.rs", "// no limit: a unit\nconst SECOND: i64 = 1_000_000;\n// no limit: \nconst NONE: i64 = 1;\n"),
        ("core/src/d.rs", "fn f(n: u64) {\n    wait(Duration::from_millis(15), Duration::from_secs(n));\n}\n"),
        ("core/src/e.rs", "#[cfg(test)]\nmod tests {\nconst MOST: usize = 1;\n}\n"),
        ("testing/sim/src/lib.rs", "const MOST: usize = 1;\n"),
    ]);
    let expected = ["core/src/a.rs:2: MOST", "core/src/b.rs:1: RANGE", "core/src/c.rs:4: NONE"];
    assert_eq!(limits::limits_elsewhere(&tree), [&expected[..], &["core/src/d.rs:2: Duration::from_millis"]].concat());
}

#[test]
fn a_metric_that_is_defined_outside_of_metrics_rs_is_found() {
    let text = "const DEPTH: Definition = Definition { name: \"depth\" };\n";
    let made = "fn f() {\n    IntGauge::new(\"depth\", \"Depth.\");\n}\n";
    let tree = tree(&[
        ("runtime/src/metrics.rs", text),
        ("runtime/src/metrics/definition.rs", made),
        ("runtime/src/queue.rs", text),
        ("agent/src/lib.rs", made),
        ("agent/src/tests.rs", "#[cfg(test)]\nmod tests {\nfn f() { IntGauge::new(\"a\", \"b\"); }\n}\n"),
        ("testing/bench/src/lib.rs", made),
    ]);
    assert_eq!(
        metrics::metrics_elsewhere(&tree),
        ["runtime/src/queue.rs:1: Definition {", "agent/src/lib.rs:2: IntGauge::new"]
    );
}

#[test]
fn a_limit_without_a_reason_is_found() {
    let limits = "/// Why.\n// More.\npub const A: usize = 1;\npub const B: usize = 1;\n\n// c\nconst C: u8 = 1;\n";
    let tree = tree(&[("a/src/limits.rs", limits), ("a/src/lib.rs", "const D: usize = 1;\n")]);
    assert_eq!(limits::limits_without_reason(&tree), ["a/src/limits.rs:4: B", "a/src/limits.rs:7: C"]);
}

#[test]
fn a_scenario_that_a_backend_leaves_out_is_found() {
    let scenarios = "pub fn a_slice_is_imported_again() {}\npub fn a_slice_is_left_alone() {}\npub fn helps() {}\n";
    let tree = tree(&[
        ("testing/scenarios/src/main_job.rs", scenarios),
        ("testing/scenarios/tests/e2e/a.rs", "fn f() { a_slice_is_imported_again(); a_slice_is_left_alone(); }\n"),
        ("testing/sim/tests/fleets/a.rs", "fn f() { a_slice_is_imported_again(); }\n"),
    ]);
    assert_eq!(
        behaviour::scenarios_on_one_backend(&tree),
        ["testing/scenarios/src/main_job.rs: no test below testing/sim/tests/ runs a_slice_is_left_alone"]
    );
}

/// Returns a tree with tests and a docs/contributors/behaviour.md. `rows` are rows of its table of rules.
fn ruled(rows: &str) -> Tree {
    let table =
        format!("# Rules\n\n| | what | test |\n|---|---|---|\n{rows}\n| what | why |\n|---|---|\n| no rule | none |\n");
    tree(&[
        ("docs/contributors/behaviour.md", &table),
        ("core/tests/rules/sums.rs", "#[test]\nfn a_sum_is_right() { helps() }\nfn helps() {}\n"),
        ("runtime/src/waits.rs", "#[test]\nfn a_wait_ends() {}\n"),
    ])
}

const RULE: &str = "| S1 | it adds | `sums::a_sum_is_right` (core) |\n";

#[test]
fn a_rule_without_a_test_that_is_there_is_found() {
    let rows = format!(
        "{RULE}| S2 | it | none, `sum` |\n| S1 | it | `waits::a_wait_ends` |\n| S3 | it | `sums::lost`, `sums::helps` |\n"
    );
    assert_eq!(
        behaviour::rules_without_tests(&ruled(&rows)),
        [
            "docs/contributors/behaviour.md:6: S2 names no test",
            "docs/contributors/behaviour.md:7: S1 is there twice",
            "docs/contributors/behaviour.md:8: S3 names sums::lost, which is no test",
            "docs/contributors/behaviour.md:8: S3 names sums::helps, which is no test"
        ]
    );
}

#[test]
fn a_scenario_is_a_test_where_a_test_runs_it() {
    let tree = tree(&[
        (
            "testing/scenarios/src/told.rs",
            "pub async fn played() {}\npub async fn called() {}\npub async fn lost() {}\n",
        ),
        ("testing/scenarios/src/environment/on_processes.rs", "pub async fn called() {}\n"),
        ("testing/scenarios/tests/e2e/told.rs", "#[test]\nfn played() { run(told::played) }\n// lost\n"),
        (
            "testing/sim/tests/told_on_memkube.rs",
            "#[tokio::test(start_paused = true)]\nasync fn it() { called().await }\n",
        ),
        (
            "core/src/told.rs",
            "// Says why.\n#[test]\n#[expect(\n    clippy::x,\n    reason = \"y\"\n)]\nfn odd() {}\nfn lost() {}\n",
        ),
    ]);
    let known: Vec<String> = behaviour::tests_of(&tree).iter().cloned().collect();
    assert_eq!(known, ["told::called", "told::odd", "told::played", "told_on_memkube::it"]);
}

#[test]
fn a_test_that_the_docs_name_and_nobody_wrote_is_found() {
    let rows = "| what | test |\n|---|---|\n| it | `a_sum_is_right`, `a_sum_is_lost` (real) |\n| it | the same |\n";
    let other = "\n| name | column |\n|---|---|\n| x | `a_metric_of_ours_in_seconds` |\n";
    let prose = "\nHeld by `sums::a_sum_is_right_and_kept`; `fleet::Fleet` is code.\n";
    let tree = tree(&[
        ("core/tests/rules/sums.rs", "#[test]\nfn a_sum_is_right() {}\n"),
        ("docs/concepts/failures.md", &format!("{rows}{other}{prose}")),
    ]);
    assert_eq!(
        docs::tests_that_are_not_there(&tree),
        ["docs/concepts/failures.md:3: a_sum_is_lost", "docs/concepts/failures.md:10: sums::a_sum_is_right_and_kept"]
    );
}

#[test]
fn a_block_of_commands_that_nothing_runs_is_found() {
    let block = |info: &str| format!("\n```{info}\nrm x\n```\n");
    let run = [block("sh run=sums::a_sum_is_right"), block("yaml run=sums::a_sum_is_right"), block("yaml")];
    let lost = [block("console run=sums::a_sum_is_lost"), block("yaml run=sums::lost")];
    let in_a_list = "- Then:\n\n  ```sh\n  rm x\n  ```\n\n  ```sh not-run=\"it needs a cloud\"\n  rm x\n  ```\n";
    let others = ["console not-run=\"it needs a cloud\"", "sh not-run=\"\"", "bash", "shell not-run=why"].map(block);
    let text = [run.concat(), lost.concat(), others.concat(), in_a_list.to_owned()].concat();
    let tree = tree(&[("core/tests/sums.rs", "#[test]\nfn a_sum_is_right() {}\n"), ("README.md", &text)]);
    let silent = "its info string says neither `run=file::test` nor `not-run=\"why\"`";
    assert_eq!(
        docs::commands_that_nothing_runs(&tree),
        [
            "README.md:14: sums::a_sum_is_lost is no test".to_owned(),
            "README.md:18: sums::lost is no test".to_owned(),
            format!("README.md:26: {silent}"),
            format!("README.md:30: {silent}"),
            format!("README.md:34: {silent}"),
            format!("README.md:39: {silent}"),
        ]
    );
    assert!(docs::tests_that_are_not_there(&tree).is_empty(), "info strings are checked once");
}

#[test]
fn a_wide_comment_is_found() {
    let wide = format!("{} wide", "text ".repeat(23));
    let source = format!(
        "//! {wide}\nfn f() {{\n    // {}\n    // 1 {wide}\n    let x = 1; // {wide}\n}}\n\
         /// | {wide} |\n/// See https://example.com {wide}\n/// ```text\n/// {wide}\n/// ```\n/// {}\n\
         const TEXT: &str = \"\n/// {wide} {wide}\";\n/// ```\nfn g() {{}}\n/// {wide}\nfn h() {{}}\n",
        &wide[..113],
        "long".repeat(40),
    );
    assert_eq!(
        layout::wide_comments(&tree(&[("core/src/lib.rs", &source)])),
        ["core/src/lib.rs:1: 124 columns", "core/src/lib.rs:4: 129 columns", "core/src/lib.rs:17: 124 columns"]
    );
}

#[test]
fn a_long_subject_of_a_commit_and_one_in_lower_case_are_found() {
    let subjects = format!("Retry rejected creates\n{}\n{}\nfix it\n1 thing\n", "A".repeat(72), "Ä".repeat(73));
    let tree = Tree { subjects, ..tree(&[]) };
    let long = format!("\"{}\": 73 characters", "Ä".repeat(73));
    let lower = ["\"fix it\" does not begin with a capital letter", "\"1 thing\" does not begin with a capital letter"];
    assert_eq!(commits::subjects(&tree), [&long, lower[0], lower[1]]);
}

#[test]
fn a_reason_without_its_row_and_a_row_without_its_reason_are_found() {
    let code = "reasons! {\n    /// Fine.\n    Normal Fine,\n    /// Bad.\n    Warning Bad,\n    Warning Worse,\n}\n";
    let table = "| reason | type | told on |\n|---|---|---|\n| `Fine` | Normal | x |\n| `Bad` | Normal | x |\n| `Gone` | Normal | x |\n";
    let other = "\n| reason of the slices | type |\n|---|---|\n| `Said` | Normal |\n| `Unsaid` | Normal |\n";
    let tree = tree(&[
        ("core/src/reasons.rs", code),
        ("endpointslice/controller/src/lib.rs", "//! `\"Unsaid\"`\nconst REASON: &str = \"Said\";\n"),
        ("docs/reference/events.md", &format!("{table}{other}")),
    ]);
    assert_eq!(
        reasons::reasons_that_are_not_explained(&tree),
        [
            "docs/reference/events.md: Bad is of type Warning, not Normal",
            "core/src/reasons.rs: Worse has no row in docs/reference/events.md",
            "docs/reference/events.md: Gone is told nowhere",
            "docs/reference/events.md: Unsaid is told nowhere",
        ]
    );
}

#[test]
fn a_link_to_a_missing_file_or_heading_is_found() {
    let text = "[a](b.md) [b](../README.md#the-use-of-it) [c](../core) [d](#here) [e](https://example.com/x)\n\
                # Here\n[f](c.md) [g](b.md#there) [h](../../x.md) [i](#there) [j](../core#x)\n";
    let readme = ("README.md", "## The use of `it`\n");
    let tree = tree(&[("docs/a.md", text), ("docs/b.md", ""), readme, ("core/src/lib.rs", "//! [x](y.md)\n")]);
    let broken = ["c.md", "b.md#there", "../../x.md", "#there", "../core#x"];
    assert_eq!(citations::broken_links(&tree), broken.map(|target| format!("docs/a.md:3: {target}")));
}

#[test]
fn a_path_of_no_file_in_docs_and_comments_is_found() {
    let code = "//! See `core/src/a.rs`, a.rs, `../docs/b.md` and the folder `core/src/`.\n\
                const PATH: &str = \"core/src/string.rs\"; // as core/src/lost.rs\n\
                // https://example.com/src/lost.rs, <name>.rs, x/*.md, zone.go and `pkg/x/zone.yaml`\n";
    let document = "`src/a.rs`, `b/lost.md`, `core/lost/`, `core/zone.yaml` or other/folder/.\n";
    let tree = tree(&[
        ("core/src/a.rs", code),
        ("docs/b.md", document),
        ("core/Cargo.toml", "# see docs/gone.md\nname = \"docs/name.md\"\n"),
        ("CHANGELOG.md", "`core/src/lost.rs` is gone.\n"),
    ]);
    let lost = ["b/lost.md", "core/lost/", "core/zone.yaml"].map(|path| format!("docs/b.md:1: {path}"));
    let others = ["core/Cargo.toml:1: docs/gone.md".to_owned(), "core/src/a.rs:2: core/src/lost.rs".to_owned()];
    assert_eq!(citations::missing_paths(&tree), [&others[..], &lost].concat());
}

#[test]
fn a_citation_of_a_document_elsewhere_is_found_but_not_a_field_of_an_object() {
    let document = concat!("The sp", "ec says so.\nThe spec of a Service.\nAs in `sp", "ec/02.md`.\nIn /spec/ports.\n");
    let code = concat!("// (the de", "sign, 3.1)\nconst TEXT: &str = \"the de", "sign\";\n");
    let tree = tree(&[("docs/a.md", document), ("core/src/lib.rs", code)]);
    assert_eq!(
        citations::citations_of_other_documents(&tree),
        [
            concat!("core/src/lib.rs:1: the de", "sign"),
            concat!("docs/a.md:1: the sp", "ec"),
            concat!("docs/a.md:3: sp", "ec/02.md")
        ]
    );
}

#[test]
fn a_bug_without_a_row_is_found() {
    let table = "| | they | here |\n|---|---|---|\n| B1 | x | y |\n| B1b | x | y |\nAlso B4.\n";
    let code = "// B1, B1b and B23; not B100, AB2 or B2xy.\nconst B7: &str = \"B8\";\n";
    let tree = tree(&[("docs/contributors/behaviour.md", table), ("core/src/lib.rs", code)]);
    assert_eq!(citations::unknown_bugs(&tree), ["core/src/lib.rs:1: B23", "docs/contributors/behaviour.md:5: B4"]);
}

#[test]
fn a_short_name_of_an_annotation_in_a_message_or_a_page_is_found() {
    let group = concat!("networking.fleet", ".azure.com");
    let definitions = ["weight", "export-headless", "last-seen", "exporters"]
        .map(|name| format!("    pub const X: &str = \"{group}/{name}\";\n"));
    let code = format!(
        "// annotation weight\n\
         const A: &str = \"set the annotation weight\";\n\
         const B: &str = \"its weight is 0, the annotation {group}/weight\";\n\
         const C: &str = \"set the annotation \\\n    \\\"export-headless\\\" to true\";\n\
         const D: &str = \"label last-seen, flag --last-seen-time, export-headless-too\";\n\
         const E: &str = \"the weight annotation, annotation {group}/wait\";\n"
    );
    let page = format!(
        "Set `export-headless`.\nThe annotation `exporters`.\nThe exporters.\nAnnotation {group}/exporters, last-seen.\n"
    );
    let tree = tree(&[("api/src/names.rs", &definitions.concat()), ("core/src/lib.rs", &code), ("docs/a.md", &page)]);
    let expected = [
        "core/src/lib.rs:2: weight",
        "core/src/lib.rs:4: export-headless",
        "core/src/lib.rs:6: last-seen",
        "core/src/lib.rs:7: weight",
        "docs/a.md:1: export-headless",
        "docs/a.md:2: exporters",
    ];
    assert_eq!(names::short_names_of_annotations(&tree), expected);
    assert_eq!(names::names_that_are_not_there(&tree), [format!("core/src/lib.rs:7: {group}/wait")]);
}

#[test]
fn a_step_whose_file_does_not_contain_its_text_is_found() {
    let steps = "1. `a/src/b.rs` (`pub zone`): kept\n2. `a/src/b.rs` (`pub lost`): gone\n3. `a/c.rs` (`zone`): none\n";
    let prose = "4. `a/src/b.rs`: a step without a text\nSentence. `a` is no step\n";
    let tree = tree(&[("CONTRIBUTING.md", &format!("{steps}{prose}")), ("a/src/b.rs", "pub zone: u8,\n")]);
    let places = ["CONTRIBUTING.md:2: a/src/b.rs has no pub lost", "CONTRIBUTING.md:3: a/c.rs has no zone"];
    assert_eq!(docs::steps_that_are_not_there(&tree), places);
    let without = self::tree(&[("CONTRIBUTING.md", prose)]);
    assert_eq!(docs::steps_that_are_not_there(&without), ["CONTRIBUTING.md: no step names a file and its text"]);
}
