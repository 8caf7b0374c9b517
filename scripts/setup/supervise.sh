#!/bin/sh
# Restarts `serve` where there is no systemd, with back-off, until told to stop. Started once by
# scripts/up in a session of its own. usage: supervise.sh BINARY DATA PORT
set -u
binary=$1 data=$2 port=$3
echo $$ >"$data/supervise.pid"
stopping=
trap 'stopping=1; [ -z "${serve:-}" ] || kill -TERM "$serve" 2>/dev/null' TERM INT
pause=1
while [ -z "$stopping" ]; do
  began=$(date +%s)
  "$binary" serve --data "$data" --port "$port" </dev/null >>"$data/log/serve.log" 2>&1 &
  serve=$!
  wait "$serve"
  code=$?
  # A trapped signal ends the first wait early; the child still has to be seen out.
  while kill -0 "$serve" 2>/dev/null; do wait "$serve"; code=$?; done
  [ -z "$stopping" ] || break
  lasted=$(($(date +%s) - began))
  if [ "$lasted" -ge 60 ]; then pause=1; fi
  echo "{\"level\":\"warn\",\"message\":\"serve ended\",\"code\":$code,\"again_in_seconds\":$pause}" \
    >>"$data/log/serve.log"
  # The log is kept short: this loop may run for years.
  if [ "$(stat -c %s "$data/log/serve.log")" -gt 50000000 ]; then
    mv "$data/log/serve.log" "$data/log/serve.log.1"
  fi
  sleep "$pause" &
  wait $!
  pause=$((pause * 2)); [ "$pause" -le 30 ] || pause=30
done
rm -f "$data/supervise.pid"
