#!/usr/bin/env bash
# A real MySQL for the tests on Debian or Ubuntu, without root: apt fetches mysql-server-core and its libraries,
# nothing is installed, and mysqld runs from a folder through that folder's own ld.so. A MySQL that is installed
# already is used instead, with data of its own.
# Usage: mysql.sh start|stop|status   (safe to repeat; prints the connection settings)
#   MYSQL_DIR   where everything lives (default: .servers/mysql of the checkout)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${MYSQL_DIR:-${here%/tests/servers}/.servers/mysql}
fetched=$dir/root data=$dir/data apt=$dir/apt pidfile=$dir/mysqld.pid log=$dir/mysqld.log
sock=$dir/mysql.sock   # a socket's path has at most 107 characters
[ ${#sock} -le 100 ] || sock=/tmp/mysql-$(echo "$dir" | cksum | cut -d' ' -f1).sock

running() {
  [ -s "$pidfile" ] && tr '\0' '\n' 2>/dev/null <"/proc/$(cat "$pidfile")/cmdline" | grep -qxF -- "--datadir=$data"
} 2>/dev/null

is_installed() {   # MySQL 8.0.17 or later: MariaDB's mysqld says 10 and more
  local version
  version=$(/usr/sbin/mysqld --version 2>/dev/null | grep -v MariaDB | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1) &&
    printf '%s\n' 8.0.17 "$version" | sort -CV
}

mysqld() {
  local root='' opts=(--no-defaults "--datadir=$data" --secure-file-priv=NULL) libraries loader
  if ! is_installed; then
    root=$fetched
    opts+=("--basedir=$root/usr" "--lc-messages-dir=$root/usr/share/mysql" "--plugin-dir=$root/usr/lib/mysql/plugin")
  fi
  libraries=$root/usr/lib/$(uname -m)-linux-gnu
  for loader in "$root"/{lib64,usr/lib64,lib,usr/lib}/ld-linux-*.so.*; do [ ! -x "$loader" ] || break; done
  [ "$(id -u)" != 0 ] || opts+=(--user=root)
  # an installed one goes through ld.so too: AppArmor keeps /usr/sbin/mysqld itself out of our folder
  exec setsid "$loader" --library-path "$libraries" --argv0 mysqld "$root/usr/sbin/mysqld" "${opts[@]}" "$@"
}

sources() {   # the mirror is the one that apt uses already
  local ID VERSION_CODENAME uri
  # shellcheck source=/dev/null
  . /etc/os-release
  # shellcheck disable=SC2016  # apt fills it in
  uri=$(apt-get indextargets --no-release-info --format '$(RELEASE) $(REPO_URI)' |
    awk -v releases="^($VERSION_CODENAME|stable|testing|unstable|sid)$" '$1 ~ releases {print $2; exit}')
  release() { echo "deb [signed-by=/usr/share/keyrings/$ID-archive-keyring.gpg check-valid-until=no] $uri $1 main"; }
  case $ID in
    debian) release sid ;;   # no stable release has MySQL; a mirror that is a snapshot has an old one, which will do
    ubuntu) release "$VERSION_CODENAME" && release "$VERSION_CODENAME-updates" ;;
  esac
}

fetch() {
  local package deb
  command -v apt-get >/dev/null || { echo "No MySQL here, and only apt can fetch one: set TEST_MYSQL_URL"; exit 1; }
  echo "Fetching MySQL"
  rm -rf "$apt" "$fetched" && mkdir -p "$apt"/{lists,cache/archives}/partial "$fetched"
  sources >"$apt/sources.list"
  [ -s "$apt/sources.list" ] || { echo "No MySQL known for this system: set TEST_MYSQL_URL"; exit 1; }
  # only helper scripts need perl: call it installed, so that apt leaves it out
  printf '%s\n' 'Package: perl' 'Status: install ok installed' "Architecture: $(dpkg --print-architecture)" \
    'Version: 99' 'Multi-Arch: allowed' 'Maintainer: none' 'Description: stub' >"$apt/status"
  cat >"$apt/apt.conf" <<CONF
Dir::State "$apt"; Dir::State::status "$apt/status"; Dir::Cache "$apt/cache"; APT::Sandbox::User "$(id -un)";
Dir::Etc::sourcelist "$apt/sources.list"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
CONF
  export APT_CONFIG=$apt/apt.conf
  apt-get -qq update
  # Ubuntu 24.04 calls it mysql-server-core-8.0
  package=$(apt-cache search --names-only '^mysql-server-core(-[0-9.]+)?$' | cut -d' ' -f1 | sort | tail -1)
  apt-get -qq -y install --download-only --no-install-recommends "$package"
  for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$fetched"; done
  rm -rf "$apt" && touch "$fetched/.done"
}

fail() {
  tail -n 5 "$log" >&2
  echo "MySQL does not start, see $log; nothing is lost by: rm -r $dir" >&2
  exit 1
}

port() {   # the one used last if it is free, else any
  python3 -c 'import socket, sys
for port in (int(sys.argv[1]), 0):
    try: s = socket.create_server(("127.0.0.1", port))
    except OSError: continue
    print(s.getsockname()[1]); break' "$(cat "$dir/port" 2>/dev/null || echo 0)"
}

start() {
  if ! running; then
    mkdir -p "$dir"
    is_installed || [ -e "$fetched/.done" ] || fetch >&2
    [ -e "$data/.done" ] ||
      { rm -rf "$data" && (mysqld --initialize-insecure) >"$log" 2>&1 && touch "$data/.done"; } || fail
    local port pid
    port=$(port) && echo "$port" >"$dir/port"
    printf '%s\n' "CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY 'app';" "GRANT ALL ON *.* TO 'app'@'%';" \
      'CREATE DATABASE IF NOT EXISTS app CHARACTER SET utf8mb4;' >"$dir/init.sql"
    # small, and quick to commit (…trx-commit=2): tests may kill clients, but nobody cuts this server's power
    (mysqld --bind-address=127.0.0.1 --port="$port" --socket="$sock" --pid-file="$pidfile" --init-file="$dir/init.sql" \
      --mysqlx=OFF --skip-log-bin --skip-name-resolve --performance-schema=OFF --max-connections=200 \
      --innodb-flush-log-at-trx-commit=2) >>"$log" 2>&1 </dev/null &
    pid=$!
    trap 'kill $pid 2>/dev/null; wait $pid' EXIT   # in a session of its own, it would outlive a Ctrl-C here
    for _ in {1..300}; do
      { running && [ -S "$sock" ]; } || ! kill -0 $pid 2>/dev/null || { sleep 0.2; continue; }
      break
    done
    { running && [ -S "$sock" ]; } || fail
    trap - EXIT
  fi
  printf '%s\n' MYSQL_HOST=127.0.0.1 MYSQL_PORT="$(cat "$dir/port")" MYSQL_UNIX_SOCKET="$sock" \
    MYSQL_USER=app MYSQL_PASSWORD=app MYSQL_DATABASE=app MYSQL_URL="mysql://app:app@127.0.0.1:$(cat "$dir/port")/app"
}

case ${1:-start} in
  start) start ;;
  stop) if running; then kill "$(cat "$pidfile")"; while running; do sleep 0.2; done; fi ;;
  status) if running; then start; else echo stopped; exit 3; fi ;;
  *) echo "usage: $0 start|stop|status" >&2; exit 2 ;;
esac
