//! Dashboards as data, and their JSON for Grafana 10.4 or newer.
//!
//! Each panel says what is normal, and what to do otherwise: the constructors of [`Panel`] ask for both.

use serde_json::{Value, json};

/// Version of the JSON that Grafana 10.4 writes. Newer versions of Grafana read it too.
const SCHEMA_VERSION: u32 = 39;
/// Version of the panels' options.
const PLUGIN_VERSION: &str = "10.4.0";
/// Number of columns of a dashboard in Grafana.
const COLUMNS: u32 = 24;
/// Prometheus that a user selects at the top of a dashboard.
const DATA_SOURCE: &str = "${datasource}";
/// Tag by which the dashboards link to each other.
const TAG: &str = "fleetnet";
/// Abbreviations in queries: `<latency>` is the name of the histogram.
const LATENCY: &str = "fleet_networking_endpointslice_export_import_duration_milliseconds";

pub(super) const GREEN: &str = "green";
pub(super) const ORANGE: &str = "orange";
pub(super) const RED: &str = "red";

pub(super) struct Dashboard {
    pub(super) uid: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) variables: Vec<Variable>,
    pub(super) rows: Vec<Row>,
}

/// Variable with the values of a label.
pub(super) struct Variable {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// Query of Grafana: `label_values(series, label)`.
    pub(super) query: &'static str,
}

pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: Vec<Panel>,
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
        }
    }

    /// Adds a query. `<latency>` in it is the name of the latency histogram. In a legend, `{{label}}` is the value of a label.
    pub(super) fn query(mut self, expression: &str, legend: &'static str) -> Self {
        let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ").replace("<latency>", LATENCY);
        self.queries.push(Query { expression, legend });
        self
    }

    /// Sets the alert about the same fault. The description then names its section of the runbook.
    pub(super) fn alert(mut self, alert: &str) -> Self {
        self.description += &format!("\n\nAlert {alert}: docs/runbook.md#{}", alert.to_lowercase());
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

    fn json(&self, id: usize, x: u32, y: u32) -> Value {
        let mut panel = json!({
            "id": id,
            "type": self.kind.name(),
            // Without a version, Grafana treats the options of some panels as those of its first versions.
            "pluginVersion": PLUGIN_VERSION,
            "title": self.title,
            "description": self.description,
            "datasource": data_source(),
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": self.targets(),
            "options": self.kind.options(self.unit),
            "fieldConfig": {"defaults": self.defaults(), "overrides": self.overrides()},
        });
        let transformations = self.transformations();
        if transformations != json!([]) {
            panel["transformations"] = transformations;
        }
        panel
    }

    fn targets(&self) -> Value {
        let is_instant = matches!(self.kind, Kind::Number | Kind::Table | Kind::Matrix { .. });
        let format = match self.kind {
            Kind::Table | Kind::Matrix { .. } => "table",
            Kind::Heatmap => "heatmap",
            Kind::Lines { .. } | Kind::Number | Kind::States => "time_series",
        };
        let target = |(query, name): (&Query, char)| {
            json!({
                "refId": name.to_string(),
                "datasource": data_source(),
                "editorMode": "code",
                "expr": query.expression,
                "legendFormat": query.legend,
                "format": format,
                "instant": is_instant,
                "range": !is_instant,
            })
        };
        self.queries.iter().zip('A'..='Z').map(target).collect()
    }

    fn defaults(&self) -> Value {
        let mut defaults = json!({
            "unit": self.unit,
            "mappings": self.mappings,
            "thresholds": thresholds(&self.thresholds),
            "color": {"mode": "thresholds"},
            "custom": {},
        });
        if !self.no_value.is_empty() {
            defaults["noValue"] = json!(self.no_value);
        }
        match self.kind {
            Kind::Lines { stacked } => {
                defaults["color"] = json!({"mode": "palette-classic"});
                // Differences of clocks are also negative.
                if !self.thresholds.iter().any(|(_, from)| from.is_some_and(f64::is_sign_negative)) {
                    defaults["min"] = json!(0);
                }
                defaults["custom"] = json!({
                    "drawStyle": "line",
                    "lineWidth": 1,
                    "fillOpacity": if stacked { 30 } else { 0 },
                    "showPoints": "never",
                    "stacking": {"mode": if stacked { "normal" } else { "none" }, "group": "A"},
                    "thresholdsStyle": {"mode": if self.thresholds.len() > 1 { "line" } else { "off" }},
                });
            }
            Kind::Matrix { .. } => {
                defaults["custom"] = json!({"align": "center", "cellOptions": {"type": "color-background"}});
            }
            Kind::Table => defaults["custom"] = json!({"align": "left", "cellOptions": {"type": "auto"}}),
            Kind::Heatmap => defaults["custom"] = json!({"scaleDistribution": {"type": "linear"}}),
            Kind::States => defaults["custom"] = json!({"fillOpacity": 80, "lineWidth": 0}),
            Kind::Number => {}
        }
        defaults
    }

    fn overrides(&self) -> Value {
        let column = |column: &Column| {
            let mut properties = vec![json!({"id": "unit", "value": column.unit})];
            if !column.thresholds.is_empty() {
                properties.push(json!({"id": "thresholds", "value": thresholds(column.thresholds)}));
                properties.push(json!({"id": "custom.cellOptions", "value": {"type": "color-text"}}));
            }
            if let Some(link) = column.link {
                properties.push(json!({"id": "links", "value": [{"title": "Open", "url": link}]}));
            }
            json!({"matcher": {"id": "byName", "options": column.title}, "properties": properties})
        };
        self.columns.iter().map(column).collect()
    }

    fn transformations(&self) -> Value {
        match self.kind {
            Kind::Matrix { row, column } => json!([{
                "id": "groupingToMatrix",
                "options": {"rowField": row, "columnField": column, "valueField": "Value", "emptyValue": "null"},
            }]),
            Kind::Table => {
                let names = self.columns.iter().map(|it| (it.field.to_owned(), json!(it.title)));
                let order = self.columns.iter().enumerate().map(|(index, it)| (it.field.to_owned(), json!(index)));
                let shown: Vec<&str> = self.columns.iter().map(|it| it.field).collect();
                json!([
                    {"id": "merge", "options": {}},
                    {"id": "filterFieldsByName", "options": {"include": {"names": shown}}},
                    {"id": "organize", "options": {
                        "excludeByName": {},
                        "indexByName": order.collect::<serde_json::Map<_, _>>(),
                        "renameByName": names.collect::<serde_json::Map<_, _>>(),
                    }},
                ])
            }
            Kind::Lines { .. } | Kind::Number | Kind::Heatmap | Kind::States => json!([]),
        }
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Lines { .. } => "timeseries",
            Self::Number => "stat",
            Self::Table | Self::Matrix { .. } => "table",
            Self::Heatmap => "heatmap",
            Self::States => "state-timeline",
        }
    }

    fn options(&self, unit: &str) -> Value {
        match self {
            Self::Lines { .. } => json!({
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }),
            Self::Number => json!({
                "colorMode": "value",
                "graphMode": "none",
                "justifyMode": "auto",
                "orientation": "auto",
                "textMode": "auto",
                "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": false},
            }),
            Self::Table | Self::Matrix { .. } => {
                json!({"showHeader": true, "cellHeight": "sm", "footer": {"show": false}})
            }
            Self::Heatmap => json!({
                "calculate": false,
                "cellGap": 1,
                "cellValues": {"unit": "short"},
                "color": {
                    "mode": "scheme",
                    "scheme": "Oranges",
                    "scale": "exponential",
                    "exponent": 0.5,
                    "steps": 64,
                    "fill": "dark-orange",
                    "reverse": false,
                },
                "filterValues": {"le": 1e-9},
                "legend": {"show": true},
                "rowsFrame": {"layout": "auto", "value": "Changes"},
                "showValue": "never",
                "tooltip": {"mode": "single", "yHistogram": true, "showColorScale": false},
                "yAxis": {"unit": unit, "axisPlacement": "left", "reverse": false},
            }),
            Self::States => json!({
                "mergeValues": true,
                "showValue": "never",
                "alignValue": "left",
                "rowHeight": 0.8,
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true},
                "tooltip": {"mode": "single", "sort": "none"},
            }),
        }
    }
}

