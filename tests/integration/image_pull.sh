#!/bin/bash
# image_pull.sh - pulls from a registry that behaves and misbehaves, against the image store itself: every fault gives a message
# that people understand, and leaves nothing behind.
set -u
if [ -z "${IMAGE_TEST_INSIDE:-}" ]; then
	[ "$(id -u)" = 0 ] || { echo "skip - image_pull: needs root"; exit 0; }
	IMAGE_TEST_INSIDE=1 exec unshare -m -n --propagation private bash "$0" "$@"
fi
ip link set lo up
here=$(dirname "$0")
fakes=$here/../fakes
# shellcheck source=tests/integration/lib-image.sh
. "$here/lib-image.sh"
tool_find

layout=$dir/layout
mkdir -p "$dir/a/d" "$dir/b/d"
head -c 300000 /dev/urandom >"$dir/a/d/random"
echo base >"$dir/a/d/base"
echo top >"$dir/b/d/top"
head -c 700000 /dev/urandom >"$dir/b/more"
tar -C "$dir/a" --numeric-owner -cf "$dir/a.tar" .
tar -C "$dir/b" --numeric-owner -cf "$dir/b.tar" .
add() { python3 "$fakes/layout.py" "$layout" "$@"; }
add 1 "$dir/a.tar" "$dir/b.tar:zstd" >"$dir/digest"
add plain "$dir/a.tar:plain" "$dir/b.tar:gzip" >/dev/null
add arm --arch arm64/v8 "$dir/a.tar" >/dev/null
add armv7 --arch arm/v7 "$dir/a.tar" >/dev/null
add multi --index arm armv7 1 >/dev/null
add foreign --index arm armv7 >/dev/null
add liar --config-arch s390x "$dir/a.tar" >/dev/null
add wrongdiff --diff-id "sha256:$(printf '%064d' 7)" "$dir/a.tar" >/dev/null
echo '{"schemaVersion":1,"fsLayers":[]}' >"$dir/raw"
add schema1 --raw "$dir/raw" --type application/vnd.docker.distribution.manifest.v1+prettyjws >/dev/null
echo '{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:'"$(printf '%064d' 1)"'","size":2},"layers":[]}' >"$dir/raw"
add artifact --raw "$dir/raw" --type application/vnd.oci.image.manifest.v1+json >/dev/null
echo '<html>no manifest</html>' >"$dir/raw"
add html --raw "$dir/raw" --type text/html >/dev/null
echo '{"schemaVersion":2,"config":{},"layers":[],"manifests":[]}' >"$dir/raw"
add both --raw "$dir/raw" --type application/vnd.oci.image.manifest.v1+json >/dev/null
digest=$(cat "$dir/digest")
registry one app="$layout" deep/er/app="$layout"
here_is=127.0.0.1:$port
ref=$here_is/app

# The way it should be.
is "pull by tag prints the image's id" "$(config_of "$layout" 1)" pull "$ref:1"
has "the image is listed with tag and digest" "tag=$ref:1 digest=$ref@$digest" tool list
check "layers are what the archives hold" same_tree "$ref:1" "$dir/a" "$dir/b"
curl -s "http://$here_is/log?clear" >/dev/null
pull "$ref:1" >/dev/null
is "a second pull asks for the tag's digest only" "HEAD /v2/app/manifests/1 range=- auth=- ns=-" curl -s "http://$here_is/log"
has "pull by digest" sha256: pull "$ref@$digest"
has "a repository with several parts" sha256: pull "$here_is/deep/er/app:1"
has "gzip and plain layers give the same layers" sha256: pull "$ref:plain"
is "layers are shared between images" 2 count layers
has "name:tag@digest: the digest decides" sha256: pull "$ref:nosuch@$digest"
fails "no such tag" "NotFound: 127.0.0.1:$port does not have it (404 Not Found: manifest unknown)" pull "$ref:nosuch"
fails "no such repository" "404 Not Found" pull "$here_is/nosuch:1"
fails "bad reference" "InvalidArgument: invalid image reference \"$here_is/App\": the repository name must be lower-case" pull "$here_is/App"
fails "nobody listens" "Unavailable: RegistryUnavailable: 127.0.0.1:9" pull 127.0.0.1:9/app
fails "no such host" "RegistryUnavailable: no-such-host.invalid" pull no-such-host.invalid/app
fresh
has "manifest list: this node's image" "$(config_of "$layout" 1)" pull "$ref:multi"
fails "manifest list without this node's platform" "there is no image for linux/" pull "$ref:foreign"
fails "and it says what there is" "there is: linux/arm64, linux/arm/v7" pull "$ref:foreign"
fails "image of another architecture" "is linux/arm64, this node is linux/" pull "$ref:arm"
fails "configuration of another architecture" "is linux/s390x, this node is linux/" pull "$ref:liar"
has "another platform on demand" sha256: pull_with --platform linux/arm/v7 "$ref:multi"
fails "schema 1" "schema 1, which is not supported" pull "$ref:schema1"
fails "artifact" "not a container image: its configuration is of type" pull "$ref:artifact"
fails "no manifest but a page" "manifest" pull "$ref:html"
fails "manifest that is two things" "an index and an image at once" pull "$ref:both"
fails "wrong diff id" "wrong digest of the unpacked layer" pull "$ref:wrongdiff"
clean_after "refused images"

