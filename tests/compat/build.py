"""What the compatibility tests need, under build/compat/: each client with the package client of its own language, built once.

Every function returns the command that starts its program. Versions are pinned in go/, nsq/, python/, js/ and java/.
"""
import hashlib, os, pathlib, shutil, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "compat"
NSQ_PROGRAMS = ("nsqd", "nsqlookupd", "nsqadmin", "nsq_stat", "nsq_tail", "nsq_to_file", "nsq_to_nsq", "nsq_to_http", "to_nsq")
MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


def run(argv, cwd=None, env=None, tries=1):
    """`tries`: more than one for what comes from a registry."""
    for left in reversed(range(tries)):
        done = subprocess.run(list(map(str, argv)), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if done.returncode == 0:
            return done.stdout
        if left:
            time.sleep(5)
    sys.exit("Error: %s\n%s" % (" ".join(map(str, argv)), done.stdout[-3000:]))


def fresh(directory, *sources):
    """True when the directory was filled from these files as they are now; otherwise it is emptied. done() marks it."""
    stamp = directory / ".made-from"
    if stamp.exists() and stamp.read_text() == digest(sources):
        return True
    shutil.rmtree(directory, ignore_errors=True)
    return False


def done(directory, *sources):
    (directory / ".made-from").write_text(digest(sources))


def digest(sources):
    return hashlib.sha256(b"\0".join(s.read_bytes() for s in sources)).hexdigest()


def go_build(directory, output, *packages):
    env = dict(os.environ)
    if "HOME" not in env and "GOCACHE" not in env:
        env.update(GOCACHE=str(OUT / "go-cache"), GOPATH=str(OUT / "go"))
    env.update(GOFLAGS="-mod=readonly -buildvcs=false", GOTOOLCHAIN="local")
    run(["go", "build", "-o", output, *packages], directory, env, 3)


def go_client():
    go_build(HERE / "go", OUT / "go-client", ".")
    return [str(OUT / "go-client")]


def nsq_programs():
    """Name -> path of the programs of NSQ 1.3.0."""
    directory = OUT / "nsq"
    sources = HERE / "nsq" / "go.mod", HERE / "nsq" / "go.sum", HERE / "nsq" / "tools.go"
    if not fresh(directory, *sources):
        directory.mkdir(parents=True)
        go_build(HERE / "nsq", directory, *["github.com/nsqio/nsq/apps/" + name for name in NSQ_PROGRAMS])
        done(directory, *sources)
    return {name: str(directory / name) for name in NSQ_PROGRAMS}


def python_client():
    venv, wanted = OUT / "venv", HERE / "python" / "requirements.txt"
    python = venv / "bin" / "python"
    if not fresh(venv, wanted):
        run([sys.executable, "-m", "venv", venv])
        run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", wanted], tries=3)
        done(venv, wanted)
    return [str(python), "-W", "ignore", str(HERE / "python" / "cases.py")]


def node_client():
    directory = OUT / "js"
    sources = HERE / "js" / "package.json", HERE / "js" / "package-lock.json"
    if not fresh(directory, *sources):
        directory.mkdir(parents=True)
        for source in sources:
            shutil.copy(source, directory)
        run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory, tries=3)
        done(directory, *sources)
    return ["env", "NODE_PATH=%s" % (directory / "node_modules"), "node", str(HERE / "js" / "cases.js")]


def java_client():
    directory = OUT / "java"
    sources = HERE / "java" / "pom.xml", HERE / "java" / "Cases.java"
    jars, classes = directory / "jars", directory / "classes"
    if not fresh(directory, *sources):
        classes.mkdir(parents=True)
        run(["mvn", "-q", "-B", "-f", sources[0], MAVEN_COPY, "-DoutputDirectory=%s" % jars], tries=3)
        run(["javac", "-Xlint:all", "-Werror", "-cp", "%s/*" % jars, "-d", classes, sources[1]])
        done(directory, *sources)
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", "%s:%s/*" % (classes, jars), "Cases"]
