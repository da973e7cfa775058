#!/usr/bin/env bash
# Builds the image with buildah, without a container engine and without a registry of images: the image to
# build in is made from Debian's packages. Then runs the demo in it as its own user, on a read-only root.
#
#   scripts/image.sh [FOLDER]      as root; FOLDER keeps the base between two runs
#
# Exit code 2: this machine lacks a program, cannot make the base, or lets no build reach pip's index; what is wrong
# with the image is another.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
for program in buildah mmdebstrap crun; do
  command -v "$program" >/dev/null || { echo "$program is missing: apt-get install buildah crun mmdebstrap" >&2; exit 2; }
done
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
store=(--root "$folder/storage" --runroot "$folder/run")

[ "$(id -u)" -eq 0 ] || { echo "only root can build an image without a container engine" >&2; exit 2; }
if [ ! -e "$folder/base.tar" ]; then
  mmdebstrap --quiet --variant=minbase --include=python3-venv,python3-pip,ca-certificates bookworm "$folder/base.part.tar" \
    || { echo "mmdebstrap cannot make the image to build in here" >&2; exit 2; }
  mv "$folder/base.part.tar" "$folder/base.tar"
fi
if ! buildah "${store[@]}" images --quiet localhost/quietus-build >/dev/null 2>&1; then
  base=$(buildah "${store[@]}" from scratch)
  buildah "${store[@]}" add "$base" "$folder/base.tar" / >/dev/null
  buildah "${store[@]}" commit --rm "$base" localhost/quietus-build >/dev/null
fi
# What pip needs to reach its index from here is this machine's matter; it goes into the build, not the image.
authority=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}
printf '[global]\ncert = /run/authority.crt\n' >"$folder/pip.conf"
[ -z "${PIP_INDEX_URL:-}" ] || printf 'index-url = %s\n' "$PIP_INDEX_URL" >>"$folder/pip.conf"
settings=(--volume "$authority:/run/authority.crt:ro" --volume "$folder/pip.conf:/etc/pip.conf:ro")
asking=$(buildah "${store[@]}" from localhost/quietus-build)
buildah "${store[@]}" run "${settings[@]}" "$asking" -- python3 -m pip download --quiet --no-deps --dest /tmp/asked idna \
  || { echo "pip reaches no index from within a build here" >&2; exit 2; }
buildah "${store[@]}" rm "$asking" >/dev/null
buildah "${store[@]}" bud "${settings[@]}" --build-arg BUILD=localhost/quietus-build \
  --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" --tag localhost/quietus .

container=$(buildah "${store[@]}" from localhost/quietus)
root=$(buildah "${store[@]}" mount "$container")
trap 'buildah "${store[@]}" rm "$container" >/dev/null' EXIT
for shell in bin/sh bin/bash bin/dash usr/bin/sh usr/bin/apt usr/bin/dpkg opt/quietus/bin/pip; do
  [ ! -e "$root/$shell" ] || { echo "/$shell is in the image" >&2; exit 1; }
done
echo "size: $(du -sh "$root" | cut -f1)"
python3 - "$root" <<'P'
import json, sys
print("distributions:", len(json.load(open(sys.argv[1] + "/sbom.cdx.json"))["components"]))
P
# As the kubelet runs it: its own user, nothing to write but /tmp, no capability, no way to gain one.
unshare --mount --net --pid --fork bash -euc '
  mount --bind "$0" "$0"; mount -t proc proc "$0/proc" 2>/dev/null || { mkdir -p "$0/proc"; mount -t proc proc "$0/proc"; }
  mount -t tmpfs -o mode=1777 tmpfs "$0/tmp"
  mkdir -p "$0/dev"; mount --bind /dev "$0/dev"
  mount -o remount,bind,ro "$0"
  ip link set lo up
  exec chroot --userspec=65532:65532 "$0" /opt/quietus/bin/python -c "
import os, subprocess, sys
assert os.getuid() == os.getgid() == 65532
try:
    open(\"/var/lib/x\", \"w\")
except OSError:
    pass
else:
    sys.exit(\"the root can be written to\")
sys.exit(subprocess.call([\"quietus\", \"demo\"], env={\"PATH\": \"/opt/quietus/bin\", \"LANG\": \"C.UTF-8\", \"HOME\": \"/tmp\"}))
"
' "$root"
echo "quietus demo: exit 0, as 65532, on a read-only root"
