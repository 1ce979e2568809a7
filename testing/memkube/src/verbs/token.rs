//! The verb create of `serviceaccounts/token` (`TokenRequest`).

use super::Work;
use super::options::WriteOptions;
use crate::auth::AUDIENCE;
use crate::issuer::Account;
use crate::limits::{TOKEN_SECONDS, TOKEN_SECONDS_MIN};
use crate::object::Object;
use crate::object::create::timestamp;
use crate::service::Reply;
use crate::status::{FieldError, Named, Status};
use jiff::SignedDuration;
use serde_json::{Value, json};

const GROUP: &str = "authentication.k8s.io";

impl Work<'_> {
    /// Issues a token for a ServiceAccount.
    pub(super) fn issue_token(&mut self) -> Result<Reply, Status> {
        WriteOptions::of(self.request, "CreateOptions")?;
        let name = &*self.request.call.target.name;
        let account = self.there(name).ok_or_else(|| Status::not_found(self.request.named(name)))?;
        let mut request = self.parse_object()?;
        let seconds = seconds(&request)?;
        let audiences = request.get("spec").map(|spec| spec["audiences"].clone()).filter(|audiences| {
            let names = audiences.as_array();
            names.is_some_and(|names| !names.is_empty() && names.iter().all(Value::is_string))
        });
        let audiences = audiences.unwrap_or_else(|| json!([AUDIENCE]));
        let namespace = self.request.namespace();
        let account = Account { namespace, name, uid: &account.header.uid };
        let token = self.state.issuer.issue(account, &audiences, seconds, self.now);
        let expires = self.now + SignedDuration::from_secs(seconds);
        request.insert("apiVersion".to_owned(), json!("authentication.k8s.io/v1"));
        request.insert("kind".to_owned(), json!("TokenRequest"));
        request.insert(
            "metadata".to_owned(),
            json!({"name": name, "namespace": namespace, "creationTimestamp": timestamp(self.now)}),
        );
        request.insert(
            "spec".to_owned(),
            json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": null}),
        );
        request.insert("status".to_owned(), json!({"token": token, "expirationTimestamp": timestamp(expires)}));
        Ok(Reply::json(201, &Value::Object(request)))
    }
}

/// Returns the requested life of a token.
fn seconds(request: &Object) -> Result<i64, Status> {
    let asked = request.get("spec").map(|spec| &spec["expirationSeconds"]).filter(|asked| !asked.is_null());
    let Some(asked) = asked else { return Ok(TOKEN_SECONDS) };
    match asked.as_i64() {
        Some(seconds) if seconds >= TOKEN_SECONDS_MIN => Ok(seconds),
        _ => {
            let why = "may not specify a duration less than 10 minutes";
            let error = FieldError::invalid("spec.expirationSeconds", asked, why);
            Err(Status::invalid(Named { group: GROUP, kind: "TokenRequest", name: "" }, &[error]))
        }
    }
}
