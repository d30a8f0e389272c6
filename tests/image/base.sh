#!/bin/sh
# Make a clean root that stands in for the base image of the Dockerfile: Debian's own packages, and nothing else.
#
#   tests/image/base.sh build/image/base
#
# It takes half a minute, and installs mmdebstrap where that is missing. Only root can make it.
set -eu
place="$1"
if [ "$(id -u)" != 0 ]; then
    echo "Only root can make a clean root, so the tests of the image are skipped" >&2
    exit 0
fi
if ! command -v mmdebstrap >/dev/null; then
    "$(dirname "$0")/../debian_package.sh" mmdebstrap libseccomp2
fi
release="$(sed -n 's/^ARG PYTHON=.*-slim-//p' Dockerfile)"
mkdir -p "$(dirname "$place")"
rm -rf "$place.making" "$place"
echo "Making a clean root of Debian $release"
mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3,python3-pip,python3-venv "$release" "$place.making"
# Where the base image has its interpreter.
for name in python python3; do ln -s /usr/bin/python3 "$place.making/usr/local/bin/$name"; done
touch "$place.making/.made"
mv "$place.making" "$place"
