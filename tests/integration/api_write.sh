# api_write.sh - what is written through the API stands in files; addresses and versions outlive kill -9; bad input has
# a clear answer; TLS with a kubeconfig.
# shellcheck shell=bash
. tests/integration/lib-api.sh
api_start
ns=/api/v1/namespaces/default
field() { get "$1" | jq -r "$2"; }

# --- create, replace, patch, delete
same "create" "201 " "$(code POST $ns/configmaps -d '{"metadata":{"name":"a"},"data":{"k":"v"}}')"
check "it is in a file of mode 0600" [ "$(stat -c %a "$manifests/default_configmap_a.yaml")" = 600 ]
same "again" "409 AlreadyExists" "$(code POST $ns/configmaps -d '{"metadata":{"name":"a"}}')"
same "merge patch" '{"k":"v","x":"y"}' "$(patch $ns/configmaps/a merge '{"data":{"x":"y"}}' | jq -cS .data)"
same "JSON patch" '{"k":"w","x":"y"}' "$(patch $ns/configmaps/a json '[{"op":"replace","path":"/data/k","value":"w"}]' | jq -cS .data)"
same "JSON patch that fails" "422 Invalid" "$(code PATCH $ns/configmaps/a -H 'Content-Type: application/json-patch+json' -d '[{"op":"remove","path":"/x"}]')"
same "strategic patch" '{"x":"y"}' "$(patch $ns/configmaps/a strategic-merge '{"data":{"k":null}}' | jq -cS .data)"
same "server-side apply makes it" "201 " "$(code PATCH "$ns/configmaps/b?fieldManager=t" -H 'Content-Type: application/apply-patch+yaml' --data-binary $'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {k: v}\n')"
same "unknown patch type" "415 UnsupportedMediaType" "$(code PATCH $ns/configmaps/a -H 'Content-Type: text/plain' -d x)"
same "old resourceVersion" "409 Conflict" "$(code PUT $ns/configmaps/a -d '{"metadata":{"name":"a","resourceVersion":"1"}}')"
version=$(field $ns/configmaps/a .metadata.resourceVersion)
same "replace" "{}" "$(call PUT $ns/configmaps/a -d "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"$version\"}}" | jq -c '.data // {}')"
check "YAML body" [ "$(code POST $ns/secrets -H 'Content-Type: application/yaml' --data-binary $'metadata: {name: s}\nstringData: {p: q}\n')" = "201 " ]
same "stringData is data" cQ== "$(field $ns/secrets/s .data.p)"
same "dry run" "201 " "$(code POST "$ns/configmaps?dryRun=All" -d '{"metadata":{"name":"dry"}}')"
same "leaves nothing" "404 NotFound" "$(code GET $ns/configmaps/dry)"
same "generateName" 8 "$(call POST $ns/configmaps -d '{"metadata":{"generateName":"gn-"}}' | jq -r '.metadata.name | length')"
same "delete" Success "$(call DELETE $ns/configmaps/b | jq -r .status)"
check "its file is gone" [ ! -e "$manifests/default_configmap_b.yaml" ]
same "delete again" "404 NotFound" "$(code DELETE $ns/configmaps/b)"

# --- a file of the user's own is edited, not taken over
printf '# mine\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m1}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m2} # two\n' >"$manifests/mine.yaml"
there() { [ "$(code GET "$1")" = "200 " ]; }
until_true 5 there $ns/configmaps/m2
patch $ns/configmaps/m1 merge '{"data":{"a":"b"}}' >/dev/null
check "the other document keeps its text" grep -q '# two' "$manifests/mine.yaml"
call DELETE $ns/configmaps/m1 >/dev/null
same "one document is left" 1 "$(grep -c '^kind' "$manifests/mine.yaml")"

