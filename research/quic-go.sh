#!/bin/sh
# The result docs/evidence/quic-go.json: as root, with the program, built with `--features kernel`, and the file to write. Needs Go and a
# busybox without libraries; what runs is quic-go's endpoint of the QUIC interop runner, without its debug log.
set -e
program=$(realpath "$(command -v "$1")")
result=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
root=$dir/quic-go
mkdir -p "$root/bin"
interop=github.com/quic-go/quic-go/interop
CGO_ENABLED=0 GOBIN=$root go install -trimpath $interop/server@v0.65.0 $interop/client@v0.65.0
cp "$(command -v busybox)" "$root/bin/sh"
cat >"$root/run_endpoint.sh" <<'END'
#!/bin/sh
[ "$ROLE" = client ] || exec ./server
exec ./client $REQUESTS
END
chmod 755 "$root/run_endpoint.sh"
cd "$dir"
set --
for scenario in short-100kB short-1MB overshoot-shallow collapse-narrow bloated-dsl random-loss geo-short codel policer; do
	set -- "$@" --scenario "$scenario"
done
# So many that six are in time. Its source has this congestion control, which its qlog does not state.
chrt -r 20 "$program" suite run --interop ./quic-go --entrant ./quic-go/server --name "quic-go 0.65.0" --stack-version 0.65.0 \
	--congestion-control "Reno with HyStart" --runs 14 --json "$result" "$@" || [ $? = 1 ]
