//! Text form of a plan, for example for a dry run.

use super::draft::Update;
use super::{FamilyPlan, Plan};
use crate::model::{Endpoint, EndpointSlice};
use crate::packer::Item;
use hashbrown::HashSet;
use std::fmt::{self, Display, Formatter};

impl Display for Plan {
    /// Writes one line for each write, and below it one line for each endpoint that is added (`+`), removed (`-`) or
    /// changed (`~`).
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        for FamilyPlan { draft, .. } in &self.families {
            for slice in &draft.creates {
                writeln!(formatter, "create {}* {}", slice.metadata.generate_name, Shape(slice))?;
                lines(formatter, '+', &slice.endpoints)?;
            }
            for update in &draft.updates {
                write_update(formatter, update)?;
            }
            for slice in &draft.deletes {
                writeln!(formatter, "delete {} {}", slice.metadata.name, Shape(slice))?;
            }
        }
        for slice in &self.unsupported {
            writeln!(formatter, "delete {} {}, not of the Service's families", slice.metadata.name, Shape(slice))?;
        }
        #[cfg(feature = "apply")]
        for vetoed in &self.vetoed {
            writeln!(formatter, "refused {}: {}", vetoed.slice, vetoed.reason)?;
        }
        Ok(())
    }
}

fn write_update(formatter: &mut Formatter<'_>, update: &Update) -> fmt::Result {
    let Update { before, after, recycled } = update;
    let word = if *recycled { "recycle" } else { "update" };
    writeln!(formatter, "{word} {} {} -> {}", before.metadata.name, Shape(before), Shape(after))?;
    let keys_before: HashSet<_> = before.endpoints.iter().map(Item::key).collect();
    let wanted: HashSet<_> = after.endpoints.iter().map(Item::key).collect();
    lines(formatter, '-', before.endpoints.iter().filter(|endpoint| !wanted.contains(&endpoint.key())))?;
    lines(formatter, '+', after.endpoints.iter().filter(|endpoint| !keys_before.contains(&endpoint.key())))?;
    lines(
        formatter,
        '~',
        after
            .endpoints
            .iter()
            .filter(|endpoint| keys_before.contains(&endpoint.key()) && !before.endpoints.contains(endpoint)),
    )?;
    let labels = (&before.metadata.labels, &after.metadata.labels);
    if labels.0 != labels.1 {
        writeln!(formatter, "  labels {:?} -> {:?}", labels.0, labels.1)?;
    }
    Ok(())
}

fn lines<'a>(
    formatter: &mut Formatter<'_>,
    marker: char,
    endpoints: impl IntoIterator<Item = &'a Endpoint>,
) -> fmt::Result {
    for endpoint in endpoints {
        let name = endpoint.target_ref.as_ref().map_or("", |target| &*target.name);
        let ready = if endpoint.is_ready() { "ready" } else { "not ready" };
        writeln!(formatter, "  {marker} {} {name} {ready}", endpoint.addresses.join(" "))?;
    }
    Ok(())
}

/// Text form of a slice: address type, ports and number of endpoints.
struct Shape<'a>(&'a EndpointSlice);

impl Display for Shape<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let ports = self.0.ports.iter().map(|port| {
            let name = port.name.as_deref().unwrap_or_default();
            format!("{name}:{}", port.port.map_or_else(|| "*".to_owned(), |number| number.to_string()))
        });
        let ports: Vec<_> = ports.collect();
        write!(formatter, "{} [{}] {} endpoints", self.0.address_type, ports.join(", "), self.0.endpoints.len())
    }
}
