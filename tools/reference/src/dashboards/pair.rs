//! Dashboard of a pair of clusters: the latency of changes from one member to another.

use super::model::{Dashboard, ORANGE, Panel, RED, Row, Selection, Variable};

/// Label matchers of the series of a pair.
const PAIR: &str = r#"origin_cluster_id=~"$origin",destination_cluster_id=~"$destination""#;

/// Returns an expression. `<pair>` in `text` are the label matchers of the pair, and `<changes>` also those of changes
/// that are no first imports.
fn of_pair(text: &str) -> String {
    text.replace("<changes>", r#"<pair>,is_first_import="false""#).replace("<pair>", PAIR)
}

/// Returns the expression of a quantile over the part of the histogram that `matchers` select.
fn quantile(quantile: &str, matchers: &str, range: &str) -> String {
    of_pair(&format!(
        "histogram_quantile({quantile}, sum by (le) (rate(<latency>_bucket{{<member>,{matchers}}}[{range}])))"
    ))
}

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        uid: "fleetnet-pair",
        title: "fleetnet / Pair of clusters",
        description: "Latency of changes of endpoints from one member to another.",
        variables: vec![
            Variable {
                name: "origin",
                label: "From",
                query: "label_values(<latency>_count{<member>}, origin_cluster_id)",
                selection: Selection::One,
            },
            Variable {
                name: "destination",
                label: "To",
                query: r#"label_values(<latency>_count{<member>,origin_cluster_id=~"$origin"}, destination_cluster_id)"#,
                selection: Selection::One,
            },
        ],
        members: r#"member=~"$origin|$destination""#,
        rows: vec![
            Row::open("Changes in the time range", numbers()),
            Row::open("Latency of changes", latency()),
            Row::open("First imports and clocks", others()),
        ],
    }
}

const SLOW: &str = "look at the write durations of both member agents and of the hub agent, and at the clocks below.";

fn numbers() -> Vec<Panel> {
    let number = |title, name: &str| {
        Panel::number(title, "less than 100 ms between clusters of one region.", SLOW)
            // Without changes the quantile is NaN, which is not greater than 0.
            .query(&format!("{} > 0", quantile(name, "<changes>", "$__range")), "")
            .unit("ms")
            .limit(ORANGE, 500.0)
            .limit(RED, 750.0)
            .no_value("no changes")
    };
    vec![
        number("p50", "0.5"),
        number("p90", "0.9"),
        number("p99", "0.99").alert("FleetnetChangeBudgetBurn"),
        Panel::number(
            "Changes",
            "as many as the Services change.",
            "with 0 although endpoints changed, use `fleetnet explain` for the Service.",
        )
        .query(&of_pair("sum(increase(<latency>_count{<member>,<changes>}[$__range]))"), ""),
        Panel::number(
            "First imports",
            "as many as new EndpointSlices.",
            "many first imports without new Services: slices are deleted and created again. Look for what deletes them.",
        )
        .query(&of_pair(r#"sum(increase(<latency>_count{<member>,<pair>,is_first_import="true"}[$__range]))"#), "")
        .no_value("0"),
        Panel::number(
            "Slower than 750 ms",
            "less than 1 % of the changes.",
            SLOW,
        )
        .query(
            &of_pair(
                r#"1 - sum(increase(<latency>_bucket{<member>,<changes>,<target>}[$__range]))
                / sum(increase(<latency>_count{<member>,<changes>}[$__range])) >= 0"#,
            ),
            "",
        )
        .unit("percentunit")
        .limit(RED, 0.01)
        .no_value("no changes"),
    ]
}

fn latency() -> Vec<Panel> {
    let quantiles = Panel::lines("Quantiles", "a p99 of less than 750 ms.", SLOW)
        .alert("FleetnetChangeBudgetBurn")
        .query(&quantile("0.5", "<changes>", "$__rate_interval"), "p50")
        .query(&quantile("0.9", "<changes>", "$__rate_interval"), "p90")
        .query(&quantile("0.99", "<changes>", "$__rate_interval"), "p99")
        .unit("ms")
        .limit(RED, 750.0)
        .width(12);
    vec![
        Panel::heatmap(
            "Changes by latency",
            "one band below 100 ms.",
            "a second band at 1 s or 100 s comes from wrong clocks. A band that moves up comes from a slow API server or network.",
        )
        .query(&of_pair("sum by (le) (increase(<latency>_bucket{<member>,<changes>}[$__rate_interval]))"), "{{le}}")
        .unit("ms"),
        quantiles,
        Panel::lines(
            "Changes per second",
            "as many as the Services change.",
            "with 0 although endpoints change, use `fleetnet explain` for the Service.",
        )
        .query(&of_pair("sum(rate(<latency>_count{<member>,<changes>}[$__rate_interval]))"), "changes")
        .unit("cps")
        .width(12),
    ]
}

fn others() -> Vec<Panel> {
    let first = r#"<pair>,is_first_import="true""#;
    vec![
        Panel::lines(
            "Latency of first imports",
            "up to a few seconds, because an import also creates the derived Service and its claim.",
            "use `fleetnet explain` for the Service, and look at the write durations of both member agents and of the hub agent.",
        )
        .query(&quantile("0.5", first, "$__rate_interval"), "p50")
        .query(&quantile("0.99", first, "$__rate_interval"), "p99")
        .unit("ms"),
        Panel::lines(
            "Samples that the clocks made useless",
            "0. Such a sample is not positive or over 100 s, and counts as 1 s or 100 s.",
            "the clocks of the two clusters differ. Check NTP on the nodes of both agents.",
        )
        .alert("FleetnetClockSkew")
        .query(
            r#"(
                sum(rate(fleet_networking_latency_samples_total{<member>,<samples>,clock="clamped"}[$__rate_interval]))
                or 0 * sum(rate(fleet_networking_latency_samples_total{<member>,<samples>}[$__rate_interval]))
            ) / sum(rate(fleet_networking_latency_samples_total{<member>,<samples>}[$__rate_interval]))"#
                .replace(
                    "<samples>",
                    r#"member=~"$destination",origin_cluster_id=~"$origin",metric="endpointslice_export_import""#,
                )
                .as_str(),
            "share",
        )
        .unit("percentunit")
        .limit(RED, 0.01),
        Panel::lines(
            "Clock of the member minus clock of the hub",
            "between -0.1 s and 0.1 s. A steady difference of the two clocks is in every sample.",
            "check NTP on the nodes of the agent.",
        )
        .query(
            r#"max by (member) (fleetnet_member_clock_offset_seconds{<the-hub>,member=~"$origin|$destination"})"#,
            "{{member}}",
        )
        .unit("s")
        .at_most_plus_or_minus(2.0),
    ]
}
