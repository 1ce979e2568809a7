//! Tests of what the charts render. They need Helm, but no cluster.

use super::objects::{Objects, by_name, without_helm};
use super::{Chart, REGISTRY, difference, rendered, with_helm};
use anyhow::{Context as _, ensure};
use clap::Parser as _;
use fleetnet_api::crds::{self, Form};
use harness::fleet::manifests;
use harness::helm::Helm;
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// Cluster id in the plain manifests.
const MEMBER: &str = "member-1";

pub(super) fn plain(manifests: &[&str]) -> anyhow::Result<Objects> {
    let mut objects = Vec::new();
    for manifest in manifests {
        // The charts require a registry. The plain manifests leave it to the nodes.
        objects.extend(manifests::objects(&manifest.replace(" image: ", " image: registry.example.com/"))?);
    }
    let mut objects = by_name(objects)?;
    // No chart has the namespace of its release: Helm needs it before the first object, and must not delete it.
    objects.remove("Namespace fleet-system");
    Ok(objects)
}

/// Fails if a chart and plain manifests have different objects.
async fn equal(helm: &Helm, chart: Chart, values: &[&str], manifests: &[&str]) -> anyhow::Result<()> {
    let differences = difference::of(&without_helm(rendered(helm, chart, values).await?), &plain(manifests)?);
    ensure!(
        differences.is_empty(),
        "the chart {chart} and the plain manifests in deploy/ differ; change both:\n{}",
        differences.join("\n")
    );
    Ok(())
}

/// `deploy/` is also what the test of least privilege in `sim` reads. Because of this test, its result holds for the
/// charts too.
#[test]
fn with_their_defaults_the_charts_render_the_objects_of_the_plain_manifests() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let mut definitions: Vec<String> = crds::all(Form::Full).iter().map(crds::yaml).collect();
        definitions.push(manifests::VIEWER.to_owned());
        let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
        equal(&helm, Chart::Crds, &[], &definitions).await?;
        let of_hub = [manifests::HUB_AGENT, manifests::HUB_ADMISSION, manifests::HUB_FLOW_CONTROL];
        equal(&helm, Chart::HubAgent, &[], &of_hub).await?;
        let of_member = [
            manifests::MEMBER_AGENT,
            manifests::ENDPOINT_SLICES,
            manifests::MEMBER_ADMISSION,
            manifests::MEMBER_FLOW_CONTROL,
        ];
        equal(&helm, Chart::MemberAgent, &["--set=member.id=member-1"], &of_member).await?;

        let members = [MEMBER, "west"].map(manifests::of_member);
        let of_members: Vec<&str> = of_hub.into_iter().chain(members.iter().map(String::as_str)).collect();
        equal(&helm, Chart::HubAgent, &["--set=members={member-1,west}"], &of_members).await?;
        let no_slices = manifests::MEMBER_AGENT.replace("--endpointslices=auto", "--endpointslices=off");
        let values = ["--set=member.id=member-1", "--set=endpointslices.mode=off"];
        let no_slices = [&no_slices, manifests::MEMBER_ADMISSION, manifests::MEMBER_FLOW_CONTROL];
        equal(&helm, Chart::MemberAgent, &values, &no_slices).await?;

        let of_managed = [manifests::of_member(MEMBER), manifests::of_managed_member(MEMBER)];
        let of_managed: Vec<&str> = of_hub.into_iter().chain(of_managed.iter().map(String::as_str)).collect();
        let values = ["--set=members={member-1}", "--set=fleetManager.enabled=true"];
        equal(&helm, Chart::HubAgent, &values, &of_managed).await?;
        let of_managed = [&of_member[..], &[manifests::FLEET_MANAGER_MEMBER]].concat();
        let values = ["--set=member.id=member-1", "--set=fleetManager.enabled=true"];
        equal(&helm, Chart::MemberAgent, &values, &of_managed).await?;
        let end = "- --log-format";
        let flags =
            "- --multicluster-api=true\n            - --multicluster-api-import=labelled\n            - --log-format";
        let with_api = manifests::MEMBER_AGENT.replace(end, flags);
        let with_api = [&[&with_api, manifests::MCS_API], &of_member[1..]].concat();
        let values = ["--set=member.id=member-1", "--set=multiclusterApi.enabled=true"];
        equal(&helm, Chart::MemberAgent, &values, &with_api).await
    })
}

