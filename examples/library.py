"""The library in one script: prepare, pre-train, fill masks, embed, fine-tune, export. Takes a minute on a CPU."""

import json
import sys
from itertools import islice
from pathlib import Path

import unmask as um
from unmask.data.text.sample_corpora import peoples_daily, reviews


def write_sample(folder: Path) -> None:
    """Some documents of the sample corpus, and reviews with labels."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = [document.text for document in islice(peoples_daily(), 300)]
    (folder / "news.txt").write_text("\n\n".join(documents), encoding="utf-8")
    rows = [json.dumps({"text": text, "label": label}, ensure_ascii=False) for text, label in list(reviews())[::40]]
    (folder / "train.jsonl").write_text("\n".join([row for at, row in enumerate(rows) if at % 5]) + "\n", encoding="utf-8")
    (folder / "dev.jsonl").write_text("\n".join(rows[::5]) + "\n", encoding="utf-8")


def main(folder: Path) -> None:
    """Run every step in a folder."""
    write_sample(folder)
    corpus = um.prepare([folder / "news.txt"], out=folder / "data", recipe="wwm", vocab_size=1500)
    events: list[str] = []
    run = um.pretrain(
        "wwm",
        corpus,
        out=folder / "run",
        size="tiny",
        steps=4,
        set={"stages.*.max_length": 32, "stages.*.batch_size": 8},
        num_evals=1,
        on_event=lambda line: events.append(str(line["kind"])),
    )
    print(run.result["step"], "steps,", events.count("eval"), "evaluations")
    model = um.load(run.folder)
    for filled in model.fill_mask("今天天气真[MASK]", top_k=3):
        print([guess.token for guess in filled.candidates[0]])
    print(model.embed(["今天天气真好", "你好"], normalize=True).shape)
    tuned = um.finetune(
        model,
        train=folder / "train.jsonl",
        dev=folder / "dev.jsonl",
        out=folder / "tuned",
        task="classification",
        method=um.finetuning.methods.Lora(rank=2),
        options=um.FineTuneOptions(epochs=1, max_length=32),
    )
    print(tuned.score(folder / "dev.jsonl"), tuned.predict(["房间很好"])[0].to_json())
    report = model.export(folder / "exported")
    print(report.max_hidden_difference < 1e-4)
    print(um.audit("wwm", corpus, rows=200).holds, len(um.task_batches("wwm", corpus, seed=7)[1000].inputs.ids) > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
