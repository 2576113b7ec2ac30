# api_read.sh - get, list and watch over the socket: pages, selectors, resuming, expiry, tables, hostile clients.
# shellcheck shell=bash
. tests/integration/lib-api.sh
api_start
cms=/api/v1/namespaces/default/configmaps

for i in $(seq 1 25); do
	printf -- '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%s, labels: {half: "%s"}}\ndata: {a: b}\n' "$i" $((i % 2))
done >"$manifests/.new" && mv "$manifests/.new" "$manifests/many.yaml"
all_there() { [ "$(get $cms | jq '.items | length')" = 25 ]; }
until_true 5 all_there

same "the socket is of mode 0600 or of the group's" yes "$(case $(stat -c %a "$socket") in 600 | 660) echo yes ;; esac)"
same "list" 25 "$(get $cms | jq '.items | length')"
same "all namespaces" 25 "$(get /api/v1/configmaps | jq '.items | length')"
same "sorted by name" "c1 c10 c11" "$(get $cms | jq -r '[.items[].metadata.name][0:3] | join(" ")')"
same "another namespace is empty" 0 "$(get /api/v1/namespaces/other/configmaps | jq '.items | length')"

pages() { # every name by pages of $1
	local token='' page
	while :; do
		page=$(call GET "$cms?limit=$1" -G --data-urlencode "continue=$token")
		echo "$page" | jq -r '.items[].metadata.name'
		token=$(echo "$page" | jq -r '.metadata.continue // empty')
		[ -n "$token" ] || return 0
	done
}
same "pages of 10 give each object once" "$(get $cms | jq -r '.items[].metadata.name')" "$(pages 10)"
same "pages of 25 have no empty page" 25 "$(pages 25 | wc -l)"
same "a page keeps the first page's resourceVersion" 1 "$(
	first=$(get "$cms?limit=5")
	patch $cms/c20 merge '{"data":{"new":"1"}}' >/dev/null
	token=$(echo "$first" | jq -r .metadata.continue)
	{ echo "$first"; call GET "$cms?limit=50" -G --data-urlencode "continue=$token"; } | jq -r .metadata.resourceVersion | sort -u | wc -l)"
same "a broken continue token" "400 BadRequest" "$(code GET "$cms?continue=x")"
same "a broken limit" "400 BadRequest" "$(code GET "$cms?limit=x")"
same "labels" 13 "$(call GET $cms -G --data-urlencode 'labelSelector=half in (1),half!=0' | jq '.items | length')"
same "absent label" 0 "$(call GET $cms -G --data-urlencode 'labelSelector=!half' | jq '.items | length')"
same "a broken label selector" "400 BadRequest" "$(code GET $cms -G --data-urlencode 'labelSelector=half in (1')"
same "field metadata.name" c7 "$(call GET $cms -G --data-urlencode 'fieldSelector=metadata.name=c7' | jq -r '.items[].metadata.name')"
same "a field that is none" "400 BadRequest" "$(code GET $cms -G --data-urlencode 'fieldSelector=spec.x=y')"
same "absent object" "404 NotFound" "$(code GET $cms/none)"
same "absent kind" "404 NotFound" "$(code GET /apis/apps/v1/deployments)"
same "a failure has details, though empty (kubectl debug looks into them)" "{}" "$(get /apis/apps/v1/deployments | jq -c .details)"
same "method that is none" "405 MethodNotAllowed" "$(code PUT $cms)"
same "table" "Table 25 Name" "$(get $cms -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io' | jq -r '"\(.kind) \(.rows | length) \(.columnDefinitions[0].name)"')"
same "metadata only" PartialObjectMetadataList "$(get $cms -H 'Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' | jq -r .kind)"
same "aggregated discovery" "APIGroupDiscoveryList pods" "$(get /api -H 'Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' |
	jq -r '"\(.kind) \(.items[0].versions[0].resources[] | select(.resource == "pods").resource)"')"
same "plain discovery" "discovery.k8s.io coordination.k8s.io" "$(get /apis | jq -r '[.groups[].name] | join(" ")')"
check "version is a semantic one" sh -c "echo '$(get /version | jq -r .gitVersion)' | grep -Eq '^v[0-9]+\.[0-9]+\.[0-9]+'"
check "the node is there" [ "$(get /api/v1/nodes | jq -r '.items[].metadata.name')" = node1 ]

