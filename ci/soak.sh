#!/usr/bin/env bash
# Soak: 20,000 connections at once that come and go, for MINUTES, between two network namespaces: `bash ci/soak.sh [MINUTES
# [CONNECTIONS]]` (60, 20000). Needs root, and the command built by `make kernel`. Half of the connections are those of a trial with eight arms;
# the others are under one object after the other. A watch runs beside them. Its counters and those of the trial
# are read each second. Prints memory each minute, and fails if a reading is lost, the memory of the watch grows, a record
# of the trial is lost, or something is left in the kernel.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/needs.sh
install_missing python3:python3 wrk:wrk ip:iproute2 bpftool:bpftool curl:curl nsenter:util-linux
minutes=${1:-60}
each=$((${2:-20000} / 2)) # of the trial, and beside it
# Pins and namespaces are in file systems of its own, which end with it.
if [[ -z ${SOAK:-} ]]; then
  SOAK=1 exec unshare --mount bash ci/soak.sh "$minutes" $((each * 2))
fi
mount -t bpf bpf /sys/fs/bpf
mkdir -p /run/netns
mount -t tmpfs netns /run/netns
slowstart=${SLOWSTART:-$PWD/target/release/slowstart}
# The list of docs/reference/kernel.md.
mapfile -t objects < <(sed -nE 's/^- (`[a-z][^(]*) \(`ss_.*/\1/p' docs/reference/kernel.md | tr -d '`,' | sed -E 's/ -([34])/ search-\1/g' | tr ' ' '\n')
((${#objects[@]} > 0)) || { echo "docs/reference/kernel.md names no object" >&2; exit 1; }
seconds=$((minutes * 60 / ${#objects[@]}))
arms="cubic:30% search:10% ess:10% rate-bound:10% hystart++:10% suss:10% stateful:10% careful-resume:10%"

dir=$(mktemp -d)
server=ss-soak-server client=ss-soak-client
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
declare -A group=([trial]=$root/ss-soak-trial [objects]=$root/ss-soak-objects)
started=()
end() {
  local pid
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  "$slowstart" kernel unselect --cgroup "${group[objects]}" >/dev/null 2>&1 || true
  [[ -z ${object:-} ]] || "$slowstart" kernel unload "$object" >/dev/null 2>&1 || true
  ip netns del $server 2>/dev/null || true
  ip netns del $client 2>/dev/null || true
  rmdir "${group[@]}" 2>/dev/null || true
  rm -rf "$dir"
}
trap end EXIT

ip netns add $server
ip netns add $client
ip -n $server link add v0 type veth peer name v0 netns $client
ip -n $server addr add 10.98.0.1/24 dev v0
ip -n $client addr add 10.98.0.2/24 dev v0
for ns in $server $client; do
  ip -n $ns link set lo up
  ip -n $ns link set v0 up
done
# They replace the subshell that they are called in.
in_server() { exec nsenter --net=/run/netns/$server "$@"; }
in_client() { exec nsenter --net=/run/netns/$client "$@"; }
(in_server sysctl -q net.core.somaxconn=$((each * 2)) net.ipv4.tcp_max_syn_backlog=$((each * 2)))
(in_client sysctl -q net.ipv4.ip_local_port_range="1024 65535")
# A process holds as many connections as it may have files, with a quarter to spare; more connections take more processes.
files=$((each * 2 + 1000))
(($(ulimit -n) >= files)) || ulimit -n $files 2>/dev/null || ulimit -n "$(ulimit -H -n)"
files=$(ulimit -n)
processes=$(((each * 4 + files * 3 - 1) / (files * 3)))

# Each connection receives 48 kB at once and the rest after 12 to 60 s, of more than 20,000 connections as many times later, so
# that some 550 begin each second.
slower=$(((each * 2 + 19999) / 20000))
cat >"$dir/server.py" <<'PYTHON'
import asyncio, random, sys

PORT, SEED, SLOWER = map(int, sys.argv[1:])

async def serve(reader, writer):
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 64000\r\nConnection: close\r\n\r\n" + bytes(48000))
        await asyncio.sleep(random.uniform(12, 60) * SLOWER)
        writer.write(bytes(16000))
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()

async def main():
    random.seed(SEED)
    server = await asyncio.start_server(serve, "10.98.0.1", PORT, backlog=100_000, reuse_port=True)
    await server.serve_forever()

asyncio.run(main())
PYTHON
servers=()
port=8080
for name in trial objects; do
  mkdir "${group[$name]}"
  for ((n = 1; n <= processes; n++)); do
    in_server bash -c "echo \$\$ >${group[$name]}/cgroup.procs; exec python3 $dir/server.py $port $n $slower" 2>"$dir/$name.$n.err" &
    started+=($!) servers+=($!)
  done
  port=$((port + 1))
done
kmalloc() { awk '/^kmalloc-/ { sum += $2 * $4 } END { printf "%.1f", sum / 1e6 }' /proc/slabinfo; }
# Seconds of CPU that a process has used.
used() { awk '{ print ($14 + $15) / 100 }' "/proc/$1/stat"; }
memory() { awk '/^VmRSS/ { printf "%.1f", $2 / 1e3 }' "/proc/$1/status"; }
# Controls that are registered, and programs attached to these cgroups.
held() { echo $(($(bpftool struct_ops show | wc -l) + $(bpftool cgroup tree | grep -c ss-soak || true))); }
first_memory=$(kmalloc) first_held=$(held)

in_server "$slowstart" kernel watch --prometheus 127.0.0.1:9477 >"$dir/watch.log" 2>"$dir/watch.err" &
watch=$!
# shellcheck disable=SC2086
in_server "$slowstart" kernel trial --cgroup "${group[trial]}" $(printf -- '--arm %s ' $arms) --seed 1 --json \
  --prometheus 127.0.0.1:9478 >"$dir/trial.json" 2>"$dir/trial.err" &
trial=$!
started+=("$watch" "$trial")
sleep 5
for port in 8080 8081; do
  for ((n = 1; n <= processes; n++)); do
    in_client wrk -t 1 -c $((each / processes)) -d "$((minutes * 60 + 30))s" --timeout $((slower * 200))s -H "Connection: close" \
      "http://10.98.0.1:$port/page" >"$dir/wrk.$port.$n" &
    started+=($!)
  done
done

# Reads the counters each second; one line for each reading: port, status of curl.
in_server bash -c 'while sleep 1; do for port in 9477 9478; do
  curl -s -m 5 -o /dev/null "http://127.0.0.1:$port/metrics"; echo "$port $?"; done; done' >"$dir/read" &
started+=($!)

# Each object in turn.
begin=$SECONDS turn=0 next=0
echo "minute  connections  watch (MB, CPU s)  trial (MB, CPU s)  kmalloc (MB)  readings  failed"
for object in "${objects[@]}"; do
  "$slowstart" kernel load "$object" --pin >/dev/null
  "$slowstart" kernel select --pin --cgroup "${group[objects]}" "$object" >/dev/null
  turn=$((turn + 1))
  while ((SECONDS - begin < turn * seconds)); do
    sleep 1
    kill -0 "$watch" "$trial" "${servers[@]}" || { cat "$dir"/*.err; exit 1; }
    # What fills in the first half is not growth.
    ((SECONDS - begin > minutes * 30)) || at_begin=$(memory "$watch")
    if ((SECONDS - begin >= next)); then
      echo "$((next / 60))  $(in_server ss -tnH state established | wc -l)  $(memory "$watch") $(used "$watch")  $(memory "$trial") $(used "$trial")" \
        " $(kmalloc)  $(wc -l <"$dir/read")  $(grep -vc ' 0$' "$dir/read" || true)"
      next=$((next + 60))
    fi
  done
  "$slowstart" kernel list | grep "^ss_.* $object " || true
  "$slowstart" kernel unselect --cgroup "${group[objects]}" >/dev/null
  "$slowstart" kernel unload "$object" >/dev/null
done
object=
at_end=$(memory "$watch")
failed=$(grep -vc ' 0$' "$dir/read" || true)
for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
wait "${started[@]}" 2>/dev/null || true
sleep 5
left=$(($(held) - first_held))
counts=$(tail -1 "$dir/trial.json" | grep -oE '"counts":\{[^}]*\}')
cat "$dir"/wrk.*
echo "trial: $counts"
echo "readings that failed: $failed; watch: $at_begin MB at first, $at_end MB at last; kmalloc: $first_memory MB before," \
  "$(kmalloc) MB after; objects and programs left: $left"
grep -q '"lost_records":0' <<<"$counts" && ((failed == 0 && left == 0)) &&
  awk -v a="$at_begin" -v b="$at_end" 'BEGIN { exit !(b < a * 1.1 + 2) }'
