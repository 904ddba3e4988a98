//! `include/slowstart.h` is what cbindgen makes of the sources. With `SLOWSTART_BLESS` set it is written.

#![allow(clippy::disallowed_methods, reason = "a test reads what it wrote")]

use std::path::Path;

/// Each with its modules.
const SOURCES: [&str; 2] = ["../abi/src/lib.rs", "src/lib.rs"];

#[test]
fn the_header_is_generated_from_the_sources() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(dir.join("cbindgen.toml")).expect("a configuration");
    let builder =
        SOURCES.iter().fold(cbindgen::Builder::new().with_config(config), |b, s| b.with_src(dir.join(s)));
    let mut made = Vec::new();
    builder.generate().expect("sources").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    let file = dir.join("include/slowstart.h");
    if std::env::var_os("SLOWSTART_BLESS").is_some() {
        std::fs::write(&file, &made).expect("the checkout is writable");
    }
    let there = std::fs::read_to_string(&file).expect("the header");
    assert!(there == made, "run SLOWSTART_BLESS=1 cargo test -p slowstart-ffi --test header");
}
