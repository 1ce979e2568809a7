//! Total numbers of endpoints and slices ([`SliceCounts`]), updated one Service at a time.

use crate::config::Config;
use crate::per_service::PerService;
use crate::plan::GroupStats;
use crate::text::Text;
use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};

/// Total numbers of endpoints and slices, and the number of Services with each traffic distribution. The cost of an
/// update grows with the number of port lists of one Service, and not with the number of Services
/// (kubernetes/kubernetes #107091).
#[derive(Clone, Debug)]
pub struct SliceCounts {
    max_endpoints_per_slice: usize,
    services: PerService<Counted>,
    totals: Totals,
    /// Number of Services with each traffic distribution. A value that no Service uses any more stays, with count 0.
    services_by_distribution: BTreeMap<Text, usize>,
    changed_distributions: Vec<Text>,
}

/// Numbers that one Service contributes to the totals.
#[derive(Clone, Debug, Default)]
struct Counted {
    totals: Totals,
    traffic_distribution: Option<Text>,
}

/// Numbers of endpoints and slices of one or more Services.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Number of endpoints that the Services should have.
    pub endpoints: usize,
    /// Number of existing slices.
    pub slices: usize,
    /// Smallest number of slices that could contain the endpoints.
    pub desired_slices: usize,
}

impl SliceCounts {
    /// Returns counts of zero. `config` has the limit of endpoints per slice.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            max_endpoints_per_slice: config.max_endpoints_per_slice(),
            services: PerService::default(),
            totals: Totals::default(),
            services_by_distribution: BTreeMap::new(),
            changed_distributions: Vec::new(),
        }
    }

    /// Returns the totals of all Services.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the number of Services with each traffic distribution.
    pub fn services_by_traffic_distribution(&self) -> impl Iterator<Item = (&Text, usize)> {
        self.services_by_distribution.iter().map(|(value, services)| (value, *services))
    }

    /// Sets the numbers of a Service. `families` has an item for each address type: the groups of equal ports, and the
    /// number of slices that are not created because the Service is being deleted.
    pub fn set_slices<'a>(
        &mut self,
        namespace: &Text,
        service: &Text,
        families: impl Iterator<Item = (&'a [GroupStats], usize)>,
    ) {
        let mut totals = Totals::default();
        for (groups, suppressed) in families {
            totals += self.family(groups);
            totals.slices -= suppressed.min(totals.slices);
        }
        let counted = self.services.get_or_default(namespace, service);
        self.totals -= std::mem::replace(&mut counted.totals, totals);
        self.totals += totals;
    }

    /// Sets the traffic distribution of a Service, or removes it if `value` is `None`.
    pub fn set_traffic_distribution(&mut self, namespace: &Text, service: &Text, value: Option<&Text>) {
        let counted = self.services.get_or_default(namespace, service);
        if counted.traffic_distribution.as_ref() == value {
            return;
        }
        let before = std::mem::replace(&mut counted.traffic_distribution, value.cloned());
        self.leave(before);
        if let Some(value) = value {
            *self.services_by_distribution.entry(value.clone()).or_default() += 1;
            self.changed_distributions.push(value.clone());
        }
    }

    /// Forgets a Service that was deleted.
    pub fn forget(&mut self, namespace: &str, service: &str) {
        if let Some(Counted { totals, traffic_distribution }) = self.services.remove(namespace, service) {
            self.totals -= totals;
            self.leave(traffic_distribution);
        }
    }

    /// Returns each traffic distribution whose number of Services changed since the last call, and the new number.
    pub(super) fn take_changed_distributions(&mut self) -> Vec<(Text, usize)> {
        let changed = std::mem::take(&mut self.changed_distributions);
        let services = |value: &Text| self.services_by_distribution.get(value).copied().unwrap_or_default();
        changed.into_iter().map(|value| (value.clone(), services(&value))).collect()
    }

    fn leave(&mut self, traffic_distribution: Option<Text>) {
        let Some(value) = traffic_distribution else { return };
        if let Some(services) = self.services_by_distribution.get_mut(&value) {
            *services -= 1;
            self.changed_distributions.push(value);
        }
    }

    fn family(&self, groups: &[GroupStats]) -> Totals {
        let mut totals = Totals::default();
        for group in groups {
            totals.endpoints += group.endpoints;
            totals.slices += group.slices;
            totals.desired_slices += group.endpoints.div_ceil(self.max_endpoints_per_slice);
        }
        // A Service without endpoints needs only one placeholder slice, not one for each list of ports.
        totals.desired_slices = totals.desired_slices.max(1);
        totals
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.endpoints += other.endpoints;
        self.slices += other.slices;
        self.desired_slices += other.desired_slices;
    }
}

