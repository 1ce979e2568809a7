//! Page of the agents' metrics, from their definitions.

use super::markdown::{code, codes, table, text};
use endpointslice::metrics::Metrics;
use fleetnet_runtime::metrics::{Definition, register_process_metrics};
use prometheus::Registry;
use prometheus::core::Collector as _;
use prometheus::proto::{MetricFamily, MetricType};

const INTRODUCTION: &str = "\
An agent serves these metrics under `/metrics` on each address that it listens on. The label `side` is `hub` or `member`: the cluster of the \
object, as the agent sees it. `testing/sim/tests/fleets/reference_on_memkube.rs` checks that running agents export no other metrics.

";

pub(super) fn body() -> anyhow::Result<String> {
    let both: Vec<&Definition> = fleetnet_runtime::metrics::ALL.iter().chain(fleetnet_agent::metrics::ALL).collect();
    let of_members: Vec<&Definition> = member_agent::metrics::ALL.iter().collect();
    let of_hub: Vec<&Definition> = hub_agent::metrics::ALL.iter().collect();
    Ok(format!(
        "{INTRODUCTION}## Both agents\n\n{}## hub-agent\n\n{}## member-agent\n\n{}## member-agent, EndpointSlice controller\n\n\
         Names, labels and help texts are those of kube-controller-manager.\n\n{}## Process\n\n{}",
        definitions(&both),
        definitions(&of_hub),
        definitions(&of_members),
        of_slices()?,
        of_process()?,
    ))
}

fn definitions(definitions: &[&Definition]) -> String {
    rows(definitions.iter().map(|it| vec![code(it.name), it.kind.as_str().to_owned(), codes(it.labels), text(it.help)]))
}

fn rows(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    table(&["metric", "type", "labels", "meaning"], rows)
}

fn of_slices() -> anyhow::Result<String> {
    let metrics = Metrics::new(&Registry::new(), &endpointslice::Config::default())?;
    let descriptions = metrics.desc();
    let labels = |name: &str| {
        let description = descriptions.iter().find(|description| description.fq_name == name);
        description.map(|description| codes(&description.variable_labels)).unwrap_or_default()
    };
    Ok(rows(metrics.collect().iter().map(|family| row(family, labels(family.name())))))
}

fn of_process() -> anyhow::Result<String> {
    let registry = Registry::new();
    register_process_metrics(&registry)?;
    Ok(rows(registry.gather().iter().map(|family| row(family, String::new()))))
}

fn row(family: &MetricFamily, labels: String) -> Vec<String> {
    let kind = match family.get_field_type() {
        MetricType::COUNTER => "counter",
        MetricType::HISTOGRAM => "histogram",
        _ => "gauge",
    };
    vec![code(family.name()), kind.to_owned(), labels, text(family.help())]
}