impl Dashboard {
    pub(super) fn json(&self) -> Value {
        json!({
            "id": null,
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": true,
            "graphTooltip": 1,
            "timezone": "browser",
            "time": {"from": "now-1h", "to": "now"},
            "refresh": "30s",
            "annotations": {"list": []},
            "links": [{
                "type": "dashboards",
                "title": "Dashboards of fleetnet",
                "tags": [TAG],
                "asDropdown": true,
                "keepTime": true,
                "includeVars": true,
                "targetBlank": false,
            }],
            "templating": {"list": self.variables()},
            "panels": self.panels(),
        })
    }

    fn variables(&self) -> Vec<Value> {
        let mut variables = vec![json!({
            "type": "datasource",
            "name": "datasource",
            "label": "Data source",
            "query": "prometheus",
            "current": {},
            "hide": 0,
            "includeAll": false,
            "multi": false,
            "refresh": 1,
            "regex": "",
        })];
        variables.extend(self.variables.iter().map(|it| {
            json!({
                "type": "query",
                "name": it.name,
                "label": it.label,
                "datasource": data_source(),
                "definition": it.query,
                "query": {"query": it.query, "refId": it.name},
                "current": {},
                "hide": 0,
                "includeAll": false,
                "multi": false,
                // With each change of the time range, because members join and leave.
                "refresh": 2,
                "regex": "",
                // By name.
                "sort": 1,
            })
        }));
        // Grafana adds these filters to every query, for example the label of one fleet among several.
        variables.push(json!({
            "type": "adhoc",
            "name": "filters",
            "label": "Filters",
            "datasource": data_source(),
            "filters": [],
            "hide": 0,
        }));
        variables
    }

    /// Returns the rows and their panels. Panels fill lines from left to right.
    fn panels(&self) -> Vec<Value> {
        let mut panels = Vec::new();
        let mut y = 0;
        for row in &self.rows {
            panels.push(json!({
                "id": panels.len() + 1,
                "type": "row",
                "title": row.title,
                "collapsed": false,
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
                "panels": [],
            }));
            y += 1;
            let (mut x, mut height) = (0, 0);
            for panel in &row.panels {
                if x + panel.width > COLUMNS {
                    (x, y, height) = (0, y + height, 0);
                }
                panels.push(panel.json(panels.len() + 1, x, y));
                (x, height) = (x + panel.width, height.max(panel.height));
            }
            y += height;
        }
        panels
    }
}

fn data_source() -> Value {
    json!({"type": "prometheus", "uid": DATA_SOURCE})
}

fn thresholds(steps: &[(&str, Option<f64>)]) -> Value {
    let step = |(color, value): &(&str, Option<f64>)| json!({"color": color, "value": value});
    json!({"mode": "absolute", "steps": steps.iter().map(step).collect::<Vec<_>>()})
}
