#!/bin/sh
# Install packages of Debian, as root. Two clones that install at the same time, or one beside the system's own updates,
# wait for each other: apt-get itself gives up where another holds its lists.
#
#   tests/debian_package.sh prometheus
set -eu
if [ "${BACKSTAY_APT_LOCKED:-}" = "" ] && command -v flock >/dev/null; then
    exec env BACKSTAY_APT_LOCKED=1 flock --timeout 600 /var/cache/apt "$0" "$@"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends "$@" >/dev/null
