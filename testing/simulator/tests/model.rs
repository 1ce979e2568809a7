//! Comparison of core's model of servers and engine (`core/tests/support`) with memkube and the real engine: the same
//! actions of users give the same objects in both.

#[allow(dead_code, reason = "the tests of core use the rest")]
#[path = "../../../core/tests/support/mod.rs"]
mod support;

use fastrand::Rng;
use fleetnet_core::model::{Kind, Object};
use histories::fleet::{Cluster, Fleet};
use histories::oracle;
use histories::users::{Action, MEMBERS, an_action, prelude};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use simulator::users::act as act_on_servers;
use simulator::world::{WORK, World as Servers};
use std::collections::BTreeMap;
use std::time::Duration;
use support::users::act;
use support::world::World;

/// Number of histories, and of actions in each.
const HISTORIES: u64 = 12;
const ACTIONS: usize = 12;
/// Time after each action in which the fleet comes to rest, in both worlds. A derived Service without exporters stays
/// for 30 s.
const REST: Duration = Duration::from_secs(100);

/// Returns the actions of a history.
fn history(seed: u64) -> Vec<Action> {
    let mut rng = Rng::with_seed(seed);
    let mut actions: Vec<Action> = prelude(&mut rng).into_iter().flatten().collect();
    let seed: [u8; 32] = std::array::from_fn(|_| rng.u8(..));
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    actions.extend((0..ACTIONS).map(|_| an_action().new_tree(&mut runner).expect("an action").current()));
    // Which object somebody deletes depends on the order of all objects, which differs between the two worlds.
    // The agents of the model announce no features, so they do not export draining endpoints.
    let is_comparable =
        |action: &Action| !matches!(action, Action::Meddle { .. } | Action::Unready { is_draining: true, .. });
    actions.retain(is_comparable);
    actions
}

/// Returns the objects of a fleet as text, without values that differ between two servers: UIDs, versions, times, and
/// the ends of names that are hashes of UIDs.
fn state(fleet: &Fleet) -> BTreeMap<String, String> {
    let without_hash = |text: &str| {
        let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        let cut = words.map(|word| {
            let (body, end) =
                word.split_at(word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric()).len());
            let hash = body
                .rsplit_once('-')
                .filter(|(_, hash)| hash.len() == 5 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
            format!("{}{end}", hash.map_or(body, |(name, _)| name))
        });
        cut.collect::<String>()
    };
    let shown = |(name, object): (String, Object)| (without_hash(&name), without_hash(&format!("{object:?}")));
    // Only the servers have these kinds.
    let is_compared = |(_, object): &(String, Object)| !matches!(object.kind(), Kind::Namespace | Kind::MemberAgent);
    oracle::state(fleet).into_iter().filter(is_compared).map(shown).collect()
}

fn of_model(world: &World) -> Fleet {
    let copy = |cluster: &support::cluster::Cluster| Cluster::new(cluster.all().cloned(), [].into());
    Fleet { hub: copy(&world.hub), members: world.members.iter().map(|member| copy(&member.cluster)).collect() }
}

/// Plays a history in both worlds. Compares them after each action.
async fn compare(seed: u64) -> anyhow::Result<()> {
    let mut model = World::new(MEMBERS);
    let fleet = sim::Fleet::new(sim::Options { seed, ..sim::Options::members(MEMBERS) }).await?;
    let mut servers = Servers { fleet, replicas: 1, is_cut_off: false, restores: 0, later: Vec::new(), manager: None };
    servers.fleet.make_namespace(WORK).await?;
    servers.fleet.start_agents().await?;
    for action in history(seed) {
        act(&mut model, &action);
        model.run_for(i64::try_from(REST.as_micros())?);
        act_on_servers(&servers, &action).await?;
        tokio::time::sleep(REST).await;
        let (expected, found) = (state(&of_model(&model)), state(&servers.at_rest()));
        let names = |state: &BTreeMap<String, String>| state.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "seed {seed}: objects after {action:?}");
        for (name, object) in &expected {
            assert_eq!(&found[name], object, "seed {seed}: {name} after {action:?}");
        }
    }
    Ok(())
}

#[test]
fn the_model_of_core_and_the_real_engine_come_to_the_same_objects() -> anyhow::Result<()> {
    (1..=HISTORIES).try_for_each(|seed| sim::paused(compare(seed)))
}