# --- bad input
bad() { same "$1" "$2" "$(call POST "$ns/$3" -d "$4" | jq -r '"\(.code) \(.message)"' | head -c "${#2}")"; }
bad "unknown field, strict" '400 strict decoding error: unknown field "data2"' "configmaps?fieldValidation=Strict" '{"metadata":{"name":"x"},"data2":{}}'
same "unknown field, warned" '299 - "unknown field \"data2\""' "$(call POST "$ns/configmaps" -d '{"metadata":{"name":"warned"},"data2":{}}' -D - -o /dev/null | tr -d '\r' | sed -n 's/^Warning: //p')"
bad "duplicate key, strict" '400 ' "configmaps?fieldValidation=Strict" '{"metadata":{"name":"x","name":"y"}}'
bad "wrong type" '422 ConfigMap "x" is invalid: data.a: Invalid type: expected string, got integer' configmaps '{"metadata":{"name":"x"},"data":{"a":1}}'
bad "bad name" '422 ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase' configmaps '{"metadata":{"name":"A_b"}}'
bad "bad quantity" '422 Pod "x" is invalid: [spec.containers[0].resources.limits[cpu]: Invalid value: "1z"' pods '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1z"}}}]}}'
bad "not JSON" '400 line 1, column 2' configmaps '{'
bad "another kind" '400 Pod in version "v1" cannot be handled as a ConfigMap (v1)' configmaps '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}'
bad "another namespace" '400 the namespace of the provided object does not match the namespace sent on the request' configmaps '{"metadata":{"name":"x","namespace":"y"}}'
bad "no body" '400 the request has no body' configmaps ''
same "causes are listed" 2 "$(call POST $ns/pods -d '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c"},{"image":"i"}]}}' | jq '.details.causes | length')"
same "a Node cannot be made" "405 MethodNotAllowed" "$(code POST /api/v1/nodes -d '{"metadata":{"name":"x"}}')"
same "default cannot be deleted" "403 Forbidden" "$(code DELETE /api/v1/namespaces/default)"

# --- Services: addresses
svc() { call POST $ns/services -d "{\"metadata\":{\"name\":\"$1\"},\"spec\":{\"type\":\"${2:-ClusterIP}\",${3:-}\"selector\":{\"a\":\"b\"},\"ports\":[{\"port\":80${4:-}}]}}"; }
ip=$(svc web NodePort | jq -r .spec.clusterIP)
port=$(field $ns/services/web '.spec.ports[0].nodePort')
check "ClusterIP of the range" sh -c "echo $ip | grep -q '^10\.96\.'"
check "nodePort of the range" [ "$port" -ge 30000 ] && [ "$port" -le 32767 ]
same "the same ClusterIP again" "422 Invalid" "$(svc other ClusterIP "\"clusterIP\":\"$ip\"," | jq -r '"\(.code) \(.reason)"')"
same "the same nodePort again" "422 Invalid" "$(svc other NodePort '' ",\"nodePort\":$port" | jq -r '"\(.code) \(.reason)"')"
check "a refused Service leaves no file" [ ! -e "$manifests/default_service_other.yaml" ]
printf 'apiVersion: v1\nkind: Service\nmetadata: {name: clash}\nspec: {clusterIP: %s, ports: [{port: 1}]}\n' "$ip" >"$manifests/clash.yaml"
said() { get /api/v1/events | jq -e "any(.items[]; .reason == \"$1\" and (.message | contains(\"$2\")))"; }
check "a clash in a file is an event" until_true 5 said FailedValidation "already allocated to Service default/web"
check "and a line in the log" grep -q "clash.yaml.*already allocated" "$api_dir/log"
same "a slice for it" web "$(get /apis/discovery.k8s.io/v1/endpointslices | jq -r '.items[].metadata.labels["kubernetes.io/service-name"]')"
same "which is managed" "403 Forbidden" "$(code DELETE "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/$(get /apis/discovery.k8s.io/v1/endpointslices | jq -r '.items[0].metadata.name')")"

# --- files with mistakes
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n---\nkind: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo, nam: x}\n' >"$manifests/broken.yaml"
check "the good documents count" until_true 5 there $ns/configmaps/good
check "the broken one has its line" until_true 5 said InvalidManifest "document at line 4: line 6"
check "the unknown field has its path" said UnknownField 'unknown field \"metadata.nam\"'
cp "$manifests/broken.yaml" "$manifests/broken.yaml.bak"
cp "$manifests/mine.yaml" "$manifests/zz-copy.yaml"
check "a copy is reported" until_true 5 said DuplicateManifest "defined already in mine.yaml"
check "a backup is not even read" sh -c "! grep -q yaml.bak $api_dir/log"

