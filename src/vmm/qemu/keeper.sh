#!/bin/sh
# Keeps one run of one VM: holds the sandbox's lock while QEMU runs, keeps the newest of what QEMU
# and the guest's console say, and writes down how it ended. It outlives Holdfast, so that nothing
# is lost while that is away. It must never start a run twice, nor one that was killed.
#
# usage: keeper.sh <the sandbox's directory> <run> <program> <argument>...
set -u
umask 077
PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL

sandbox=$1
run=$2
shift 2
# A run that was forgotten has no directory, and starts nothing.
cd "$sandbox/$run" || exit 0
exec </dev/null >>keeper.log 2>&1
# Whoever ends a VM ends QEMU; this has still to write down how that went.
trap '' HUP INT TERM

# Of each stream between one and two times so many bytes stay.
kept=262144

put() { printf '%s\n' "$2" >"$1.new" && mv "$1.new" "$1"; }

# pid and start time, which together name one process of this boot.
identity() {
  read -r stat <"/proc/$1/stat" || stat='gone) ? 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0'
  set -- "$1" ${stat##*) }
  echo "$1 ${21}"
}

was_killed() {
  final=0
  [ ! -e ../final ] || read -r final <../final
  [ "$final" -ge "$run" ]
}

# Reads to the end, whatever happens: a guest whose console nobody reads stands still. By exec,
# because a shell keeps copies of what it redirects for a function.
keep() {
  exec <"$2" 6>&- 7>&- 8>&- 9>&-
  while :; do
    if ! stdbuf -o0 head -c "$kept" >"$1"; then
      cat >/dev/null
      return
    fi
    [ "$(stat -c %s "$1")" -ge "$kept" ] || return 0
    mv "$1" "$1.old"
  done
}

# Not without waiting: who looks whether it is held has it for an instant.
exec 9>>../lock
if ! flock -w 1 9; then
  [ -e vm ] || put end "refused another VM of this sandbox still runs"
  exit 0
fi
if was_killed || [ -e vm ]; then exit 0; fi

read -r boot </proc/sys/kernel/random/boot_id
keeper=$(identity $$)
put vm "$boot $keeper" || exit 0
if ! mkfifo monitor.in monitor.out console.pipe; then
  put end "refused no pipes could be made"
  exit 0
fi
# Held open here, so that nobody waits for the other end to come.
exec 6<>monitor.out 7<>console.pipe 8<>monitor.in
keep log monitor.out &
keep console console.pipe &

"$@" >&6 2>&6 6>&- 7>&- 8>&- &
qemu=$!
put vm "$boot $keeper $(identity $qemu)"
# From now on this monitor says why the VM ends.
echo '{"execute":"qmp_capabilities"}' >&8
wait $qemu
status=$?
killed=no
! was_killed || killed=yes
exec 6>&- 7>&- 8>&-
wait
put end "exited $status $killed"