# A registry that misbehaves.
fresh
trouble() { # NAME FAULT TEXT [TAG]
	fault one "$2"
	fails "$1" "$3" pull "$ref:${4:-1}"
	clean_after "$1"
	fault one ""
}
trouble "wrong digest of a configuration" "kind=digest&match=blobs" "configuration: wrong digest: sha256:"
trouble "wrong digest of a layer" "kind=digest&match=blobs/$(layer_of "$layout" 1 0)" "wrong digest: sha256:"
trouble "wrong digest of a plain layer" "kind=digest&match=blobs/$(layer_of "$layout" plain 0)" "wrong digest: sha256:" plain
trouble "wrong digest of a manifest" "kind=digest&match=manifests/sha256" "the manifest has the wrong digest"
trouble "garbage instead of a layer" "kind=garbage&match=blobs" "wrong digest"
trouble "truncated blob" "kind=truncate&match=blobs" "it is truncated:"
trouble "blob with more than it should have" "kind=long&match=blobs" "it is longer than the"
trouble "401 without a way in" "kind=status&code=401" "Unauthenticated: 127.0.0.1:$port wants (other) credentials, or has no such repository (401 Unauthorized: as you wished)"
trouble "403" "kind=status&code=403" "PermissionDenied: 127.0.0.1:$port denies access (403 Forbidden: as you wished)"
trouble "429 with a long wait" "kind=status&code=429&after=600" "Unavailable: RegistryUnavailable: 127.0.0.1:$port was asked too often (429 Too Many Requests"
trouble "500 all the time" "kind=status&code=500&after=0" "Unavailable: RegistryUnavailable: 127.0.0.1:$port answered 500 Internal Server Error"
trouble "500 for layers" "kind=status&code=500&after=0&match=blobs" "answered 500 Internal Server Error: as you wished"
trouble "404 for a layer" "kind=status&code=404&match=blobs" "NotFound: "
trouble "redirect in a circle" "kind=redirect&to=loop" "more than 10 redirects"
trouble "redirect to a file" "kind=redirect&to=file:///etc/passwd%3F" "no http or https URL"
trouble "a registry that hangs" "kind=hang" "RegistryUnavailable: 127.0.0.1:$port: no progress for 1 s"
trouble "a registry that hangs within a layer" "kind=hang&match=blobs&at=1000" "no progress for 1 s"

# Troubles that pass.
fault one "kind=status&code=503&after=0&times=2"
has "503 twice, then fine" sha256: pull "$ref:1"
fresh
fault one "kind=cut&match=blobs&at=100000"
curl -s "http://$here_is/log?clear" >/dev/null
has "a connection that is cut again and again" sha256: pull "$ref:1"
has "it went on where it was cut" "range=bytes=100000-" curl -s "http://$here_is/log"
check "the layers are whole" same_tree "$ref:1" "$dir/a" "$dir/b"
fresh
fault one "kind=cut&match=blobs&at=200000&times=4&norange=1"
has "cut, and no ranges: begins again" sha256: pull "$ref:1"
check "the layers are whole again" same_tree "$ref:1" "$dir/a" "$dir/b"
fresh
fault one "kind=cut&match=blobs&at=0"
fails "cut before the first byte, always" "the connection was cut off" pull "$ref:1"
clean_after "cut before the first byte"
fault one "kind=nohead"
has "a registry without HEAD" sha256: pull "$ref:1"
fault one ""

