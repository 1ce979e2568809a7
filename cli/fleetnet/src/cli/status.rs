//! Command `fleetnet status`: state of the members and of the hub agent.

use super::contexts::ClusterFlags;
use super::exit::{Exit, Stop};
use super::fleet::{Breadth, Fleet};
use super::output::progress::Progress;
use super::output::safe::Safe;
use super::output::table::{Cell, Table, Tone, column, wide};
use super::output::{Format, OutputFlags, Paint, Report};
use super::view::{View, ViewFlags, members, number, show, span};
use diagnosis::read::Scope;
use diagnosis::report::{MemberState, SliceMaker, Status, Verdict};
use serde_json::{Map, Value};

/// Options of the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    view: ViewFlags,

    #[command(flatten)]
    clusters: ClusterFlags,

    #[command(flatten)]
    output: OutputFlags,
}

/// Status in every format.
pub(crate) struct Shown(pub(crate) Status);

impl Report for Shown {
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    fn document(&self) -> Map<String, Value> {
        members(&self.0)
    }

    fn lines(&self, format: Format, has_headers: bool, paint: Paint) -> Safe {
        let columns = ["MEMBER", "STATE", "VERSION", "HEARD", "CLOCK", "EXPORTS", "ENDPOINTS", "IMPORTS"].map(column);
        let more = ["SLICES OUT", "SLICES IN", "SLICE STREAM", "SLICES BY", "CLUSTER UID"].map(wide);
        let mut table = Table::new(&[columns.as_slice(), more.as_slice()].concat());
        for row in &self.0.members {
            let (state, tone) = state(row.state);
            table.row([
                row.member.as_str().into(),
                Cell::toned(state, tone),
                row.version.as_deref().unwrap_or("–").into(),
                row.heard_seconds.map_or_else(|| "–".to_owned(), span).into(),
                clock(row.clock_milliseconds).into(),
                number(row.exports).into(),
                number(row.endpoints).into(),
                number(row.imports).into(),
                number(row.exported_slices).into(),
                number(row.imported_slices).into(),
                row.slice_stream.as_deref().unwrap_or("–").into(),
                row.slices_made_by.map_or("–", SliceMaker::name).into(),
                row.cluster_uid.as_deref().unwrap_or("–").into(),
            ]);
        }
        let mut text = table.render(format, has_headers, paint);
        if has_headers {
            text.push_own("\n");
        }
        text.push(&Safe::line(&self.hub()));
        text.push_own("\n");
        text
    }

    fn names(&self) -> Vec<String> {
        self.0.members.iter().map(|row| format!("member/{}", row.member)).collect()
    }
}

impl View for Shown {
    fn verdict(&self) -> Verdict {
        self.0.verdict
    }

    fn not_known(&self) -> Vec<String> {
        self.0.not_known.clone()
    }
}

impl Shown {
    /// Returns the line of the hub agent.
    fn hub(&self) -> String {
        let hub = &self.0.hub;
        if !hub.reached {
            return format!("hub {}: does not answer", hub.server);
        }
        let version = hub.version.as_deref().unwrap_or("not known");
        let leader = hub.leader.as_deref().unwrap_or("none");
        let replicas = hub.replicas.map_or_else(
            || "replicas not known".to_owned(),
            |(ready, wanted)| format!("{ready} of {wanted} replicas ready"),
        );
        format!("hub {}: hub agent {version}, leader {leader}, {replicas}", hub.server)
    }
}

/// Returns the name of a state, and its colour.
pub(crate) fn state(state: MemberState) -> (&'static str, Tone) {
    match state {
        MemberState::Ready => ("Ready", Tone::Good),
        MemberState::Stopped => ("Stopped", Tone::Warning),
        MemberState::Silent => ("Silent", Tone::Bad),
        MemberState::NeverHeard => ("NeverHeard", Tone::Bad),
        MemberState::GoAgent => ("GoAgent", Tone::Plain),
        MemberState::NoNamespace => ("NoNamespace", Tone::Bad),
        MemberState::Leaving => ("Leaving", Tone::Bad),
        MemberState::Unknown => ("Unknown", Tone::Warning),
    }
}

