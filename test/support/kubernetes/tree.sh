#!/bin/sh
# tree.sh TREE IMAGE: a root with a shell, the usual tools and glibc, from this machine's own programs, and the tree of
# `npm run bundle` on it. No registry is needed, and a Debian is nearly as small.
set -eu
tree=$1 bundle=$2
mkdir -p "$tree/usr/bin" "$tree/etc" "$tree/tmp" "$tree/root" "$tree/proc" "$tree/dev" "$tree/sys" "$tree/run" "$tree/var/lib"
for link in bin sbin lib lib64; do
  ln -s "usr/$link" "$tree/$link"
  mkdir -p "$tree/usr/$link"
done
chmod 1777 "$tree/tmp"
echo 'root:x:0:0:root:/root:/bin/sh' >"$tree/etc/passwd"
echo 'root:x:0:' >"$tree/etc/group"
programs='sh bash cat chmod cp cut date dd echo env false find grep head id kill ln ls mkdir mkfifo mknod mktemp mv printenv ps pwd readlink rm sed seq sha256sum sleep sort stat stty tail tar test timeout touch tr true uname wc'
for name in $programs; do
  path=$(command -v "$name") && case $path in /*) cp -L "$path" "$tree/usr/bin/$name" ;; *) cp -L "/usr/bin/$name" "$tree/usr/bin/$name" ;; esac
done
for file in "$tree"/usr/bin/* "$bundle/usr/local/lib/sandboxd/node" "$bundle"/usr/local/lib/sandboxd/*.node; do
  ldd "$file" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-[^ ]*\).*/\1/p'
done | sort -u | while read -r library; do
  mkdir -p "$tree$(dirname "$library")"
  cp -L "$library" "$tree$library"
done
cp -a "$bundle/usr/local" "$tree/usr/"
# As in sandbox.Dockerfile.
chgrp 65500 "$tree/usr/local/lib/sandboxd/node"
chmod 0151 "$tree/usr/local/lib/sandboxd/node"
