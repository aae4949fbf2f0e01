#!/bin/sh
# Is the command built only from permitted crates?
#
#     ci/supply.sh            licences, sources, duplicates and advisories (deny.toml), and the notices in THIRD-PARTY.md
#     ci/supply.sh --quick    the same without advisories, with the installed tools; prints what was not checked
#
# cargo-deny is installed if it is missing, except with --quick.
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}

# 1. The notices match the crates in Cargo.lock.
python3 -B ci/notices.py --check

# 2. Licences, sources, duplicates.
if ! $CARGO deny --version >/dev/null 2>&1; then
	if [ "${1:-}" = --quick ]; then
		echo 'cargo-deny is not installed, so licences, sources and duplicates of crates were not checked; ci/supply.sh installs it'
		exit
	fi
	$CARGO install --locked cargo-deny
fi
$CARGO deny --locked --all-features --log-level error check --hide-inclusion-graph bans licenses sources
[ "${1:-}" != --quick ] || exit 0

# 3. Advisories, if the RustSec database can be fetched.
if $CARGO deny --locked --log-level off fetch db >/dev/null 2>&1; then
	$CARGO deny --locked --all-features --log-level error check --disable-fetch --hide-inclusion-graph advisories
else
	echo 'advisories were not checked: github.com/rustsec/advisory-db cannot be reached'
fi
