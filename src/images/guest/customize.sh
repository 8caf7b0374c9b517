#!/bin/sh
# Run by mmdebstrap on the finished tree ($1): the user that works, and nothing that would make two
# builds differ or two sandboxes the same.
set -eu
root=$1

# No password fits '*', and keys do; sshd takes '!' for an account that is locked.
chroot "$root" useradd --create-home --password '*' --uid 1000 --user-group --shell /bin/bash agent
chroot "$root" usermod --append --groups sudo agent
echo "agent ALL=(ALL) NOPASSWD:ALL" >"$root/etc/sudoers.d/agent"
chmod 0440 "$root/etc/sudoers.d/agent"
chroot "$root" install -d -o agent -g agent /workspace

# The host names a sandbox at every boot, and a copy of it differently.
: >"$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root"/etc/ssh/ssh_host_*_key* \
  "$root/var/lib/systemd/random-seed" "$root/var/lib/systemd/credential.secret"
echo sandbox >"$root/etc/hostname"
printf '127.0.0.1 localhost sandbox\n::1 localhost\n' >"$root/etc/hosts"
echo "# The root disk is mounted before init starts." >"$root/etc/fstab"
echo "LANG=C.UTF-8" >"$root/etc/default/locale"
# Kernel modules come from a disk of their own.
mkdir -p "$root/usr/lib/modules"

mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nSystemMaxUse=100M\nRuntimeMaxUse=50M\n' \
  >"$root/etc/systemd/journald.conf.d/holdfast.conf"
printf '%s\n' "$HOLDFAST_SOURCES" >"$root/etc/apt/sources.list"

# The first boot has nothing to catch up on.
touch "$root/etc/.updated" "$root/var/.updated"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/log/* "$root"/tmp/* \
  "$root"/run/* "$root/var/cache/ldconfig/aux-cache" "$root"/var/lib/dpkg/*-old \
  "$root"/var/cache/debconf/*-old "$root"/etc/*-
find "$root/usr" -name __pycache__ -type d -prune -exec rm -rf {} +