# Given up on the way.
fresh
fault one "kind=hang&match=blobs&at=1000"
fails "a deadline" "DeadlineExceeded: the deadline has passed" pull_with --stall 60000 --deadline 700 "$ref:1"
clean_after "a deadline"
pull_alone "$ref:1" >"$dir/killed" 2>&1 &
pull_pid=$!
until_true 5 has_child $pull_pid
child=$(pgrep -P $pull_pid)
until_true 5 test -n "$(ls "$store/staging")"
status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$child/status"; }
until_true 5 eval '[ "$(status Seccomp)" = 2 ]'
is "the pull program has no_new_privs" 1 status NoNewPrivs
is "it has a seccomp filter" 2 status Seccomp
# CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, FSETID 4, MKNOD 27, SETFCAP 31
is "it has the capabilities to make files, no more" 000000008800001b status CapEff
is "and no others to get" 0000000000000000 status CapBnd
kill -9 "$child"
wait $pull_pid
has "killed by somebody" "the pull program was killed by signal 9" cat "$dir/killed"
clean_after "a killed pull program"
pull_alone "$ref:1" >/dev/null 2>&1 &
pull_pid=$!
until_true 5 has_child $pull_pid
child=$(pgrep -P $pull_pid)
until_true 5 test -n "$(ls "$store/staging")"
sleep 0.3
kill -9 $pull_pid
wait $pull_pid 2>/dev/null
check "the pull program dies with who asked" until_true 5 not test -d "/proc/$child"
has "what it left is cleaned up at the next start" "" tool list
clean_after "a killed requester"
fault one ""

# Killed anywhere: whatever the moment, the store can be opened, and what it lists is whole.
fresh
whole() { # every image that is listed has all its layers, as they were made
	local id
	for id in $(tool list | cut -d' ' -f1); do tool acquire "$id" c >/dev/null && tool release c || return 1; done
}
bad=
for i in $(seq 24); do
	pull_alone "$ref:1" >/dev/null 2>&1 &
	pull_pid=$!
	sleep "0.0$((i % 8))$((RANDOM % 10))"
	if [ $((i % 3)) = 0 ]; then pkill -9 -P $pull_pid; else kill -9 $pull_pid 2>/dev/null; fi
	wait $pull_pid 2>/dev/null
	whole || bad="$bad $i"
	[ $((i % 5)) != 0 ] || tool rm "$ref:1" || bad="$bad rm$i"
done 2>/dev/null
is "a store whose pulls are killed at any moment stays whole" "" echo $bad
has "and serves the next one" sha256: pull "$ref:1"
check "with whole layers" same_tree "$ref:1" "$dir/a" "$dir/b"
until_true 5 eval '[ -z "$(pgrep -f "^pull $ref")" ]'
clean_after "killed pulls"

# Together.
fresh
fault one "kind=slow&match=blobs"
curl -s "http://$here_is/log?clear" >/dev/null
pids=
for tag in 1 1 1 plain; do
	pull_with --shared "$ref:$tag" >"$dir/together.$tag.$RANDOM" 2>&1 &
	pids="$pids $!"
done
for pid in $pids; do wait "$pid" || echo "not ok - one of several pulls failed"; done
is "four pulls at once fetch each layer once" 2 eval 'curl -s "http://$here_is/log" | grep -c "GET /v2/app/blobs/.*range" | awk "{print \$1 - configs}" configs="$(config_fetches)"'
check "and all is well" same_tree "$ref:1" "$dir/a" "$dir/b"
is "with both tags" 2 eval 'tool list | grep -o "tag=" | wc -l'
fault one ""

# Credentials.
registry basic --auth basic --user me:secret app="$layout"
fails "basic: without credentials" "wants (other) credentials" pull "127.0.0.1:$port/app:1"
has "basic: with them" sha256: pull_with --auth me:secret "127.0.0.1:$port/app:1"
fails "basic: wrong ones" "wants (other) credentials" pull_with --auth me:wrong "127.0.0.1:$port/app:multi"
registry token --auth bearer app="$layout"
fresh
has "bearer: anonymous token" sha256: pull "127.0.0.1:$port/app:1"
token_port=$port
is "one token for all requests" 1 eval "curl -s http://127.0.0.1:$port/log | grep -c 'GET /token'"
registry usertoken --auth bearer --user me:secret app="$layout"
fails "bearer: no anonymous token" "token server http://127.0.0.1:$port/token: credentials refused" pull "127.0.0.1:$port/app:1"
fresh
has "bearer: token for a user" sha256: pull_with --auth me:secret "127.0.0.1:$port/app:1"
registry store app="$layout"
storage=$port
fresh
curl -s -X POST "http://127.0.0.1:$token_port/fault?kind=redirect&match=blobs&to=http://127.0.0.1:$storage" >/dev/null
has "blobs from another host by redirect" sha256: pull "127.0.0.1:$token_port/app:1"
is "that host never sees the token" "auth=-" eval "curl -s http://127.0.0.1:$storage/log | grep -o 'auth=[^ ]*' | sort -u"
curl -s -X POST "http://127.0.0.1:$token_port/fault" >/dev/null

