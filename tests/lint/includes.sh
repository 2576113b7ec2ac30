#!/bin/bash
# includes.sh - includes go one way: common/ knows no daemon, a daemon no other daemon, pure folders no effects.
set -u
cd "$(dirname "$0")/../.." || exit 1

# folder -> what it may include of ours (globs), and whether it is pure (no loop, no system, no network).
allowed() {
	case $1 in
	common/base) echo "common/base/*" ;;
	common/sys) echo "common/base/* common/sys/*" ;;
	common/wire) echo "common/base/* common/wire/*" ;;
	common/cri) echo "common/base/* common/wire/* common/cri/* cri.pb-c.h" ;;
	common/net) echo "common/base/* common/sys/* common/wire/* common/net/*" ;;
	common/*) echo "common/* cri.pb-c.h" ;;
	runtime-lite*) echo "common/* runtime-lite/* cri.pb-c.h runtime-lite.opts.h" ;;
	kubelet-lite*) echo "common/* kubelet-lite/* cri.pb-c.h kubelet-lite.opts.h" ;;
	proxy-lite*) echo "common/* proxy-lite/* proxy-lite.opts.h" ;;
	esac
}
pure() {
	case $1 in
	common/base | common/wire | runtime-lite/spec | kubelet-lite/core | kubelet-lite/model | proxy-lite/model | proxy-lite/compile) return 0 ;;
	esac
	return 1
}
# In a pure folder, and not pure: they look at the kernel (capabilities, LSMs) or into the image's user database.
exempt="runtime-lite/spec/caps.c runtime-lite/spec/security.c runtime-lite/spec/rootfs_user.c"
# Effects inside a daemon that its own pure folders must not see.
effects="common/sys/* common/net/* common/kube/list_watch.h runtime-lite/engine/* runtime-lite/net/* runtime-lite/cri/*"
effects="$effects kubelet-lite/worker/* kubelet-lite/observe/* kubelet-lite/local/* kubelet-lite/cri/* proxy-lite/kernel/* proxy-lite/watch/* uv.h"

matches() { # matches NAME GLOB...
	local name=$1 glob; shift
	for glob in "$@"; do
		# shellcheck disable=SC2053
		[[ $name == $glob ]] && return 0
	done
	return 1
}

set -f
bad=0 files=0
while read -r file; do
	folder=$(dirname "$file")
	# shellcheck disable=SC2207
	may=($(allowed "$folder")) not=($effects)
	files=$((files + 1))
	while read -r name; do
		if ! matches "$name" "${may[@]}"; then
			echo "# $file includes $name: $folder may include only ${may[*]}"
			bad=$((bad + 1))
		fi
		# shellcheck disable=SC2086
		if pure "$folder" && ! matches "$file" $exempt && matches "$name" "${not[@]}"; then
			echo "# $file includes $name: $folder is pure"
			bad=$((bad + 1))
		fi
	done < <(sed -n 's/^#include "\([^"]*\)".*/\1/p; s/^#include <\(uv\.h\)>.*/\1/p' "$file" | { if pure "$folder"; then cat; else grep -v '^uv\.h$'; fi; })
done < <(find common runtime-lite kubelet-lite proxy-lite -name '*.[ch]' | sort)
[ $bad -eq 0 ] && [ $files -gt 0 ] && echo "ok - includes of $files files go the allowed way" || echo "not ok - $bad includes go the wrong way"
[ $bad -eq 0 ]
