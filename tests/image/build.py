#!/usr/bin/env python3
"""Builds the image's Dockerfile without an engine, each stage in a chroot of its own, and runs the result as the image would.

    build.py [--directory build/image] [--jobs N]

The base is Debian's minbase, made by debootstrap with this machine's package sources; FROM, RUN, COPY, WORKDIR, USER, EXPOSE, ENTRYPOINT
and CMD are carried out as written. Then the program of the last stage starts by its entry point, as the image's user, on a read-only root
with only /data writable: it must become ready, take and give back a message, and stop cleanly. Needs root, debootstrap and mount
namespaces; where one is missing it says so and counts as skipped. A last line `N passed, N failed, N skipped`.
"""
import argparse, os, pathlib, shutil, signal, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "fixtures")]
import check, dockerfile

SUITES = {"debian:bookworm-slim": "bookworm"}
BINDS = ("/dev", "/proc")


def run(argv, **options):
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, **options)


def ignored(folder, names):
    """What .dockerignore keeps out: plain names at the top, "**/name" anywhere."""
    lines = [line.strip() for line in (ROOT / ".dockerignore").read_text().splitlines() if line.strip()]
    anywhere = {line[3:] for line in lines if line.startswith("**/")}
    return anywhere | (set(lines) if pathlib.Path(folder) == ROOT else set())


