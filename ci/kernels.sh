#!/usr/bin/env bash
# Runs the kernel tests on Debian's kernels, booted by qemu in software: `make test-kernels [SUITES="bookworm .."]`.
# Kernels are fetched as Debian packages into target/kernels (ci/debian.sh). On a kernel of your own, for x86-64:
# `KERNEL=.../arch/x86/boot/bzImage [MODULES=DIR] ci/kernels.sh`, where DIR is INSTALL_MOD_PATH of `make modules_install`.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
. ci/needs.sh
. ci/debian.sh
install_missing qemu-system-x86_64:qemu-system-x86 /bin/busybox:busybox-static cpio:cpio xz:xz-utils ip:iproute2 \
  bpftool:bpftool clang:clang pkg-config:pkg-config strip:binutils /usr/include/gelf.h:libelf-dev /usr/include/zlib.h:zlib1g-dev \
  /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring

# 6.1, 6.12 and the newest 7.x.
suites=${SUITES:-bookworm bookworm-backports trixie-backports}
built=$(cargo test --locked -p slowstart-linux --test kernel --test qdisc --test emulate --no-run --message-format=json)
executable() { # TEST
  sed -nE 's/.*"name":"'"$1"'".*"executable":"([^"]+)".*/\1/p' <<<"$built" | tail -1
}
tests=(kernel qdisc emulate)
command=$(cargo build --locked -p slowstart-cli --features kernel --message-format=json |
  sed -nE 's/.*"name":"slowstart".*"executable":"([^"]+)".*/\1/p' | tail -1)
# The directory of the objects for bpftool, which the tests read.
stock=$(sed -nE 's/.*\["SLOWSTART_STOCK","([^"]+)"\].*/\1/p' <<<"$built" | tail -1)

# Fetches the newest kernel of a suite; prints the directory that it is unpacked in.
fetch() { # SUITE
  local root=target/kernels/$1 apt real name file
  use_suite "$1"
  # linux-image-cloud-amd64 depends on the newest kernel; newer kernels have image and modules in separate packages.
  real=$(apt-cache "${apt[@]}" depends linux-image-cloud-amd64 | sed -nE 's/.*Depends: (linux-image-[0-9].*)/\1/p' | head -1)
  rm -rf "$root/unpacked"
  mkdir "$root/unpacked"
  for name in "$real" $(apt-cache "${apt[@]}" depends "$real" |
    sed -nE 's/.*Depends: (linux-(binary|modules)-[0-9].*)/\1/p' | sort -u); do
    file=$(package "$root" "$name")
    dpkg-deb -x "$file" "$root/unpacked"
  done
  echo "$root/unpacked"
}

# Packs the initrd: busybox, ip, tc, bpftool and its objects, the tests and the modules that they need.
pack() { # UNPACKED OUT
  local dir lib file name
  dir=$(mktemp -d)
  chmod 755 "$dir" # the root directory, which the user nobody must be able to enter
  mkdir -p "$dir"/{bin,proc,sys,dev,tmp,run,t}
  cp /bin/busybox "$dir/bin/"
  for file in sh mount mkdir insmod poweroff echo cat; do ln -s busybox "$dir/bin/$file"; done
  cp -L "$(command -v ip)" "$(command -v ss)" "$(command -v tc)" "$(command -v bpftool)" "$dir/bin/"
  mkdir -p "$dir$stock"
  cp "$stock"/*.o "$dir$stock/"
  for file in "${tests[@]}"; do strip -o "$dir/t/$file" "$(executable "$file")"; done
  strip -o "$dir/t/slowstart" "$command"
  for lib in $(ldd "$dir"/bin/{ip,ss,tc,bpftool} "$dir/t/slowstart" "${tests[@]/#/$dir/t/}" | grep -oE '/[^ ]+\.so[^ ]*' | sort -u); do
    mkdir -p "$dir$(dirname "$lib")"
    cp -nL "$lib" "$dir$lib"
  done
  # What a kernel lacks here is built into it, or its test is skipped.
  for name in veth sch_htb sch_codel sch_fq_codel sch_pie sch_red sch_netem tun; do
    file=$(find "$1" -name "$name.ko*" | head -1)
    case $file in
      *.xz) xz -dc "$file" >"$dir/t/$name.ko" ;;
      ?*) cp "$file" "$dir/t/$name.ko" ;;
    esac
  done
  cat >"$dir/init" <<'INIT'
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 none /sys/fs/cgroup
for file in /t/*.ko; do insmod $file; done
cd /tmp
/t/slowstart kernel check
echo "the check ended with status $?"
/t/kernel --test-threads 1 --skip systemd --skip a_thousand --show-output
echo "the tests ended with status $?"
/t/qdisc --test-threads 1 --show-output
echo "the tests of disciplines ended with status $?"
/t/emulate --test-threads 1 --show-output sender_learns
echo "the tests of marks ended with status $?"
poweroff -f
INIT
  chmod +x "$dir/init"
  (cd "$dir" && find . | cpio -o -H newc --quiet | gzip -1) >"$2"
  rm -rf "$dir"
}

# The release of an image, which its header tells the place of.
release() { # IMAGE
  local at
  at=$(od -An -tu2 -j $((0x20e)) -N 2 "$1")
  tail -c +$((at + 0x200 + 1)) "$1" | head -c 80 | tr '\0' ' ' | cut -d' ' -f1 || true
}

failed=0
# Boots an image and runs the tests in it; UNPACKED has its modules.
run() { # IMAGE UNPACKED DIR
  local name cpu=max
  name=$(release "$1")
  echo "== $name"
  mkdir -p "$3"
  pack "$2" "$3/initrd"
  # qemu 7.2 emulates cmpxchg16b wrongly, so 6.12 does not boot with it; 7.x needs it for socket storage.
  ((${name%%.*} >= 7)) || cpu=max,-cx16
  timeout "${PATIENCE:-900}" qemu-system-x86_64 -M pc,accel=tcg -cpu "$cpu" -m 2048 -smp 2 -nodefaults -display none \
    -no-reboot -serial stdio -kernel "$1" -initrd "$3/initrd" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off" </dev/null |
    tr -d '\r' | tee "$3/log" | grep -E '^test |^skipped|panicked|status|decisions differ|the model|arrived twice|marks arrived' || true
  # What `kernel check` said.
  sed '/^the check ended/q' "$3/log"
  (($(grep -c 'ended with status 0' "$3/log") == 4)) || {
    echo "FAILED: see $3/log"
    failed=1
  }
}

if [[ ${KERNEL:-} ]]; then
  mkdir -p target/kernels/no-modules
  run "$KERNEL" "${MODULES:-target/kernels/no-modules}" target/kernels/own
else
  for suite in $suites; do
    unpacked=$(fetch "$suite")
    image=$(find "$unpacked" -name 'vmlinuz*' | head -1) # in /boot, or since 7.x beside the modules
    run "$image" "$unpacked" "target/kernels/$suite"
  done
fi
exit "$failed"