#[test]
fn helm_finds_no_fault_in_the_charts() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for chart in Chart::ALL {
            for set in chart.sets() {
                let words = ["lint", "--strict", chart.name()].into_iter().chain(set.iter().map(String::as_str));
                let outcome = helm.run(&words.collect::<Vec<_>>()).await?;
                ensure!(outcome.code == 0, "{chart} {set:?}: {}{}", outcome.out, outcome.err);
            }
        }
        Ok(())
    })
}

#[test]
fn definitions_stay_after_an_uninstall_unless_a_user_decides_otherwise() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let kept = |objects: &Objects| {
            let definitions = objects.values().filter(|object| object["kind"] == "CustomResourceDefinition");
            let policy = definitions.map(|object| object["metadata"]["annotations"]["helm.sh/resource-policy"].clone());
            policy.collect::<Vec<_>>()
        };
        let kinds = crds::all(Form::Full).len();
        ensure!(kept(&rendered(&helm, Chart::Crds, &[]).await?) == vec![json!("keep"); kinds]);
        let removed = rendered(&helm, Chart::Crds, &["--set=crds.keep=false"]).await?;
        ensure!(kept(&removed) == vec![Value::Null; kinds], "{removed:?}");
        Ok(())
    })
}

/// Returns the arguments of the agent in a Deployment, after the name of the program.
pub(super) fn arguments(objects: &Objects, agent: &str) -> anyhow::Result<Vec<String>> {
    let pod = &objects[&format!("Deployment fleet-system/{agent}")]["spec"]["template"]["spec"];
    let arguments: Vec<String> = serde_json::from_value(pod["containers"][0]["args"].clone())?;
    Ok(std::iter::once(agent.to_owned()).chain(arguments).collect())
}

#[test]
fn each_value_arrives_where_it_belongs() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let everything = |chart: Chart| format!("--values={chart}/ci/everything-values.yaml");
        let hub = rendered(&helm, Chart::HubAgent, &[&everything(Chart::HubAgent)]).await?;
        let member = rendered(&helm, Chart::MemberAgent, &[&everything(Chart::MemberAgent)]).await?;
        let (of_hub, of_member) = (arguments(&hub, "hub-agent")?, arguments(&member, "member-agent")?);
        hub_agent::Flags::try_parse_from(&of_hub).context("the hub agent's flags")?;
        member_agent::Flags::try_parse_from(&of_member).context("the member agent's flags")?;
        let expected = [
            "--leader-election-lease-duration=30s",
            "--leader-election-renew-deadline=20s",
            "--leader-election-retry-period=4s",
            "--metrics-secure=true",
            "--metrics-cert-path=/metrics-certificate",
            "--log-format=text",
            "--v=4",
        ];
        let of_hub_only = [
            "--namespace-policy=off",
            "--leader-elect=true",
            "--slice-stream-bind-address=:8443",
            "--slice-stream-advertise-address=hub.example.com:9443",
            "--slice-stream-cert-path=/slice-stream-certificate",
            "--object-lag=2s",
        ];
        for argument in expected.iter().chain(&of_hub_only) {
            ensure!(of_hub.iter().any(|it| it == argument), "{argument} is missing: {of_hub:?}");
        }
        let of_members = [
            "--endpointslices=on",
            "--endpointslices-takeover-after=1m",
            "--source-ranges=north=10.1.0.0/16,fd00:1::/32",
            "--source-ranges=east=10.2.0.0/16",
            "--load-balancers-per-namespace=0",
            "--derived-service-grace=1m",
            "--multicluster-api=true",
            "--multicluster-api-import=all",
        ];
        for argument in expected.iter().chain(&of_members) {
            ensure!(of_member.iter().any(|it| it == argument), "{argument} is missing: {of_member:?}");
        }
        for (objects, agent) in [(&hub, "hub-agent"), (&member, "member-agent")] {
            the_pods_have_what_the_values_say(objects, agent).with_context(|| agent.to_owned())?;
            the_pods_start_and_stop_as_the_values_say(objects, agent).with_context(|| agent.to_owned())?;
            the_monitors_have_what_the_values_say(objects, agent).with_context(|| agent.to_owned())?;
        }
        let environment =
            &member["Deployment fleet-system/member-agent"]["spec"]["template"]["spec"]["containers"][0]["env"];
        let expected = json!([
            {"name": "MEMBER_CLUSTER_NAME", "value": "west"},
            {"name": "CONFIG_PATH", "value": "/hub/token"},
            {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            {"name": "HUB_SERVER_URL", "value": "https://hub.example.com:6443"},
            {"name": "HUB_CERTIFICATE_AUTHORITY", "value": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="},
            {"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"},
        ]);
        ensure!(*environment == expected, "{environment}");
        let role = hub["ClusterRole fleetnet-hub-agent"].to_string();
        ensure!(
            !role.contains(r#""namespaces""#),
            "without the policy, the agent needs no right to namespaces: {role}"
        );
        let quota = &hub["ResourceQuota fleet-member-north/fleetnet-member-agent"]["spec"]["hard"];
        ensure!(quota["count/endpointsliceexports.networking.fleet.azure.com"] == "20000000", "{quota}");
        ensure!(quota["count/memberagents.networking.fleet.azure.com"] == "4", "{quota}");
        Ok(())
    })
}

