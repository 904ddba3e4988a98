# Sourced by the scripts beside it. A need is written PROBE:PACKAGE, where PROBE is a program or an absolute path.

# Prints the packages whose probes are absent, each once.
missing_packages() { # NEED...
  local need probe
  for need in "$@"; do
    probe=${need%:*}
    case $probe in
      /*) [[ -e $probe ]] || echo "${need#*:}" ;;
      *) command -v "$probe" >/dev/null || echo "${need#*:}" ;;
    esac
  done | sort -u
}

# Installs what is missing, as root on Debian. Otherwise prints the command that installs it and returns 1.
install_missing() { # NEED...
  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if ((EUID == 0)) && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
  else
    echo "missing: ${missing[*]}; install with: apt-get install ${missing[*]}" >&2
    return 1
  fi
}