# --- watches
version=$(get $cms | jq -r .metadata.resourceVersion)
watch() { timeout 20 curl -sN --unix-socket "$socket" "http://localhost$cms?watch=true&$1" "${@:2}"; }
names() { jq -r '"\(.type) \(.object.metadata.name // "-")"' | tr '\n' ';'; }
watch "resourceVersion=$version&timeoutSeconds=3" >"$api_dir/w1" &
watch "resourceVersion=$version&timeoutSeconds=3&labelSelector=half%3D1" >"$api_dir/w2" &
watch "timeoutSeconds=3&fieldSelector=metadata.name%3Dc5" >"$api_dir/w3" &
watch "timeoutSeconds=3&fieldSelector=metadata.name%3Dc5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true" >"$api_dir/w4" &
watch "resourceVersion=$version&timeoutSeconds=3" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io' >"$api_dir/w5" &
sleep 1
patch $cms/c1 merge '{"metadata":{"labels":{"half":"0"}}}' >/dev/null
patch $cms/c2 merge '{"metadata":{"labels":{"half":"1"}}}' >/dev/null
patch $cms/c5 merge '{"data":{"x":"y"}}' >/dev/null
call DELETE $cms/c3 >/dev/null
wait $(jobs -p | grep -v "^$api_pid$")
same "changes in order" "MODIFIED c1;MODIFIED c2;MODIFIED c5;DELETED c3;" "$(names <"$api_dir/w1")"
same "what leaves a selection is deleted for it" "DELETED c1;MODIFIED c5;DELETED c3;" "$(names <"$api_dir/w2" | sed 's/[A-Z]* c2;//')"
same "without a version: what exists, then changes" "ADDED c5;MODIFIED c5;" "$(names <"$api_dir/w3")"
same "initial events end with a bookmark" "ADDED c5;BOOKMARK -;MODIFIED c5;" "$(names <"$api_dir/w4" | sed 's/BOOKMARK -;$//')"
same "the bookmark says so" true "$(jq -r 'select(.type == "BOOKMARK").object.metadata.annotations["k8s.io/initial-events-end"] // empty' "$api_dir/w4" | head -n 1)"
same "a table for each event, columns once" "3;0;0;0;" "$(jq -r '.object.columnDefinitions | length' "$api_dir/w5" | tr '\n' ';')"
same "resumed later: the same news" "MODIFIED c1;MODIFIED c2;MODIFIED c5;DELETED c3;" "$(watch "resourceVersion=$version&timeoutSeconds=1" | names)"
same "too old" "ERROR 410 Expired" "$(watch "resourceVersion=7&timeoutSeconds=1" | jq -r '"\(.type) \(.object.code) \(.object.reason)"')"
same "of the future" "ERROR 410 Expired" "$(watch "resourceVersion=99999999999999&timeoutSeconds=1" | jq -r '"\(.type) \(.object.code) \(.object.reason)"')"
for i in $(seq 1 100); do
	curl -sN -m 15 --unix-socket "$socket" "http://localhost$cms?watch=true&resourceVersion=$version&timeoutSeconds=8" >"$api_dir/ww.$i" &
done
sleep 2
patch $cms/c9 merge '{"data":{"seen":"by-all"}}' >/dev/null
wait $(jobs -p | grep -v "^$api_pid$")
same "100 watchers" 100 "$(grep -l by-all "$api_dir"/ww.* | wc -l)"

# --- hostile clients
cat >"$api_dir/raw.py" <<'P'
import socket, sys, time
def dial():
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1]); return s
def ask(data, piece=0):
    s = dial()
    try:
        if piece:
            for i in range(0, len(data), piece): s.sendall(data[i:i+piece])
        else: s.sendall(data)
        out = b''
        while len(out) < 200:
            b = s.recv(4096)
            if not b: break
            out += b
    except OSError as e: out = str(e).encode()
    s.close(); return out[9:12].decode()
H = b'Host: a\r\n'
cases = [('nonsense', b'\x00\xff\r\n\r\n', '400'), ('no host', b'GET /api HTTP/1.1\r\n\r\n', '400'),
  ('two lengths', b'GET /api HTTP/1.1\r\n'+H+b'Content-Length: 1\r\nContent-Length: 2\r\n\r\n', '400'),
  ('length and chunks', b'POST /api HTTP/1.1\r\n'+H+b'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', '400'),
  ('broken escape', b'GET /%zz HTTP/1.1\r\n'+H+b'\r\n', '400'), ('huge head', b'GET /api HTTP/1.1\r\n'+b'X: '+b'y'*70000+b'\r\n\r\n', '431'),
  ('huge body', b'POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\n'+H+b'Content-Length: 999999999\r\n\r\n', '413'),
  ('deep JSON', b'POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\n'+H+b'Content-Length: 100000\r\n\r\n'+b'['*100000, '400'),
  ('byte by byte', b'GET /healthz HTTP/1.1\r\n'+H+b'Connection: close\r\n\r\n', '200')]
for name, data, want in cases:
    got = ask(data, 1 if name == 'byte by byte' else 0)
    print(('ok - ' if got == want else 'not ok - ') + 'hostile: ' + name + ('' if got == want else ': ' + got))
# Readers that ask for much and do not read.
slow = []
for i in range(40):
    s = dial(); s.sendall(b'GET /api/v1/configmaps HTTP/1.1\r\n'+H+b'\r\nGET /api/v1/configmaps?watch=1 HTTP/1.1\r\n'+H+b'\r\n'); slow.append(s)
time.sleep(1)
print('SLOW'); sys.stdout.flush(); sys.stdin.readline()
P
mkfifo "$api_dir/go"
python3 "$api_dir/raw.py" "$socket" <"$api_dir/go" >"$api_dir/raw.out" 2>&1 &
exec 9>"$api_dir/go"
until_true 60 grep -q SLOW "$api_dir/raw.out"
grep -E '^(ok|not ok) ' "$api_dir/raw.out"
check "others are served while 40 clients do not read" [ "$(get /healthz)" = ok ]
big=$(head -c 200000 /dev/zero | tr '\0' x)
for i in $(seq 1 20); do
	echo "{\"data\":{\"big\":\"$big$i\"}}" >"$api_dir/big.json"
	patch $cms/c8 merge "@$api_dir/big.json" >/dev/null
done
rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$api_pid/status")
if [ -n "${SANITIZE:-}" ] || [ "${BUILD%-sanitize}" != "$BUILD" ]; then echo "skip - memory with slow readers: not with the sanitizers"
else check "memory stays bounded with them ($rss kB)" [ "$rss" -lt 250000 ]; fi
exec 9>&-
check "still there" [ "$(get /healthz)" = ok ]
check "nothing was said that should not be" sh -c "! grep -E 'ERROR: |runtime error' $api_dir/log"
if [ "${BUILD%-sanitize}" = "$BUILD" ]; then same "OpenSSL is not loaded" 0 "$(grep -c libssl "/proc/$api_pid/maps")"; fi
