#!/bin/sh
# make-busybox-image.sh [options] OUTPUT - make a container image of Debian's busybox-static, reproducibly, with no registry and
# no container tool. OUTPUT is a docker-archive (or, with --oci, an OCI layout in a tar) for `runtime-lite load`.
#
#   --name NAME[:TAG]   name of the image (default: busybox:latest)
#   --add PATH=FILE     a file of the image, absolute PATH, content of FILE (mode 0644, 0755 if FILE is executable)
#   --dir PATH[=MODE]   a directory of the image
#   --entrypoint JSON   e.g. '["busybox","httpd","-f","-p","8080","-h","/www"]'
#   --cmd JSON          default: ["sh"] without --entrypoint
#   --env NAME=VALUE    besides PATH
#   --user USER         --workdir DIR         --port N/tcp (repeatable)
#   --arch ARCH         architecture to claim (default: this machine's)
#   --busybox FILE      default: /bin/busybox
#   --web               adds /www/index.html and serves it on port 8080
#   --oci               an OCI layout instead of a docker-archive
set -eu

name=busybox:latest entrypoint= cmd= user= workdir= envs= ports= oci= busybox=/bin/busybox arch=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"
# Nothing depends on who runs this, when, or where.
umask 022
TZ=UTC LC_ALL=C
export TZ LC_ALL
epoch=${SOURCE_DATE_EPOCH:-1700000000}

fail() { echo "make-busybox-image.sh: $*" >&2; exit 1; }
# A JSON string of any text without control characters.
quote() { printf '"%s"' "$(printf %s "$1" | sed 's/\\/\\\\/g; s/"/\\"/g')"; }
add_file() { # PATH FILE
	case $1 in /*) ;; *) fail "--add: \"$1\" is not an absolute path" ;; esac
	mkdir -p "$root$(dirname "$1")"
	cp "$2" "$root$1"
	if [ -x "$2" ]; then chmod 755 "$root$1"; else chmod 644 "$root$1"; fi
}
append() { if [ -n "$1" ]; then printf '%s,%s' "$1" "$2"; else printf %s "$2"; fi; }

while [ $# -gt 0 ]; do
	case $1 in --web | --oci) ;; --*) [ $# -gt 1 ] || fail "$1 needs a value" ;; esac
	case $1 in
	--name) name=$2; shift 2 ;;
	--add) add_file "${2%%=*}" "${2#*=}"; shift 2 ;;
	--dir) mkdir -p "$root${2%%=*}"; case $2 in *=*) chmod "${2#*=}" "$root${2%%=*}" ;; esac; shift 2 ;;
	--entrypoint) entrypoint=$2; shift 2 ;;
	--cmd) cmd=$2; shift 2 ;;
	--env) envs=$(append "$envs" "$(quote "$2")"); shift 2 ;;
	--user) user=$2; shift 2 ;;
	--workdir) workdir=$2; shift 2 ;;
	--port) ports=$(append "$ports" "$(quote "$2"):{}"); shift 2 ;;
	--arch) arch=$2; shift 2 ;;
	--busybox) busybox=$2; shift 2 ;;
	--web)
		mkdir -p "$root/www"
		[ -e "$root/www/index.html" ] || printf '<h1>node-lite</h1>\n' >"$root/www/index.html"
		entrypoint='["busybox","httpd","-f","-p","8080","-h","/www"]'
		ports=$(append "$ports" '"8080/tcp":{}')
		shift ;;
	--oci) oci=1; shift ;;
	-*) fail "unknown option $1; the top of this file lists what there is" ;;
	*) break ;;
	esac
done
[ $# -eq 1 ] || fail "usage: make-busybox-image.sh [options] OUTPUT"
output=$1
case $name in */*:* | *:*) ;; *) name=$name:latest ;; esac
[ -x "$busybox" ] || fail "$busybox: no such program (apt-get install busybox-static)"
if [ -z "$arch" ]; then
	case $(uname -m) in
	x86_64) arch=amd64 ;;
	aarch64) arch=arm64 ;;
	*) arch=$(uname -m) ;;
	esac
fi

# The tree: busybox once, its applets as hard links.
for dir in bin dev etc home proc root sys tmp usr/bin usr/sbin sbin var/run var/spool; do mkdir -p "$root/$dir"; done
chmod 1777 "$root/tmp"
chmod 700 "$root/root"
cp "$busybox" "$root/bin/busybox"
chmod 755 "$root/bin/busybox"
"$busybox" --list | while read -r applet; do
	[ "$applet" = busybox ] || ln -f "$root/bin/busybox" "$root/bin/$applet"
