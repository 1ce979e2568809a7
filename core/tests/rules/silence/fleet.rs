//! Hub agent in a fleet whose members renew their MemberAgents, fall silent and return.

use crate::support::build::{IntoObject, in_hub_of, member_agent, seconds};
use fleetnet_core::features::Features;
use fleetnet_core::hub::{self, Key, SilenceLimits};
use fleetnet_core::model::{Announcement, Kind, MemberAgent, SilencePhase, Treatment};
use fleetnet_core::plan::{Action, Patch};
use fleetnet_types::{ClusterId, Timestamp, WatchState};
use std::collections::{BTreeMap, VecDeque};

const LIMITS: SilenceLimits = SilenceLimits { soft_micros: 60_000_000, hard_micros: 600_000_000 };

/// Hub agent with members that renew every 10 s while they live.
pub(super) struct Fleet {
    pub(super) view: hub::Planner,
    /// Members, and if they renew.
    pub(super) members: BTreeMap<ClusterId, bool>,
    pub(super) due: BTreeMap<ClusterId, Timestamp>,
    pub(super) now: i64,
    /// Phases that the hub agent wrote: second, member and phase.
    pub(super) phases: Vec<(i64, String, Option<SilencePhase>)>,
    /// Events, as texts such as `MemberSilent: cluster a …`.
    pub(super) events: Vec<String>,
    pub(super) writes: usize,
}

impl Fleet {
    /// Returns a fleet in which the members `a`, `b` and so on have renewed at second 0.
    pub(super) fn of(members: usize) -> Self {
        let mut view = hub::Planner::new(Announcement::new("1.2.3", Features::ALL), hub::NamespacePolicy::Enforce);
        view.silence_limits = Some(LIMITS);
        for kind in [Kind::MemberAgent, Kind::EndpointSliceExport] {
            view.watch_state(kind, WatchState::Complete, seconds(0), &mut Vec::new());
        }
        let names = ('a'..='z').take(members).map(|name| ClusterId::from(name.to_string().as_str()));
        let mut fleet = Self {
            view,
            members: names.map(|name| (name, true)).collect(),
            due: BTreeMap::new(),
            now: 0,
            phases: Vec::new(),
            events: Vec::new(),
            writes: 0,
        };
        for member in fleet.members.keys().cloned().collect::<Vec<_>>() {
            let mut agent = member_agent(&member, Features::ALL, Features::ALL);
            agent.renewed = Some(seconds(0));
            fleet.apply(agent);
        }
        fleet.writes = 0;
        fleet
    }

    pub(super) fn agent(&self, member: &str) -> &MemberAgent {
        self.view.member_agents.get(&in_hub_of(member, member)).expect("a member")
    }

    pub(super) fn apply(&mut self, agent: MemberAgent) {
        let mut requeue = Vec::new();
        self.view.applied(agent.object(), seconds(self.now), &mut requeue);
        self.plan(requeue);
    }

    /// Plans keys, and executes their writes, until nothing is left to plan.
    pub(super) fn plan(&mut self, keys: Vec<Key>) {
        let mut keys = VecDeque::from(keys);
        while let Some(key) = keys.pop_front() {
            let Key::Member(member) = &key else { continue };
            let (plan, reads) = self.view.plan_and_reads(&key, seconds(self.now));
            self.view.planned(&key, reads);
            if let Some(check) = plan.check {
                self.view.checked(&key, check, seconds(self.now));
            }
            match plan.again {
                Some(again) => self.due.insert(member.clone(), again),
                None => self.due.remove(member),
            };
            for write in plan.writes {
                let Action::Patch { patch: Patch::MemberAgentStatus(status), .. } = write.action else { panic!() };
                self.writes += 1;
                self.events.extend(write.events.iter().map(|event| format!("{}: {}", event.reason, event.message)));
                let mut agent = self.agent(member).clone();
                if agent.status.silence != status.silence {
                    let phase = status.silence.map(|silence| silence.phase);
                    self.phases.push((self.now, member.to_string(), phase));
                }
                agent.status = status;
                agent.meta.resource_version += 1;
                let mut requeue = Vec::new();
                self.view.applied(agent.object(), seconds(self.now), &mut requeue);
                self.view.answered(member, seconds(self.now));
                keys.extend(requeue.into_iter().chain([key.clone()]));
            }
        }
    }

    pub(super) fn renew(&mut self, member: &str) {
        let mut agent = self.agent(member).clone();
        agent.renewed = Some(seconds(self.now));
        agent.stopped = None;
        self.apply(agent);
    }

    /// Lets time pass until this second. Members that live renew every 10 s.
    pub(super) fn until(&mut self, second: i64) {
        while self.now < second {
            self.now += 1;
            let live: Vec<ClusterId> =
                self.members.iter().filter(|(_, lives)| **lives).map(|(id, _)| id.clone()).collect();
            if self.now % 10 == 0 {
                live.iter().for_each(|member| self.renew(member));
            }
            self.run_due();
        }
    }

    pub(super) fn run_due(&mut self) {
        let due: Vec<Key> = self
            .due
            .iter()
            .filter(|(_, at)| **at <= seconds(self.now))
            .map(|(id, _)| Key::Member(id.clone()))
            .collect();
        self.plan(due);
    }

    pub(super) fn dies(&mut self, member: &str) {
        self.members.insert(member.into(), false);
    }

    pub(super) fn returns(&mut self, member: &str) {
        self.members.insert(member.into(), true);
        self.renew(member);
    }

    /// Lets a member die and return 100 s later, again and again, and waits for each of these times after a return.
    pub(super) fn flaps(&mut self, member: &str, times: &[i64]) {
        for time in times {
            self.dies(member);
            self.until(self.now + 100);
            self.returns(member);
            self.until(self.now + time);
        }
    }

    /// Returns the phases since the last call, as texts such as `65 a Draining`.
    pub(super) fn phases(&mut self) -> Vec<String> {
        let text = |(second, member, phase): (i64, String, Option<SilencePhase>)| {
            format!("{second} {member} {}", phase.map_or("-", SilencePhase::name))
        };
        self.phases.drain(..).map(text).collect()
    }

    /// Returns the treatment of a member in the list of an importer.
    pub(super) fn treatment(&self, importer: &str, of: &str) -> Option<Treatment> {
        let listed = &self.agent(importer).status.silent_members;
        listed.iter().find(|member| *member.cluster == *of).map(|member| member.treatment)
    }
}
