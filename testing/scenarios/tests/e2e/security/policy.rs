//! Tests of the admission policies in `deploy/hub-admission.yaml`: the objects of a member name the member, and members
//! and the hub agent do not change each other's objects.

use super::{Answer, policy_is_used, reference, request, send, until};
use anyhow::ensure;
use fleetnet_api::crd::{InternalServiceExport, ServiceExport};
use harness::eventually;
use harness::fleet::{Fleet, HUB_AGENT, Member};
use harness::user::User;
use kube::Api;
use serde_json::{Value, json};

/// Start of the message with which kube-apiserver refuses a request because of the policy. The name of the object comes
/// before.
pub(super) const DENIED: &str =
    "ValidatingAdmissionPolicy 'fleetnet-member-id' with binding 'fleetnet-member-id' denied request: ";
/// Start of the message with which kube-apiserver refuses a request because of the policy about tokens.
pub(super) const TOKEN_DENIED: &str =
    "ValidatingAdmissionPolicy 'fleetnet-member-tokens' with binding 'fleetnet-member-tokens' denied request: ";
/// Id of a cluster that is not the member.
const OTHER: &str = "another-member";

/// Returns the path of a kind in the namespace of a member.
pub(super) fn path(cluster_id: &str, plural: &str) -> String {
    format!("/apis/networking.fleet.azure.com/v1alpha1/namespaces/fleet-member-{cluster_id}/{plural}")
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    let version = "networking.fleet.azure.com/v1alpha1";
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "finalizers": ["example.com/test"]}, "spec": spec})
}

pub(super) fn claim(name: &str, cluster_id: &str) -> Value {
    let reference = reference(cluster_id, "ServiceImport", name);
    object("InternalServiceImport", name, json!({"serviceImportReference": reference}))
}

fn export(name: &str, cluster_id: &str) -> Value {
    let ports = json!([{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}]);
    let reference = reference(cluster_id, "Service", name);
    object("InternalServiceExport", name, json!({"ports": ports, "serviceReference": reference}))
}

fn slice(name: &str, cluster_id: &str) -> Value {
    let spec = json!({
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"]}],
        "endpointSliceReference": reference(cluster_id, "EndpointSlice", name),
        "ownerServiceReference": {"namespace": "work", "name": "app", "namespacedName": "work/app"},
    });
    object("EndpointSliceExport", name, spec)
}

/// Kind whose objects name a cluster: its plural, a function that makes an object, and the field of the reference with
/// the id.
type Kind = (&'static str, fn(&str, &str) -> Value, &'static str);

const KINDS: [Kind; 3] = [
    ("internalserviceexports", export, "serviceReference"),
    ("internalserviceimports", claim, "serviceImportReference"),
    ("endpointsliceexports", slice, "endpointSliceReference"),
];

/// Returns a patch that changes the cluster id in an object.
fn naming(field: &str, cluster_id: &str) -> Value {
    json!({"spec": {field: {"clusterId": cluster_id}}})
}

/// Checks that the policy refused a request, with a message that names the object, both clusters and the remedy.
fn is_denied(answer: &Answer, kind: &str, name: &str, member: &str) -> anyhow::Result<()> {
    let expected = format!(
        "{DENIED}{kind} fleet-member-{member}/{name} names the cluster {OTHER}, but this namespace belongs to the member {member}: \
         write the cluster id {member}, or use the credentials and the namespace of the other member"
    );
    let is_denied = answer.status == 403 && answer.body["reason"] == "Forbidden";
    ensure!(is_denied && answer.message().ends_with(&expected), "{answer:?}\nexpected: {expected}");
    Ok(())
}

fn is_accepted(answer: Answer) -> anyhow::Result<Value> {
    ensure!(answer.is_success(), "{answer:?}");
    Ok(answer.body)
}

/// Returns a client with the token of the member's service account, when the hub uses the policy.
async fn client(fleet: &Fleet, member: &Member) -> anyhow::Result<kube::Client> {
    let client = fleet.hub.access(&member.hub_user).await?.client().await?;
    policy_is_used(&client, &member.cluster_id).await?;
    Ok(client)
}

