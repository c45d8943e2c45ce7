#!/usr/bin/env bash
# A Redis for the tests that keeps nothing. Usage: redis.sh start|stop|status   (safe to repeat; prints REDIS_URL)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${here%/tests/servers}/.servers/redis
pidfile=$dir/redis.pid log=$dir/redis.log

running() {   # Redis rewrites its command line, so its folder tells whose it is
  [ -s "$pidfile" ] && [ "$(readlink "/proc/$(cat "$pidfile")/cwd")" = "$(realpath "$dir")" ]
} 2>/dev/null

start() {
  if ! running; then
    command -v redis-server >/dev/null || { echo "No redis-server here: install it or set TEST_REDIS_URL" >&2; exit 1; }
    mkdir -p "$dir"
    python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])' >"$dir/port"
    redis-server --bind 127.0.0.1 --port "$(cat "$dir/port")" --dir "$dir" --pidfile "$pidfile" --logfile "$log" \
      --save '' --appendonly no --daemonize yes >/dev/null
    for _ in {1..50}; do ! running || break; sleep 0.1; done
    running || { tail -n 5 "$log" >&2; exit 1; }
  fi
  echo "REDIS_URL=redis://127.0.0.1:$(cat "$dir/port")/0"
}

case ${1:-start} in
  start) start ;;
  stop) if running; then kill "$(cat "$pidfile")"; while running; do sleep 0.1; done; fi ;;
  status) if running; then start; else echo stopped; exit 3; fi ;;
  *) echo "usage: $0 start|stop|status" >&2; exit 2 ;;
esac
