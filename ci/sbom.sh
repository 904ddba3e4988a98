#!/usr/bin/env bash
# Writes the bill of materials of the command (CycloneDX, JSON) to target/sbom/slowstart.cdx.json. Needs cargo-cyclonedx.
# Arguments are passed to it, for example `--features quic,kernel`.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo cyclonedx --version >/dev/null 2>&1 ||
  { echo "missing: cargo-cyclonedx; install with: cargo install cargo-cyclonedx --locked" >&2; exit 1; }

# It writes one file for each crate of the workspace, beside its manifest.
name=slowstart.cdx
remove() { find crates python -maxdepth 2 -name "$name.json" -delete; }
trap remove EXIT
cargo cyclonedx --format json --spec-version 1.5 --target all --manifest-path crates/cli/Cargo.toml \
  --override-filename "$name" "$@"
mkdir -p target/sbom
# Packages of the workspace are named by their folders.
sed "s#file://$PWD#file:///slowstart#g" "crates/cli/$name.json" >"target/sbom/$name.json"
