"""Stands for the program of scripts/judge: answers each question with the next answer of a file, and keeps what it was
told: ``fake_judge.py ANSWERS TOLD``."""

import json
import sys
from pathlib import Path

answers = json.loads(Path(sys.argv[1]).read_text())
with Path(sys.argv[2]).open("w") as told:
    for line in sys.stdin:
        told.write(line)
        told.flush()
        if "decide" in json.loads(line):
            if not answers:
                sys.exit("no answers are left")
            print(json.dumps(answers.pop(0)), flush=True)
