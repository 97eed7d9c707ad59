# SPDX-License-Identifier: Apache-2.0
"""--redact on a corpus: 200 texts with a planted secret, of which none may be
seen in a page, and 2,000 names as frameworks, compilers and people write them,
of which at most 1 % may change. Secrets are made by chance from a fixed seed,
in the forms of environment variables, options, headers, addresses, files and
identifiers."""
import itertools
import json
import pathlib
import random
import re
import string

from common import ROOT, SAMPLES, Checks, lamina, temporary
from page_redact_test import all_text

LETTERS = string.ascii_letters + string.digits
PLANTED, INNOCENT = 200, 2000

# {0} is the secret; the number is its length, the text what it is made of.
FORMS = [
    ("export {0}", None, "DB_SECRET="), ("{0}", None, "TOKEN="),
    ("env {0} python", None, "PGPASSWORD="), ("{0}", None, "MYSQL_PWD="),
    ("{0}", None, "AWS_SECRET_ACCESS_KEY="), ("{0}", None, "HF_TOKEN="),
    ("{0}", None, "WANDB_API_KEY="), ("{0}", None, "my.app.client-secret: "),
    ("{0}", None, "GITLAB_PRIVATE_TOKEN="), ("{0}", None, "x-api-key: "),
    ("run {0} --steps 3", None, "--password "),
    ("run {0} --steps 3", None, "--api-key "),
    ("run {0}", None, "--hub-token "), ("{0}", None, "Authorization: Basic "),
    ("{0}", None, "Authorization: Bearer "),
    ("{0}", None, "authorization=token "),
    ("Endpoint=x;{0}", None, "AccountKey="),
    ("Endpoint=x;{0}", None, "SharedAccessKey="),
    ("https://x.blob/y?{0}", None, "sig="),
    ("postgres://app:{0}@db.local/x", 12, ""),
    ("redis://:{0}@cache", 14, "REDISCLI_AUTH="),
    ("machine api login ops password {0}", 12, ""),
    ("-----BEGIN RSA PRIVATE KEY-----{0}-----END RSA PRIVATE KEY-----", 60, ""),
    ("key {0} used", 24, "ya29."), ("key {0} used", 24, "sk_live_"),
    ("key {0} used", 22, "hvs."), ("key {0} used", 36, "ghp_"),
    ("key {0} used", 32, "xoxb-"), ("key {0} used", 30, "dckr_pat_"),
    ("key {0} used", 40, ""), ("sent {0} to it", 48, ""),
]


def planted(rng):
    """(text, what of it must not be seen)."""
    texts = []
    for form, size, before in itertools.islice(
            itertools.cycle(FORMS), PLANTED - 24):
        secret = "".join(rng.choice(LETTERS)
                         for _ in range(size or rng.randrange(9, 41)))
        # Without a digit a short one is a word.
        secret = secret[:5] + str(rng.randrange(10)) + secret[6:]
        texts.append((form.format(before + secret), secret))
    for i in range(8):
        part = lambda n: "".join(rng.choice("0123456789abcdef")
                                 for _ in range(n))
        card = ":".join(part(2) for _ in range(6))
        number = f"GPU-{part(8)}-{part(4)}-{part(4)}-{part(4)}-{part(12)}"
        texts += [(f"eth0 {card} up", card), (f"on {number}", number),
                  (f"SLURM_NODELIST=dgx-[0{i}1-0{i}9]", f"dgx-[0{i}1-0{i}9]")]
    return texts


def innocent():
    """Names and texts of samples and of the examples of data/."""
    names = set()
    for sample in (SAMPLES / f"{name}.json.gz"
                   for name in ("train_step", "serve", "moe")):
        rows = json.loads(lamina("query", sample, "SELECT DISTINCT name FROM "
                                 "slice", "--format", "json").stdout)
        names |= {row["name"] for row in rows["tables"]["result"]}
    for file in sorted((ROOT / "data").rglob("*.yaml")):
        if "secrets" in file.parts:
            continue
        for line in file.read_text().splitlines():
            found = re.fullmatch(r"\s+- (?:\{text: )?'([^']+)'.*", line)
            if found:
                names.add(found[1])
            names |= set(re.findall(r"'([^'\s]{8,})'", line))
    rng = random.Random(3)
    names = sorted(names)
    parts = sorted({p for n in names for p in re.findall(r"[A-Za-z]{3,}", n)})
    while len(names) < INNOCENT:  # as compilers and people join them
        some = rng.sample(parts, rng.randrange(2, 6))
        names.append(rng.choice((
            "_".join(some) + f"_{rng.randrange(512)}",
            f"triton_poi_fused_{'_'.join(some)}_{rng.randrange(99)}",
            f"model.layers.{rng.randrange(99)}." + ".".join(some),
            f"{some[0]}={rng.randrange(99999)} {some[1]}_tokens=4096",
            "".join(s.title() for s in some) + f"Backward{rng.randrange(9)}",
            f"sm90_xmma_{some[0]}_bf16f32_tn_n_tilesize128x{rng.randrange(9)}x64",
            f"_ZN2at6native{len(some[0])}{some[0]}ILi{rng.randrange(9)}EEEvi")))
    return names[:INNOCENT]


def write_trace(path, texts):
    events = [{"ph": "X", "cat": "cpu_op", "name": text, "pid": 1, "tid": 1,
               "ts": i * 10, "dur": 9} for i, text in enumerate(texts)]
    events += [
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
         "pid": 1, "tid": 1, "ts": i * 10 + 1, "dur": 2,
         "args": {"correlation": i + 1}} for i in range(len(texts))]
    events += [
        {"ph": "X", "cat": "kernel", "name": text, "pid": 0, "tid": 7,
         "ts": i * 10 + 4, "dur": 5,
         "args": {"device": 0, "stream": 7, "correlation": i + 1}}
        for i, text in enumerate(texts)]
    path.write_text(json.dumps({"traceEvents": events}))


def page_of(folder, name, texts):
    trace, page = folder / f"{name}.json", folder / f"{name}.html"
    write_trace(trace, texts)
    lamina("report", trace, "--format", "html", "--redact", "-o", page)
    return all_text(page)[1]


def main():
    checks = Checks()
    with temporary() as name:
        folder = pathlib.Path(name)
        corpus = planted(random.Random(1))
        text = page_of(folder, "planted", [t for t, _ in corpus])
        checks.equal("planted", len(corpus), PLANTED)
        checks.equal("seen", [t for t, secret in corpus if secret in text], [])
        names = innocent()
        text = page_of(folder, "innocent", names)
        changed = [n for n in names if n not in text and
                   json.dumps(n)[1:-1] not in text]
        print(f"{len(changed)} of {len(names)} innocent names changed: "
              f"{changed[:20]}")
        checks.true(f"innocent names that changed: {changed[:30]}",
                    len(changed) <= INNOCENT // 100)
    checks.finish()


main()
