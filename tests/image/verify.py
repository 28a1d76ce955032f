#!/usr/bin/env python3
"""The Dockerfile, compose.yaml and the systemd unit without an engine: linters, the packages, and what page 31 section 9.1 fixes.

    verify.py [--program build/dev/bin/rustqueued]

The linter and a YAML reader come from PyPI into build/image/venv. One line per check, a last line `N passed, N failed`.
"""
import argparse, json, pathlib, re, shutil, subprocess, sys, tomllib

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import dockerfile

VENV = ROOT / "build" / "image" / "venv"


def prepare():
    stamp, wanted = VENV / "requirements.txt", (HERE / "requirements.txt").read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run([str(VENV / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:",
                    "-r", str(HERE / "requirements.txt")], check=True)
    stamp.write_text(wanted)


def need(condition, what):
    if not condition:
        raise AssertionError(what)


def lint(_):
    done = subprocess.run([str(VENV / "bin" / "hadolint"), "--failure-threshold", "style", str(ROOT / "Dockerfile")],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    need(done.returncode == 0, done.stdout)


def build_packages(_):
    """The build stage installs what scripts/setup does, but for the compiler's cache, which an image has no use for."""
    text = (ROOT / "scripts" / "lib.sh").read_text()
    wanted = set(re.search(r'^BUILD_PACKAGES="([^"]*)"', text, re.M).group(1).split()) - {"ccache"}
    have = set(dockerfile.packages(dockerfile.stages()[0][2]))
    need(have == wanted, "differ from scripts/lib.sh: %s" % sorted(have ^ wanted))


def runtime_packages(args):
    """Every shared library that the program is linked with comes from a package that the last stage names, or that is always there."""
    linked = subprocess.run(["ldd", args.program], stdout=subprocess.PIPE, text=True, check=True).stdout
    named, always = set(dockerfile.packages(dockerfile.stages()[-1][2])), {"libc6"}
    for library in re.findall(r"=> (/\S+)", linked):
        owner = None
        for path in (library, "/usr" + library, str(pathlib.Path(library).resolve())):
            found = subprocess.run(["dpkg", "-S", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
            if found:
                owner = found.split(":")[0]
                break
        need(owner in named | always, "%s comes from %s, which the image does not install" % (library, owner))


def image(_):
    last = dict(dockerfile.stages()[-1][2])
    need(dockerfile.words(last["ENTRYPOINT"]) == ["/usr/local/bin/rustqueued"], "ENTRYPOINT")
    need(dockerfile.words(last["CMD"]) == ["--config", "/etc/rustqueue/rustqueue.toml"], "CMD")
    need(last["USER"] == "65532:65532", "USER")
    need(last["EXPOSE"].split() == ["4150", "4151", "4161", "4180"], "EXPOSE")
    need("curl" in dockerfile.packages(dockerfile.stages()[-1][2]), "curl")


def compose(_):
    """Section 9.1, key by key."""
    script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))"
    text = subprocess.run([str(VENV / "bin" / "python"), "-c", script, str(ROOT / "compose.yaml")], stdout=subprocess.PIPE, check=True).stdout
    document = json.loads(text)
    service = document["services"]["rustqueue"]
    wanted = {
        "image": "rustqueue:dev", "build": ".", "command": ["--config", "/etc/rustqueue/rustqueue.toml"], "ports": ["4150:4150", "4151:4151"],
        "volumes": ["rustqueue-data:/data", "./rustqueued.example.toml:/etc/rustqueue/rustqueue.toml:ro"],
        "environment": {"RUST_LOG": "${RUST_LOG:-info}"}, "restart": "unless-stopped", "read_only": True,
        "healthcheck": {"test": ["CMD", "curl", "-fsS", "http://127.0.0.1:4151/v1/health"], "interval": "2s", "timeout": "1s", "retries": 20},
    }
    for key, value in wanted.items():
        need(service.get(key) == value, "%s: %s" % (key, service.get(key)))
    need("rustqueue-data" in document["volumes"], "volumes")
    with open(ROOT / "rustqueued.example.toml", "rb") as f:
        need(tomllib.load(f)["storage"]["data_path"] == "/data", "the example's data_path is not the volume")


def unit(_):
    """docs/operations/rustqueued.service, with a program that is there."""
    if not shutil.which("systemd-analyze"):
        return
    text = re.sub(r"^ExecStart=.*$", "ExecStart=/bin/true", (ROOT / "docs/operations/rustqueued.service").read_text(), flags=re.M)
    path = ROOT / "build" / "image" / "rustqueued.service"
    path.write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    said = [line for line in done.stdout.splitlines() if "rustqueued.service" in line]
    need(done.returncode == 0 and not said, done.stdout)


CHECKS = (lint, build_packages, runtime_packages, image, compose, unit)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "build" / "dev" / "bin" / "rustqueued"))
    args = parser.parse_args()
    prepare()
    passed = failed = 0
    for check in CHECKS:
        try:
            check(args)
            print("ok   %s" % check.__name__.replace("_", " "))
            passed += 1
        except (AssertionError, KeyError, subprocess.CalledProcessError) as e:
            print("FAIL %s: %s" % (check.__name__.replace("_", " "), e))
            failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