impl SubAssign for Totals {
    fn sub_assign(&mut self, other: Self) {
        self.endpoints -= other.endpoints;
        self.slices -= other.slices;
        self.desired_slices -= other.desired_slices;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EndpointPort;

    /// Returns a group of port 80 and a group of ports 80 and 443. `counts` has the number of endpoints and the number
    /// of slices of each group.
    fn groups(counts: [(usize, usize); 2]) -> Vec<GroupStats> {
        let port = |number| EndpointPort { port: Some(number), ..EndpointPort::default() };
        let ports = [vec![port(80)], vec![port(80), port(443)]];
        let group = |(ports, (endpoints, slices)): (Vec<_>, _)| GroupStats { ports: ports.into(), endpoints, slices };
        ports.into_iter().zip(counts).map(group).collect()
    }

    fn totals(counts: &SliceCounts) -> (usize, usize, usize) {
        let Totals { endpoints, slices, desired_slices } = counts.totals();
        (desired_slices, slices, endpoints)
    }

    fn set(counts: &mut SliceCounts, service: &str, groups: &[GroupStats]) {
        counts.set_slices(&"ns1".into(), &service.into(), std::iter::once((groups, 0)));
    }

    /// Steps of kube-controller-manager's `TestNumEndpointsAndSlices`. After each step: desired slices, slices and
    /// endpoints.
    #[test]
    fn the_five_steps_of_endpoints_and_slices() {
        let mut counts = SliceCounts::new(&Config::default());
        let (efficient, inefficient) = (groups([(45, 1), (35, 1)]), groups([(12, 5), (18, 8)]));
        set(&mut counts, "svc1", &inefficient);
        assert_eq!(totals(&counts), (2, 13, 30));
        set(&mut counts, "svc2", &efficient);
        assert_eq!(totals(&counts), (4, 15, 110));
        set(&mut counts, "svc3", &inefficient);
        assert_eq!(totals(&counts), (6, 28, 140));
        set(&mut counts, "svc1", &efficient);
        assert_eq!(totals(&counts), (6, 17, 190));
        counts.forget("ns1", "svc3");
        assert_eq!(totals(&counts), (4, 4, 160));
    }

    /// Case of kube-controller-manager's `TestPlaceHolderSlice`.
    #[test]
    fn empty_groups_want_one_placeholder_together() {
        let mut counts = SliceCounts::new(&Config::default());
        set(&mut counts, "svc1", &groups([(0, 1), (0, 1)]));
        assert_eq!(totals(&counts), (1, 2, 0));
    }

    /// Steps of kube-controller-manager's `TestCache_ServicesByTrafficDistribution`.
    #[test]
    fn the_steps_of_services_by_traffic_distribution() {
        const FIRST: (&str, &str) = ("ns1", "service1");
        const SECOND: (&str, &str) = ("ns1", "service2");
        const THIRD: (&str, &str) = ("ns2", "service3");
        const FOURTH: (&str, &str) = ("ns3", "service4");
        type Step<'a> = ((&'a str, &'a str), Option<&'a str>, &'a [(&'a str, usize)]);
        let all_but_third = &[("AnotherFutureValue", 1), ("FutureValue", 0), ("PreferClose", 1)][..];
        let before: [Step<'_>; 6] = [
            (FIRST, Some("PreferClose"), &[("PreferClose", 1)]),
            (FIRST, Some("PreferClose"), &[("PreferClose", 1)]),
            (SECOND, Some("PreferClose"), &[("PreferClose", 2)]),
            (THIRD, Some("FutureValue"), &[("FutureValue", 1), ("PreferClose", 2)]),
            (FOURTH, None, &[("FutureValue", 1), ("PreferClose", 2)]),
            (SECOND, Some("AnotherFutureValue"), &[("AnotherFutureValue", 1), ("FutureValue", 1), ("PreferClose", 1)]),
        ];
        let after: [Step<'_>; 3] = [
            (THIRD, None, all_but_third),
            (FIRST, None, &[("AnotherFutureValue", 1), ("FutureValue", 0), ("PreferClose", 0)]),
            (SECOND, None, &[("AnotherFutureValue", 0), ("FutureValue", 0), ("PreferClose", 0)]),
        ];
        let mut counts = SliceCounts::new(&Config::default());
        let check = |counts: &SliceCounts, expected: &[(&str, usize)]| {
            let found: Vec<_> =
                counts.services_by_traffic_distribution().map(|(value, n)| (value.as_str(), n)).collect();
            assert_eq!(found, expected);
        };
        let run = |counts: &mut SliceCounts, steps: &[Step<'_>]| {
            for ((namespace, service), value, expected) in steps {
                let value = value.map(Text::from);
                counts.set_traffic_distribution(&(*namespace).into(), &(*service).into(), value.as_ref());
                check(counts, expected);
            }
        };
        run(&mut counts, &before);
        counts.forget(THIRD.0, THIRD.1);
        check(&counts, all_but_third);
        run(&mut counts, &after);
    }
}
