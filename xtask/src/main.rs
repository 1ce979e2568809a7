//! `cargo xtask <command>`: everything that the project does to itself.

fn main() -> anyhow::Result<()> {
    xtask::run()
}
