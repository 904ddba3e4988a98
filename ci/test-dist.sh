#!/usr/bin/env bash
# Installs the Debian package of target/dist in fresh Debian systems that have no compiler and no network, runs the command
# there, and removes the package: nothing may be left. Then the tarball, and the wheel in such a system with Python.
# As root: ci/test-dist.sh [SUITE..]; bookworm and trixie without arguments.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/needs.sh
((EUID == 0)) || { echo "ci/test-dist.sh needs root" >&2; exit 2; }
install_missing debootstrap:debootstrap
suites=("$@")
((${#suites[@]})) || suites=(bookworm trixie)
deb=$(ls target/dist/*.deb) || { echo "no package in target/dist: run make dist" >&2; exit 2; }

# Runs in the new system. A trial needs connections: perl-base, which every Debian has, serves and fetches them.
inside() {
  cat <<'INSIDE'
set -eu
begun=$(date +%s)
say() { echo "== $(($(date +%s) - begun)) s: $*"; }
show() { # LINES COMMAND...: its first lines
  lines=$1; shift
  "$@" >/tmp/shown
  head -n "$lines" /tmp/shown
}
files() { find / -xdev \( -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /tmp \) -prune -o -print | sort; }
if command -v cc clang gcc; then echo "there is a compiler"; exit 1; fi
files >/tmp/before
say install; dpkg -i /tmp/slowstart.deb
say compare; show 12 slowstart compare leo --runs 5
say compare over QUIC; show 6 slowstart compare leo --startup hystart,search --runs 2 --engine quic:quinn
say replay; show 12 slowstart replay /tmp/download.pcapng.gz
say sweep
cat >/tmp/sweep.toml <<'TOML'
path = "rate=20Mbit rtt=80ms queue=1bdp"
startups = ["standard", "search"]
size = "1MB"
[axes]
rate = "log(2..100Mbit)/5"
TOML
show 9 slowstart sweep /tmp/sweep.toml --out /tmp/sweep
say kernel check; slowstart kernel check
say load; slowstart kernel load search --pin; slowstart kernel list
say trial
mkdir /sys/fs/cgroup/slowstart-dist
cat >/tmp/serve.pl <<'PERL'
use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8099", Listen => 64, ReuseAddr => 1) or die;
while (my $c = $s->accept) { print $c "x" x 200000; close $c; }
PERL
cat >/tmp/fetch.pl <<'PERL'
use IO::Socket::INET;
for (1 .. 60) { my $c = IO::Socket::INET->new("127.0.0.1:8099") or die; 1 while <$c>; close $c; }
PERL
sh -c 'echo $$ >/sys/fs/cgroup/slowstart-dist/cgroup.procs; exec perl /tmp/serve.pl' & server=$!
slowstart kernel trial --cgroup /sys/fs/cgroup/slowstart-dist --arm cubic:50% --arm search:50% --measure time-100kb \
  --for 8s --out /tmp/trial >/tmp/trial.txt & trial=$!
sleep 3; perl /tmp/fetch.pl
wait $trial; tail -20 /tmp/trial.txt; ls /tmp/trial
rows=$(wc -l </tmp/trial/connections.jsonl)
[ "$rows" -eq 60 ] || { echo "$rows rows of 60 connections"; exit 1; }
kill $server; wait $server || true
say drop-in
dropin=/usr/share/doc/slowstart/examples/slowstart-select.conf
# What systemd would run, for the service slowstart-dist.
pre=$(sed -n "s#^ExecStartPre=+/bin/sh -c '\(.*\)' select %n\$#\1#p" "$dropin" | sed 's#/system.slice##')
sh -c "$pre" select slowstart-dist 2>/tmp/said
cat /tmp/said
slowstart kernel list | grep slowstart-dist
! grep default /tmp/said
slowstart kernel unselect --cgroup /sys/fs/cgroup/slowstart-dist
rmdir /sys/fs/cgroup/slowstart-dist
say remove; dpkg --purge slowstart
files >/tmp/after
diff /tmp/before /tmp/after
[ ! -e /sys/fs/bpf/slowstart/ss_search ] || { echo "a pin is left"; exit 1; }
say nothing is left
say tarball; tar -xzf /tmp/slowstart.tar.gz -C /tmp
cd /tmp/slowstart-*-linux-gnu
show 12 ./slowstart compare leo --runs 5
./slowstart kernel check | tail -n 1
INSIDE
}
inside_python() {
  cat <<'INSIDE'
set -eu
python3 -m venv /tmp/env
/tmp/env/bin/pip install --quiet --no-index /tmp/slowstart-*.whl
cd /tmp && /tmp/env/bin/python - <<'PYTHON'
import slowstart
rows = slowstart.compare("leo", startups=["standard", "search"], runs=2).rows
assert len(rows["run"]) == 4, rows
print(rows["startup"], rows["completion_s"])
PYTHON
INSIDE
}

# Runs /tmp/inside.sh of a system in namespaces of its own: no network but loopback, and what it mounts ends with it.
enter() { # ROOT
  # shellcheck disable=SC2016 # the inner shell expands
  timeout 600 unshare --net --mount --pid --fork --ipc bash -euc '
    ip link set lo up
    mount --make-rprivate /
    mount -t proc proc "$1/proc"
    mount -t sysfs sysfs "$1/sys"
    mount -t bpf bpf "$1/sys/fs/bpf"
    mount -t cgroup2 cgroup2 "$1/sys/fs/cgroup"
    mount --rbind /dev "$1/dev"
    exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 HOME=/root sh /tmp/inside.sh' inside "$1"
}

for suite in "${suites[@]}"; do
  root=$PWD/target/debian/$suite
  if [[ ! -e $root/done ]]; then
    rm -rf "$root" && mkdir -p "$root"
    make_system() { # NAME [OPTION]
      debootstrap --variant=minbase "${@:2}" "$suite" "$root/$1" http://deb.debian.org/debian >"$root/$1.log" 2>&1 ||
        { tail "$root/$1.log" >&2; return 1; }
    }
    make_system system
    make_system python --include=python3-venv
    touch "$root/done"
  fi
  echo "#### $suite: $(cat "$root/system/etc/debian_version")"
  rm -rf "$root/run" && cp -a "$root/system" "$root/run"
  cp "$deb" "$root/run/tmp/slowstart.deb"
  cp target/dist/*.tar.gz "$root/run/tmp/slowstart.tar.gz"
  cp scenarios/captures/download.pcapng.gz "$root/run/tmp/"
  inside >"$root/run/tmp/inside.sh"
  enter "$root/run"
  rm -rf "$root/run"
  echo "#### $suite with Python"
  cp -a "$root/python" "$root/run"
  cp target/dist/*.whl "$root/run/tmp/"
  inside_python >"$root/run/tmp/inside.sh"
  enter "$root/run"
  rm -rf "$root/run"
  echo "#### $suite: passed"
done
