#!/usr/bin/env bash
# What ci/test.sh has Cargo run in place of each test program: ci/lane.sh LANE PROGRAM [ARGUMENT..]. Runs the program if it is
# of the lane `kernel` or `other`. Both run beside each other. A control's name exists once in the kernel, so programs that
# load objects are in one lane, one after the other.
set -euo pipefail
name=${2##*/}
case ${PWD##*/}/${name%-*} in
linux/emulate | linux/qdisc) lane=other ;;
linux/* | cli/emulate | cli/kernel* | engines/same) lane=kernel ;;
*) lane=other ;;
esac
[[ $1 == "$lane" ]] || exit 0
exec "${@:2}"
