#!/bin/sh
# The tables of docs/evidence/questions.txt: from the root of a checkout, with the program to run as the argument.
for file in scenarios/questions/*.toml; do
	printf '%s\n\n' "$file"
	sed -n 's/^# //p' "$file"
	printf '\n'
	"${1:-slowstart}" run "$file" 2>&1
	printf '\n\n'
done