fn the_pods_have_what_the_values_say(objects: &Objects, agent: &str) -> anyhow::Result<()> {
    let deployment = &objects[&format!("Deployment fleet-system/{agent}")]["spec"];
    let (template, pod) = (&deployment["template"], &deployment["template"]["spec"]);
    let container = &pod["containers"][0];
    let digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let labels = json!({
        "app.kubernetes.io/name": agent, "app.kubernetes.io/part-of": "fleetnet", "team": "platform", "tier": "agents",
    });
    let affinity = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    for (what, found, expected) in [
        ("replicas", &deployment["replicas"], json!(3)),
        ("labels", &template["metadata"]["labels"], labels),
        ("annotations", &template["metadata"]["annotations"], json!({"example.com/note": "yes"})),
        ("image", &container["image"], json!(format!("registry.example.com/fleet/{agent}@{digest}"))),
        ("imagePullPolicy", &container["imagePullPolicy"], json!("Always")),
        ("imagePullSecrets", &pod["imagePullSecrets"], json!([{"name": "registry"}])),
        ("serviceAccountName", &pod["serviceAccountName"], json!("agent")),
        ("nodeSelector", &pod["nodeSelector"], json!({"kubernetes.io/os": "linux"})),
        ("affinity", &affinity["topologyKey"], json!("kubernetes.io/hostname")),
        (
            "tolerations",
            &pod["tolerations"],
            json!([{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]),
        ),
        ("priorityClassName", &pod["priorityClassName"], json!("system-cluster-critical")),
        ("memory", &container["resources"]["limits"]["memory"], json!("512Mi")),
    ] {
        ensure!(*found == expected, "{what} is {found}");
    }
    let last = |list: &Value| list.as_array().and_then(|list| list.last().cloned()).unwrap_or_default();
    ensure!(last(&pod["volumes"]) == json!({"name": "more", "emptyDir": {}}), "{pod}");
    ensure!(last(&container["volumeMounts"]) == json!({"name": "more", "mountPath": "/more"}), "{container}");
    let account = &objects["ServiceAccount fleet-system/agent"]["metadata"]["annotations"];
    ensure!(*account == json!({"example.com/role": "agent"}), "{account}");
    for (name, object) in objects.iter().filter(|(name, _)| name.contains("RoleBinding fleet")) {
        let subject = &object["subjects"][0]["name"];
        let expected = match () {
            () if name.contains("fleet-member-") => "member-agent",
            () if name.ends_with("-metrics-reader") => "prometheus",
            () => "agent",
        };
        ensure!(subject == expected, "{name} is for {subject}");
    }
    let budget = &objects[&format!("PodDisruptionBudget fleet-system/{agent}")]["spec"];
    ensure!(budget["minAvailable"] == "50%" && budget["maxUnavailable"].is_null(), "{budget}");
    let extra = &objects["ConfigMap fleet-system/extra"]["data"];
    ensure!(extra["release"] == "release", "{extra}");
    Ok(())
}

/// The values about how pods start, stop and reach others.
fn the_pods_start_and_stop_as_the_values_say(objects: &Objects, agent: &str) -> anyhow::Result<()> {
    let deployment = &objects[&format!("Deployment fleet-system/{agent}")]["spec"];
    let pod = &deployment["template"]["spec"];
    let container = &pod["containers"][0];
    let of_deployment = &objects[&format!("Deployment fleet-system/{agent}")]["metadata"];
    let probe = |field: &str, path: &str, mut fields: Value| {
        fields["httpGet"] = json!({"path": path, "port": "probes"});
        (field.to_owned(), fields)
    };
    let probes: Value = [
        probe("startupProbe", "/healthz", json!({"failureThreshold": 30})),
        probe("livenessProbe", "/healthz", json!({"initialDelaySeconds": 3, "timeoutSeconds": 7})),
        probe("readinessProbe", "/readyz", json!({"periodSeconds": 4, "successThreshold": 2, "timeoutSeconds": 5})),
    ]
    .into_iter()
    .collect::<serde_json::Map<_, _>>()
    .into();
    for (field, expected) in probes.as_object().context("probes")? {
        ensure!(container[field] == *expected, "{field} is {}", container[field]);
    }
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}});
    for (what, found, expected) in [
        ("tier of the Deployment", &of_deployment["labels"]["tier"], json!("agents")),
        ("name of the Deployment", &of_deployment["labels"]["app.kubernetes.io/name"], json!(agent)),
        ("note for Reloader", &of_deployment["annotations"], json!({"reloader.stakater.com/auto": "true"})),
        ("strategy", &deployment["strategy"], strategy),
        ("revisionHistoryLimit", &deployment["revisionHistoryLimit"], json!(3)),
        ("terminationGracePeriodSeconds", &pod["terminationGracePeriodSeconds"], json!(15)),
        ("runtimeClassName", &pod["runtimeClassName"], json!("gvisor")),
        ("hostAliases", &pod["hostAliases"], json!([{"ip": "10.0.0.1", "hostnames": ["hub.example.com"]}])),
        ("hostNetwork", &pod["hostNetwork"], json!(true)),
        ("dnsPolicy", &pod["dnsPolicy"], json!("ClusterFirstWithHostNet")),
        ("dnsConfig", &pod["dnsConfig"], json!({"nameservers": ["10.0.0.53"], "searches": ["example.com"]})),
        ("lifecycle", &container["lifecycle"], json!({"preStop": {"sleep": {"seconds": 5}}})),
        ("envFrom", &container["envFrom"], json!([{"configMapRef": {"name": "proxy"}}])),
        ("initContainers", &pod["initContainers"][0]["name"], json!("bundle")),
        ("extraContainers", &pod["containers"][1]["name"], json!("proxy")),
    ] {
        ensure!(*found == expected, "{what} is {found}");
    }
    Ok(())
}

