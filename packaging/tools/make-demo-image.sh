#!/bin/sh
# make-demo-image.sh OUT.tar - the image of packaging/examples: Debian's busybox, serving /www with its httpd.
set -eu
exec "$(dirname "$0")/make-busybox-image.sh" --name localhost/node-lite-web:latest --entrypoint '["httpd"]' \
	--cmd '["-f","-p","8080","-h","/www"]' --dir /www "$1"
