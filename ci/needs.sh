# Sourced: install_missing NEED:PACKAGE.. installs the package of each need that is absent, a program or a file, where it
# may, and else says how.
install_missing() {
  local missing=() need what
  for need in "$@"; do
    what=${need%:*}
    case $what in
      /*) [[ -e $what ]] || missing+=("${need#*:}") ;;
      *) command -v "$what" >/dev/null || missing+=("${need#*:}") ;;
    esac
  done
  ((${#missing[@]})) || return 0
  if ((EUID == 0)) && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
  else
    echo "missing: ${missing[*]}; install with: apt-get install ${missing[*]}" >&2
    return 1
  fi
}
