# Shared by every script here: where things are, the packages, small helpers. Sourced, not run.
# shellcheck shell=bash
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

JOBS=${JOBS:-$(nproc)}
export CCACHE_DIR=${CCACHE_DIR:-${HOME:+$HOME/.cache/ccache}}
export CCACHE_DIR=${CCACHE_DIR:-$ROOT/build/.ccache}
# Precompiled headers are only cached when ccache may trust them.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

# What a program of ours needs to be built, and what the tests need beside it (Debian 12).
BUILD_PACKAGES="g++ cmake ninja-build ccache mold libasio-dev libboost1.81-dev libboost-json1.81-dev libssl-dev libfmt-dev libexpected-dev
  libisal-dev libsnappy-dev zlib1g-dev libre2-dev libtomlplusplus-dev libcli11-dev"
TEST_PACKAGES="libgtest-dev librapidcheck-dev clang-14 libclang-rt-14-dev llvm-14 clang-format-14 ca-certificates git"
MICRO_PACKAGES="libbenchmark-dev"  # scripts/bench micro and smoke only
OBSERVE_PACKAGES="chromium-headless-shell prometheus"  # scripts/observe only

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'Error: %s\n' "$*" >&2; exit 1; }

# A seed that the commit decides: each one is tried with draws of its own, and what passed once passes again.
commit_seed() {
  local commit
  commit=$(git rev-parse HEAD 2>/dev/null || echo 1)
  printf '%d\n' $((16#${commit:0:8}))
}

# Prints those of its arguments that are not installed.
missing_packages() {
  local installed name
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' 2>/dev/null | awk '$2 == "installed" {print $1}')
  for name in "$@"; do
    grep -qxF -- "$name" <<<"$installed" || printf '%s\n' "$name"
  done
}

# install_packages NAME...: one apt-get command, and only when something is missing.
install_packages() {
  local missing sudo=() log
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -eq 0 ] && return 0
  command -v apt-get >/dev/null || die "needs Debian packages: ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "run as root or install sudo; missing packages: ${missing[*]}"
    sudo=(sudo)
  fi
  say "installing ${missing[*]}"
  mkdir -p build
  log=build/setup.log
  if ! { "${sudo[@]}" apt-get -o Acquire::Retries=5 update -q && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -o Acquire::Retries=5 install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    die "apt-get failed (whole output in $log)"
  fi
}

# A python3 that can make virtual environments, and a go, are taken as they are; otherwise Debian's are installed.
tool_packages() {
  command -v go >/dev/null || printf 'golang-go\n'
  if ! command -v python3 >/dev/null; then
    printf 'python3\npython3-venv\n'
  elif ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    printf 'python3-venv\n'
  fi
}

# For the clients and tools of scripts/compat; what is there is taken as it is.
compat_packages() {
  tool_packages
  { command -v node && command -v npm; } >/dev/null || printf 'nodejs\nnpm\n'
  command -v javac >/dev/null || printf 'default-jdk-headless\n'
  command -v mvn >/dev/null || printf 'maven\n'
  command -v openssl >/dev/null || printf 'openssl\n'
}

# configure PRESET: once; later runs of ninja notice changes by themselves.
configure() {
  if [ ! -f "build/$1/build.ninja" ]; then
    mkdir -p "build/$1"
    cmake --preset "$1" >"build/$1/configure.log" 2>&1 || { tail -n 30 "build/$1/configure.log" >&2; die "cmake --preset $1 failed"; }
  fi
}

# build PRESET [TARGET...]: quiet when it works, everything that failed when not.
build() {
  local preset=$1 log
  shift
  configure "$preset"
  log=build/$preset/build.log
  say "building $preset ${*:-}"
  if ! ninja -C "build/$preset" -j"$JOBS" -k 20 "$@" >"$log" 2>&1 </dev/null; then
    grep -E -A 30 '^FAILED|error:|^ninja: error' "$log" | head -n 120 >&2
    die "build $preset failed (whole output in $log)"
  fi
}
