//! Dashboards as data. `model/json.rs` writes their JSON.
//!
//! Each panel says what is normal, and what to do otherwise: the constructors of [`Panel`] ask for both.

mod json;

use serde_json::{Value, json};

/// Number of columns of a dashboard in Grafana.
const COLUMNS: u32 = 24;
/// Abbreviations in queries: the latency histogram, and the buckets of changes that arrive within the latency target of
/// 750 ms. Prometheus 3 writes the bound of the bucket as 750.0.
///
/// The others select the series of agents. The variables of all dashboards are in [`Variable::of_all`]. The dashboards
/// of members and pairs read the hub agent's series with `<the-hub>`, because the hub is in another cluster than the
/// member.
const ABBREVIATIONS: [(&str, &str); 6] = [
    ("<latency>", "fleet_networking_endpointslice_export_import_duration_milliseconds"),
    ("<target>", r#"le=~"750|750.0""#),
    ("<agents>", r#"job=~"$hub_job|$member_job",cluster=~"$cluster""#),
    ("<hub>", r#"job=~"$hub_job",cluster=~"$cluster""#),
    ("<the-hub>", r#"job=~"$hub_job""#),
    ("<member>", r#"job=~"$member_job",cluster=~"$cluster""#),
];

/// Address of the runbook's folder: a constant of each dashboard. The chart of the hub agent sets it.
const RUNBOOK: &str = "${runbook}";

pub(super) const GREEN: &str = "green";
pub(super) const ORANGE: &str = "orange";
pub(super) const RED: &str = "red";

pub(super) struct Dashboard {
    pub(super) uid: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    /// Variables after those of all dashboards.
    pub(super) variables: Vec<Variable>,
    /// Label matchers of the members that the dashboard shows, for its annotations. Empty: all agents.
    pub(super) members: &'static str,
    pub(super) rows: Vec<Row>,
}

/// Variable with the values of a label.
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// Query of Grafana: `label_values(series, label)`. It may have [`ABBREVIATIONS`].
    pub(super) query: &'static str,
    pub(super) selection: Selection,
}

/// Number of values of a variable that a user may select.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Selection {
    One,
    /// Any number. The default is all of them.
    Any,
    /// Any number. The default also selects series without the label.
    AnyOrNone,
}

impl Variable {
    /// Returns the variables of all dashboards. A metric that only one of the two agents has names the job of this
    /// agent.
    fn of_all() -> [Self; 3] {
        [
            Self {
                name: "cluster",
                label: "Cluster",
                query: "label_values(fleetnet_build_info, cluster)",
                selection: Selection::AnyOrNone,
            },
            Self {
                name: "hub_job",
                label: "Job of the hub agent",
                query: "label_values(fleetnet_exports, job)",
                selection: Selection::Any,
            },
            Self {
                name: "member_job",
                label: "Job of the member agents",
                query: "label_values(fleetnet_slice_stream_connected, job)",
                selection: Selection::Any,
            },
        ]
    }
}

pub(super) struct Row {
    title: &'static str,
    panels: Vec<Panel>,
    /// True if Grafana shows only the title until a user opens the row.
    is_closed: bool,
}

impl Row {
    pub(super) fn open(title: &'static str, panels: Vec<Panel>) -> Self {
        Self { title, panels, is_closed: false }
    }

    pub(super) fn close(self) -> Self {
        Self { is_closed: true, ..self }
    }
}

pub(super) struct Panel {
    kind: Kind,
    title: &'static str,
    description: String,
    queries: Vec<Query>,
    unit: &'static str,
    width: u32,
    height: u32,
    /// Colours, each from a value on. The first colour has no value.
    thresholds: Vec<(&'static str, Option<f64>)>,
    mappings: Value,
    /// Text if there are no series.
    no_value: &'static str,
    columns: Vec<Column>,
    /// Alert about the same fault. Empty for none.
    alert: &'static str,
}

enum Kind {
    /// Values over time.
    Lines { stacked: bool },
    /// Present value of each series.
    Number,
    /// Present value of each series, with the labels as columns.
    Table,
    /// Present value of each series, with one label in the rows and another in the columns.
    Matrix { row: &'static str, column: &'static str },
    /// Number of samples in each bucket of a histogram, over time.
    Heatmap,
    /// States over time, one line for each series.
    States,
}

struct Query {
    expression: String,
    legend: &'static str,
}

/// Column of a table.
pub(super) struct Column {
    /// Name of the label, or `Value #A` for the value of the first query.
    pub(super) field: &'static str,
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    pub(super) thresholds: &'static [(&'static str, Option<f64>)],
    /// Address that a click on a value opens.
    pub(super) link: Option<&'static str>,
}

/// Returns a query with its abbreviations written out.
fn written_out(query: &str) -> String {
    ABBREVIATIONS.iter().fold(query.to_owned(), |it, (name, text)| it.replace(name, text))
}

impl Column {
    /// Returns a column without a unit and colours.
    pub(super) fn text(field: &'static str, title: &'static str) -> Self {
        Self { field, title, unit: "short", thresholds: &[], link: None }
    }
}

impl Panel {
    /// Returns a panel with lines.
    pub(super) fn lines(title: &'static str, normal: &str, otherwise: &str) -> Self {
        Self::new(Kind::Lines { stacked: false }, title, normal, otherwise).width(8)
    }

    /// Returns a panel with numbers.
    pub(super) fn number(title: &'static str, normal: &str, otherwise: &str) -> Self {
        Self { height: 4, ..Self::new(Kind::Number, title, normal, otherwise).width(4) }
    }

    pub(super) fn table(title: &'static str, normal: &str, otherwise: &str) -> Self {
        Self::new(Kind::Table, title, normal, otherwise).width(12)
    }

    /// Returns a table with the values of the label `row` in its rows and those of the label `column` in its columns.
    pub(super) fn matrix(
        title: &'static str,
        row: &'static str,
        column: &'static str,
        normal: &str,
        otherwise: &str,
    ) -> Self {
        Self { height: 10, ..Self::new(Kind::Matrix { row, column }, title, normal, otherwise).width(24) }
    }

    /// Returns a panel for the buckets of a histogram, which need the legend `{{le}}`.
    pub(super) fn heatmap(title: &'static str, normal: &str, otherwise: &str) -> Self {
        Self { height: 10, ..Self::new(Kind::Heatmap, title, normal, otherwise).width(24) }
    }

    /// Returns a panel with the states of series over time. Each state has a number, a text and a colour.
    pub(super) fn states(title: &'static str, states: &[(u8, &str, &str)], normal: &str, otherwise: &str) -> Self {
        let options = states
            .iter()
            .map(|(number, text, color)| (number.to_string(), json!({"text": text, "color": color, "index": number})));
        let mappings = json!([{"type": "value", "options": options.collect::<serde_json::Map<_, _>>()}]);
        Self { mappings, height: 12, ..Self::new(Kind::States, title, normal, otherwise).width(24) }
    }

    fn new(kind: Kind, title: &'static str, normal: &str, otherwise: &str) -> Self {
        Self {
            kind,
            title,
            description: format!("Normal: {normal}\n\nOtherwise: {otherwise}"),
            queries: Vec::new(),
            unit: "short",
            width: COLUMNS,
            height: 8,
            thresholds: vec![(GREEN, None)],
            mappings: json!([]),
            no_value: "",
            columns: Vec::new(),
            alert: "",
        }
    }

    /// Adds a query, which may have [`ABBREVIATIONS`]. In a legend, `{{label}}` is the value of a label.
    pub(super) fn query(mut self, expression: &str, legend: &'static str) -> Self {
        let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ");
        let expression = written_out(&expression);
        self.queries.push(Query { expression, legend });
        self
    }

    /// Sets the alert about the same fault. The description and a link of the panel then lead to its page of the
    /// runbook.
    pub(super) fn alert(mut self, alert: &'static str) -> Self {
        self.description += &format!("\n\nAlert [{alert}]({RUNBOOK}/{alert}.md)");
        self.alert = alert;
        self
    }

    pub(super) fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub(super) fn width(self, width: u32) -> Self {
        Self { width, ..self }
    }

    pub(super) fn height(self, height: u32) -> Self {
        Self { height, ..self }
    }

    pub(super) fn stacked(self) -> Self {
        Self { kind: Kind::Lines { stacked: true }, ..self }
    }

    pub(super) fn no_value(self, no_value: &'static str) -> Self {
        Self { no_value, ..self }
    }

    /// Colours values from `limit` on.
    pub(super) fn limit(mut self, color: &'static str, limit: f64) -> Self {
        self.thresholds.push((color, Some(limit)));
        self
    }

    /// Colours values below `limit` red.
    pub(super) fn at_least(self, limit: f64) -> Self {
        Self { thresholds: vec![(RED, None), (GREEN, Some(limit))], ..self }
    }

    /// Colours values red that are less than `-limit` or at least `limit`.
    pub(super) fn at_most_plus_or_minus(self, limit: f64) -> Self {
        Self { thresholds: vec![(RED, None), (GREEN, Some(-limit)), (RED, Some(limit))], ..self }
    }

    pub(super) fn column(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }
}
