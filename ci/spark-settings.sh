#!/usr/bin/env bash
# Does any setting of Spark lose a row? Runs two jobs on two executors under each setting of Spark that touches a shuffle, one at a time,
# through 0, 1, tiny and huge values:
#   ci/spark-settings.sh [REGEX]
# REGEX chooses settings by name. Each value takes about 15 seconds on two cores, all of them an hour and a half. Prints a line for each; it
# fails if rows are wrong, or if the sort shuffle gives rows where Gristmill does not. Where a job fails, the sort shuffle is run with the
# same setting; what a setting that fails in both says is printed, too.
set -euo pipefail
cd "$(dirname "$0")/../spark"
rm -f target/spark-settings.txt
mkdir -p target
touch target/spark-settings.txt
tail -f target/spark-settings.txt &
trap 'kill $!' EXIT
mvn -B -q test -Dtest=SettingsMatrix -Dgristmill.settings.limit=150 -Dgristmill.settings="${1:-}"
