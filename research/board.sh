#!/bin/sh
# The board of docs/evidence/board.txt: from the root of a checkout, with the program, built with `--features quic`, and kernels for virtual
# time as arguments. What ran on the real clock is stored: docs/evidence/suite.md says how.
set -e
stored=$(realpath docs/evidence/quic-go.json)
program=$(realpath "$(command -v "$1")")
shift
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
cc -shared -fPIC -O2 -I crates/ffi/include crates/ffi/examples/newreno.c -o "$dir/newreno.so"
for kernel; do
	cp "$kernel" "$dir"
done
cd "$dir"
# Status 1 says that a criterion is not met.
result() {
	file=$1
	shift
	for scenario in short-100kB short-1MB overshoot-shallow collapse-narrow bloated-dsl random-loss geo-short codel policer; do
		set -- "$@" --scenario "$scenario"
	done
	"$program" suite run "$@" --json "$file.json" >"$file.md" || [ $? = 1 ]
}
result quinn --engine quic:quinn --startup standard,hystart++,search-neqo,hystart-picoquic,c4
result sim --startup search,rapid-start
result plugin --startup plugin:./newreno.so
for kernel; do
	name=$(basename "$kernel")
	result "$name" --engine "linux:./$name" --startup hystart
done
"$program" suite board ./*.json "$stored"
