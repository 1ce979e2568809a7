//! Control plane for all tests that need a server but no fleet.

use super::{ControlPlane, Options};
use tokio::sync::OnceCell;

/// Users of the [`shared`] control plane. A user has no rights until a test binds a role. Each user belongs to one
/// test.
pub const SHARED_USERS: [&str; 2] = ["alice", "bob"];

/// Returns the control plane for tests that need a server but no fleet. All these tests share the control plane. The
/// namespace controller runs, so deleting a namespace also deletes the objects in it.
pub async fn shared() -> anyhow::Result<&'static ControlPlane> {
    static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
    let options = || Options {
        name: "shared".to_owned(),
        users: SHARED_USERS.map(str::to_owned).to_vec(),
        controllers: vec!["namespace-controller".to_owned()],
        ..Options::default()
    };
    SHARED.get_or_try_init(|| ControlPlane::start(options())).await
}
