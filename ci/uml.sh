#!/usr/bin/env bash
# Builds a Linux kernel as a program for the engine `linux:`, and prints its path: `make uml KERNEL=6.1|6.12|PATH`.
# A number is a source package of Debian (/usr/src/linux-source-NUMBER.tar.xz, installed if this runs as root); a path is a kernel
# tree, which stays as it is. The result is in ~/.cache/slowstart/uml (SLOWSTART_CACHE names another folder), and is built once.
# HZ=250 builds a kernel with timers of 4 ms; the default is 1000.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/needs.sh
kernel=${1:?usage: ci/uml.sh 6.1|6.12|PATH}
hz=${HZ:-1000}
here=$PWD/ci/uml
cache=${SLOWSTART_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slowstart}/uml
install_missing cc:build-essential bc:bc flex:flex bison:bison xz:xz-utils /usr/include/gelf.h:libelf-dev >&2
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

if [[ $kernel == [0-9]* && ! -d $kernel ]]; then
  archive=/usr/src/linux-source-$kernel.tar.xz
  install_missing "$archive:linux-source-$kernel" >&2
  name=$(dpkg-query -f '${Version}' -W "linux-source-$kernel")
  tree=$cache/linux-source-$kernel
  out=$cache/$name-$hz
  # Left over from a version of before, or cut short.
  [[ -x $out/linux || -e $tree/.whole-$name ]] || rm -rf "$tree"
else
  [[ -f $kernel/arch/um/Makefile ]] || { echo "KERNEL=$kernel: expected 6.1, 6.12 or a kernel tree (it has arch/um/Makefile)" >&2; exit 2; }
  tree=$(cd "$kernel" && pwd)
  # Built each time: make knows what has changed.
  out=$cache/tree-$(basename "$tree")-$(cksum <<<"$tree" | cut -d ' ' -f 1)-$hz
  archive=
fi

# What is linked with it, or its settings, may have changed since.
parts=$(cat "$here"/* | cksum)
is_built() { [[ $archive && -x $out/linux && $(cat "$out/parts" 2>/dev/null) == "$parts" ]]; }

if [[ $archive && ! -d $tree ]] && ! is_built; then
  mkdir "$tree"
  tar -C "$tree" --strip-components 1 -xf "$archive"
  touch "$tree/.whole-$name"
fi
if ! is_built; then
  mkdir -p "$out"
  # ARCH=um has no choice of HZ: its default is the first that is read.
  awk -v hz="$hz" '{ print } /scripts\/Kconfig.include/ { printf "\nconfig HZ\n\tint\n\tdefault %d\n", hz }' "$tree/Kconfig" >"$out/Kconfig.hz"
  # They are no dependency that make knows.
  rm -f "$out/linux" "$out/vmlinux"
  for part in random ptrace; do
    cc -O2 -c -o "$out/$part.o" "$here/$part.c"
  done
  # The processor is shared with whoever waits for this.
  make=(nice make -s -C "$tree" O="$out" ARCH=um KBUILD_KCONFIG="$out/Kconfig.hz" KBUILD_BUILD_TIMESTAMP=1970-01-01 KBUILD_BUILD_USER=slowstart
    KBUILD_BUILD_HOST=slowstart LD_FLAGS_CMDLINE="-Wl,--wrap=getrandom,--wrap=ptrace -Wl,-z,noexecstack $out/random.o $out/ptrace.o")
  KCONFIG_ALLCONFIG=$here/config "${make[@]}" allnoconfig >&2
  while read -r line; do
    grep -qxF "$line" "$out/.config" || echo "note: this kernel has no ${line%%=*}" >&2
  done < <(grep '^CONFIG' "$here/config")
  "${make[@]}" -j "${JOBS:-$(nproc)}" linux modules_prepare >&2
  # For modules of the user's; there are none in the tree that would be built with it.
  cp "$out/vmlinux.symvers" "$out/Module.symvers"
  echo "$parts" >"$out/parts"
fi
echo "$out/linux"