#[test]
fn a_member_writes_its_own_id_and_no_other() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let (member, id) = (client(&fleet, &fleet.members[0]).await?, &*fleet.members[0].cluster_id);
        for (plural, make, field) in KINDS {
            let (all, one) = (path(id, plural), path(id, plural) + "/one");
            let mut own = make("one", id);
            let kind = own["kind"].as_str().unwrap_or_default().to_owned();
            let forged = send(&member, request("POST", &all), Some(&make("one", OTHER))).await?;
            is_denied(&forged, &kind, "one", id)?;
            own["metadata"]["finalizers"] = json!([]);
            is_accepted(send(&member, request("POST", &all), Some(&own)).await?)?;
            let changed = send(&member, request("PATCH", &one), Some(&naming(field, OTHER))).await?;
            is_denied(&changed, &kind, "one", id)?;
            let labels = json!({"metadata": {"labels": {"a": "b"}}});
            is_accepted(send(&member, request("PATCH", &one), Some(&labels)).await?)?;
            is_accepted(send(&member, request("DELETE", &one), None).await?)?;
        }
        // A MemberAgent has the id as its name.
        let (all, spec) =
            (path(id, "memberagents"), json!({"version": "1.2.3", "renewTime": "2026-01-01T00:00:00.250001Z"}));
        let forged = send(&member, request("POST", &all), Some(&object("MemberAgent", OTHER, spec.clone()))).await?;
        is_denied(&forged, "MemberAgent", OTHER, id)?;
        is_accepted(send(&member, request("POST", &all), Some(&object("MemberAgent", id, spec))).await?)?;
        let renewal = json!({"spec": {"renewTime": "2026-01-01T00:00:10.250001Z"}});
        is_accepted(send(&member, request("PATCH", &format!("{all}/{id}")), Some(&renewal)).await?)?;
        Ok(())
    })
}

#[test]
fn an_object_from_before_the_policy_can_be_changed_finalized_and_deleted_but_not_forged_again() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let (member, id) = (client(&fleet, &fleet.members[0]).await?, &*fleet.members[0].cluster_id);
        let hub_agent = fleet.hub.access(HUB_AGENT).await?.client().await?;
        for (plural, make, field) in KINDS {
            let (all, one) = (path(id, plural), path(id, plural) + "/one");
            // An administrator is exempt from the policy, so this object is like one from before the policy.
            let made = is_accepted(send(&fleet.hub.admin(), request("POST", &all), Some(&make("one", OTHER))).await?)?;
            let kind = made["kind"].as_str().unwrap_or_default().to_owned();
            let patched =
                async |client: &kube::Client, patch: Value| send(client, request("PATCH", &one), Some(&patch)).await;
            is_accepted(patched(&member, json!({"metadata": {"labels": {"a": "b"}}})).await?)?;
            let finalizers = json!({"metadata": {"finalizers": ["example.com/test", "example.com/hub"]}});
            is_accepted(patched(&hub_agent, finalizers).await?)?;
            if plural != "endpointsliceexports" {
                let status = request("PATCH", &format!("{one}/status"));
                is_accepted(send(&hub_agent, status, Some(&json!({"status": {}}))).await?)?;
            }
            let third = patched(&member, naming(field, "a-third-member")).await?;
            ensure!(third.status == 403 && third.message().contains("names the cluster a-third-member"), "{third:?}");
            is_accepted(send(&member, request("DELETE", &one), None).await?)?;
            is_accepted(patched(&hub_agent, json!({"metadata": {"finalizers": ["example.com/test"]}})).await?)?;
            is_accepted(patched(&member, json!({"metadata": {"finalizers": []}})).await?)?;
            let gone = send(&fleet.hub.admin(), request("GET", &one), None).await?;
            ensure!(gone.status == 404, "{gone:?}");

            // The member may also correct the id, and then not forge it again.
            is_accepted(send(&fleet.hub.admin(), request("POST", &all), Some(&make("one", OTHER))).await?)?;
            is_accepted(patched(&member, naming(field, id)).await?)?;
            is_denied(&patched(&member, naming(field, OTHER)).await?, &kind, "one", id)?;
        }
        Ok(())
    })
}

/// Sends a merge patch of an object.
async fn patched(client: &kube::Client, path: &str, patch: Value) -> anyhow::Result<Answer> {
    send(client, request("PATCH", path), Some(&patch)).await
}

