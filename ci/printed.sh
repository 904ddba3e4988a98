# Sourced: documents that show what a command prints, to the byte, in their first block of `text`. The README has the table alone.

# The documents.
printed=(README.md docs/evidence/compare-geo.md)

# The arguments of `slowstart` whose output the document FILE shows.
printed_command() { # FILE
  case $1 in
    README.md) echo compare geo geo-recorded --startup hystart,standard,search,ess --quiet ;;
    docs/evidence/compare-geo.md) echo compare geo --all ;;
  esac
}

# What the document FILE shows of the output on standard input.
printed_part() { # FILE
  case $1 in
    README.md) sed -n '/^startup/,/^$/ { /./p }' ;;
    *) cat ;;
  esac
}

# The picture of the README, and the arguments of `slowstart` that draw it to FILE.
picture=docs/evidence/compare-geo.svg
picture_command() { # FILE
  echo compare geo --quiet --picture "$1"
}

# The block.
printed_block() { # FILE
  awk '/^```text$/ && !seen { inside = 1; seen = 1; next } /^```$/ { inside = 0 } inside' "$1"
}

# Replaces the block by standard input.
rewrite_block() { # FILE
  local new
  new=$(mktemp "$1.XXXXXX")
  awk '
    FNR == NR { text = text $0 "\n"; next }
    /^```text$/ && !seen { print; printf "%s", text; skip = 1; seen = 1; next }
    /^```$/ { skip = 0 }
    !skip' - "$1" >"$new" && chmod --reference="$1" "$new" && mv "$new" "$1"
}
