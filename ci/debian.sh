# Sourced by the scripts beside it: packages of any Debian suite. apt verifies the signature of the package lists at each use,
# and packages, also those fetched before, are verified against the lists. The apt state of this machine is not changed.

# Fetches the lists of a suite into target/kernels/SUITE; sets ${apt[@]}, the options of apt for it.
use_suite() { # SUITE
  local root=target/kernels/$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg
  mkdir -p "$root"/{etc/apt/preferences.d,etc/apt/apt.conf.d,lists/partial,cache/archives/partial}
  root=$(realpath "$root")
  touch "$root/status"
  echo "deb [signed-by=$keys] http://deb.debian.org/debian $1 main" >"$root/etc/apt/sources.list"
  apt=(-qq -o "Dir::Etc=$root/etc/apt" -o "Dir::State::lists=$root/lists" -o "Dir::State::status=$root/status"
    -o "Dir::Cache=$root/cache" -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User=root
    -o APT::Update::Error-Mode=any -o Acquire::AllowInsecureRepositories=false)
  apt-get "${apt[@]}" update >&2
}

# Verifies a package file against the signed list; downloads it first if it is absent or differs. Prints its name.
package() { # FOLDER PACKAGE
  local root=$1 name=$2 want file attempt
  want=$(apt-cache "${apt[@]}" show --no-all-versions "$name" | sed -nE 's/^SHA256: ([0-9a-f]{64})$/\1/p' | head -1)
  [[ $want ]] || { echo "$name: the signed list has no SHA256" >&2; return 1; }
  for attempt in cached fetched; do
    for file in "$root/$name"_*.deb; do
      [[ -e $file ]] || continue
      if sha256sum --check --status <<<"$want  $file"; then
        echo "$file"
        return
      fi
      echo "$file ($attempt): its SHA256 is not $want; removed" >&2
      rm -f "$file"
    done
    [[ $attempt == fetched ]] || (cd "$root" && apt-get "${apt[@]}" download "$name" >&2)
  done
  echo "$name: no package with the SHA256 of the signed list" >&2
  return 1
}
