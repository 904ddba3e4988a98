#!/usr/bin/env bash
# Installs the Rust that Cargo.toml states, with these further options of rustup, and makes it the default: for the workflows.
# A file rust-toolchain.toml would do that on every machine, also where another compiler is there and will do.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
rustup toolchain install "$version" --profile minimal "$@"
rustup default "$version"
