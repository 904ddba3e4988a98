#!/usr/bin/env bash
# Builds the book with the playground inside, a folder that any host serves. Usage: ci/book.sh FOLDER [PROFILE]
#
# The pages are those of docs/, in the same tree; more of the reference is printed by the command. A line `<!-- live: SETTINGS -->`
# of a page becomes a playground with the settings of its address.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: ci/book.sh FOLDER [PROFILE]}
profile=${2:-release}
PATH=$PWD/target/tools/bin:$PATH
mdbook=0.4.52
# mdBook is built from its published source into target/tools, in some minutes of CPU time.
[[ $(mdbook --version 2>/dev/null) == "mdbook v$mdbook" ]] ||
  cargo install --quiet --debug --no-default-features --features search --root target/tools "mdbook@$mdbook" ||
  { echo "missing: mdbook (cargo install mdbook@$mdbook)" >&2; exit 3; }
# The reference describes all commands of this build.
features=quic,sweep
command -v clang >/dev/null && [[ -e /usr/include/libelf.h ]] && features+=,kernel
cargo build --locked --profile "$profile" -p slowstart-cli --features "$features"
folder=$profile
[[ $profile == dev ]] && folder=debug
slowstart=target/$folder/slowstart

work=target/book
rm -rf "$work"
src=$work/src
mkdir -p "$work"
cp docs/book.toml docs/book.css "$work"
cp -r docs "$src"
rm "$src/book.toml" "$src/book.css"
# The columns of rows, from their schemas.
python3 ci/columns.py <docs/reference/rows.md >"$src/reference/rows.md"
# The first page is that of the repository.
sed -E 's#\]\((docs/SUMMARY\.md|[^)d:][^):]*)\)#](https://github.com/slowstart/slowstart/blob/main/\1)#g; s#\]\(docs/#](#g' README.md >"$src/README.md"
sed -i 's#(\.\./README\.md)#(README.md)#' "$src/SUMMARY.md"
# What is not in the book is in the repository.
sed -i -E 's#\]\((\.\./){2}([^.])#](https://github.com/slowstart/slowstart/blob/main/\2#g' "$src"/*/*.md
sed -i -E 's#\]\(\.\./([^.])#](https://github.com/slowstart/slowstart/blob/main/\1#g' "$src"/*.md
# mdBook makes index.html of a README.md.
sed -i -E 's#\]\(([^):]*/)?README\.md#](\1index.md#g' "$src"/*/*.md "$src"/*/*/*.md

# The reference. Text of the program is code, so that Markdown does not change it.
# A list has long lines where it is no terminal: wrap them, below the description where it leaves room.
wrapped() {
  python3 -c '
import re, sys, textwrap
for line in sys.stdin.read().splitlines():
    columns = len(re.match(r" *(\S.*?  +)*", line).group())
    indent = " " * (columns if columns < 50 else 6)
    print(textwrap.fill(line, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))'
}
list() { printf '# %s\n\n```text\n' "$2"; "$slowstart" list "$1" | wrapped; printf '```\n'; }
list paths "Paths" >"$src/reference/paths.md"
list path-keys "Keys of a path" >"$src/reference/path-keys.md"
list avoidances "Congestion avoidance" >"$src/reference/avoidances.md"
{ list profiles "Stacks and their settings"; printf '\n```text\n'; "$slowstart" list knobs | wrapped; printf '```\n'; } >"$src/reference/stacks.md"
# All claims of the papers, as recorded. An experiment of arithmetic lists those of the others too.
mkdir "$work/papers"
cp docs/evidence/papers/claims.jsonl "$work/papers"
"$slowstart" --quiet reproduce ess/fig2 --out "$work/papers" >/dev/null
sed 's#(README\.md)#(index.md)#' "$work/papers/claims.md" >"$src/evidence/papers/claims.md"
# The help of a command and of its subcommands.
help_of() {
  local text sub
  text=$("$slowstart" "$@" --help 2>/dev/null) || text="This build does not have it."
  printf '\n## slowstart%s\n\n```text\n%s\n```\n' "${*:+ $*}" "$text"
  for sub in $(awk '/^Commands:/ { on = 1; next } /^[^ ]/ { on = 0 } on && /^  [a-z]/ && $1 != "help" { print $1 }' <<<"$text"); do
    help_of "$@" "$sub"
  done
}
{
  printf '# Command line\n'
  help_of
} >"$src/reference/commands.md"
# A playground with the settings of an address.
live() { # SETTINGS TITLE FOLDER
  printf '<iframe loading="lazy" src="%splayground/index.html#%s&show.embed=yes" title="%s" style="width: 100%%; height: 80vh; border: 1px solid #888"></iframe>\n' "$3" "$1" "$2"
}
for page in "$src"/{,*/}*.md; do
  up=../
  [[ $(dirname "$page") == "$src" ]] && up=
  while IFS= read -r line; do
    if [[ $line =~ ^'<!-- live: '(.*)' -->'$ ]]; then live "${BASH_REMATCH[1]}" "The simulator with this example" "$up"; else printf '%s\n' "$line"; fi
  done <"$page" >"$work/page"
  mv "$work/page" "$page"
done

# A page for each startup, with a live figure, and what docs/reference/algorithms.md says about it.
chapters=
printf '# Startups\n\nEach has a page with a live figure; [Algorithms](algorithms.md) has sources, parameters and departures.\n\n' \
  >"$src/reference/startups.md"
while IFS=$'\t' read -r name about; do
  file=startup-${name//[^a-z0-9.-]/p}.md
  others=standard,$name
  [[ $name == standard ]] && others=standard
  code=${others//+/%2B}
  {
    printf '# %s\n\n`%s`: %s.\n\n' "$name" "$name" "$about"
    printf 'Beside `standard` over 50 Mbit/s, 100 ms and a queue of 2 BDP; move the sliders, or choose another path.\n\n'
    live "path=rate=50Mbit+rtt=100ms+queue=2bdp&startups=$code" "$name over a path" ../
    printf '\n```sh\nslowstart explain "rate=50Mbit rtt=100ms queue=2bdp" %s\n```\n\n' "$name"
    awk -v name="$name" '/^## / { on = 0; n = split(substr($0, 4), words, /, | and /); for (i = 1; i <= n; i++) on = on || words[i] == name || (words[i] ~ /^(search|rapid-start)$/ && index(name, words[i] "-") == 1); next } on' \
      docs/reference/algorithms.md | sed 's/](#/](algorithms.md#/g'
    printf '\nAll startups, and the rules that hold for each: [Algorithms](algorithms.md).\n'
  } >"$src/reference/$file"
  printf -- '- [%s](%s): %s\n' "$name" "$file" "$about" >>"$src/reference/startups.md"
  chapters+="  - [$name](reference/$file)"$'\n'
done < <("$slowstart" list startups --json | awk -F'"' '/^      "name":/ { n = $4 } /^      "about":/ { print n "\t" $4 }')
while IFS= read -r line; do
  if [[ $line == STARTUPS ]]; then printf '%s' "$chapters"; else echo "$line"; fi
done <"$src/SUMMARY.md" >"$work/SUMMARY.md"
mv "$work/SUMMARY.md" "$src/SUMMARY.md"

mdbook build --dest-dir "$PWD/$work/out" "$work"
rm -rf "$out"
cp -r "$work/out" "$out"
if [[ $profile == release ]]; then web=web; else web=iterate; fi
bash ci/playground.sh "$out/playground" "$web"
