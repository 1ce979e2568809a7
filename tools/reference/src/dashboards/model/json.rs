//! JSON of dashboards, for Grafana 10.4 or newer.

use super::{COLUMNS, Column, Dashboard, Kind, Panel, Query, RED, RUNBOOK, Row, Selection, Variable, written_out};
use serde_json::{Value, json};

/// Version of the JSON that Grafana 10.4 writes. Newer versions of Grafana read it too.
const SCHEMA_VERSION: u32 = 39;
/// Version of the panels' options.
const PLUGIN_VERSION: &str = "10.4.0";
/// Prometheus that a user selects at the top of a dashboard.
const DATA_SOURCE: &str = "${datasource}";
/// Folder of the runbook in this repository. The chart of the hub agent replaces it.
const RUNBOOK_FOLDER: &str = "docs/runbook";
/// Tag by which the dashboards link to each other.
const TAG: &str = "fleetnet";

impl Panel {
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
        if !self.alert.is_empty() {
            panel["links"] = json!([{
                "title": format!("Runbook: {}", self.alert),
                "url": format!("{RUNBOOK}/{}.md", self.alert),
                "targetBlank": true,
            }]);
        }
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
    pub(in crate::dashboards) fn json(&self) -> Value {
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
            "annotations": {"list": self.annotations()},
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
        variables.extend(Variable::of_all().iter().chain(&self.variables).map(Variable::json));
        variables.push(json!({
            "type": "constant",
            "name": "runbook",
            "label": "Address of the runbook's folder",
            "query": RUNBOOK_FOLDER,
            "current": {"text": RUNBOOK_FOLDER, "value": RUNBOOK_FOLDER},
            // Not shown: a user sets it once, in the settings of the dashboard.
            "hide": 2,
            "skipUrlSync": true,
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

    /// Returns marks in all panels: alerts, restarts of agents, and changes of leaders.
    fn annotations(&self) -> Vec<Value> {
        let and = |matchers: &str| if self.members.is_empty() { String::new() } else { format!(",{matchers}") };
        let agents = written_out(if self.members.is_empty() { "<agents>" } else { "<member>" }) + &and(self.members);
        let of_alerts = format!("cluster=~\"$cluster\"{}", and(self.members));
        let annotation = |name: &str, color: &str, query: String, title: &str, labels: &str| {
            json!({
                "name": name,
                "datasource": data_source(),
                "enable": true,
                "iconColor": color,
                "expr": query,
                "target": {"refId": "Anno", "expr": query, "interval": "60s"},
                "step": "60s",
                "titleFormat": title,
                "textFormat": "",
                "tagKeys": labels,
                "useValueForTime": false,
            })
        };
        vec![
            annotation(
                "Alerts",
                RED,
                format!("ALERTS{{alertname=~\"Fleetnet.+\",alertstate=\"firing\",{of_alerts}}}"),
                "{{alertname}}",
                "agent,severity,member",
            ),
            annotation(
                "Restarts",
                "orange",
                format!("changes(process_start_time_seconds{{{agents}}}[2m]) > 0"),
                "{{pod}} has restarted",
                "job,member",
            ),
            annotation(
                "Leaders",
                "blue",
                format!("changes(fleetnet_leader{{{agents}}}[2m]) > 0 and fleetnet_leader{{{agents}}} == 1"),
                "{{pod}} leads",
                "job,member,lease",
            ),
        ]
    }

    /// Returns the rows and their panels. The panels of a closed row are in the row.
    fn panels(&self) -> Vec<Value> {
        let mut panels = Vec::new();
        let (mut id, mut y) = (0, 0);
        for row in &self.rows {
            id += 1;
            let title = id;
            let (placed, height) = row.placed(&mut id, y + 1);
            let (inside, outside) = if row.is_closed { (placed, Vec::new()) } else { (Vec::new(), placed) };
            panels.push(json!({
                "id": title,
                "type": "row",
                "title": row.title,
                "collapsed": row.is_closed,
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
                "panels": inside,
            }));
            panels.extend(outside);
            y += 1 + if row.is_closed { 0 } else { height };
        }
        panels
    }
}

impl Row {
    /// Returns the panels from this line on, and their height. Panels fill lines from left to right.
    fn placed(&self, id: &mut usize, top: u32) -> (Vec<Value>, u32) {
        let mut panels = Vec::new();
        let (mut x, mut y, mut height) = (0, top, 0);
        for panel in &self.panels {
            if x + panel.width > COLUMNS {
                (x, y, height) = (0, y + height, 0);
            }
            *id += 1;
            panels.push(panel.json(*id, x, y));
            (x, height) = (x + panel.width, height.max(panel.height));
        }
        (panels, y + height - top)
    }
}

impl Variable {
    fn json(&self) -> Value {
        let query = written_out(self.query);
        let is_multi = self.selection != Selection::One;
        let mut variable = json!({
            "type": "query",
            "name": self.name,
            "label": self.label,
            "datasource": data_source(),
            "definition": query,
            "query": {"query": query, "refId": self.name},
            "current": {},
            "hide": 0,
            "includeAll": is_multi,
            "multi": is_multi,
            // With each change of the time range, because members join and leave.
            "refresh": 2,
            "regex": "",
            // By name.
            "sort": 1,
        });
        if is_multi {
            variable["current"] = json!({"text": ["All"], "value": ["$__all"]});
        }
        if self.selection == Selection::AnyOrNone {
            variable["allValue"] = json!(".*");
        }
        variable
    }
}

fn data_source() -> Value {
    json!({"type": "prometheus", "uid": DATA_SOURCE})
}

fn thresholds(steps: &[(&str, Option<f64>)]) -> Value {
    let step = |(color, value): &(&str, Option<f64>)| json!({"color": color, "value": value});
    json!({"mode": "absolute", "steps": steps.iter().map(step).collect::<Vec<_>>()})
}