fn the_monitors_have_what_the_values_say(objects: &Objects, agent: &str) -> anyhow::Result<()> {
    let monitor = &objects[&format!("PodMonitor fleet-system/{agent}")];
    let mut relabelings = vec![json!({"targetLabel": "cluster", "replacement": "west"})];
    if agent == "member-agent" {
        relabelings.insert(0, json!({"targetLabel": "member", "replacement": "west"}));
    }
    let expected = json!({
        "jobLabel": "app.kubernetes.io/name",
        "selector": {"matchLabels": {"app.kubernetes.io/name": agent}},
        "podMetricsEndpoints": [{
            "port": "metrics", "path": "/metrics", "interval": "15s", "scrapeTimeout": "10s", "scheme": "https",
            "tlsConfig": {"serverName": "agents.example.com"},
            "authorization": {"credentials": {"name": "prometheus-token", "key": "token"}},
            "relabelings": relabelings,
            "metricRelabelings": [{"sourceLabels": ["__name__"], "regex": "process_.*", "action": "drop"}],
        }],
    });
    ensure!(monitor["spec"] == expected, "{monitor}");
    let service = &objects[&format!("Service fleet-system/{agent}-metrics")];
    let expected = json!({
        "clusterIP": "None", "publishNotReadyAddresses": true, "selector": {"app.kubernetes.io/name": agent},
        "ports": [{"name": "metrics", "port": 9090, "targetPort": "metrics", "protocol": "TCP"}],
    });
    ensure!(service["spec"] == expected, "{service}");
    ensure!(service["metadata"]["annotations"] == json!({"prometheus.io/scrape": "true"}), "{service}");
    ensure!(service["metadata"]["labels"]["scrape"] == "yes", "{service}");
    for object in [monitor, &objects[&format!("PrometheusRule fleet-system/{agent}")]] {
        ensure!(object["metadata"]["labels"]["release"] == "prometheus", "{object}");
        ensure!(object["metadata"]["annotations"]["example.com/note"] == "yes", "{object}");
    }
    let policy = &objects[&format!("NetworkPolicy fleet-system/{agent}")]["spec"];
    ensure!(policy["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == agent, "{policy}");
    ensure!(policy["policyTypes"] == json!(["Ingress", "Egress"]), "{policy}");
    let reaches_stream = policy["egress"].to_string().contains(r#""port":8443"#);
    ensure!(reaches_stream == (agent == "member-agent"), "members reach the slice stream of the hub: {policy}");
    Ok(())
}

#[test]
fn a_slice_stream_has_the_service_and_the_rights_of_the_plain_manifest() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let values = ["--set=sliceStream.enabled=true", "--set=sliceStream.advertiseAddress=hub.example.com:8443"];
        let on = without_helm(rendered(&helm, Chart::HubAgent, &values).await?);
        for (name, object) in plain(&[manifests::SLICE_STREAM])? {
            ensure!(on.get(&name) == Some(&object), "{name} is {:?}", on.get(&name));
        }
        let arguments = arguments(&on, "hub-agent")?;
        for argument in ["--slice-stream-bind-address=:8443", "--slice-stream-advertise-address=hub.example.com:8443"] {
            ensure!(arguments.iter().any(|it| it == argument), "{argument} is missing: {arguments:?}");
        }
        ensure!(!arguments.iter().any(|it| it.contains("cert-path")), "the certificate is self-signed: {arguments:?}");
        let outcome = helm.run(&["template", "fleetnet-hub-agent", REGISTRY, values[0]]).await?;
        ensure!(outcome.code != 0 && outcome.err.contains("sliceStream.advertiseAddress"), "{outcome:?}");

        let everything = format!("--values={}/ci/everything-values.yaml", Chart::HubAgent);
        let objects = rendered(&helm, Chart::HubAgent, &[&everything]).await?;
        let service = &objects["Service fleet-system/hub-agent-slice-stream"];
        ensure!(service["metadata"]["annotations"] == json!({"example.com/note": "yes"}), "{service}");
        let expected = json!({
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Cluster",
            "selector": {"app.kubernetes.io/name": "hub-agent"},
            "ports": [{"name": "slice-stream", "port": 9443, "targetPort": 8443, "protocol": "TCP"}],
            "loadBalancerClass": "example.com/internal",
            "loadBalancerSourceRanges": ["10.0.0.0/8"],
        });
        ensure!(service["spec"] == expected, "{service}");
        let inside = [values[0], values[1], "--set=sliceStream.service.type=ClusterIP"];
        let inside = without_helm(rendered(&helm, Chart::HubAgent, &inside).await?);
        let spec = &inside["Service fleet-system/hub-agent-slice-stream"]["spec"];
        ensure!(spec.get("externalTrafficPolicy").is_none(), "a server rejects it for this type: {spec}");
        let pod = &objects["Deployment fleet-system/hub-agent"]["spec"]["template"]["spec"];
        let mount =
            json!({"name": "slice-stream-certificate", "mountPath": "/slice-stream-certificate", "readOnly": true});
        let container = &pod["containers"][0];
        ensure!(container["volumeMounts"].as_array().is_some_and(|mounts| mounts.contains(&mount)), "{container}");
        let volume = json!({"name": "slice-stream-certificate", "secret": {"secretName": "slice-stream-certificate"}});
        ensure!(pod["volumes"].as_array().is_some_and(|volumes| volumes.contains(&volume)), "{pod}");
        let ingress = objects["NetworkPolicy fleet-system/hub-agent"]["spec"]["ingress"].to_string();
        ensure!(ingress.contains("slice-stream"), "the network policy lets no member in: {ingress}");
        Ok(())
    })
}

