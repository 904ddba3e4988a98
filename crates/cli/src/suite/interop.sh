#!/bin/sh
# One endpoint by the contract of the QUIC interop runner: `endpoint.sh server` or `endpoint.sh client`, in the network and
# mount namespace of its end of the path. The image's root stays as it is: what the endpoint writes goes into memory.
set -eu
here=$(dirname "$0") role=$1
. "$here/settings"

# Status 125 says that the root could not be prepared, as container engines do.
trap 'exit 125' EXIT
root=$here/top/root
mount -t tmpfs tmpfs "$here/top"
mkdir "$here/top/upper" "$here/top/work" "$root"
mount -t overlay overlay -o "lowerdir=$here/image,upperdir=$here/top/upper,workdir=$here/top/work" "$root"
mkdir -p "$root/www" "$root/downloads" "$root/certs" "$root/dev" "$root/proc" "$root/sys" "$root/etc" "$root/tmp" "$root/logs/qlog"
mount -t tmpfs tmpfs "$root/dev"
for device in null zero full random urandom; do
  : >"$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -m 1777 "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --bind "$here/certs" "$root/certs"
if [ "$role" = server ]; then
  mount --bind "$SLOWSTART_FILES" "$root/www"
  mount -o remount,bind,ro "$root/www"
  # Unless the user asked for it, only that of the last connection is read.
  [ "$qlog" != "$here/qlog" ] || rm -rf "$qlog"/*
  mount --bind "$qlog" "$root/logs/qlog"
fi
rm -f "$root/etc/hosts"
cp "$here/hosts" "$root/etc/hosts"
# The image's setup sets routes of the runner's network. Here the path is there, and what setup may not do is no error.
if [ -e "$root/setup.sh" ]; then
  mv "$root/setup.sh" "$root/setup.image.sh"
fi
printf '%s\n' '#!/bin/sh' '[ ! -x /setup.image.sh ] || /setup.image.sh "$@" || true' >"$root/setup.sh"
chmod 755 "$root/setup.sh"
trap - EXIT

# What Docker gives a container, but devices. Without CAP_NET_ADMIN the endpoint cannot change the path.
few=-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+setfcap
status=0 requests=
[ "$role" = server ] || requests="https://server4:443/$SLOWSTART_SIZE"
image ROLE="$role" ${requests:+"REQUESTS=$requests"} "$(command -v setpriv)" --bounding-set="$few" \
  "$(command -v unshare)" --root="$root" --wd="$directory" "$@" || status=$?
if [ "$role" = client ] && [ "$status" = 0 ] &&
  ! cmp -s "$root/downloads/$SLOWSTART_SIZE" "$SLOWSTART_FILES/$SLOWSTART_SIZE"; then
  echo "the client ended with status 0, but /downloads has no $SLOWSTART_SIZE as the server has it in /www"
  status=1
fi
exit "$status"
