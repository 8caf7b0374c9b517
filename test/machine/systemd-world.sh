#!/bin/sh
# Boots this machine's systemd as PID 1 of new namespaces, over a copy of / that is thrown away, and
# runs a command there as a unit. Nothing outside of the namespaces changes but below <tree>.
#
# usage: unshare -pfmCuin --kill-child sh systemd-world.sh <scratch> <tree> [<command> <argument>...]
# Ends with the command's status; with 0 where there is none and all could be mounted.
set -eu
scratch=$1 tree=$2
shift 2
root=$scratch/root

mount --make-rprivate /
mount -t tmpfs scratch "$scratch"
mkdir "$scratch/upper" "$scratch/work" "$root"
mount -t overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" overlay "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs run "$root/run"
mount -t tmpfs tmp "$root/tmp"
mkdir -p "$root$tree"
mount --rbind "$tree" "$root$tree"
[ $# -gt 0 ] || exit 0

units=$root/run/systemd/system
mkdir -p "$units"
printf '[Unit]\nWants=dbus.socket wanted.service\n' >"$units/wanted.target"
cat >"$units/wanted.service" <<UNIT
[Unit]
DefaultDependencies=no
After=dbus.socket
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=exec
WorkingDirectory=$tree
StandardOutput=file:$tree/reports/systemd-world.log
StandardError=file:$tree/reports/systemd-world.log
PassEnvironment=PATH HOME HOLDFAST_TEST_KERNEL
ExecStart=$*
UNIT
export container=holdfast
exec chroot "$root" /usr/lib/systemd/systemd --system --unit=wanted.target --log-level=err
