#!/usr/bin/env bash
# Does Error Prone find nothing in the Spark plugin and its tests? The profile `lint` of spark/pom.xml names the checks.
#
# What was compiled before, in spark/target/lint, is not compiled again.
set -euo pipefail
cd "$(dirname "$0")"
./maven.sh
mvn --quiet --batch-mode --file ../spark/pom.xml -Plint test-compile
