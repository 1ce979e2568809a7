//! Expected ledgers: the numbers of writes that a scenario must cost.

use crate::environment::Environment;
use std::collections::BTreeMap;

/// Returns an expected ledger as a map from each line to the number of its writes, as
/// [`harness::audit::Ledger::counts`] does.
pub(super) fn counts(lines: &[(usize, String)]) -> BTreeMap<String, usize> {
    lines.iter().map(|(count, line)| (line.clone(), *count)).collect()
}

/// Returns the expected writes for `count` changes of imported slices. The first member exports the slices, and the
/// second member imports them. The array has the writes in the hub, in the exporter and in the importer.
pub(super) fn changes<B>(env: &Environment<B>, count: usize) -> [BTreeMap<String, usize>; 3] {
    let [from, to] = [&env.members[0].hub_namespace, &env.members[1].hub_namespace];
    [
        counts(&[
            (count, format!("patch endpointsliceexports in {from} by member-agent")),
            (count, format!("patch endpointsliceimports in {to} by hub-agent")),
        ]),
        BTreeMap::new(),
        counts(&[(count, "patch endpointslices in fleet-system by member-agent".to_owned())]),
    ]
}
