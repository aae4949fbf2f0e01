#!/bin/sh
# Does the library's public interface keep the promise of its version?
#
#     ci/api.sh REV           compares the libraries here with those of the revision REV, such as v0.2.0 or main
#
# Needs cargo-semver-checks and installs nothing. Ends with 1 if the version must be raised, and with 2 if nothing was
# compared.
set -eu
cd "$(dirname "$0")/.."
CARGO=${CARGO:-cargo}
if [ $# != 1 ]; then
	echo 'usage: ci/api.sh REV' >&2
	exit 2
fi
if ! git rev-parse --quiet --verify "$1^{commit}" >/dev/null; then
	echo "ci/api.sh: $1 is not a revision of this repository" >&2
	exit 2
fi
if ! $CARGO semver-checks --version >/dev/null 2>&1; then
	echo 'ci/api.sh: nothing was compared. Install the tool: cargo install --locked cargo-semver-checks' >&2
	exit 2
fi
exec $CARGO semver-checks --package gristmill --package gristmill-columnar --baseline-rev "$1"
