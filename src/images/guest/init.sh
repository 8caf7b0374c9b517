#!/bin/busybox sh
# PID 1 until the root disk is mounted: loads what the kernel lacks, mounts the root disk and the
# tools disk, lays our units into /run, and gives way to the distribution's own init. Never writes a
# byte to the root disk. Where it fails the kernel panics, and the console's last line says why.

b() { /bin/busybox "$@"; }
fail() { echo "holdfast init: $*"; b sleep 1; exit 1; }

b mount -t devtmpfs dev /dev || fail "no devtmpfs"
exec >/dev/console 2>&1
b mount -t proc proc /proc && b mount -t sysfs sys /sys || fail "no proc or sysfs"

while read -r module; do
  b insmod "/modules/$module" || fail "cannot load $module"
done </modules/order

# Disks are known by their serial numbers, because their order is not promised.
disk() {
  for block in /sys/block/vd*; do
    [ "$(b cat "$block/serial" 2>/dev/null)" = "$1" ] && echo "/dev/${block##*/}" && return
  done
  return 1
}
tries=0
until root=$(disk root) && tools=$(disk tools); do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || fail "no disk with serial root or tools among: $(echo /sys/block/*)"
  b sleep 0.1
done

b mount -t ext4 -o noatime "$root" /disk || fail "cannot mount the root disk $root"
b mount -t tmpfs -o mode=0755,nosuid,nodev,size=20%,nr_inodes=800k run /disk/run || fail "no /run"
# Output and, later, sign-ins are kept here: never swapped out to a disk that is saved.
b mkdir -p /disk/run/holdfast
b mount -t tmpfs -o mode=0711,nosuid,nodev,noswap run-holdfast /disk/run/holdfast ||
  fail "no /run/holdfast"
b mkdir /disk/run/holdfast/tools
b mount -t erofs -o ro,nosuid,nodev "$tools" /disk/run/holdfast/tools || fail "cannot mount the tools disk $tools"
if [ -d /disk/tmp ]; then b mount -t tmpfs -o mode=1777,nosuid,nodev tmp /disk/tmp; fi

units=/disk/run/systemd/system
b mkdir -p /disk/run/systemd
b cp -a /units/. "$units/"

# Block count and block size stand at 4 and 24 of the superblock, which begins at 1024 (ext4's
# on-disk format).
number() { b dd if="$root" bs=1 skip="$1" count=4 2>/dev/null | b od -An -tu4 | b tr -d ' '; }
have=$(($(number 1028) * (1024 << $(number 1048))))
room=$(($(b cat "/sys/block/${root##*/}/size") * 512))
if [ "$room" -gt "$have" ]; then
  b ln -s ../holdfast-grow.service "$units/sysinit.target.wants/"
fi

# Laid out when this was built: one copy costs an emulated guest less than a hundred links.
b cp -a /masks/always/. /disk/run/systemd/
if b grep -qw holdfast.trim /proc/cmdline; then b cp -a /masks/trimmed/. /disk/run/systemd/; fi

for tree in dev proc sys; do b mount --move "/$tree" "/disk/$tree" || fail "cannot move /$tree"; done
for init in /sbin/init /lib/systemd/systemd /usr/lib/systemd/systemd; do
  [ -x "/disk$init" ] || [ -L "/disk$init" ] || continue
  exec /bin/busybox switch_root /disk "$init"
done
fail "the root disk has no init"
