//! Measurement of a first import and, in the same fleet, of changes and restarts.

use crate::churn::{self, Churn};
use crate::environment::{Environment, Role};
use crate::import::{self, Import};
use crate::report::{self, Target, target};
use crate::restart::{self, Restart};
use crate::size::Size;
use crate::users::Users;
use crate::world::World;
use serde::Serialize;

/// Results of the measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    pub import: Import,
    pub churn: Option<Churn>,
    pub restart: Option<Restart>,
}

pub type Report = report::Report<Size, Figures>;

/// Optional part of the measurement. All parts run after the measurement of the import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Churn,
    Restart,
}

/// Measures an import and these parts.
pub async fn measure(parts: &[Part], size: Size) -> anyhow::Result<Report> {
    let mut environment = Environment::take().await?;
    let users = Users::of(&environment, World::of_agents(&environment)).await?;
    let (import, baseline) = import::measure(&environment, &users, size).await?;
    let mut figures = Figures { import, churn: None, restart: None };
    if parts.contains(&Part::Churn) {
        figures.churn = Some(churn::measure(&environment, &users, &baseline, size).await?);
    }
    if parts.contains(&Part::Restart) {
        figures.restart = Some(restart::measure(&mut environment, &users, size).await?);
    }
    let targets = targets(&figures);
    Ok(Report::new(size, figures, targets))
}

fn targets(Figures { import, churn, restart }: &Figures) -> Vec<Target> {
    let mut targets = vec![target("first import, times the baseline", 1.5, import.ratio)];
    if let Some(churn) = churn {
        targets.push(target("change, p50, times the baseline", 1.2, churn.times.p50_ratio));
        targets.push(target("change, p99, times the baseline", 2.0, churn.times.p99_ratio));
        for role in Role::ALL {
            let name = format!("own share of a change, p99, milliseconds, {role:?}");
            let share = churn.stages.own.get(&role).map_or(f64::INFINITY, |own| own.share.p99_microseconds);
            targets.push(target(&name, 0.5, share / 1e3));
        }
    }
    let memory = churn.as_ref().map_or(&import.memory, |churn| &churn.memory);
    for (role, memory) in memory {
        targets.push(target(&format!("resident memory, MiB, {role:?}"), 24.0, memory.resident_mib));
    }
    if let Some(restart) = restart {
        #[allow(clippy::cast_precision_loss, reason = "a handful of writes")]
        targets.push(target("restart, writes", 0.0, restart.writes as f64));
        let p50 = restart.fresh_change.p50_milliseconds;
        targets.push(target("restart, fresh change, p50, milliseconds", 500.0, p50));
        let longest = restart.fresh_change.longest_milliseconds;
        targets.push(target("restart, fresh change, longest, milliseconds", 500.0, longest));
    }
    targets
}
