#!/usr/bin/env bash
# A trial over four servers, each an nginx in a cgroup of its own behind an emulated path: `bash ci/fleet.sh [SECONDS]` (180).
# Needs root, and the command built by `make kernel`. Half of the connections are cubic's, a quarter each search's and
# ess's; each downloads 1 MB. Prints the pooled result; leaves the page and the folders of the servers in target/fleet.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/needs.sh
install_missing nginx:nginx-light wrk:wrk ip:iproute2
seconds=${1:-180}
slowstart=${SLOWSTART:-$PWD/target/release/slowstart}
out=$PWD/target/fleet
rm -rf "$out" && mkdir -p "$out"
# Server, path, downloads at a time.
fleet=(
  "fibre rate=50Mbit,rtt=40ms,queue=1bdp 2"
  "lte lte-75 2"
  "geo geo-144 24"
  "far rate=100Mbit,rtt=180ms,queue=1bdp 6"
)
cat >"$out/plan.toml" <<'PLAN'
arms = ["cubic:50%", "search:25%", "ess:25%"]
measure = "time-last"
stratify = "rtt"
stop-on-harm = ["retrans=+500%"]
seed = 2026
PLAN
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
groups=() started=()
end() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rmdir "${groups[@]}" 2>/dev/null || true
}
trap end EXIT
head -c 1000000 /dev/zero >"$out/page"
trials=()
for line in "${fleet[@]}"; do
  read -r name path at_once <<<"$line"
  group=$root/ss-fleet-$name
  mkdir "$group" "$out/$name"
  groups+=("$group")
  cat >"$out/$name.conf" <<CONF
user root;
daemon off;
pid $out/$name.pid;
error_log $out/$name.error error;
worker_processes 1;
events { worker_connections 1000; }
http {
  access_log off;
  keepalive_timeout 0;
  server { listen 10.77.0.1:80; root $out; }
}
CONF
  "$slowstart" kernel trial --cgroup "$group" --plan "$out/plan.toml" --server "$name" --for "$((seconds + 10))s" --every 10s \
    --out "$out/$name" >"$out/$name.txt" 2>&1 &
  trials+=($!)
  # The server has a /sys of its own: the cgroup is in ours.
  "$slowstart" emulate "${path//,/ }" --serve "nsenter -t $$ -m sh -c \"echo \$\$ >$group/cgroup.procs\"; exec nginx -c $out/$name.conf" -- \
    wrk -t 1 -c "$at_once" -d "${seconds}s" --timeout 60s -H "Connection: close" http://10.77.0.1/page >"$out/$name.wrk" 2>&1 &
  started+=($!)
done
started+=("${trials[@]}")
# The intervals hold however often one looks: once in the middle, while the servers have told unequally much.
sleep $((seconds / 2))
folders=()
for line in "${fleet[@]}"; do folders+=("$out/${line%% *}"); done
"$slowstart" trial pool "${folders[@]}" >"$out/half.txt" || true
wait "${trials[@]}"
"$slowstart" trial pool "${folders[@]}" --report "$out/fleet.html"
