//! Tests of kubectl's verbs on kinds of the fleet: ServiceExport and MultiClusterService.

use super::cluster::Cluster;
use anyhow::ensure;
use harness::run;

const EXPORT: &str = "
apiVersion: networking.fleet.azure.com/v1beta1
kind: ServiceExport
metadata: {name: web}
";
const EXPORT_LABELLED: &str = "
apiVersion: networking.fleet.azure.com/v1beta1
kind: ServiceExport
metadata: {name: web, labels: {tier: front}}
";
const CLAIM: &str = "
apiVersion: networking.fleet.azure.com/v1alpha1
kind: MultiClusterService
metadata: {name: web}
spec: {serviceImport: {name: web}}
";
/// Patch of the status. It has no spaces, because the steps split commands at spaces.
const VALID: &str = concat!(
    r#"{"status":{"conditions":[{"type":"Valid","status":"True","reason":"ServiceIsValid","message":"","#,
    r#""lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#
);

#[test]
fn a_service_export_goes_through_every_verb() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::with_definitions().await?;
        let patch_status = format!("patch serviceexport web --subresource=status --type merge -p {VALID}");
        let name = "serviceexport.networking.fleet.azure.com/web";
        let output = |what: &str| format!("{name} {what}\n");
        cluster
            .walk(&[
                ("apply -f -", EXPORT, 0, &output("created")),
                ("apply -f -", EXPORT, 0, &output("unchanged")),
                ("get svcexport -o name", "", 0, &format!("{name}\n")),
                ("apply -f -", EXPORT_LABELLED, 0, &output("configured")),
                ("get serviceexports -l tier=front -o name", "", 0, &format!("{name}\n")),
                ("apply -f -", EXPORT, 0, &output("configured")),
                ("get serviceexports -l tier=front -o name", "", 0, ""),
                (&patch_status, "", 0, &output("patched")),
                ("wait --for=condition=Valid serviceexport/web --timeout=30s", "", 0, &output("condition met")),
                (
                    r#"patch svcexport web --type json -p [{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]"#,
                    "",
                    0,
                    &output("patched"),
                ),
                ("replace -f -", EXPORT_LABELLED, 0, &output("replaced")),
                // `kubectl replace` does not change the status.
                (
                    "get svcexport web -o jsonpath={.metadata.labels}:{.status.conditions[0].reason}",
                    "",
                    0,
                    r#"{"tier":"front"}:ServiceIsValid"#,
                ),
                (
                    "delete svcexport web",
                    "",
                    0,
                    "serviceexport.networking.fleet.azure.com \"web\" deleted from default namespace\n",
                ),
                (
                    "get svcexport web",
                    "",
                    1,
                    "Error from server (NotFound): serviceexports.networking.fleet.azure.com \"web\" not found\n",
                ),
            ])
            .await
    })
}

/// Returns kubectl's output for a MultiClusterService with one bad field. In this case the server cannot check the
/// kind's CEL rules, and the output says so.
fn invalid(field: &str) -> String {
    format!(
        "The MultiClusterService \"web\" is invalid: \n* {field}\n* <nil>: Invalid value: null: some validation rules \
         were not checked because the object was invalid\n"
    )
}

#[test]
fn a_bad_multi_cluster_service_is_rejected_with_the_reason() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::with_definitions().await?;
        let unnamed = CLAIM.replace("{name: web}}", "{}}");
        let unknown = CLAIM.replace("spec: {", "spec: {colour: green, ");
        let typed = CLAIM.replace("spec: {", "spec: {type: NodePort, ");
        let without_name = invalid("spec.serviceImport.name: Required value");
        let with_colour = "Error from server (BadRequest): error when creating \"STDIN\": MultiClusterService in \
                           version \"v1alpha1\" cannot be handled as a MultiClusterService: strict decoding error: \
                           unknown field \"spec.colour\"\n";
        let of_no_type =
            invalid("spec.type: Unsupported value: \"NodePort\": supported values: \"LoadBalancer\", \"ClusterIP\"");
        let of_a_number = invalid(
            "spec.serviceImport.name: Invalid value: \"integer\": spec.serviceImport.name in body must be of type \
             string: \"integer\"",
        );
        let name = "multiclusterservice.networking.fleet.azure.com";
        let output = |what: &str| format!("{name}/web {what}\n");
        let deleted = format!("{name} \"web\" deleted from default namespace\n");
        cluster
            .walk(&[
                ("create -f -", &unnamed, 1, &without_name),
                ("create -f -", &unknown, 1, with_colour),
                ("apply -f -", &typed, 1, &of_no_type),
                ("get mcs -o name", "", 0, ""),
                ("apply -f -", CLAIM, 0, &output("created")),
                (r#"patch mcs web --type merge -p {"spec":{"serviceImport":{"name":7}}}"#, "", 1, &of_a_number),
                (r#"patch mcs web --type merge -p {"spec":{"type":"ClusterIP"}}"#, "", 0, &output("patched")),
                ("get mcs web -o jsonpath={.spec}", "", 0, r#"{"serviceImport":{"name":"web"},"type":"ClusterIP"}"#),
                ("delete -f -", CLAIM, 0, &deleted),
            ])
            .await
    })
}

#[test]
fn the_kinds_are_listed_and_explained_as_their_definitions_say() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::with_definitions().await?;
        let table = cluster.print("api-resources --api-group=networking.fleet.azure.com --no-headers").await?;
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        let export = ["serviceexports", "svcexport", "networking.fleet.azure.com/v1beta1", "true", "ServiceExport"];
        let kinds = fleetnet_api::crds::all(fleetnet_api::crds::Form::Full).len();
        ensure!(lines.len() == kinds && lines.iter().any(|line| line == &export), "{table}");
        let explained = cluster.print("explain mcs.spec.serviceImport").await?;
        let expected = "GROUP:      networking.fleet.azure.com
KIND:       MultiClusterService
VERSION:    v1alpha1

FIELD: serviceImport <Object>


DESCRIPTION:
    Service to import, by its name in this namespace in the clusters that export
    it.
   \x20
FIELDS:
  name\t<string> -required-
    Name of the Service.


";
        ensure!(explained == expected, "{explained}");
        let whole = cluster.print("explain serviceexports --recursive").await?;
        ensure!(whole.contains("      lastTransitionTime\t<string> -required-\n"), "{whole}");
        let nothing = cluster.run("explain mcs.spec.nothing", "").await?;
        ensure!(
            (nothing.code, nothing.err.as_str()) == (1, "error: field \"nothing\" does not exist\n"),
            "{nothing:?}"
        );
        Ok(())
    })
}
