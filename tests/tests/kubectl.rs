//! The real kubectl on memkube over HTTPS: each verb that is promised, on built-in kinds and on kinds of the fleet, with
//! its exit code and what it prints.

mod kubectl {
    pub(crate) mod built_in;
    pub(crate) mod cluster;
    pub(crate) mod fleet;
    pub(crate) mod following;
    pub(crate) mod server;
}
