//! Where libsdx is: $SDX_LIB_DIR, or where the linker looks by itself. Programs find it there when they run, too.

use std::env;

fn main() {
    println!("cargo:rerun-if-env-changed=SDX_LIB_DIR");
    if let Ok(folder) = env::var("SDX_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", folder);
        println!("cargo:folder={}", folder);
    }
    println!("cargo:rustc-link-lib=dylib=sdx");
}
