//! Tests of make before break: importers always have endpoints, also while requests are delayed or fail, and while
//! replacement slices are denied.

use crate::random_faults::RandomFaults;
use crate::support::OnMemkube;
use harness::user::User;
use memkube::auth::{Call, Verb};
use memkube::faults::{Fault, Faults};
use memkube::status::{Named, Status};
use scenarios::environment::{Backend as _, Environment, FleetSpec};
use scenarios::handover::{recreate_slices, slices_are_left_in_the_hub};
use sim::Server;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

const FLEET: FleetSpec = FleetSpec::of(2);
/// Number of times that a test replaces slices during faults.
const HANDOVERS: u16 = 20;
/// Time limit for a replacement to arrive during faults.
const RECOVERED: Duration = Duration::from_secs(300);
/// Time within which agents retry a denied write.
const TRIED_AGAIN: Duration = Duration::from_secs(330);

#[test]
fn recreated_slices_leave_no_moment_without_endpoints_when_requests_are_late_and_fail() -> anyhow::Result<()> {
    sim::paused(async {
        let mut env = Environment::<OnMemkube>::create(FLEET).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        // Stop the agents, and start them again with the faults: a watch that is already open gets no faults.
        env.backend.0.stop_agents().await?;
        let faults = RandomFaults::new(1);
        faults.start(&env.backend.0);
        env.backend.0.start_agents().await?;
        let (exporter, mut routes) = (env.user(0), env.user(1).routes("app"));
        for handover in 1..=HANDOVERS {
            let [old, new] = [handover, handover + 1].map(|number| format!("app-{number}"));
            let (address, port) = (format!("10.1.1.{handover}"), 9_000 + handover);
            recreate_slices(&exporter, &old, &new, &address, port).await?;
            routes.are_within(RECOVERED, &[&format!("{address}:{port}")]).await?;
        }
        faults.check_counts(10)?;
        routes.never_empty()?;
        assert!(routes.events()? > 2 * usize::from(HANDOVERS), "each was seen to come and to go");
        slices_are_left_in_the_hub(&env, 1).await
    })
}

/// Fault: the quota for a resource is exhausted, so creates are denied.
struct Quota(&'static str);

impl Faults for Quota {
    fn request(&self, call: &Call) -> Fault {
        if call.verb != Verb::Create || &*call.target.resource != self.0 {
            return Fault::default();
        }
        let counted = format!("count/{}", call.qualified_resource());
        let why = format!("exceeded quota: small, requested: {counted}=1, used: {counted}=1, limited: {counted}=1");
        let named = Named { group: &call.target.group, kind: &call.target.resource, name: "app-2" };
        Fault { refuse: Some(Status::forbidden(named, &why)), ..Fault::default() }
    }
}

/// Replaces slices while a quota denies creates of a resource. Asserts that the old slices stay, and that one Event
/// about an object of `kind` reports the denied create.
fn a_quota_keeps_the_old(
    resource: &'static str,
    where_it_is: fn(&sim::Fleet) -> &Server,
    (user, kind): (impl Fn(&Environment<OnMemkube>) -> User, &str),
) -> anyhow::Result<()> {
    sim::paused(async {
        let env = Environment::<OnMemkube>::create(FLEET).await?;
        env.export_and_import(&["10.1.0.1"]).await?;
        let mut routes = env.user(1).routes("app");
        routes.are(&["10.1.0.1:8080"]).await?;
        let server = where_it_is(&env.backend.0);
        server.memkube().set_faults(Some(Arc::new(Quota(resource))));
        let mark = server.memkube().audit().entries.len();

        recreate_slices(&env.user(0), "app-1", "app-2", "10.1.0.2", 8081).await?;
        sleep(Duration::from_secs(600)).await;
        routes.are(&["10.1.0.1:8080"]).await?;
        let tries = server.memkube().audit().entries[mark..].iter().filter(|entry| entry.code == 403).count();
        assert!((5..=12).contains(&tries), "tried {tries} times in ten minutes, less and less often");
        assert_eq!(user(&env).sees_event(kind, "WriteDenied", "exceeded quota: small").await?, 1, "one Event");

        server.memkube().set_faults(None);
        routes.are_within(TRIED_AGAIN, &["10.1.0.2:8081"]).await?;
        routes.never_empty()?;
        slices_are_left_in_the_hub(&env, 1).await
    })
}

#[test]
fn a_quota_that_denies_the_new_slice_in_the_importer_keeps_the_old_one_until_it_is_lifted() -> anyhow::Result<()> {
    let notified = (|env: &Environment<OnMemkube>| env.user(1), "MultiClusterService");
    a_quota_keeps_the_old("endpointslices", |fleet| &fleet.members[1].server, notified)
}

#[test]
fn a_quota_that_denies_the_new_distributed_slice_keeps_the_old_one_until_it_is_lifted() -> anyhow::Result<()> {
    let in_hub = |env: &Environment<OnMemkube>| User::new(env.backend.hub(), &env.members[0].hub_namespace);
    a_quota_keeps_the_old("endpointsliceimports", |fleet| &fleet.hub, (in_hub, "EndpointSliceExport"))
}

#[test]
fn a_quota_that_denies_the_new_slice_export_keeps_the_old_one_until_it_is_lifted() -> anyhow::Result<()> {
    let notified = (|env: &Environment<OnMemkube>| env.user(0), "ServiceExport");
    a_quota_keeps_the_old("endpointsliceexports", |fleet| &fleet.hub, notified)
}