#[test]
fn switches_leave_out_what_they_name() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for (chart, agent) in [(Chart::HubAgent, "hub-agent"), (Chart::MemberAgent, "member-agent")] {
            let minimal = rendered(&helm, chart, &[&format!("--values={chart}/ci/minimal-values.yaml")]).await?;
            let names: Vec<&String> = minimal.keys().collect();
            ensure!(names == [&format!("Deployment fleet-system/{agent}")], "{names:?}");
            let container = &minimal[names[0]]["spec"]["template"]["spec"]["containers"][0];
            ensure!(container.get("resources").is_none() && container.get("securityContext").is_none(), "{container}");
        }
        let definitions = rendered(&helm, Chart::Crds, &["--set=viewerRole.create=false"]).await?;
        ensure!(definitions.len() == crds::all(Form::Full).len(), "{:?}", definitions.keys());
        // Older API servers reject these kinds.
        for (chart, version, expected) in [
            (Chart::HubAgent, "1.30.0", [6, 5]),
            (Chart::HubAgent, "1.29.15", [0, 5]),
            (Chart::HubAgent, "1.28.2-gke.100", [0, 0]),
            (Chart::MemberAgent, "1.30.0", [4, 3]),
            (Chart::MemberAgent, "1.29.0", [0, 3]),
            (Chart::MemberAgent, "1.28.15", [0, 0]),
        ] {
            let id = ["--set=member.id=west"];
            let id = if matches!(chart, Chart::MemberAgent) { &id[..] } else { &[] };
            let objects = rendered(&helm, chart, &[&["--kube-version", version], id].concat()).await?;
            let number = |group: &str| {
                let is_of_group = |it: &&Value| it["apiVersion"].as_str().is_some_and(|it| it.starts_with(group));
                objects.values().filter(is_of_group).count()
            };
            let found = ["admissionregistration.k8s.io/", "flowcontrol.apiserver.k8s.io/"].map(number);
            ensure!(found == expected, "{chart} for Kubernetes {version}: {found:?}");
        }
        // The rights of the EndpointSlice controller are wide: without the policies that limit them, it is off.
        for (values, mode, has_rights) in [
            (&["--kube-version=1.30.0"][..], "auto", true),
            (&["--kube-version=1.29.15"], "off", false),
            (&["--kube-version=1.29.15", "--set=endpointslices.mode=auto"], "auto", true),
            (&["--set=admissionPolicy.enabled=false"], "off", false),
            (&["--set=endpointslices.mode=off"], "off", false),
            (&["--set=endpointslices.mode=on"], "on", true),
        ] {
            let objects = rendered(&helm, Chart::MemberAgent, &[&["--set=member.id=west"], values].concat()).await?;
            let argument = format!("--endpointslices={mode}");
            ensure!(arguments(&objects, "member-agent")?.contains(&argument), "{values:?}: not {argument}");
            let rights = objects.keys().filter(|name| name.ends_with("fleetnet-endpointslices")).count();
            ensure!(rights == if has_rights { 4 } else { 0 }, "{values:?}: {rights} objects with rights");
        }
        // With a single pod, a budget would block the drain of its node for ever.
        let one = rendered(&helm, Chart::HubAgent, &["--set=replicas=1"]).await?;
        ensure!(!one.keys().any(|name| name.starts_with("PodDisruptionBudget")), "{:?}", one.keys());
        Ok(())
    })
}

