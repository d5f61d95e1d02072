"""Writes down what the executable reading of the contract does, for `tests/traces.rs` to hold the gate and the model against.

That reading, `gate_model.py` with its `cases.py`, is kept outside this repository: the traces are what is held here of it, and
`docs/internals/gate.md` says the contract in words.

`python3 generate.py FOLDER_OF_gate_model.py [random histories]` writes `cases.txt` and `random.txt` beside this script. A line is one call,
then `|`, then what it did: `+instant:id` a start, `!id:code` a failure, `=instant` the next timeout.
"""

import math
import random
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import cases  # noqa: E402
import gate_model  # noqa: E402
from gate_model import Gate, Refused, S  # noqa: E402

HERE = Path(__file__).parent


class Durations(dict):
    """Tells durations that a case gives beforehand."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if self.recorder.depth == 0:
            self.recorder.lines.append(f"learned {key[0]} {key[1]} {','.join(map(str, value))} |")


class Recorder(Gate):
    made = []

    def __init__(self, *args, **kwargs):
        self.depth, self.lines, self.numbers, self.told = 0, [], {}, (0, 0)
        super().__init__(*args, **kwargs)
        self.durations = Durations(self)
        self.lines.append(f"gate {self.aging if self.aging is not None else '-'} |")
        Recorder.made.append(self)

    def number(self, id):
        return self.numbers.setdefault(id, len(self.numbers) + 1)

    def record(self, words, call):
        self.depth += 1
        refused = ""
        try:
            return call()
        except Refused as why:
            refused = f" ?{why}"
            raise
        finally:
            self.depth -= 1
            if self.depth == 0:
                self.lines.append(f"{words} |{refused}{self.effects()}")

    def effects(self):
        starts, failures = self.started[self.told[0] :], self.failed[self.told[1] :]
        self.told = (len(self.started), len(self.failed))
        out = [f" +{at}:{self.number(id)}" for at, id in starts] + [f" !{self.number(id)}:{code}" for _, id, code in failures]
        at = self.next_timeout()
        return "".join(out) + (f" ={at}" if at is not None else "")

    def semaphore(self, name, permits):
        self.record(f"semaphore {name} {permits}", lambda: super(Recorder, self).semaphore(name, permits))

    def bucket(self, name, rate, burst):
        rate = Fraction(rate)
        words = f"bucket {name} {rate.numerator} {rate.denominator} {burst}"
        self.record(words, lambda: super(Recorder, self).bucket(name, rate, burst))

    def submit(self, id, needs, priority=0, run=None, kind=None):
        asked = ",".join(f"{name}={units}" for name, units in needs.items())
        inside = self.number(run) if run is not None else "-"
        words = f"submit {self.number(id)} {kind or id} {priority} {inside} {asked}"
        self.record(words, lambda: super(Recorder, self).submit(id, needs, priority, run, kind))

    def end(self, id):
        self.record(f"end {self.number(id)}", lambda: super(Recorder, self).end(id))

    def cancel(self, id):
        self.record(f"cancel {self.number(id)}", lambda: super(Recorder, self).cancel(id))

    def reprioritise(self, id, priority):
        self.record(f"priority {self.number(id)} {priority}", lambda: super(Recorder, self).reprioritise(id, priority))

    def set_permits(self, name, permits):
        self.record(f"permits {name} {permits}", lambda: super(Recorder, self).set_permits(name, permits))

    def set_bucket(self, name, rate, burst):
        rate = Fraction(rate)
        words = f"rate {name} {rate.numerator} {rate.denominator} {burst}"
        self.record(words, lambda: super(Recorder, self).set_bucket(name, rate, burst))

    def cooldown(self, name, duration):
        self.record(f"cooldown {name} {duration}", lambda: super(Recorder, self).cooldown(name, duration))

    def settle_by(self, id, name, charged, actual):
        """Tells what is charged from now on: what left the bucket, in whole tokens."""
        words, bucket = f"settle {self.number(id)} {name} {actual}", self.resources[name]
        self._refill(bucket)
        before = bucket.tokens
        after = max(-bucket.burst, min(bucket.burst, before + charged - actual))
        self.record(words, lambda: super(Recorder, self).settle(name, charged - actual))
        return charged + math.floor(before - after)

    def advance(self, to):
        self.record(f"advance {to}", lambda: super(Recorder, self).advance(to))


def random_history(seed):
    rnd = random.Random(seed)
    g = Recorder(aging=rnd.choice([None, None, 5 * S]))
    names, n, charged = ["a", "b", "pool:c"], 0, {}
    for name in names:
        g.semaphore(name, rnd.randint(1, 4))
    g.bucket("t", rnd.choice([1, 3, "1/3", 100]), rnd.randint(1, 5))
    for _ in range(rnd.randint(20, 70)):
        op = rnd.random()
        idle = [id for id, l in g.leases.items() if not l.waiting_tasks and not any(x.claim.run == id for x in g.leases.values())]
        top = sorted(id for id, c in g.waiting.items() if c.run is None)
        if op < 0.45:
            needs = {x: rnd.randint(1, max(1, g.resources[x].capacity())) for x in rnd.sample(names + ["t"], rnd.randint(1, 3))}
            runs = sorted(id for id, l in g.leases.items() if l.claim.run is None)
            run = rnd.choice(runs) if runs and rnd.random() < 0.3 else None
            n += 1
            if "t" in needs:
                charged[f"n{n}"] = needs["t"]
            try:
                g.submit(f"n{n}", needs, rnd.choice([0, 0, 0, 5, -5]), run=run, kind=f"k{rnd.randint(0, 3)}")
            except Refused:
                pass
        elif op < 0.72 and idle:
            g.end(rnd.choice(sorted(idle)))
        elif op < 0.76 and g.waiting:
            g.cancel(rnd.choice(sorted(g.waiting)))
        elif op < 0.80:
            g.set_permits(rnd.choice(names), rnd.randint(0, 5))
        elif op < 0.83:
            took = sorted(id for id in g.leases if id in charged)
            if took:
                id, actual = rnd.choice(took), rnd.randint(0, 7)
                charged[id] = g.settle_by(id, "t", charged[id], actual)
        elif op < 0.85:
            g.cooldown("t", rnd.randint(0, 2 * S))
        elif op < 0.86:
            g.set_bucket("t", rnd.choice([1, 2, "1/2"]), rnd.randint(1, 5))
        elif op < 0.89 and top:
            g.reprioritise(rnd.choice(top), rnd.randint(-3, 9))
        else:
            g.advance(g.now + rnd.randint(0, 4 * S))
        g.check()


def write(name, chosen):
    text = "\n".join(f"# {title}\n" + "\n".join(g.lines) for title, g in chosen)
    (HERE / name).write_text(text + "\n", encoding="utf-8")


def named_cases():
    cases.Gate = Recorder
    for name, case in sorted(vars(cases).items()):
        if name.startswith("case_"):
            before = len(Recorder.made)
            case()
            for g in Recorder.made[before:]:
                yield name, g


if __name__ == "__main__":
    write("cases.txt", [(name, g) for name, g in named_cases() if len(g.lines) < 2_500])
    Recorder.made.clear()
    for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 200):
        random_history(seed)
    write("random.txt", [(f"seed {seed}", g) for seed, g in enumerate(Recorder.made)])
