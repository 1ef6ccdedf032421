//! Tests and examples of this crate find libsdx where it was linked.

use std::env;

fn main() {
    if let Ok(folder) = env::var("DEP_SDX_FOLDER") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder);
    }
}
