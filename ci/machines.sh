#!/usr/bin/env bash
# Runs `make test` as machines of every kind would run it. As root on Debian: ci/machines.sh [WAY...]
#
#   root      as it is
#   caps      root without CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_SYS_ADMIN, which stands for each of them
#   refused   root on a kernel that refuses the iterator of socket storage (SLOWSTART_REFUSE_ITERATOR=1)
#   user      a user of its own, who sees no clang, no libelf and no iproute2
#   offline   root without network; what Cargo needs is fetched before
#
# Without WAY: all of them. Each must end with "0 failed", and give each reason of a skip once. The output of a way is in
# target/machines/WAY.log; the end lists the last line of each.
set -uo pipefail
cd "$(dirname "$0")/.."
((EUID == 0)) || { echo "ci/machines.sh needs root: it takes privileges away" >&2; exit 2; }
ways=("$@")
((${#ways[@]})) || ways=(root caps refused user offline)
out=$PWD/target/machines
mkdir -p "$out"
cargo fetch --locked || exit 1

# A copy of the sources and of what Cargo has fetched, for a user whose programs are those of /usr/bin but for some.
as_user() {
  local home
  home=$(mktemp -d /tmp/slowstart-user.XXXXXX) || return 1
  chmod 755 "$home"
  git clone --quiet . "$home/slowstart" && mkdir "$home/.cargo" || return 1
  cp -r "${CARGO_HOME:-$HOME/.cargo}"/{bin,registry} "$home/.cargo/" || return 1
  mkdir "$home/rustup" "$home/programs"
  find /usr/bin -mindepth 1 ! -name 'clang*' ! -name ip -exec ln -s -t "$home/programs" {} +
  chown -R nobody: "$home"
  # The toolchain may lie where only root can look.
  # shellcheck disable=SC2016 # the inner shell expands
  unshare --mount bash -c '
    home=$1
    rust=${RUSTUP_HOME:-$HOME/.rustup}
    [[ ! -d $rust ]] || mount --bind "$rust" "$home/rustup" || exit 1
    for file in /usr/include/gelf.h /usr/include/libelf.h; do [[ ! -e $file ]] || mount --bind /dev/null "$file"; done
    cd "$home/slowstart" && exec setpriv --reuid nobody --regid "$(id -g nobody)" --clear-groups env -i \
      HOME="$home" RUSTUP_HOME="$home/rustup" CARGO_HOME="$home/.cargo" LANG="${LANG:-C.UTF-8}" \
      PATH="$home/.cargo/bin:$home/programs" CI=true make --no-print-directory test' user "$home"
  local status=$?
  rm -rf "$home"
  return "$status"
}

run() { # WAY
  local test=(make --no-print-directory test) caps=-bpf,-perfmon,-net_admin,-sys_admin
  case $1 in
  root) "${test[@]}" ;;
  caps) setpriv --bounding-set "$caps" --inh-caps "$caps" "${test[@]}" ;;
  refused) SLOWSTART_REFUSE_ITERATOR=1 "${test[@]}" ;;
  user) as_user ;;
  # shellcheck disable=SC2016 # the inner shell expands
  offline) CARGO_NET_OFFLINE=true unshare --net bash -c 'ip link set lo up; exec "$@"' offline "${test[@]}" ;;
  *) echo "ci/machines.sh: no way \"$1\"; there are root, caps, refused, user, offline" >&2; return 2 ;;
  esac
}

failed=0
results=()
for way in "${ways[@]}"; do
  log=$out/$way.log
  run "$way" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  last=$(tail -1 "$log")
  # The reason is what a line of the summary, after the last empty line, says last, in parentheses.
  twice=$(tac "$log" | sed '/^$/q' | sed -n 's/^skipped: .* \((.*)\)$/\1/p' | sort | uniq -d)
  results+=("$way: $last")
  if ((status)) || [[ $last != *" 0 failed, "* ]]; then failed=1; fi
  if [[ $twice ]]; then
    failed=1
    results+=("$way: more than one line gives the reason $twice")
  fi
done
echo
printf '%s\n' "${results[@]}"
exit "$failed"
