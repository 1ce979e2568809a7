//! Tests of kubectl's verbs on ConfigMaps and Services.

use super::cluster::Cluster;
use anyhow::ensure;
use harness::run;

const CONF: &str =
    r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}}"#;
const CONF_CHANGED: &str =
    r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"a": "1", "c": "3"}}"#;

const WEB: &str = "
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{name: http, port: 80}]}
";
const BAD: &str = "
apiVersion: v1
kind: Service
metadata: {name: bad}
spec: {ports: [{port: 99999, targetPort: 80}], colour: green}
";

const EXISTS: &str =
    "Error from server (AlreadyExists): error when creating \"STDIN\": configmaps \"conf\" already exists\n";
const MISSING: &str = "Error from server (NotFound): error when replacing \"STDIN\": configmaps \"conf\" not found\n";

#[test]
fn a_config_map_is_created_read_patched_replaced_and_deleted() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        cluster
            .walk(&[
                ("create -f -", CONF, 0, "configmap/conf created\n"),
                ("create -f -", CONF, 1, EXISTS),
                ("get cm conf -o jsonpath={.data}", "", 0, r#"{"a":"1","b":"2"}"#),
                ("get configmaps -o name", "", 0, "configmap/conf\n"),
                (r#"patch cm conf --type merge -p {"data":{"b":null,"c":"3"}}"#, "", 0, "configmap/conf patched\n"),
                (
                    r#"patch cm conf --type=json -p [{"op":"replace","path":"/data/a","value":"9"}]"#,
                    "",
                    0,
                    "configmap/conf patched\n",
                ),
                (r#"patch cm conf --type strategic -p {"data":{"d":"4"}}"#, "", 0, "configmap/conf patched\n"),
                (r#"patch cm conf --type merge -p {"data":{"d":"4"}}"#, "", 0, "configmap/conf patched (no change)\n"),
                ("get cm conf -o jsonpath={.data}", "", 0, r#"{"a":"9","c":"3","d":"4"}"#),
                ("replace -f -", CONF, 0, "configmap/conf replaced\n"),
                ("get cm conf -o jsonpath={.data}", "", 0, r#"{"a":"1","b":"2"}"#),
                ("label cm conf tier=web", "", 0, "configmap/conf labeled\n"),
                ("get cm -l tier=web -o name", "", 0, "configmap/conf\n"),
                ("get cm -l tier!=web -o name", "", 0, ""),
                ("get cm --field-selector metadata.name=conf -o name", "", 0, "configmap/conf\n"),
                ("delete cm conf", "", 0, "configmap \"conf\" deleted from default namespace\n"),
                ("get cm conf", "", 1, "Error from server (NotFound): configmaps \"conf\" not found\n"),
                ("replace -f -", CONF, 1, MISSING),
                ("delete cm conf", "", 1, "Error from server (NotFound): configmaps \"conf\" not found\n"),
            ])
            .await
    })
}

#[test]
fn client_side_apply_creates_changes_and_removes_fields_that_are_no_longer_set() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        cluster
            .walk(&[
                ("apply -f -", CONF, 0, "configmap/conf created\n"),
                ("apply -f -", CONF, 0, "configmap/conf unchanged\n"),
                (r#"patch cm conf --type merge -p {"data":{"other":"kept"}}"#, "", 0, "configmap/conf patched\n"),
                ("apply -f -", CONF_CHANGED, 0, "configmap/conf configured\n"),
                ("get cm conf -o jsonpath={.data}", "", 0, r#"{"a":"1","c":"3","other":"kept"}"#),
                ("apply -f - --dry-run=server", CONF, 0, "configmap/conf configured (server dry run)\n"),
                ("get cm conf -o jsonpath={.data}", "", 0, r#"{"a":"1","c":"3","other":"kept"}"#),
                ("delete -f -", CONF, 0, "configmap \"conf\" deleted from default namespace\n"),
            ])
            .await
    })
}

/// Test of `kubectl create` with flags. kubectl sends these objects as protobuf, which the server does not decode.
#[test]
fn create_with_flags_is_rejected_with_the_remedy() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        let rejected = cluster.run("create configmap conf --from-literal=a=1", "").await?;
        ensure!(rejected.code == 1 && rejected.err.contains("--dry-run=client -o yaml"), "{rejected:?}");
        let object = cluster.print("create configmap conf --from-literal=a=1 --dry-run=client -o yaml").await?;
        cluster
            .walk(&[
                ("apply -f -", &object, 0, "configmap/conf created\n"),
                ("get cm conf -o jsonpath={.data}", "", 0, r#"{"a":"1"}"#),
            ])
            .await
    })
}

#[test]
fn a_bad_service_is_rejected_with_the_reason() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        let unknown = "Error from server (BadRequest): error when creating \"STDIN\": Service in version \"v1\" \
                       cannot be handled as a Service: strict decoding error: unknown field \"spec.colour\"\n";
        let invalid = "The Service \"bad\" is invalid: spec.ports[0].port: Invalid value: 99999: must be between 1 and \
                       65535, inclusive\n";
        cluster
            .walk(&[
                ("create -f -", BAD, 1, unknown),
                ("apply -f -", BAD, 1, unknown),
                ("create -f - --validate=false", BAD, 1, invalid),
                ("apply -f - --validate=ignore", BAD, 1, invalid),
            ])
            .await?;
        let warned = cluster.run("create -f - --validate=warn", &BAD.replace("99999", "80")).await?;
        ensure!((warned.code, warned.out.as_str()) == (0, "service/bad created\n"), "{warned:?}");
        ensure!(warned.err == "Warning: unknown field \"spec.colour\"\n", "{warned:?}");
        Ok(())
    })
}

/// Words of each line of a table, without the ages, which depend on kubectl's wall clock.
fn cells(table: &str) -> Vec<Vec<&str>> {
    let is_age = |word: &&str| word.ends_with('s') && word.len() < 5;
    table.lines().map(|line| line.split_whitespace().filter(|word| !is_age(word)).collect()).collect()
}

#[test]
fn get_prints_the_columns_of_each_kind_and_describe_the_fields() -> anyhow::Result<()> {
    run(async {
        let cluster = Cluster::start().await?;
        let nothing = cluster.run("get cm", "").await?;
        ensure!(
            (nothing.code, nothing.err.as_str()) == (0, "No resources found in default namespace.\n"),
            "{nothing:?}"
        );
        cluster
            .walk(&[
                ("create -f -", CONF, 0, "configmap/conf created\n"),
                ("create -f -", WEB, 0, "service/web created\n"),
                (
                    "get cm,svc -o custom-columns=IT:.metadata.name,PORT:.spec.ports[0].port",
                    "",
                    0,
                    "IT     PORT\nconf   <none>\nweb    80\n",
                ),
            ])
            .await?;
        let address = cluster.print("get svc web -o jsonpath={.spec.clusterIP}").await?;
        let table = cluster.print("get cm,svc").await?;
        let expected = vec![
            vec!["NAME", "AGE"],
            vec!["configmap/conf"],
            vec![],
            vec!["NAME", "TYPE", "CLUSTER-IP", "PORT(S)", "AGE"],
            vec!["service/web", "ClusterIP", &address, "80"],
        ];
        ensure!(cells(&table) == expected, "{table}");
        let selected = cluster.run("get svc -l tier=none", "").await?;
        ensure!((selected.code, selected.out.as_str()) == (0, ""), "{selected:?}");
        let description = cluster.print("describe svc web").await?;
        ensure!(description.contains("TargetPort:               80/TCP"), "{description}");
        Ok(())
    })
}