# TLS and certs.d.
if command -v openssl >/dev/null; then
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test -addext subjectAltName=IP:127.0.0.1 \
		-keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
	registry tls --tls "$dir/cert.pem" "$dir/key.pem" app="$layout"
	tls=127.0.0.1:$port
	certs=$dir/certs.d
	mkdir -p "$certs/$tls"
	fresh
	echo "server = \"https://$tls\"" >"$certs/$tls/hosts.toml"
	fails "https: unknown CA" "RegistryUnavailable: $tls: TLS:" pull_with --certs "$certs" "$tls/app:1"
	cp "$dir/cert.pem" "$certs/$tls/ca.pem"
	printf 'server = "https://%s"\nca = "ca.pem"\n' "$tls" >"$certs/$tls/hosts.toml"
	has "https: its CA in hosts.toml" sha256: pull_with --certs "$certs" "$tls/app:1"
	fresh
	mv "$certs/$tls/ca.pem" "$dir/elsewhere.pem"
	printf 'server = "https://%s"\nca = "%s"\n' "$tls" "$dir/elsewhere.pem" >"$certs/$tls/hosts.toml"
	has "https: its CA in another place" sha256: pull_with --certs "$certs" "$tls/app:1"
	printf 'server = "https://%s"\nca = "nosuch.pem"\n' "$tls" >"$certs/$tls/hosts.toml"
	fails "https: a CA that is not there" "certs.d/$tls/nosuch.pem: no such file" pull_with --certs "$certs" "$tls/app:1"
	printf 'server = "https://%s"\nskip_verify = true\n' "$tls" >"$certs/$tls/hosts.toml"
	has "https: skip_verify" sha256: pull_with --certs "$certs" "$tls/app:multi"
	rm "$certs/$tls/hosts.toml"
	cp "$dir/cert.pem" "$certs/$tls/ca.crt"
	fresh
	has "https: *.crt beside, as Docker has it" sha256: pull_with --certs "$certs" "$tls/app:1"
	fails "plain HTTP to a TLS port" "127.0.0.1" pull "$tls/app:1"
	mkdir -p "$certs/docker.io" "$certs/_default"
	printf '[host."http://%s"]\n[host."http://127.0.0.1:9"]\n' "$here_is" >"$certs/_default/hosts.toml"
	mkdir -p "$dir/mirror"
	cp -a "$layout" "$dir/mirror/app"
	registry mirror library/app="$layout"
	printf '[host."http://127.0.0.1:9"]\n[host."http://127.0.0.1:%s"]\ncapabilities = ["pull", "resolve"]\n' "$port" >"$certs/docker.io/hosts.toml"
	fresh
	has "docker.io by a mirror, after one that is down" sha256: pull_with --certs "$certs" app:1
	has "the image has the name that was asked for" "tag=docker.io/library/app:1" tool list
	has "the mirror hears whom it stands for" "ns=docker.io" curl -s "http://127.0.0.1:$port/log"
	has "_default for all other registries" sha256: pull_with --certs "$certs" registry.invalid/app:1
	echo 'server = ' >"$certs/docker.io/hosts.toml"
	fails "broken hosts.toml" "certs.d/docker.io/hosts.toml: line 1" pull_with --certs "$certs" app:1
else
	echo "skip - https: no openssl program"
fi

# Damage on disk, and a disk that is full.
fresh
pull "$ref:1" >/dev/null
layer=$(ls -d "$store"/layers/*/fs/d/base)
rm "$layer"
: >"$(ls -d "$store"/layers/*/fs/more)"
has "a damaged store is repaired by the next pull" sha256: pull "$ref:1"
check "as good as new" same_tree "$ref:1" "$dir/a" "$dir/b"
for blob in "$store"/blobs/sha256/*; do echo damaged >"$blob"; done
has "damaged blobs too" sha256: pull "$ref:1"
fresh
mkdir -p "$dir/small"
mount -t tmpfs -o size=900k,mode=755 none "$dir/small"
store=$dir/small/store
fails "a full disk" "ResourceExhausted: layer sha256:" pull "$ref:1"
clean_after "a full disk"
umount -l "$dir/small"
fresh
is "limit of a layer's size" 1 eval 'pull_with --max 100000 "$ref:1" 2>&1 | grep -c "ResourceExhausted.*100000 bytes allowed"'
clean_after "a layer over the limit"
