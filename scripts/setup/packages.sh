# The system packages Holdfast needs, and how they are installed. Sourced by scripts/up and
# scripts/test; never installs what is there already, never asks a question.

# What running needs: VMs, images, and the C runner for the guest.
HOLDFAST_PACKAGES="ca-certificates curl qemu-system-x86 seabios mmdebstrap debian-archive-keyring gpgv
e2fsprogs erofs-utils tar zstd xz-utils kmod util-linux gcc libc6-dev"

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $1"; [ $# -lt 2 ] || say "  what to do: $2"; exit 1; }

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing_packages() {
  for package in "$@"; do is_installed "$package" || printf '%s ' "$package"; done
}

# Names the process that holds dpkg's lock, so that a wait of minutes explains itself.
lock_holder() {
  inode=$(stat -c %i /var/lib/dpkg/lock-frontend 2>/dev/null) || return 0
  pid=$(awk -v inode="$inode" '{ split($6, place, ":"); if (place[3] == inode) { print $5; exit } }' \
    /proc/locks 2>/dev/null)
  [ -z "$pid" ] || printf '%s (pid %s)' "$(cat "/proc/$pid/comm" 2>/dev/null)" "$pid"
}

apt() {
  holder=$(lock_holder)
  [ -z "$holder" ] || say "  waiting up to 10 minutes for the package lock, held by $holder"
  DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a apt-get -q -y \
    -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@"
}

# Until descriptor 9 is closed: two at once would install into each other's toolchain.
one_at_a_time() {
  mkdir -p .cache
  exec 9>>.cache/install.lock
  flock -n 9 || { say "waiting: another run installs here"; flock 9; }
}

# Installs what is missing of the packages given; says what, and keeps apt's own words in a log.
install_packages() {
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  [ "$(id -u)" = 0 ] || die "missing packages: $missing" "run this as root, or install them yourself"
  say "installing: $missing"
  log=$(mktemp)
  { apt update && apt install --no-install-recommends $missing; } >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "apt-get could not install: $missing" "see $log, mend it, and run this again"
  }
  rm -f "$log"
}

# Node.js only brings Bun, at the version package.json pins. A npm that is there is used as it is.
install_toolchain() {
  command -v npm >/dev/null || install_packages nodejs npm
  lock_digest=$(sha256sum package-lock.json package.json | sha256sum | cut -c1-64)
  if [ "$(cat node_modules/.installed 2>/dev/null)" != "$lock_digest" ]; then
    say "installing the toolchain (about 150 MB)"
    log=$(mktemp)
    npm ci --ignore-scripts --no-audit --no-fund >"$log" 2>&1 || {
      tail -n 20 "$log" >&2
      die "npm ci failed" "see $log; behind a proxy, set npm's registry and certificate settings"
    }
    rm -f "$log"
    # None needs its install script but Bun's, which puts the program in place.
    node_modules/.bin/bun --version >/dev/null 2>&1 || node node_modules/bun/install.js >&2
    # npm leaves out optional parts that an older Node.js could not load, but Bun can.
    node_modules/.bin/bun install --no-save --silent >&2
    printf '%s' "$lock_digest" >node_modules/.installed
  fi
  node_modules/.bin/bun --version >/dev/null 2>&1 ||
    die "Bun does not run on this machine" "it needs x86-64 with SSE4.2, and glibc"
}
