#!/usr/bin/env bash
# Does a first run work for a stranger? Makes an empty Debian 12 root, puts a clean clone of HEAD in, and runs there
# what README says: ./dev serve, then a streamed answer by curl; then both again with the network off. Needs root and
# mmdebstrap. Of the host it takes only what a company's machine would have too: apt sources, certificates, resolver,
# and the settings of pip.
#
#   tools/clean_room.sh FOLDER        everything; FOLDER is made, and may be removed afterwards (about 4 GB)
#   tools/clean_room.sh FOLDER build  only as far as ./dev setup and ./dev build
set -euo pipefail

folder=${1:?usage: tools/clean_room.sh FOLDER [build]}
until=${2:-serve}
here=$(cd "$(dirname "$0")/.." && pwd)
if ((EUID != 0)); then
  echo "clean_room.sh needs root: it makes a root file system and mounts in it" >&2
  exit 77
fi
if [[ -e $folder ]]; then
  echo "$folder exists already; give a folder that does not" >&2
  exit 2
fi

if [[ -z ${CLEAN_ROOM_INSIDE:-} ]]; then  # mounts and processes of our own, which end with us
  CLEAN_ROOM_INSIDE=1 exec unshare --mount --pid --fork --kill-child --mount-proc "$0" "$folder" "$until"
fi

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
root=$folder/root

step "an empty Debian 12"
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
  if [[ -s $file ]]; then sources+=("$file"); fi
done
mmdebstrap --quiet --variant=minbase bookworm "$root" "${sources[@]}"
rm -rf "$root"/var/lib/apt/lists/*  # as in a fresh container: apt knows no package yet
du -sh "$root"

step "what the host hands in"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/xdg/pip "$HOME/.config/pip" "$HOME/.pip"; do
  if [[ -e $file ]]; then
    target=$root/${file/#$HOME//root}
    mkdir -p "$(dirname "$target")"
    cp -rL "$file" "$target"
    echo "$file"
  fi
done
for file in /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf; do
  if [[ -e $file ]]; then cp "$file" "$root/etc/apt/apt.conf.d/"; fi
done
handed_in=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8)
while IFS= read -r variable; do
  handed_in+=("$variable")
done < <(env | grep -E '^(PIP_[A-Z_]+|https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY)=' || true)
bundle=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
if [[ -e $bundle ]]; then  # under a name of its own: installing ca-certificates makes the usual one anew
  cp -L "$bundle" "$root/etc/host-certificates.crt"
  handed_in+=(SSL_CERT_FILE=/etc/host-certificates.crt PIP_CERT=/etc/host-certificates.crt)
fi

git -c advice.detachedHead=false clone --quiet --no-local "$here" "$root/inferd"
git -C "$root/inferd" log -1 --format='%h %s'
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
in_root() { env -i "${handed_in[@]}" chroot "$root" sh -c "cd /inferd && $1"; }

if [[ $until == build ]]; then
  step "./dev setup"
  in_root "./dev setup"
  step "./dev setup, again"
  in_root "./dev setup"
  step "./dev build"
  in_root "./dev build"
  step "./dev build, again"
  in_root "./dev build"
  exit 0
fi

# Serves on a port of the system's choice, asks for a streamed answer, and stops the server.
serve_and_ask() {  # NAME [PREFIX...]
  local name=$1 begin=$EPOCHREALTIME url
  shift
  local out=$folder/$name.out
  "$@" env -i "${handed_in[@]}" chroot "$root" sh -c "cd /inferd && exec ./dev serve --port 0" >"$out" &
  local server=$!
  until url=$(sed -nE 's/^ready (http[^ ]+) .*/\1/p' "$out" | head -n 1) && [[ -n $url ]]; do
    if ! kill -0 "$server" 2>/dev/null; then
      echo "the server ended before it was ready" >&2
      return 1
    fi
    sleep 0.05
  done
  awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN {printf "ready after %.1f s\n", b - a}'
  grep '^ready' "$out"
  local answer=$folder/$name.answer
  "$@" curl -sS --no-buffer --max-time 60 "$url/v1/chat/completions" -H 'Content-Type: application/json' \
    -d '{"messages": [{"role": "user", "content": "Say hello."}], "stream": true, "max_tokens": 32, "temperature": 0}' >"$answer"
  head -n 5 "$answer"
  local chunks
  chunks=$(grep -c '^data: {' "$answer")
  grep -qx 'data: \[DONE\]' "$answer"
  ((chunks >= 3))
  echo "$chunks chunks"
  kill -INT "$server"
  wait "$server" || echo "the server ended with $?"
}

step "./dev serve"
serve_and_ask first
step "./dev serve without a network"
# A network namespace of its own that has loopback and nothing else; entered again for curl.
unshare --net sh -c 'ip link set lo up; exec sleep infinity' &
namespace=$!
sleep 0.5
serve_and_ask offline nsenter --net="/proc/$namespace/ns/net"
kill "$namespace"
step "done"