#[test]
fn labels_of_a_user_never_replace_labels_that_the_charts_need() -> anyhow::Result<()> {
    with_helm(async |helm| {
        for chart in Chart::ALL {
            let objects = rendered(&helm, chart, &[&format!("--values={chart}/ci/everything-values.yaml")]).await?;
            for (name, object) in objects.iter().filter(|(name, _)| *name != "ConfigMap fleet-system/extra") {
                let labels = &object["metadata"]["labels"];
                ensure!(labels["team"] == "platform", "{name}: {labels}");
                ensure!(labels["app.kubernetes.io/part-of"] == "fleetnet", "{name}: {labels}");
                ensure!(!labels.to_string().contains("not replaced"), "{name}: {labels}");
            }
        }
        Ok(())
    })
}

#[test]
fn the_charts_may_be_dependencies_of_another_chart() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let folder = TempDir::with_prefix("fleetnet-umbrella-")?;
        let dependencies = Chart::ALL.map(|chart| {
            json!({"name": chart.name(), "version": "0.1.0", "condition": format!("{chart}.enabled"),
                   "repository": format!("file://{}", programs::root().join("deploy/charts").join(chart.name()).display())})
        });
        let own = json!({"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": dependencies});
        fs::write(folder.path().join("Chart.yaml"), own.to_string())?;
        let values = json!({
            "global": {
                "region": "north", "imageRegistry": "mirror.example.com", "imagePullSecrets": ["mirror", {"name": "other"}],
            },
            "fleetnet-crds": {"enabled": true}, "fleetnet-hub-agent": {"enabled": false},
            "fleetnet-member-agent": {
                "enabled": true, "member": {"id": "west"}, "namespaceOverride": "fleet-system",
                "image": {"registry": "registry.example.com"}, "imagePullSecrets": [{"name": "other"}, {"name": "own"}],
            },
        });
        fs::write(folder.path().join("values.yaml"), values.to_string())?;
        let path = folder.path().display().to_string();
        let built = helm.run(&["dependency", "update", &path]).await?;
        ensure!(built.code == 0, "{built:?}");
        let mut expected = rendered(&helm, Chart::Crds, &[]).await?;
        expected.extend(rendered(&helm, Chart::MemberAgent, &["--set=member.id=west"]).await?);
        // The last of two namespaces counts.
        let options = ["--skip-tests", "--namespace=platform"];
        let objects = by_name(helm.objects(&path, &options).await?)?;
        ensure!(objects.keys().eq(expected.keys()), "{:?}", objects.keys());
        let pod = &objects["Deployment fleet-system/member-agent"]["spec"]["template"]["spec"];
        ensure!(pod["containers"][0]["image"] == "mirror.example.com/member-agent:0.1.0", "{pod}");
        let secrets = json!([{"name": "mirror"}, {"name": "other"}, {"name": "own"}]);
        ensure!(pod["imagePullSecrets"] == secrets, "{pod}");
        Ok(())
    })
}

