#!/usr/bin/env bash
# Builds what is published for the processor of this machine, in target/dist: a tarball and a package for Debian with the
# command (every feature, the objects for the kernel inside, no shared library), the Python wheel, a bill of materials and
# SHA256SUMS. Needs what `make kernel` needs; installs cargo-deb and cargo-cyclonedx in target/tools.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/needs.sh
needs=(cc:build-essential pkg-config:pkg-config clang:clang /usr/include/gelf.h:libelf-dev /usr/include/zlib.h:zlib1g-dev dpkg-deb:dpkg)
# Before the long build, not after it. Debian's python3 has no venv of its own, and images of Rust have no more than that.
python3 -c 'import ensurepip, venv' 2>/dev/null || needs+=(python3-venv:python3-venv)
install_missing "${needs[@]}"
# In a container the repository may belong to another user, whose repositories git does not read.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$PWD
target=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
out=$PWD/target/dist
rm -rf "$out" && mkdir -p "$out"

# Where libelf.a and libz.a are, for the binary and for the build script that compiles the objects.
LIBBPF_SYS_LIBRARY_PATH=$(realpath "$(dirname "$(cc -print-file-name=libelf.a)")")
export LIBBPF_SYS_LIBRARY_PATH
RUSTFLAGS=-Ctarget-feature=+crt-static bash ci/release.sh --target "$target" --features quic,sweep,kernel,static
built=target/$target/published
slowstart=$built/slowstart
strip "$slowstart"

# crates/cli/Cargo.toml names them by this place.
files=target/package
rm -rf "$files" && mkdir -p "$files/units"
"$slowstart" man "$files/man" >/dev/null
gzip -9n "$files"/man/*
for shell in bash zsh fish; do "$slowstart" completions "$shell" >"$files/slowstart.$shell"; done
packaged() { sed -e 's#/usr/local/bin/#/usr/bin/#g' "$1"; } # where the package puts the command
packaged contrib/slowstart-select.conf >"$files/slowstart-select.conf"
for unit in kernel trial; do
  # Comments of installation concern those who have no package.
  packaged "contrib/slowstart-$unit.service" | sed -e '/^#/d' >"$files/units/slowstart-$unit.service"
  cp "contrib/debian/slowstart-$unit.default" "$files/slowstart-$unit"
done
cp contrib/debian/prerm "$files/units/"

name=slowstart-$version-$target
mkdir "$out/$name" "$out/$name"/{man,completions,contrib}
cp "$slowstart" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE contrib/debian/copyright "$out/$name/"
cp "$files"/man/* "$out/$name/man/"
cp "$files"/slowstart.* "$out/$name/completions/"
cp contrib/slowstart-* "$out/$name/contrib/"
# The same sources give the same bytes.
when=$(git log -1 --format=%ct)
tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$when" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
rm -r "${out:?}/$name"

PATH=$PWD/target/tools/bin:$PATH
cargo deb --version >/dev/null 2>&1 || cargo install --quiet --locked --root target/tools cargo-deb
SOURCE_DATE_EPOCH=$when cargo deb --quiet --locked -p slowstart-cli --no-build --no-strip --target "$target" \
  --profile published --output "$out/"

bash ci/python.sh wheel >/dev/null
cp target/python/wheels/*.whl "$out/"
cargo cyclonedx --version >/dev/null 2>&1 || cargo install --quiet --locked --root target/tools cargo-cyclonedx
bash ci/sbom.sh --features quic,sweep,kernel,static
cp target/sbom/slowstart.cdx.json "$out/"
(cd "$out" && sha256sum -- * >SHA256SUMS && ls -l)
