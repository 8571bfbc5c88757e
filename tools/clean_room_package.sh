#!/usr/bin/env bash
# Do the packages of ./dev package work where nothing else is? Makes empty Debian 12 roots (essential packages only),
# without a network, and runs the program there from the archive and from the .deb; then boots a root that has systemd
# and starts the service. Needs root, mmdebstrap, curl, and the tiny models of shared/golden beside the tree, or of the
# folder that INFERD_GOLDEN names.
#
#   tools/clean_room_package.sh FOLDER   FOLDER is made, and may be removed afterwards (about 1 GB)
set -euo pipefail

folder=${1:?usage: tools/clean_room_package.sh FOLDER}
here=$(cd "$(dirname "$0")/.." && pwd)
if ((EUID != 0)); then
  echo "clean_room_package.sh needs root: it makes root file systems and mounts in them" >&2
  exit 77
fi
if [[ -z ${CLEAN_ROOM_INSIDE:-} ]]; then
  if [[ -e $folder ]]; then
    echo "$folder exists already; give a folder that does not" >&2
    exit 2
  fi
  # Mounts, processes and a network (loopback alone) of our own, which end with us. The roots are made before.
  mkdir -p "$folder"
  sources=()
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
    if [[ -s $file ]]; then sources+=("$file"); fi
  done
  echo "== empty roots of Debian 12"
  mmdebstrap --quiet --variant=essential bookworm "$folder/archive" "${sources[@]}"
  cp -a "$folder/archive" "$folder/deb"
  mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$folder/service" "${sources[@]}"
  CLEAN_ROOM_INSIDE=1 exec unshare --mount --net --pid --fork --kill-child --mount-proc "$0" "$(realpath "$folder")"
fi

ip link set lo up
archive=("$here"/build/package/inferd-*.tar.gz)
deb=("$here"/build/package/inferd_*.deb)
model=${INFERD_GOLDEN:-$here/../shared/golden}/tiny/llama/gguf/tiny-llama-f32.gguf
(cd "$here/build/package" && sha256sum --check --strict SHA256SUMS)

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
fail() {
  echo "FAILED: $*" >&2
  exit 1
}
clean=(env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root)

# A streamed answer of the server on this port, each event of it on a line.
ask() {  # PORT TOKENS CHOICES
  curl -sS --no-buffer --max-time 60 "http://127.0.0.1:$1/v1/chat/completions" -H 'Content-Type: application/json' \
    -d "{\"messages\": [{\"role\": \"user\", \"content\": \"Say hello.\"}], \"stream\": true, \"seed\": 1,
         \"max_tokens\": $2, \"n\": $3, \"ignore_eos\": true}" | grep --line-buffered '^data: '
}

expect_answer() {  # FILE
  tail -n 1 "$1" | grep -qx 'data: \[DONE\]' || fail "the answer has no end: $(tail -n 1 "$1")"
  (($(grep -c '^data: {' "$1") >= 3)) || fail "the answer has $(wc -l <"$1") lines"
  echo "a streamed answer: $(grep -c '^data: {' "$1") events, then [DONE]"
}

use() {  # ROOT: what a stranger does first
  local root=$1 out=$1.out url server status=0
  mount --bind /dev "$root/dev"
  mount -t proc proc "$root/proc"
  cp "$model" "$root/srv/"
  chroot "$root" dpkg-query -W -f='${Package}\n' | wc -l | sed 's/$/ Debian packages are there/'
  "${clean[@]}" chroot "$root" inferd version
  "${clean[@]}" chroot "$root" inferd version --json
  "${clean[@]}" chroot "$root" inferd --help | head -n 3
  "${clean[@]}" chroot "$root" inferd serve "/srv/${model##*/}" --port 0 >"$out" &
  server=$!
  until url=$(sed -nE 's/^ready (http[^ ]+) .*/\1/p' "$out") && [[ -n $url ]]; do
    kill -0 "$server" 2>/dev/null || fail "the server ended before it was ready"
    sleep 0.05
  done
  cat "$out"
  ask "${url##*:}" 16 1 >"$root.answer"
  expect_answer "$root.answer"
  kill -TERM "$server"
  wait "$server" || status=$?
  ((status == 0)) || fail "the server ended with $status"
  echo "SIGTERM: drained, 0"
}

step "the archive, below /usr/local"
tar -xzf "${archive[0]}" --strip-components=1 -C "$folder/archive/usr/local"
(cd "$folder/archive/usr/local" && sha256sum --check --strict --quiet SHA256SUMS)
echo "its files have the sums that it says"
use "$folder/archive"

step "the .deb"
files() { (cd "$folder/deb" && find usr etc lib -xdev ! -type d | sort); }
files >"$folder/before"
cp "${deb[0]}" "$folder/deb/srv/inferd.deb"
chroot "$folder/deb" dpkg --install /srv/inferd.deb
use "$folder/deb"
chroot "$folder/deb" dpkg --verify inferd
chroot "$folder/deb" dpkg --purge inferd
files | diff "$folder/before" - || fail "removing the package left something"
echo "removed without a trace"

step "the service, under systemd"
root=$folder/service
cp "${deb[0]}" "$root/srv/inferd.deb"
cp "$model" "$root/srv/"
chroot "$root" dpkg --install /srv/inferd.deb
printf 'SERVE_ARGS="/srv/%s --port 8123"\n' "${model##*/}" >"$root/etc/default/inferd"
boot() {
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs sysfs "$root/sys"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  mount -t tmpfs tmpfs "$root/run"
  mount --rbind /dev "$root/dev"
  mount --make-rshared /
  exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /lib/systemd/systemd
}
export -f boot
export root
unshare --mount --pid --uts --ipc --cgroup --fork --kill-child bash -ec boot >"$folder/boot.log" 2>&1 &
booted=$!
sleep 1
init=$(pgrep --parent "$booted")
inside() { nsenter --target "$init" --all --root --wd env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
inside systemctl is-system-running --wait || true  # degraded: units that want hardware
[[ $(inside systemctl is-enabled inferd) == disabled ]] || fail "the service is enabled"
[[ $(inside systemctl is-active inferd) == inactive ]] || fail "the service was started"
echo "installed, neither enabled nor started"
inside systemctl start inferd
until curl -sf --max-time 5 http://127.0.0.1:8123/health/ready >/dev/null; do
  [[ $(inside systemctl is-active inferd) == active ]] || fail "$(inside journalctl -u inferd --no-pager)"
  sleep 0.1
done
process=$(inside systemctl show --property MainPID --value inferd)
inside grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' "/proc/$process/status"
ask 8123 16 1 >"$folder/service.answer"
expect_answer "$folder/service.answer"
# Enough to be still at it when systemd has been asked to stop the service.
asked=()
for i in {1..32}; do
  ask 8123 400 8 >"$folder/drained.answer.$i" &
  asked+=($!)
done
until [[ -s $folder/drained.answer.1 ]]; do
  kill -0 "${asked[0]}" 2>/dev/null || break
done
inside systemctl stop inferd
for i in {1..32}; do
  wait "${asked[i - 1]}" || fail "an answer broke off"
  expect_answer "$folder/drained.answer.$i"
done >"$folder/drained"
sort "$folder/drained" | uniq -c
inside journalctl --unit inferd --output cat --no-pager | grep '^draining: [1-9]' ||
  fail "nothing was running at the stop"
inside systemctl show --property Result --property ExecMainStatus inferd
inside systemctl enable --now inferd
inside dpkg --remove inferd
[[ $(inside systemctl is-active inferd) == inactive ]] || fail "the service outlived its package"
echo "removing the package stopped the service"
step "done"
