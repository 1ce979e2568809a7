//! Texts that `fleetnet join` prints without `--apply`: manifests, values of the chart, and the commands for the token.

use super::manifests::{self, ACCOUNT, TOKEN_SECRET, Token};
use super::secret;
use crate::cli::output::safe::Safe;
use diagnosis::agents::AgentNamespace;
use serde_json::{Value, json};

/// What the texts depend on.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) member: &'a str,
    /// Context of the hub in the commands.
    pub(crate) hub_context: &'a str,
    /// Context of the member in the commands.
    pub(crate) member_context: &'a str,
    /// Namespace of the member agent.
    pub(crate) agents: AgentNamespace,
    /// URL of the hub that the user named. Otherwise a command reads it from the kubeconfig.
    pub(crate) server: Option<&'a str>,
    pub(crate) token: Token,
    /// Life of the token in the command that creates it, such as `720h`.
    pub(crate) life: String,
}

/// Returns the objects for the hub as YAML documents.
pub(crate) fn hub(objects: &[Value]) -> Safe {
    let mut text = Safe::default();
    for (index, object) in objects.iter().enumerate() {
        text.push_own(if index > 0 { "---\n" } else { "" });
        text.push(&Safe::yaml(object));
    }
    text
}

/// Returns the values of the chart `fleetnet-member-agent`.
pub(crate) fn values(member: &str) -> Value {
    json!({"member": {"id": member}, "hub": {"existingSecret": secret::NAME}})
}

/// Returns the commands that make the token and the Secret of the member. No command has the token in its arguments,
/// which other users of the machine can read.
pub(crate) fn member(subject: &Subject<'_>) -> Safe {
    let (hub, member) = (quoted(subject.hub_context), quoted(subject.member_context));
    let (namespace, agents) = (manifests::namespace(subject.member), &subject.agents);
    let token = match subject.token {
        Token::Expires => {
            format!("kubectl --context {hub} -n {namespace} create token {ACCOUNT} --duration={}", subject.life)
        }
        Token::NeverExpires => {
            format!(
                "kubectl --context {hub} -n {namespace} get secret {TOKEN_SECRET} -o 'jsonpath={{.data.token}}' | base64 -d"
            )
        }
    };
    let of_hub = |field: &str| {
        format!(
            "\"$(kubectl --context {hub} config view --minify --flatten --raw -o 'jsonpath={{.clusters[0].cluster.{field}}}')\""
        )
    };
    let server = subject.server.map_or_else(|| of_hub("server"), quoted);
    let authority = of_hub("certificate-authority-data");
    Safe::block(&format!(
        "kubectl --context {member} get namespace {agents} > /dev/null 2>&1 || \
         kubectl --context {member} create namespace {agents}
token=\"$({token})\"
printf %s \"$token\" | kubectl --context {member} -n {agents} create secret generic {} \\
  --from-literal=url={server} \\
  --from-literal=certificate-authority={authority} \\
  --from-file=token=/dev/stdin
",
        secret::NAME
    ))
}

/// Returns the commands that replace the Secret of the member by one with a new token.
pub(crate) fn replace(subject: &Subject<'_>) -> Safe {
    let delete = format!(
        "kubectl --context {} -n {} delete secret {} --ignore-not-found\n",
        quoted(subject.member_context),
        subject.agents,
        secret::NAME
    );
    let mut text = Safe::block(&delete);
    text.push(&member(subject));
    text
}

/// Returns everything as one text that kubectl can apply to the hub: the rest is in comments.
pub(crate) fn all(subject: &Subject<'_>, objects: &[Value]) -> Safe {
    let (hub_context, id) = (subject.hub_context, subject.member);
    let mut text = Safe::block(&format!(
        "# Objects of the hub for the member {id}. To apply them:\n#   fleetnet join {id} | kubectl --context {} apply -f -\n",
        quoted(hub_context)
    ));
    text.push(&hub(objects));
    let values = comment(Safe::yaml(&values(id)).as_str());
    let commands = comment(member(subject).as_str());
    text.push(&Safe::block(&format!(
        "# Values of the chart fleetnet-member-agent in the cluster of {id} (fleetnet join {id} --print values):\n{values}\
         # Commands for the token and the Secret {}. They need the objects above (fleetnet join {id} --print member):\n\
         {commands}# With --apply, fleetnet does all of this itself.\n",
        secret::NAME
    )));
    text
}

/// Returns a text as comments of YAML.
fn comment(text: &str) -> String {
    text.lines().flat_map(|line| ["#   ", line, "\n"]).collect()
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(server: Option<&'static str>, token: Token) -> Subject<'static> {
        let (life, agents) = ("720h".to_owned(), AgentNamespace::default());
        Subject { member: "west", hub_context: "hub", member_context: "my west", agents, server, token, life }
    }

    #[test]
    fn the_whole_text_is_what_kubectl_applies_to_the_hub() {
        let objects = manifests::of_member("west", Token::Expires);
        let text = all(&subject(None, Token::Expires), &objects);
        let read: Vec<Value> = serde_saphyr::from_multiple(text.as_str()).unwrap();
        assert_eq!(read, objects);
        assert!(text.as_str().starts_with("# Objects of the hub for the member west."), "{text}");
        assert!(text.as_str().contains("#   member:\n#     id: west\n"), "{text}");
        assert!(!text.as_str().contains("kind: Secret"), "{text}");
    }

    #[test]
    fn commands_make_a_token_of_the_asked_life() {
        let text = member(&subject(None, Token::Expires)).to_string();
        assert!(
            text.contains(
                "token=\"$(kubectl --context hub -n fleet-member-west create token member-agent --duration=720h)\""
            ),
            "{text}"
        );
        assert!(
            text.contains("| kubectl --context 'my west' -n fleet-system create secret generic fleetnet-hub"),
            "{text}"
        );
        assert!(text.contains("\n  --from-file=token=/dev/stdin\n") && !text.contains("literal=token"), "{text}");
        let text = member(&subject(Some("https://h;rm -rf ~"), Token::NeverExpires)).to_string();
        assert!(text.contains("--from-literal=url='https://h;rm -rf ~' \\\n"), "{text}");
        assert!(text.contains("get secret member-agent-token"), "{text}");
    }

    #[test]
    fn commands_have_the_namespace_of_the_agent() {
        let subject = Subject { agents: "fabric".parse().unwrap(), ..subject(None, Token::Expires) };
        let text = replace(&subject).to_string();
        for part in [
            "kubectl --context 'my west' -n fabric delete secret fleetnet-hub --ignore-not-found\n",
            "kubectl --context 'my west' get namespace fabric > ",
            "kubectl --context 'my west' create namespace fabric\n",
            "kubectl --context 'my west' -n fabric create secret generic fleetnet-hub",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("fleet-system"), "{text}");
    }

    #[test]
    fn words_of_a_shell_are_quoted() {
        for (word, shown) in [("hub", "hub"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''"), ("$(x)", "'$(x)'")]
        {
            assert_eq!(quoted(word), shown);
        }
    }
}
