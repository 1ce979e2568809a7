# Short names for what is done often; everything real is in `cargo xtask`.

# The list of these.
default:
    @just --list

# What CI runs.
ci:
    .ci/run

# All tests.
test:
    cargo xtask test

# The tests that need no control plane.
fast:
    cargo xtask test --fast

# Formats and lints.
lint:
    cargo fmt
    cargo clippy --workspace --all-targets -- -D warnings
    cargo xtask tidy

# A fleet to watch; `just sandbox --help` says what else it can do.
sandbox *arguments:
    cargo run --quiet --release -p fleetnet -- sandbox {{arguments}}

# Writes deploy/crds.
crds:
    cargo xtask crds

# Writes docs/reference.
reference:
    cargo xtask reference

# Keeps a control plane to look around in; it says where its kubeconfig is.
control-plane:
    cargo run --quiet --bin fleetnet-control-plane