# --- other users on the socket
chmod 0755 "$api_dir"; chmod 0666 "$socket"
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups curl -s -o /dev/null -w '%{http_code}' --unix-socket "$socket" "$@"; }
same "others may list Services" 200 "$(as_nobody http://localhost/api/v1/services)"
same "but no Secrets" 403 "$(as_nobody http://localhost/api/v1/secrets)"
same "and write nothing" 403 "$(as_nobody -X DELETE http://localhost$ns/services/web)"
same "but Events" 201 "$(as_nobody -X POST http://localhost$ns/events -d '{"metadata":{"name":"e1"},"involvedObject":{"kind":"Service","name":"web"},"reason":"R","message":"m","type":"Warning"}')"

# --- kill -9
version=$(field /api/v1/services .metadata.resourceVersion)
uid=$(field $ns/services/web .metadata.uid)
created=$(field $ns/services/web .metadata.creationTimestamp)
sleep 0.2
api_kill KILL
api_start
same "ClusterIP, nodePort, uid and age are the same after kill -9" "$ip $port $uid $created" \
	"$(field $ns/services/web '"\(.spec.clusterIP) \(.spec.ports[0].nodePort) \(.metadata.uid) \(.metadata.creationTimestamp)"')"
check "resourceVersion went on" [ "$(field /api/v1/services .metadata.resourceVersion)" -gt "$version" ]
same "a watch from before starts again" "ERROR 410" "$(get "/api/v1/services?watch=true&resourceVersion=$version&timeoutSeconds=1" | jq -r '"\(.type) \(.object.code)"')"

rm "$manifests/default_service_web.yaml"
clash_has() { [ "$(field $ns/services/clash .spec.clusterIP)" = "$ip" ]; }
check "once the owner is gone the other Service gets the address" until_true 25 clash_has

# --- a second one
# shellcheck disable=SC2046
timeout 10 unshare -n "$BUILD/bin/kubelet-lite" $(api_args) >"$api_dir/second" 2>&1
same "a second instance is refused" 1 $?
check "and told why" grep -q "in use by another" "$api_dir/second"
# shellcheck disable=SC2046
timeout 10 unshare -n "$BUILD/bin/kubelet-lite" $(api_args) --root-dir="$api_dir/other" --api-socket=nonsense >"$api_dir/second" 2>&1
check "a bad address is told with its flag" grep -q -- '--api-socket: address "nonsense"' "$api_dir/second"
check "the first one goes on" [ "$(get /healthz)" = ok ]
api_kill TERM

# --- TLS
api_start --api-address=127.0.0.1:16443
config=$api_dir/root/api/admin.kubeconfig
check "kubeconfig of mode 0600" [ "$(stat -c %a "$config")" = 600 ]
for key in certificate-authority client-certificate client-key; do
	sed -n "s/^ *$key-data: //p" "$config" | base64 -d >"$api_dir/$key.pem"
done
tls() { nsenter --net="/proc/$api_pid/ns/net" curl -s --max-time 10 --cacert "$api_dir/certificate-authority.pem" "$@"; }
same "its client certificate" node1 "$(tls --cert "$api_dir/client-certificate.pem" --key "$api_dir/client-key.pem" https://127.0.0.1:16443/api/v1/nodes | jq -r '.items[].metadata.name')"
same "nothing without credentials" 401 "$(tls -o /dev/null -w '%{http_code}' https://127.0.0.1:16443/api/v1/nodes)"
same "the token" 200 "$(tls -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $(cat "$api_dir/root/api/token")" https://127.0.0.1:16443/api/v1/nodes)"
same "a wrong token" 401 "$(tls -o /dev/null -w '%{http_code}' -H "Authorization: Bearer x$(cat "$api_dir/root/api/token")" https://127.0.0.1:16443/api/v1/nodes)"
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=root -keyout "$api_dir/evil.key" -out "$api_dir/evil.crt" -days 1 2>/dev/null
same "a certificate of another CA" 000 "$(tls --cert "$api_dir/evil.crt" --key "$api_dir/evil.key" -o /dev/null -w '%{http_code}' https://127.0.0.1:16443/api/v1/nodes)"
same "cleartext on the TLS port" 000 "$(nsenter --net="/proc/$api_pid/ns/net" curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:16443/)"
api_kill TERM
check "nothing was said that should not be" sh -c "! grep -E 'ERROR: |runtime error' $api_dir/log"