fn is_refused(answer: &Answer, why: &str) -> anyhow::Result<()> {
    let by =
        "ValidatingAdmissionPolicy 'fleetnet-member-objects' with binding 'fleetnet-member-objects' denied request: ";
    let is_denied = answer.status == 403 && answer.body["reason"] == "Forbidden";
    ensure!(
        is_denied && answer.message().contains(by) && answer.message().contains(why),
        "{answer:?}\nexpected: {why}"
    );
    Ok(())
}

/// Returns a reference to the member namespace as an owner. An owner that does not exist would make the garbage
/// collector delete the object.
async fn namespace_as_owner(fleet: &Fleet, id: &str) -> anyhow::Result<Value> {
    let name = format!("fleet-member-{id}");
    let namespace = request("GET", &format!("/api/v1/namespaces/{name}"));
    let namespace = is_accepted(send(&fleet.hub.admin(), namespace, None).await?)?;
    Ok(json!({"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": namespace["metadata"]["uid"]}))
}

/// Rule T55: A member writes an object with more than 8 annotations, 8 labels or 4 finalizers, with an annotation of
/// more than 1,024 characters, or with an owner
/// Then: The policy `fleetnet-member-objects` denies the write. An update of an object that had as many before is
/// allowed
#[test]
fn members_and_the_hub_agent_do_not_change_each_others_objects_and_metadata_is_bounded() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let (member, id) = (client(&fleet, &fleet.members[0]).await?, &*fleet.members[0].cluster_id);
        let hub_agent = fleet.hub.access(HUB_AGENT).await?.client().await?;
        let stamp = "networking.fleet.azure.com/ports-offered-since";
        // The policy about ids is used before this one is, perhaps.
        let exports = path(id, "internalserviceexports");
        let probe = async || {
            let mut forged = export("probe", id);
            forged["metadata"]["annotations"] = json!({stamp: "x"});
            send(&member, request("POST", &format!("{exports}?dryRun=All")), Some(&forged)).await
        };
        until("the policy is not used", |it| it.message().contains("which the hub agent writes"), probe).await?;

        // What the hub agent writes.
        let mut given = slice("one", id);
        given["kind"] = "EndpointSliceImport".into();
        let (all, one) = (path(id, "endpointsliceimports"), path(id, "endpointsliceimports") + "/one");
        is_accepted(send(&hub_agent, request("POST", &all), Some(&given)).await?)?;
        is_refused(&patched(&member, &one, json!({"spec": {"endpoints": []}})).await?, "which the hub agent writes")?;
        let observed = json!({"networking.fleet.azure.com/last-observed-generation": "3"});
        is_accepted(patched(&member, &one, json!({"metadata": {"annotations": observed}})).await?)?;
        is_accepted(patched(&hub_agent, &one, json!({"spec": {"endpoints": []}})).await?)?;
        is_accepted(patched(&member, &one, json!({"metadata": {"finalizers": []}})).await?)?;

        // What the member writes.
        let one = exports.clone() + "/one";
        is_accepted(send(&member, request("POST", &exports), Some(&export("one", id))).await?)?;
        let stamped = json!({"metadata": {"annotations": {stamp: "since"}}});
        is_refused(&patched(&member, &one, stamped.clone()).await?, "ports-offered-since")?;
        is_accepted(patched(&hub_agent, &one, stamped).await?)?;
        for forged in [json!("earlier"), Value::Null] {
            let forged = json!({"metadata": {"annotations": {stamp: forged}}});
            is_refused(&patched(&member, &one, forged).await?, "ports-offered-since")?;
        }
        let ports = json!({"spec": {"ports": [{"name": "http", "port": 81, "protocol": "TCP"}]}});
        is_refused(&patched(&hub_agent, &one, ports.clone()).await?, "which the member writes")?;
        is_accepted(patched(&member, &one, ports).await?)?;

        // Metadata of a member's objects.
        let many = |number: usize| -> Value { (0..number).map(|index| (format!("a{index}"), json!("b"))).collect() };
        let owner = json!([namespace_as_owner(&fleet, id).await?]);
        let finalizers: Vec<String> = (0..5).map(|index| format!("example.com/{index}")).collect();
        for (metadata, why) in [
            (json!({"annotations": many(9)}), "at most 8 annotations"),
            (json!({"annotations": {"a": "b".repeat(1_025)}}), "at most 1024 characters"),
            (json!({"labels": many(9)}), "at most 8 labels"),
            (json!({"finalizers": finalizers}), "at most 4 finalizers"),
            (json!({"ownerReferences": owner}), "must not have an owner"),
        ] {
            is_refused(&patched(&member, &one, json!({"metadata": metadata})).await?, why)?;
            let mut made = export("two", id);
            for (key, value) in metadata.as_object().into_iter().flatten() {
                made["metadata"][key] = value.clone();
            }
            is_refused(&send(&member, request("POST", &exports), Some(&made)).await?, why)?;
            // An object from before the policy can still be finalized.
            is_accepted(patched(&fleet.hub.admin(), &one, json!({"metadata": metadata})).await?)?;
            is_accepted(patched(&member, &one, json!({"spec": {"type": "ClusterIP"}})).await?)?;
            let nothing = json!({"annotations": null, "labels": null, "finalizers": null, "ownerReferences": null});
            is_accepted(patched(&fleet.hub.admin(), &one, json!({"metadata": nothing})).await?)?;
        }
        is_accepted(send(&member, request("DELETE", &one), None).await?)?;
        Ok(())
    })
}

