#!/usr/bin/env python3
"""layout.py - purpose: OCI layouts for tests, right or wrong in one place.

    layout.py DIR TAG [--arch A[/VARIANT]] [--cmd JSON] [--config-arch A] LAYER...    add an image (LAYER: FILE.tar[:gzip|:zstd|:plain])
    layout.py DIR TAG --index TAG...                                                 add an index over images added before
    layout.py DIR TAG --raw FILE --type MEDIA-TYPE                                   add any document as a manifest
Prints the manifest's digest. Standard library, and the zstd program for zstd layers.
"""
import argparse, gzip, hashlib, io, json, os, subprocess, sys

parser = argparse.ArgumentParser()
parser.add_argument("dir")
parser.add_argument("tag")
parser.add_argument("--arch", default=None)
parser.add_argument("--config-arch")
parser.add_argument("--cmd", default='["sh"]')
parser.add_argument("--index", nargs="+")
parser.add_argument("--raw")
parser.add_argument("--type")
parser.add_argument("--diff-id", help="a wrong diff id for all layers")
parser.add_argument("layers", nargs="*")
o = parser.parse_intermixed_args()
OCI = "application/vnd.oci.image."
machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
blobs = os.path.join(o.dir, "blobs", "sha256")
os.makedirs(blobs, exist_ok=True)
with open(os.path.join(o.dir, "oci-layout"), "w") as f:
    f.write('{"imageLayoutVersion":"1.0.0"}')
index_path = os.path.join(o.dir, "index.json")
index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": []}
if os.path.exists(index_path):
    with open(index_path) as f:
        index = json.load(f)


def put(data):
    hex = hashlib.sha256(data).hexdigest()
    with open(os.path.join(blobs, hex), "wb") as f:
        f.write(data)
    return {"digest": "sha256:" + hex, "size": len(data)}


def layer(spec):
    path, _, how = spec.partition(":")
    with open(path, "rb") as f:
        plain = f.read()
    diff_id = o.diff_id or "sha256:" + hashlib.sha256(plain).hexdigest()
    how = how or "gzip"
    if how == "gzip":
        out = io.BytesIO()
        with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as g:
            g.write(plain)
        packed, suffix = out.getvalue(), "+gzip"
    elif how == "zstd":
        packed, suffix = subprocess.run(["zstd", "-q", "-c"], input=plain, stdout=subprocess.PIPE, check=True).stdout, "+zstd"
    else:
        packed, suffix = plain, ""
    return dict(mediaType=OCI + "layer.v1.tar" + suffix, **put(packed)), diff_id


def add(descriptor):
    descriptor["annotations"] = {"org.opencontainers.image.ref.name": o.tag}
    index["manifests"] = [d for d in index["manifests"] if d.get("annotations", {}).get("org.opencontainers.image.ref.name") != o.tag]
    index["manifests"].append(descriptor)
    with open(index_path, "w") as f:
        json.dump(index, f)
    print(descriptor["digest"])


if o.raw:
    with open(o.raw, "rb") as f:
        add(dict(mediaType=o.type, **put(f.read())))
elif o.index:
    children = []
    for tag in o.index:
        d = next(d for d in index["manifests"] if d["annotations"]["org.opencontainers.image.ref.name"] == tag)
        children.append({k: v for k, v in d.items() if k != "annotations"})
    document = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": children}
    add(dict(mediaType=OCI + "index.v1+json", **put(json.dumps(document).encode())))
else:
    arch, _, variant = (o.arch or machine).partition("/")
    made = [layer(spec) for spec in o.layers]
    config = {"architecture": o.config_arch or arch, "os": "linux", "config": {"Cmd": json.loads(o.cmd)},
              "rootfs": {"type": "layers", "diff_ids": [d for _, d in made]}}
    platform = {"architecture": arch, "os": "linux"}
    if variant:
        config["variant"] = platform["variant"] = variant
    manifest = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
                "config": dict(mediaType=OCI + "config.v1+json", **put(json.dumps(config).encode())),
                "layers": [d for d, _ in made]}
    add(dict(mediaType=OCI + "manifest.v1+json", platform=platform, **put(json.dumps(manifest).encode())))
