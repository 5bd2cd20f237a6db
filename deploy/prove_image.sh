#!/bin/bash
# Builds the image as the Dockerfile says, without a Docker daemon and without a registry, and runs it: debootstrap makes
# the base, buildah builds with chroot isolation, and the result answers a question and drains, as user 65532 with a
# read-only root. As root, on Debian 12 with the packages buildah, debootstrap and jq:
#
#   deploy/prove_image.sh
#
# BASE_ROOT=DIR     take this root directory instead of one that debootstrap makes
# KEEP=1            leave the images in build/image-proof for a look, and for a next time that builds only what has changed
set -euo pipefail
cd "$(dirname "$0")/.."
[[ $(id -u) -eq 0 ]] || { echo "$0: needs root, for debootstrap and for buildah's chroot" >&2; exit 1; }
for tool in buildah debootstrap jq; do
  command -v "$tool" >/dev/null || { echo "$0: needs $tool: apt-get install buildah debootstrap jq" >&2; exit 1; }
done

work=$PWD/build/image-proof
mkdir -p "$work"
builder() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
server=
finish() {
  [[ -z $server ]] || kill -KILL "$server" 2>/dev/null || true
  [[ -n ${KEEP:-} ]] || { builder rm --all && builder rmi --all --force; } >/dev/null 2>&1 || true
}
trap finish EXIT
step() { echo "==== $*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }

step "base"
if ! builder inspect --type image sliceplan-base >/dev/null 2>&1; then
  root=${BASE_ROOT:-$work/base}
  [[ -d $root/usr ]] || debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap.log"
  base=$(builder from scratch)
  builder add -q "$base" "$root" / >/dev/null
  builder commit -q "$base" sliceplan-base >/dev/null
  builder rm "$base" >/dev/null
fi

step "build"
builder bud --layers --isolation chroot --format docker --pull-never \
  --build-arg BASE=localhost/sliceplan-base --build-arg RUNTIME_BASE=localhost/sliceplan-base \
  --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" -t sliceplan .

step "what the image says"
config=$(builder inspect --type image sliceplan | jq .Docker.config)
says() { [[ $(jq -r "$1" <<<"$config") == "$2" ]] || fail "$1 is $(jq -r "$1" <<<"$config"), not $2"; }
says .User 65532:65532
says .StopSignal SIGTERM
says '.Entrypoint | join(" ")' /usr/local/bin/sliceplan-server
says '.Labels["org.opencontainers.image.title"]' sliceplan
says '.Healthcheck.Test[0] // "NONE"' NONE

step "one question, in a chroot with a read-only root, as user 65532"
container=$(builder from sliceplan)
mounted=$(builder mount "$container")
! [[ -e $mounted/usr/bin/g++ || -e $mounted/opt/sliceplan ]] || fail "what was built with is in the image"
# unshare: the read-only mount is seen by this process alone, and goes with it.
chrooted=(unshare --mount bash -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift &&
  exec chroot --userspec=65532:65532 --groups=65532 "$@"' - "$mounted" "$mounted")
inside() { "${chrooted[@]}" "$@"; }
! inside touch /written 2>/dev/null || fail "the root can be written"
[[ $(inside id -u) == 65532 ]] || fail "not user 65532"
# With exec everywhere, so that its process is the server itself.
coproc SERVER { exec "${chrooted[@]}" /usr/local/bin/sliceplan-server --port=0 --drain_delay=0s 2>"$work/server.log"; }
server=$SERVER_PID
read -r -t 30 line <&"${SERVER[0]}" || fail "the server does not start: $(cat "$work/server.log")"
port=${line#port=}
question='{"model":{"preset":"llama-3-70b"},"slice":{"accelerator":"tpu-v5p","topology":"16x16x16"},
  "workload":{"sequenceLength":4096,"globalBatchTokens":"4194304"},"parallelism":{"ici":{"fsdp":1024,"tensor":4}}}'
answer=$(inside /usr/local/bin/sliceplan call PlannerService/EstimateTraining --server "127.0.0.1:$port" --request=- \
  <<<"$question")
jq -c '.estimate | {outcome, chipCount, sentence: .bottleneck.sentence}' <<<"$answer"
[[ $(jq -r .estimate.chipCount <<<"$answer") == 4096 ]] || fail "another answer: $answer"

step "SIGTERM"
kill -TERM "$server"
wait "$server" || fail "exit status $?"
server=
jq -es 'any(.message == "drained")' "$work/server.log" >/dev/null || fail "it did not drain"
builder images --format '{{.Name}} {{.Size}}'
echo "PROVEN"