#[test]
fn agents_use_and_withdraw_an_export_from_before_the_policy_with_no_denied_write() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let member = &fleet.members[0];
        drop(client(&fleet, member).await?);
        let namespace = fleet.namespace("work").await?;
        let name = format!("{namespace}-app");
        let user = User::new(member.control_plane.admin(), &namespace);
        user.export_new("app", &["10.1.0.1"]).await?;
        let mut old = export(&name, OTHER);
        old["metadata"]["finalizers"] = json!([]);
        for (field, value) in
            [("namespace", &*namespace), ("name", "app"), ("namespacedName", &format!("{namespace}/app"))]
        {
            old["spec"]["serviceReference"][field] = json!(value);
        }
        let all = path(&member.cluster_id, "internalserviceexports");
        is_accepted(send(&fleet.hub.admin(), request("POST", &all), Some(&old)).await?)?;

        let mark = fleet.hub.audit().mark().await?;
        let hub_agent = fleet.hub_agent().await?.start_ready().await?;
        let member_agent = fleet.member_agent(member).await?.start_ready().await?;
        user.sees_export("app", "Conflict", "False", "NoConflictFound").await?;
        let exports: Api<InternalServiceExport> = Api::namespaced(fleet.hub.admin(), &member.hub_namespace);
        let what = "the export names its member";
        let id = &*member.cluster_id;
        eventually::object(&exports, &name, what, |it| it.spec.service_reference.cluster_id == id).await?;
        user.delete::<ServiceExport>("app").await?;
        eventually::gone(&exports, &name).await?;
        let writes = fleet.hub.audit().since(mark).await?;
        ensure!(writes.0.iter().all(|write| write.status != 403), "{writes}");
        drop((hub_agent, member_agent));
        Ok(())
    })
}

#[test]
fn an_agent_with_another_id_than_its_namespace_shows_the_message_of_the_policy() -> anyhow::Result<()> {
    harness::run(async {
        let fleet = Fleet::take(1).await?;
        let member = &fleet.members[0];
        drop(client(&fleet, member).await?);
        let namespace = fleet.namespace("work").await?;
        let user = User::new(member.control_plane.admin(), &namespace);
        user.export_new("app", &["10.1.0.1"]).await?;
        let spec = fleet.member_agent(member).await?.variable("MEMBER_CLUSTER_NAME", OTHER);
        let agent = spec.flag("--hub-namespace", &member.hub_namespace).start().await?;
        let why = format!("names the cluster {OTHER}, but this namespace belongs to the member {}", member.cluster_id);
        let is_about = |line: &str| line.contains("a write was denied") && line.contains(&why);
        agent.log().find("a denied write", |line| is_about(line).then_some(())).await?;
        user.sees_event("ServiceExport", "WriteDenied", &why).await?;
        Ok(())
    })
}
