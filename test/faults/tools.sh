#!/bin/sh
# Installs what the tests need and is missing, where that is possible: as root, with apt-get. Says nothing and
# fails nobody; a case whose tool is still missing is skipped by name.
set -u
packages=''
need() {
  PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || packages="$packages $2"
}
need busybox busybox-static
need bwrap bubblewrap
need cc gcc
need chromium chromium
need debootstrap debootstrap
need fsfreeze util-linux
need git git
need inotifywait inotify-tools
need ip iproute2
need iptables-restore iptables
need mkfs.ext4 e2fsprogs
need nft nftables
need openssl openssl
need php php-cli
need redis-server redis-server
need rsync rsync
need ruby ruby
need strace strace
need tini tini
need xfs_io xfsprogs
ruby -rwebrick -e '' >/dev/null 2>&1 || packages="$packages ruby-webrick"
ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || packages="$packages libfaketime"
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || packages="$packages postgresql"

[ -n "$packages" ] || exit 0
[ "$(id -u)" = 0 ] || exit 0
command -v apt-get >/dev/null 2>&1 || exit 0
export DEBIAN_FRONTEND=noninteractive
# The tests start servers of their own: installing one must not start it.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
fi
{
  # shellcheck disable=SC2086
  timeout 60 apt-get update && timeout 300 apt-get install -y --no-install-recommends $packages
} >/dev/null 2>&1
exit 0
