# api_node.sh - the API over a whole node: logs that follow rotation, slices that follow readiness at once, replacement and
# deletion of pods through the API.
# shellcheck shell=bash
. tests/integration/lib-node.sh
mount -t tmpfs -o size=512m,mode=0700 node-lite-test "$node_dir" || exit 1
mkdir -p "$node_dir"/{manifests,lib,run,kubelet,logs,links,flag}
net_start
start_runtime
until_true 10 test -S "$cri_socket"
start_kubelet --container-log-max-size=20Ki --container-log-max-files=20 --relist-period=1s
until_true 10 get /api/v1/namespaces
load_image >/dev/null || { not_ok "the test image loads"; exit 1; }
same() { if [ "$2" = "$3" ]; then ok "$1"; else
	not_ok "$1"
	printf '    want %s\n    got  %s\n' "$2" "$3"
fi; }
api() { curl -s --max-time 30 --unix-socket "$api_socket" -X "$1" "http://localhost/api/v1/namespaces/default/$2" "${@:3}"; }
pod() { # pod NAME COMMAND [MORE]: YAML
	printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {app: %s}}\nspec:\n  terminationGracePeriodSeconds: 1\n  restartPolicy: Never\n' "$1" "$1"
	printf '  volumes: [{name: flag, hostPath: {path: %s}}]\n  containers:\n' "$node_dir/flag"
	printf '  - {name: c, image: "localhost/node-lite-web:latest", imagePullPolicy: Never, command: [sh, -c, %s], volumeMounts: [{name: flag, mountPath: /flag}]%s}\n' "$(jq -n --arg c "$2" '$c')" "${3:-}"
}

# --- logs
pod talker 'i=0; while [ $i -lt 12000 ]; do i=$((i+1)); echo "line number $i"; [ $((i % 50)) != 0 ] || sleep 0.1; done; echo end; sleep 1' >"$node_dir/manifests/.t"
mv "$node_dir/manifests/.t" "$node_dir/manifests/talker.yaml"
waiting=$(api GET "pods/talker/log" | head -c 300)
running() { [ "$(pod_field talker .status.phase)" = Running ]; }
until_true 20 running
timeout 60 curl -sN --unix-socket "$api_socket" 'http://localhost/api/v1/namespaces/default/pods/talker/log?follow=true' >"$node_dir/follow"
same "logs -f ends with the container, over rotations, each line once and in order" "$(seq -f 'line number %.0f' 1 12000; echo end)" "$(cat "$node_dir/follow")"
rotated=$(find "$node_dir/logs" -name '*.log.*' | wc -l)
check "it was rotated more than once ($rotated files)" [ "$rotated" -gt 1 ]
same "tailLines" "end" "$(api GET 'pods/talker/log?tailLines=1')"
same "limitBytes" "end" "$(api GET 'pods/talker/log?tailLines=1&limitBytes=3')"
check "timestamps" sh -c "echo '$(api GET 'pods/talker/log?tailLines=1&timestamps=true')' | grep -Eq '^20[0-9]{2}-[0-9-]+T[0-9:.]+Z end$'"
same "a container that is none" 400 "$(api GET 'pods/talker/log?container=x' | jq .code)"
same "no previous one" 400 "$(api GET 'pods/talker/log?previous=true' | jq .code)"
case $waiting in *'"code":400'* | line* | '') ok "before the start: an answer" ;; *) not_ok "before the start: $waiting" ;; esac

# --- slices follow readiness
pod web 'sleep 1000' ', readinessProbe: {exec: {command: [test, -f, /flag/ready]}, periodSeconds: 1}, ports: [{containerPort: 8080, name: http}]' >"$node_dir/manifests/.w"
mv "$node_dir/manifests/.w" "$node_dir/manifests/web.yaml"
printf 'apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}\n' >"$node_dir/manifests/svc.yaml"
slice() { get "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb" | jq -c "[.items[].endpoints[]? | $1]"; }
has_endpoint() { [ "$(slice .conditions.ready)" = "$1" ]; }
check "a pod that is not ready is an endpoint that is not" until_true 20 has_endpoint '[false]'
touch "$node_dir/flag/ready"
until_true 20 pod_ready web
same "as soon as the pod is ready its endpoint is" '[true]' "$(slice .conditions.ready)"
same "with its port" 8080 "$(get /apis/discovery.k8s.io/v1/namespaces/default/endpointslices | jq '.items[0].ports[0].port')"
same "and where it is" "web $(pod_field web .spec.nodeName)" "$(slice '"\(.targetRef.name) \(.nodeName)"' | jq -r '.[0]')"
rm "$node_dir/flag/ready"
check "and it is no more when it is not" until_true 20 has_endpoint '[false]'

# --- changes through the API
uid=$(pod_field web .metadata.uid)
api PATCH pods/web -H 'Content-Type: application/merge-patch+json' -d '{"metadata":{"labels":{"more":"1"}}}' >/dev/null
sleep 1
same "a label is no restart" "$uid 0" "$(pod_field web '"\(.metadata.uid) \(.status.containerStatuses[0].restartCount)"')"
started=$(pod_field web '.status.containerStatuses[0].containerID')
timeout 20 curl -sN --unix-socket "$api_socket" 'http://localhost/api/v1/namespaces/default/pods?watch=true&fieldSelector=metadata.name%3Dweb&timeoutSeconds=8' |
	jq -r '"\(.type) \(.object.metadata.uid)"' >"$node_dir/replaced" &
watcher=$!
sleep 0.3
refused() { api PATCH pods/web -H 'Content-Type: application/strategic-merge-patch+json' -d "$1" | jq -r '"\(.code) \(.reason) \(.details.causes[0].reason) \(.details.causes[0].field)"'; }
same "another command is refused, as in a cluster" "422 Invalid FieldValueForbidden spec" "$(refused '{"spec":{"containers":[{"name":"c","command":["sleep","999"]}]}}')"
same "and the node's network" "422 Invalid FieldValueForbidden spec" "$(refused '{"spec":{"hostNetwork":true}}')"
sed -i 's/sleep 1000/sleep 999/' "$node_dir/manifests/web.yaml" # the manifest may
other() { [ "$(pod_field web '.status.phase')" = Running ] && [ "$(pod_field web '.metadata.uid')" != "$uid" ]; }
check "another command is another pod" until_true 20 other
check "in its own container" [ "$(pod_field web '.status.containerStatuses[0].containerID')" != "$started" ]
wait $watcher
same "the old one went before the new one came" "ADDED DELETED ADDED" "$(grep -E 'ADDED|DELETED' "$node_dir/replaced" | cut -d' ' -f1 | tr '\n' ' ' | sed 's/ $//')"
api DELETE pods/web >/dev/null
check "deleted" until_true 20 pod_absent web
check "with its file" [ ! -e "$node_dir/manifests/web.yaml" ]
check "and its endpoint" until_true 5 has_endpoint '[]'
same "events tell the story" true "$(get '/api/v1/events?fieldSelector=involvedObject.name%3Dweb' | jq '[.items[].reason] | contains(["Created", "Started", "Killing"])')"