done
[ -e "$root/etc/passwd" ] || cat >"$root/etc/passwd" <<'END'
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/bin/false
www-data:x:33:33:www-data:/var/www:/bin/false
nobody:x:65534:65534:nobody:/home:/bin/false
END
[ -e "$root/etc/group" ] || cat >"$root/etc/group" <<'END'
root:x:0:
daemon:x:1:
www-data:x:33:
nogroup:x:65534:
END

# GNU tar in a fixed form: sorted, numeric owners, one time.
pack() { # DIRECTORY OUTPUT MEMBER...
	pack_dir=$1 pack_output=$2
	shift 2
	tar --create --format=gnu --sort=name --numeric-owner --owner=0 --group=0 --mtime="@$epoch" --file "$pack_output" \
		--directory "$pack_dir" "$@"
}
digest() { sha256sum "$1" | cut -d ' ' -f 1; }
size() { wc -c <"$1" | tr -d ' '; }

pack "$root" "$work/layer.tar" .
diff_id=$(digest "$work/layer.tar")
[ -n "$cmd$entrypoint" ] || cmd='["sh"]'
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
path='"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"'
config=$work/config.json
{
	printf '{"architecture":%s,"os":"linux","created":"%s","config":{' "$(quote "$arch")" "$created"
	printf '"Env":[%s]' "$(append "$path" "$envs" | sed 's/,$//')"
	[ -z "$entrypoint" ] || printf ',"Entrypoint":%s' "$entrypoint"
	[ -z "$cmd" ] || printf ',"Cmd":%s' "$cmd"
	[ -z "$user" ] || printf ',"User":%s' "$(quote "$user")"
	[ -z "$workdir" ] || printf ',"WorkingDir":%s' "$(quote "$workdir")"
	[ -z "$ports" ] || printf ',"ExposedPorts":{%s}' "$ports"
	printf '},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}' "$diff_id"
	printf ',"history":[{"created":"%s","created_by":"make-busybox-image.sh"}]}' "$created"
} >"$config"
config_digest=$(digest "$config")

out=$work/out
mkdir -p "$out"
if [ -n "$oci" ]; then
	blobs=$out/blobs/sha256
	mkdir -p "$blobs"
	gzip -n -6 <"$work/layer.tar" >"$work/layer.tar.gz"
	layer_digest=$(digest "$work/layer.tar.gz")
	cp "$work/layer.tar.gz" "$blobs/$layer_digest"
	cp "$config" "$blobs/$config_digest"
	type=application/vnd.oci.image
	printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json","config":{"mediaType":"%s.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"%s.layer.v1.tar+gzip","digest":"sha256:%s","size":%s}]}' \
		$type $type "$config_digest" "$(size "$config")" $type "$layer_digest" "$(size "$work/layer.tar.gz")" >"$work/manifest.json"
	manifest_digest=$(digest "$work/manifest.json")
	cp "$work/manifest.json" "$blobs/$manifest_digest"
	printf '{"imageLayoutVersion":"1.0.0"}' >"$out/oci-layout"
	printf '{"schemaVersion":2,"mediaType":"%s.index.v1+json","manifests":[{"mediaType":"%s.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":%s,"os":"linux"},"annotations":{"io.containerd.image.name":%s,"org.opencontainers.image.ref.name":%s}}]}' \
		$type $type "$manifest_digest" "$(size "$work/manifest.json")" "$(quote "$arch")" "$(quote "$name")" \
		"$(quote "${name##*:}")" >"$out/index.json"
	pack "$out" "$work/image.tar" oci-layout index.json blobs
else
	mkdir "$out/$diff_id"
	mv "$work/layer.tar" "$out/$diff_id/layer.tar"
	cp "$config" "$out/$config_digest.json"
	printf '[{"Config":"%s.json","RepoTags":[%s],"Layers":["%s/layer.tar"]}]' "$config_digest" "$(quote "$name")" "$diff_id" \
		>"$out/manifest.json"
	pack "$out" "$work/image.tar" manifest.json "$config_digest.json" "$diff_id"
fi
mv "$work/image.tar" "$output"
echo "sha256:$config_digest"
