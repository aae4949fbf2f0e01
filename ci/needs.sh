#!/bin/sh
# Is there what cannot be built here? Installs what is missing if this user may; else says which commands do.
#
#     ci/needs.sh TOOL...     rust cc python java: Rust, a C compiler, Python with venv and pip, and a JDK with Maven;
#                             nightly parallel valgrind: Rust's nightly toolchain with Miri, GNU parallel, valgrind
#
# Everything else is fetched in fixed versions by what needs it, into target/.
set -eu

at_least() { # at_least 'NAME 1.95.0 ...' 1.90
    found=$(echo "$1" | sed -n 's/^[a-z]* \([0-9][0-9.]*\).*/\1/p')
    [ -n "$found" ] && printf '%s\n' "$2" "$found" | sort --version-sort --check 2>/dev/null
}

has() { # has TOOL
    case $1 in
    rust) at_least "$(${CARGO:-cargo} --version 2>/dev/null)" 1.90 ;;
    cc) command -v cc >/dev/null ;;
    python) python3 -c 'import ensurepip, pip, sys, venv; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 ;;
    nightly) cargo +nightly miri --version >/dev/null 2>&1 && [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src" ] ;;
    parallel) parallel --version 2>/dev/null | grep -q '^GNU parallel' ;;
    valgrind) command -v valgrind >/dev/null ;;
    java) command -v mvn >/dev/null && at_least "$(javac -version 2>&1)" 17 ;;
    *) echo "ci/needs.sh: there is no tool $1" >&2 && exit 2 ;;
    esac
}

packages='' missing=''
for tool; do
    has "$tool" && continue
    missing="$missing $tool"
    case $tool in
    rust) ;;
    nightly) ! command -v rustup >/dev/null || rustup toolchain install nightly --profile minimal --component miri,rust-src >&2 || : ;;
    parallel | valgrind) packages="$packages $tool" ;;
    cc) packages="$packages build-essential" ;;
    python) packages="$packages python3-venv python3-pip" ;;
    java) packages="$packages openjdk-17-jdk-headless maven" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ -n "$packages" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "ci/needs.sh: installing$packages" >&2
    # shellcheck disable=SC2086 # It is a list.
    apt-get update -q >&2 && env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $packages >&2
fi
for tool in $missing; do
    has "$tool" && continue
    failed=1
    case $tool in
    rust) echo 'Rust 1.90 or later is missing: https://rustup.rs installs it for one user' >&2 ;;
    nightly) echo "Rust's nightly toolchain with Miri is missing: rustup toolchain install nightly --component miri,rust-src" >&2 ;;
    parallel) echo 'GNU parallel is missing: apt-get install parallel (Debian, Ubuntu), dnf install parallel (Fedora)' >&2 ;;
    valgrind) echo 'valgrind is missing: apt-get install valgrind (Debian, Ubuntu), dnf install valgrind (Fedora)' >&2 ;;
    cc) echo 'A C compiler is missing: apt-get install build-essential (Debian, Ubuntu), dnf install gcc (Fedora)' >&2 ;;
    python) echo 'Python 3.10 or later with venv and pip is missing: apt-get install python3-venv python3-pip (Debian, Ubuntu)' >&2 ;;
    java) echo 'A JDK 17 or Maven is missing: apt-get install openjdk-17-jdk-headless maven (Debian, Ubuntu)' >&2 ;;
    esac
done
exit "${failed:-0}"