/// Returns how far the member's clock is ahead of the hub's.
fn clock(milliseconds: Option<i64>) -> String {
    match milliseconds {
        None => "not known".to_owned(),
        Some(milliseconds) => {
            let tenths = milliseconds.unsigned_abs().saturating_add(50) / 100;
            let sign = match (tenths, milliseconds < 0) {
                (0, _) => "",
                (_, true) => "-",
                (_, false) => "+",
            };
            format!("{sign}{}.{}s", tenths / 10, tenths % 10)
        }
    }
}

/// Runs the command.
pub(crate) async fn run(options: Options) -> Result<Exit, Stop> {
    let progress = Progress::new(options.clusters.verbose);
    let fleet = Fleet::find(&options.clusters, Breadth::Reachable, options.view.timeout, &progress).await?;
    let read = async |progress: &Progress| Shown(diagnosis::status(&fleet.snapshot(&Scope::Status, progress).await));
    show(options.view, options.output, &fleet.remarks(), progress, read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::output::render;
    use diagnosis::report::{HubStatus, MemberStatus};

    fn shown() -> Shown {
        let member = |member: &str, state, heard: Option<i64>, clock: Option<i64>| MemberStatus {
            member: member.to_owned(),
            state,
            version: heard.map(|_| "0.1.0".to_owned()),
            heard_seconds: heard,
            clock_milliseconds: clock,
            exports: heard.map(|_| 3),
            endpoints: heard.map(|_| 12),
            imports: heard.map(|_| 4),
            exported_slices: heard.map(|_| 5),
            imported_slices: None,
            slice_stream: None,
            slices_made_by: heard.map(|_| SliceMaker::KubeControllerManager),
            cluster_uid: heard.map(|_| "uid".to_owned()),
        };
        let members = vec![
            member("east", MemberState::Ready, Some(3), Some(-49)),
            member("north\x1b[2J", MemberState::NeverHeard, None, None),
            member("west", MemberState::Silent, Some(400), Some(3_050)),
        ];
        let hub = HubStatus {
            server: "https://hub.test".to_owned(),
            reached: true,
            version: Some("0.1.0".to_owned()),
            leader: None,
            replicas: Some((1, 2)),
        };
        let not_known = vec!["Leases".to_owned()];
        let (api_version, kind) = (diagnosis::report::API_VERSION, "Status");
        Shown(Status { api_version, kind, members, hub, verdict: Verdict::Fault, not_known })
    }

    #[test]
    fn members_are_rows_and_the_hub_is_a_line() {
        let text = render(&shown(), OutputFlags::default(), Paint::Plain).to_string();
        assert_eq!(
            text,
            "\
MEMBER          STATE       VERSION  HEARD  CLOCK      EXPORTS  ENDPOINTS  IMPORTS
east            Ready       0.1.0    3s     0.0s       3        12         4
north\\u{1b}[2J  NeverHeard  –        –      not known  –        –          –
west            Silent      0.1.0    6m     +3.1s      3        12         4

hub https://hub.test: hub agent 0.1.0, leader none, 1 of 2 replicas ready
"
        );
    }

    #[test]
    fn wide_shows_slices_the_stream_and_the_cluster() {
        let flags = OutputFlags { output: Format::Wide, ..OutputFlags::default() };
        let text = render(&shown(), flags, Paint::Plain).to_string();
        assert!(
            text.contains("IMPORTS  SLICES OUT  SLICES IN  SLICE STREAM  SLICES BY                CLUSTER UID\n"),
            "{text}"
        );
        let east = "4        5           –          –             kube-controller-manager  uid\n";
        assert!(text.contains(east), "{text}");
    }

    #[test]
    fn json_has_the_result_of_the_diagnosis() {
        let output = OutputFlags { output: Format::Json, ..OutputFlags::default() };
        let json: Value = serde_json::from_str(render(&shown(), output, Paint::Plain).as_str()).unwrap();
        assert_eq!((&json["apiVersion"], &json["kind"]), (&"cli.fleetnet/v1".into(), &"Status".into()));
        assert_eq!((&json["members"][2]["state"], &json["verdict"]), (&"Silent".into(), &"fault".into()));
        assert_eq!(json["notKnown"][0], "Leases");
        let output = OutputFlags { output: Format::Name, ..OutputFlags::default() };
        assert!(render(&shown(), output, Paint::Plain).as_str().starts_with("member/east\n"));
    }
}
