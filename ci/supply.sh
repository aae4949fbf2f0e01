#!/bin/sh
# Is the command built only from permitted crates?
#
#     ci/supply.sh            licences, sources, duplicates and advisories (deny.toml), and the notices in THIRD-PARTY.md
#     ci/supply.sh --quick    the same without advisories, if Cargo.lock or deny.toml has changed since ci/passed/supply
#
# cargo-deny is installed in target/ if it is missing, which takes some minutes once. A build without optimisation is
# quick enough.
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
mkdir -p "${CARGO_TARGET_DIR:-target}/tools"
tools=$(cd "${CARGO_TARGET_DIR:-target}/tools" && pwd)
PATH=$tools/bin:$PATH

# 1. The notices match the crates in Cargo.lock.
python3 -B ci/notices.py --check

# 2. Licences, sources, duplicates. What has passed is not asked again: cargo-deny takes minutes to build.
read -r _ passed _ <ci/passed/supply
if [ "${1:-}" = --quick ] && git diff --quiet "$passed" -- Cargo.lock deny.toml 2>/dev/null; then exit 0; fi
if ! $CARGO deny --version >/dev/null 2>&1; then
	$CARGO install --quiet --debug --locked --root "$tools" --target-dir "$tools/build" cargo-deny@0.20.2
	rm -rf "$tools/build"
fi
$CARGO deny --locked --all-features --log-level error check --hide-inclusion-graph bans licenses sources
[ "${1:-}" != --quick ] || exit 0

# 3. Advisories, if the RustSec database can be fetched.
if $CARGO deny --locked --log-level off fetch db >/dev/null 2>&1; then
	$CARGO deny --locked --all-features --log-level error check --disable-fetch --hide-inclusion-graph advisories
else
	echo 'advisories were not checked: github.com/rustsec/advisory-db cannot be reached'
fi
