#!/usr/bin/env bash
# Installs Maven and a JDK, if they are missing and this user may.
set -euo pipefail
! command -v mvn >/dev/null || ! command -v javac >/dev/null || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo 'ci/maven.sh: install maven and openjdk-17-jdk-headless (Debian, Ubuntu) and run this again' >&2
    exit 1
fi
echo 'ci/maven.sh: installing Maven and a JDK of version 17' >&2
apt-get update -q && apt-get install -qy maven openjdk-17-jdk-headless
