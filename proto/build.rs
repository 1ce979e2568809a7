//! Generates the messages and the service of `fleetnet/v1/slice_stream.proto`. protox compiles the file, so no `protoc`
//! is needed.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

const FILE: &str = "fleetnet/v1/slice_stream.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={FILE}");
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_source_info(true).include_imports(true).open_file(FILE)?;
    let descriptors = compiler.encode_file_descriptor_set();
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("slice_stream.binpb"), descriptors)?;
    tonic_prost_build::configure().compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}
