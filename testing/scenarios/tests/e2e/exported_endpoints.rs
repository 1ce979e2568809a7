//! Tests of a member agent that runs the EndpointSlice controller and exports the resulting slices, in one process.

use harness::agent::Agent;
use harness::endpoints::{PodSketch, Workload, serves};
use harness::fleet::{Fleet, manifests};
use harness::run;
use harness::user::{Consume, User};
use std::collections::BTreeMap;

const CHANGES: usize = 20;
const BOTH: [&str; 2] = ["10.1.0.1", "10.1.0.2"];

/// Fleet of two members. The second member imports the Service `app` of the first member. The Service has two pods.
struct Setup {
    fleet: Fleet,
    exporter: Workload,
    importer: User,
    namespace: String,
    /// Agents of the exporter, the importer and the hub.
    agents: [Agent; 3],
}

impl Setup {
    async fn create() -> anyhow::Result<Self> {
        let fleet = Fleet::own(2).await?;
        let namespace = fleet.namespace("work").await?;
        let [from, to] = &fleet.members[..] else { panic!("two members") };
        manifests::apply(&from.control_plane, manifests::ENDPOINT_SLICES).await?;
        let (hub_agent, of_exporter, of_importer) = (
            fleet.hub_agent().await?,
            fleet.member_agent(from).await?.flag("--endpointslices", "on"),
            fleet.member_agent(to).await?,
        );
        let agents = futures::try_join!(of_exporter.start_ready(), of_importer.start_ready(), hub_agent.start_ready())?;
        let exporter = Workload::begin(from.control_plane.admin(), &namespace).await?;
        let importer = User::new(to.control_plane.admin(), &namespace);
        exporter.service("app").await?;
        exporter.pods("app", &BOTH).await?;
        exporter.user.export("app").await?;
        exporter.user.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
        importer.import("app", "app", Consume::ClusterIp).await?;
        importer.sees("app", &BOTH).await?;
        importer.sees_import("app", "True").await?;
        Ok(Self { fleet, exporter, importer, namespace, agents: agents.into() })
    }
}

#[test]
fn a_pod_s_change_is_one_write_of_its_slice_and_the_three_of_the_fleet_s_path() -> anyhow::Result<()> {
    run(async {
        let Setup { fleet, exporter, importer, namespace, agents } = Setup::create().await?;
        serves(&agents[0], true).await?;
        serves(&agents[1], false).await?;
        let mark = fleet.mark().await?;
        for change in 0..CHANGES {
            let since = format!("2100-01-01T00:00:{change:02}Z");
            let pod = PodSketch::new("app-1", "app", &["10.1.0.2"]).since(&since);
            let is_ready = change % 2 == 1;
            exporter.report(&if is_ready { pod } else { pod.unready() }).await?;
            importer.sees("app", if is_ready { &BOTH } else { &BOTH[..1] }).await?;
        }
        let written: Vec<_> =
            fleet.since(&mark).await?.objects().clusters().map(|ledger| ledger.of_agents().counts()).collect();
        let [from, to] = [&fleet.members[0].hub_namespace, &fleet.members[1].hub_namespace];
        let each = |what: &[String]| what.iter().map(|what| (what.clone(), CHANGES)).collect::<BTreeMap<_, _>>();
        assert_eq!(
            written,
            [
                each(&[
                    format!("patch endpointsliceexports in {from} by member-agent"),
                    format!("patch endpointsliceimports in {to} by hub-agent"),
                ]),
                each(&[format!("update endpointslices in {namespace} by member-agent")]),
                each(&["patch endpointslices in fleet-system by member-agent".to_owned()]),
            ]
        );

        let slice = exporter.slice("app").await?.metadata;
        let published = ("endpoints.kubernetes.io/last-change-trigger-time", "2100-01-01T00:00:19Z");
        let annotations = slice.annotations.unwrap_or_default();
        let annotations: Vec<_> = annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(annotations, [published], "none of the fleet's");
        assert_eq!(slice.finalizers, None);
        Ok(())
    })
}
