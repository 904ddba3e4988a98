#!/usr/bin/env bash
# Builds the command with the feature `kernel`. Installs the packages that this needs if it runs as root.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/needs.sh
install_missing cc:build-essential pkg-config:pkg-config clang:clang ip:iproute2 /usr/include/gelf.h:libelf-dev /usr/include/zlib.h:zlib1g-dev
cargo build --locked --release -p slowstart-cli --features kernel
mkdir -p target/bpf
newest=$(ls -td target/release/build/slowstart-linux-*/out/stock | head -1)
cp "$newest"/*.bpf.o target/bpf/
echo "target/release/slowstart kernel check; the objects for bpftool are in target/bpf"
