"""What the lint scripts share: the sources of the project, and how a script reports."""
import pathlib, re, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = ("core", "io", "services", "sim", "ledger", "bench", "fuzz", "tests")
CPP = {".h", ".cc", ".cpp"}


def tracked():
    """Files git knows or would add; everything in the tree when this is no checkout."""
    try:
        out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        names = [n for n in out.decode().split("\0") if n]
    except (OSError, subprocess.CalledProcessError):
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if not {"build", ".git", "data"} & set(p.relative_to(ROOT).parts[:1])]
    return sorted(n for n in set(names) if (ROOT / n).is_file())


def cpp(*tops):
    tops = tops or CODE
    return [n for n in tracked() if n.split("/")[0] in tops and pathlib.Path(n).suffix in CPP]


def text(name):
    return (ROOT / name).read_text(errors="replace")


def without_comments(source):
    """The source with comments and the insides of string literals blanked out; line numbers stay."""
    def blank(m):
        s = m.group(0)
        if s.startswith("/"):
            return re.sub(r"[^\n]", " ", s)
        return '""' + "\n" * s.count("\n")
    return re.sub(r'R"([^()\\ ]{0,16})\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, source)


class Report:
    """Named checks, each with its findings; the last line counts them."""

    def __init__(self):
        self.failed, self.passed = 0, 0

    def check(self, name, findings):
        findings = list(findings)
        if findings:
            self.failed += 1
            print("FAIL %s" % name)
            for f in findings[:40]:
                print("    %s" % f)
            if len(findings) > 40:
                print("    ... and %d more" % (len(findings) - 40))
        else:
            self.passed += 1
            print("ok %s" % name)

    def end(self):
        print("%d passed, %d failed" % (self.passed, self.failed))
        sys.exit(1 if self.failed else 0)
