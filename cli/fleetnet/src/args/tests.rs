//! Tests of the command line.

use super::*;

fn words(arguments: &str) -> Vec<OsString> {
    std::iter::once("fleetnet").chain(arguments.split_whitespace()).map(OsString::from).collect()
}

fn line(arguments: &str) -> Result<Options, String> {
    let all = words(arguments);
    let command = try_parse(&all).map_err(|error| usage_message(&error, &all))?;
    let Command::Sandbox(options) = command else { panic!("{arguments:?} is no sandbox") };
    options.check()?;
    Ok(options)
}

#[test]
fn the_sandbox_needs_no_options() {
    let options = line("sandbox").unwrap();
    assert_eq!((options.members(), options.once, options.json, options.real), (2, false, false, false));
    assert_eq!((options.scenario, options.kubeconfigs, options.api), (None, None, Api::Fleet));
}

#[test]
#[cfg(feature = "real")]
fn a_fleet_with_real_traffic_has_three_members_and_its_own_options() {
    let options = line("sandbox --packets").unwrap();
    assert_eq!((options.members(), options.requests_per_second), (3, 200));
    let options = line("sandbox --packets --members 2 --once --json --kubeconfigs x --port 8001").unwrap();
    assert_eq!((options.members(), options.once, options.json, options.port), (2, true, true, Some(8001)));
}

#[test]
fn scenarios_are_named_as_in_the_help() {
    for scenario in Scenario::value_variants() {
        let options = line(&format!("sandbox --scenario {}", scenario.name())).unwrap();
        assert_eq!(options.scenario, Some(*scenario));
    }
}

#[test]
fn what_is_wrong_is_named_on_one_line() {
    let table = [
        ("sandbox --members 0", "--members"),
        ("sandbox --members 10000", "1..=50"),
        ("sandbox --members 6 --real", if cfg!(feature = "real") { "at most 5" } else { "--features real" }),
        ("sandbox --packets --members 6", if cfg!(feature = "real") { "at most 5" } else { "--features real" }),
        ("sandbox --packets --members 1", if cfg!(feature = "real") { "at least 2" } else { "--features real" }),
        ("sandbox --packets --real", "--real"),
        ("sandbox --packets --scenario conflict", "--scenario"),
        ("sandbox --packets --api fleet", "--api"),
        ("sandbox --packets --once --changes 5", "--changes"),
        ("sandbox --packets --changes-per-second 5", "--changes-per-second"),
        ("sandbox --packets --port 8001", "--kubeconfigs"),
        ("sandbox --packets --requests-per-second 501", "1..=500"),
        ("sandbox --requests-per-second 5", "--packets"),
        ("sandbox --scenario flood", "hub-down, agent-killed, member-silent, conflict, slice-storm"),
        ("sandbox --scenario conflict --members 1", "at least 2"),
        ("sandbox --api standard", "fleet, multicluster"),
        ("sandbox --changes-per-second 0", "0.01 to 1000"),
        ("sandbox --changes-per-second NaN", "0.01 to 1000"),
        ("sandbox --port 8001", "--kubeconfigs"),
        ("sandbox --kubeconfigs", "none was supplied"),
        ("sandbox --kubeconfigs=", "--kubeconfigs"),
        ("sandbox --once --changes -1", "1..=10000"),
        ("sandbox --changes 5", "--once"),
        ("sandbox --once --scenario conflict --changes 5", "--scenario"),
        ("sandbox --once --scenario conflict --changes-per-second 5", "has no effect"),
        ("sandbox --port 65535 --kubeconfigs x", "fewer than 2 ports"),
        ("sandbox --nonsense", "see `fleetnet sandbox --help`"),
        ("sandbox --scenari conflict", "did you mean --scenario? See `fleetnet sandbox --help`"),
        ("statu", "did you mean status? See `fleetnet --help`"),
        ("migrate chek", "did you mean check? See `fleetnet migrate --help`"),
        ("migrate check --nonsense", "see `fleetnet migrate check --help`"),
        ("latency --quantile 0.5,2", "not a number from 0 to 1"),
    ];
    for (arguments, named) in table {
        let error = line(arguments).unwrap_err();
        assert!(error.contains(named), "{arguments:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!error.contains("one of ") || error.contains("hub-down") || error.contains("fleet"), "{error}");
    }
}

#[test]
fn the_usage_text_of_a_plugin_of_kubectl_names_kubectl() {
    let usage = |program: &str, command: &str| {
        let arguments = [program, command, "--help"].into_iter().filter(|argument| !argument.is_empty());
        try_parse(&arguments.map(OsString::from).collect::<Vec<_>>()).unwrap_err().to_string()
    };
    assert!(usage("/usr/bin/kubectl-fleetnet", "").contains("Usage: kubectl fleetnet <COMMAND>"));
    assert!(usage("kubectl-fleetnet", "version").contains("Usage: kubectl fleetnet version [OPTIONS]"));
    assert!(usage("./fleetnet", "version").contains("Usage: fleetnet version [OPTIONS]"));
}

#[test]
fn without_a_command_the_help_is_shown() {
    for (arguments, usage) in [("", "Usage: fleetnet <COMMAND>"), ("migrate", "Usage: fleetnet migrate <COMMAND>")] {
        let error = try_parse(&words(arguments)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        assert!(error.to_string().contains(usage), "{error}");
    }
}

#[test]
fn each_command_has_examples_that_parse_and_common_options_only_in_the_long_help() {
    for found in command().get_subcommands() {
        let help = found.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<&str> = help.lines().skip(1).map(str::trim).collect();
        assert!(help.starts_with("Examples:") && !examples.is_empty(), "{}", found.get_name());
        for example in examples {
            let example = example.split(" > ").next().unwrap_or_default();
            let arguments: Vec<OsString> = example.split_whitespace().map(OsString::from).collect();
            try_parse(&arguments).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
    let help = |flag: &str| try_parse(&words(&format!("status {flag}"))).unwrap_err().to_string();
    assert!(!help("-h").contains("--kubeconfig") && help("--help").contains("--kubeconfig"));
    assert!(help("--help").contains("Common options:") && help("-h").lines().count() < 20, "{}", help("-h"));
}

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
}

#[test]
fn a_folder_that_does_not_fit_on_one_line_is_rejected_on_one() {
    use std::os::unix::ffi::OsStringExt as _;
    for (path, named) in [(&b"a\nb/c"[..], "a\\nb/c"), (&b"a\xff"[..], "UTF-8"), (&b"\x1b[31m"[..], "\\u{1b}")] {
        let arguments = ["fleetnet", "sandbox", "--kubeconfigs"].map(OsString::from).into_iter();
        let arguments: Vec<OsString> = arguments.chain([OsString::from_vec(path.to_vec())]).collect();
        let Command::Sandbox(options) = try_parse(&arguments).unwrap() else { panic!("a sandbox") };
        let error = options.check().unwrap_err();
        assert!(error.contains(named) && !error.contains(char::is_control), "{error:?}");
    }
}
