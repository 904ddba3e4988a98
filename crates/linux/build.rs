//! Compiles the objects of `src/bpf` with clang for the processor of the target: those that the loader
//! contains, and one variant of each for bpftool (`target/.../out/stock/NAME.bpf.o`; `make kernel` copies
//! them to `target/bpf`).

use libbpf_cargo::SkeletonBuilder;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// One object each; some serve several names of the registry.
const STARTUPS: [&str; 28] = [
    "standard",
    "hystart",
    "hystart_linux",
    "hystart_paper",
    "limited",
    "tsl",
    "hystart_pp",
    "search",
    "search_modules",
    "ess",
    "stopeg",
    "restricted",
    "hybla",
    "vegas",
    "capstart",
    "packet_pair",
    "adaptive",
    "delay",
    "abc",
    "smooth",
    "jump_start",
    "suss",
    "stateful",
    "careful_resume",
    "rate_bound",
    "rapid_start",
    "bbr3",
    "bbr2_quiche",
];

fn compile(source: &str, object: &Path, defines: &[&str]) {
    // libbpf-cargo adds -D__TARGET_ARCH_* for the target. Without the map, line information holds the folder
    // of the build.
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let map = format!("-ffile-prefix-map={folder}=crates/linux");
    let mut args = vec!["-O2", "-g", "-mcpu=v3", "-Wall", "-Wno-unused-function", &map];
    args.extend(defines);
    let source = format!("src/bpf/{source}.bpf.c");
    if let Err(e) = SkeletonBuilder::new().source(&source).obj(object).clang_args(args).build() {
        panic!(
            "clang cannot compile {source} (apt-get install clang libelf-dev pkg-config zlib1g-dev): {e:#}"
        );
    }
}

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let stock = out.join("stock");
    fs::create_dir_all(&stock).expect("OUT_DIR can be written");
    for name in STARTUPS {
        compile(name, &out.join(format!("{name}.bpf.o")), &[]);
        compile(name, &stock.join(format!("{name}.bpf.o")), &["-DSTOCK"]);
    }
    compile("search", &stock.join("search_2_0.bpf.o"), &["-DSTOCK", "-DTHESIS"]);
    for name in ["bbr3", "bbr2_quiche"] {
        let object = stock.join(format!("{name}_before_6_10.bpf.o"));
        compile(name, &object, &["-DSTOCK", "-DBEFORE_6_10"]);
    }
    compile("watch", &out.join("watch.bpf.o"), &[]);
    compile("open", &out.join("open.bpf.o"), &[]);
    compile("check", &out.join("check.bpf.o"), &[]);
    compile("select", &out.join("select.bpf.o"), &[]);
    compile("trial", &out.join("trial.bpf.o"), &[]);
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rustc-env=SLOWSTART_STOCK={}", stock.display());
}