#[test]
fn the_versions_of_charts_and_images_are_those_of_the_release() -> anyhow::Result<()> {
    for chart in Chart::ALL {
        let path = programs::root().join("deploy/charts").join(chart.name()).join("Chart.yaml");
        let chart: Value = serde_saphyr::from_str(&fs::read_to_string(path)?)?;
        for field in ["version", "appVersion"] {
            ensure!(chart[field] == env!("CARGO_PKG_VERSION"), "{field} of {chart}");
        }
        // The address of the repository is written once, in Cargo.toml. `cargo xtask release` asks for it.
        let workspace = fs::read_to_string(programs::root().join("Cargo.toml"))?;
        let repository = workspace.lines().find_map(|line| line.strip_prefix("repository = "));
        let repository = repository.map_or(Value::Null, |it| json!(it.trim_matches('"')));
        ensure!(chart["home"] == repository, "home of {chart}");
        ensure!(chart["sources"] == if repository.is_null() { Value::Null } else { json!([repository]) }, "{chart}");
        for field in ["keywords", "maintainers", "annotations"] {
            ensure!(!chart[field].is_null(), "{field} of {chart}");
        }
    }
    Ok(())
}

#[test]
fn a_package_renders_what_its_chart_renders() -> anyhow::Result<()> {
    with_helm(async |helm| {
        let folder = TempDir::with_prefix("fleetnet-packages-")?;
        let path = folder.path().display().to_string();
        for chart in Chart::ALL {
            let packed = helm.run(&["package", chart.name(), "--destination", &path]).await?;
            ensure!(packed.code == 0, "{packed:?}");
            let package = format!("{path}/{chart}-{}.tgz", env!("CARGO_PKG_VERSION"));
            let values = [&*format!("--values={chart}/ci/everything-values.yaml")];
            let (of_package, of_chart) =
                (helm.template(&package, &values).await?, helm.template(chart.name(), &values).await?);
            ensure!(of_package == of_chart, "{chart}");
        }
        Ok(())
    })
}