class Stage:
    def __init__(self, directory, number, jobs):
        self.root, self.workdir, self.user, self.jobs = directory / ("stage-%d" % number), "/", None, jobs
        self.settings = {}

    def begin(self, base, directory):
        suite = SUITES[base]
        made = directory / ("base-" + suite)
        if not (made / "made").exists():
            shutil.rmtree(made, ignore_errors=True)
            run(["debootstrap", "--variant=minbase", suite, str(made)], stdout=subprocess.DEVNULL)
            (made / "made").touch()
        shutil.rmtree(self.root, ignore_errors=True)
        run(["cp", "-a", str(made), str(self.root)])
        for name in ("sources.list", "sources.list.d", "apt.conf.d"):
            source, target = pathlib.Path("/etc/apt") / name, self.root / "etc/apt" / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            elif source.exists():
                shutil.copy(source, target)
        for path in ("/etc/resolv.conf", "/etc/hosts"):
            shutil.copy(path, str(self.root) + path)
        for path in BINDS:
            run(["mount", "--bind", path, str(self.root) + path])

    def step(self, name, argument, stages):
        getattr(self, "do_" + name.lower())(argument, stages)

    def do_run(self, argument, _):
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive",
               "CMAKE_BUILD_PARALLEL_LEVEL": str(self.jobs)}
        env.update({k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")})
        script = "cd '%s' && %s" % (self.workdir, argument)
        run(["chroot", str(self.root), "/bin/sh", "-c", script], env=env)

    def do_workdir(self, argument, _):
        self.workdir = argument
        (self.root / argument.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def do_copy(self, argument, stages):
        parts, source = dockerfile.words(argument), ROOT
        if parts[0].startswith("--from="):
            source = stages[parts.pop(0)[7:]].root
        *paths, target = parts
        into = self.root / os.path.join(self.workdir, target).lstrip("/")
        if source == ROOT and paths == ["."]:
            shutil.copytree(ROOT, into, dirs_exist_ok=True, ignore=ignored, symlinks=True)
            return
        directory = target.endswith("/") or len(paths) > 1
        (into if directory else into.parent).mkdir(parents=True, exist_ok=True)
        for path in paths:
            found = source / path.lstrip("/")
            shutil.copy2(found, into / found.name if directory else into)

    def do_user(self, argument, _):
        self.user = argument

    def remember(self, name, argument):
        self.settings[name] = dockerfile.words(argument)

    def do_entrypoint(self, argument, _):
        self.remember("entrypoint", argument)

    def do_cmd(self, argument, _):
        self.remember("cmd", argument)

    def do_expose(self, argument, _):
        self.remember("expose", argument)


class Served:
    """The entry point on a read-only root, as the image's user."""

    def __init__(self, stage):
        for mount in (["--bind", str(stage.root / "data"), str(stage.root / "data")], ["--bind", str(stage.root), str(stage.root)]):
            run(["mount"] + mount)
        run(["mount", "-o", "remount,bind,ro", str(stage.root)])
        data = stage.root / "data"
        run(["mount", "-t", "tmpfs", "-o", "uid=65532,gid=65532,size=256m", "tmpfs", str(data)])
        self.tcp, self.http = check.free_port(None), check.free_port(None)
        env = {"RUSTQUEUE_TCP_ADDRESS": "127.0.0.1:%d" % self.tcp, "RUSTQUEUE_HTTP_ADDRESS": "127.0.0.1:%d" % self.http, "RUST_LOG": "info",
               "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(["chroot", "--userspec=" + stage.user, str(stage.root)] + stage.settings["entrypoint"] + stage.settings["cmd"],
                                        env=env, stdin=subprocess.DEVNULL)

    get, request = check.Server.get, check.Server.request

    def ready(self):
        """Asked as the health check of compose.yaml asks."""
        end = time.monotonic() + check.START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.get("/v1/health")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise check.Mismatch("it did not become ready; exit status %s" % self.process.poll())

    def exercise(self):
        with check.Nsq(self.tcp) as c:
            c.pub("t", b"hello")
            c.subscribe("t", "c", 1)
            message = c.message()
            if message is None or message[3] != b"hello":
                raise check.Mismatch("what was published did not come: %s" % (message,))
            c.fin(message[0])
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(check.STOP_SECONDS) != 0:
            raise check.Mismatch("exit status %d" % self.process.returncode)


def inside(args):
    directory = pathlib.Path(args.directory)
    named, passed = {}, 0
    for number, (name, base, steps) in enumerate(dockerfile.stages()):
        stage = Stage(directory, number, args.jobs)
        stage.begin(base, directory)
        for instruction, argument in steps:
            print("== %s %s" % (instruction, argument[:110]), flush=True)
            stage.step(instruction, argument, named)
        named[name or "last"] = stage
        passed += 1
        print("ok   stage %s" % (name or "last"), flush=True)
    last = named["last"]
    run(["chroot", "--userspec=" + last.user, str(last.root), "curl", "--version"], stdout=subprocess.DEVNULL)
    served = Served(last)
    try:
        served.ready()
        served.exercise()
        passed += 1
        print("ok   serves as %s on a read-only root" % last.user)
    finally:
        if served.process.poll() is None:
            served.process.kill()
    size = subprocess.run(["du", "-sxm", str(last.root)], stdout=subprocess.PIPE, text=True).stdout.split()[0]
    print("the last stage holds %s MiB" % size)
    print("%d passed, 0 failed, 0 skipped" % passed)
    return 0


def missing():
    if os.getuid() != 0:
        return "chroots need root"
    for tool in ("debootstrap", "unshare", "mount", "chroot"):
        if not shutil.which(tool):
            return "no %s" % tool
    probe = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.PIPE, text=True)
    return probe.stderr.strip() if probe.returncode else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", default=str(ROOT / "build" / "image"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside:
        try:
            return inside(args)
        except (subprocess.CalledProcessError, check.Mismatch, OSError, EOFError) as e:
            print("FAIL %s\n0 passed, 1 failed, 0 skipped" % e)
            return 1
    why = missing()
    if why:
        print("skipped: %s\n0 passed, 0 failed, 1 skipped" % why)
        return 0
    os.makedirs(args.directory, exist_ok=True)
    # Mounts are seen by this process and its children only, and go away with them.
    return subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable, __file__, "--inside", "--directory",
                           os.path.abspath(args.directory), "--jobs", str(args.jobs)]).returncode


if __name__ == "__main__":
    sys.exit(main())
