//! Binds the engine for a browser to JavaScript: `slowstart-bindgen ENGINE FOLDER` writes `engine.js` and
//! `engine_bg.wasm` from `ENGINE`, a module that Cargo built for `wasm32-unknown-unknown`.
//!
//! It is the library behind the command `wasm-bindgen`. That must have the version of the engine's crate
//! `wasm-bindgen`, which `Cargo.lock` gives to both here.

use std::process::ExitCode;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let [engine, folder] = args.as_slice() else {
        eprintln!("usage: slowstart-bindgen ENGINE FOLDER");
        return ExitCode::from(2);
    };
    let bound = Bindgen::new()
        .input_path(engine)
        .out_name("engine")
        .typescript(false)
        .omit_default_module_path(false)
        .web(true)
        .and_then(|b| b.generate(folder));
    match bound {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}
