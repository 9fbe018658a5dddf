"""Rows of another length: said when they begin, and told at the end beside what the run is judged by."""

from unmask.cli.ui.training_display import _ProgressListener, _RowLengths


class Heard:
    """A bar that remembers its notes."""

    def __init__(self):
        self.notes = []

    def __call__(self, share, remark):
        pass

    def note(self, said):
        self.notes.append(said)


def step(number, length, loss):
    numbers = {"progress": 0.1, "tokens_per_second": 1.0}
    return {"kind": "step", "step": number, "length": length, "loss": {"mlm": loss}, **numbers}


RUN = [*(step(number, 32, 3.0) for number in range(1, 10)), step(10, 128, 5.0), step(11, 128, 4.0)]


def test_the_bar_says_when_rows_change():
    bar = _ProgressListener(heard := Heard())
    for line in RUN:
        bar(line)
    assert heard.notes == ["step 10: from here on rows of 128 tokens"]


def last(steps):
    rows = _RowLengths()
    for line in steps:
        rows.add(line)
    return list(rows.last())


def test_the_summary_tells_the_loss_of_the_last_rows():
    assert last(RUN) == [("last rows", "mlm 4.500 (trained on, 128 tokens; held out: 32)")]
    assert not last(RUN[:9])
    assert not last([*RUN, *(step(number, 128, 4.0) for number in range(12, 30))])
    assert not last([])


def test_the_last_rows_are_the_last_fifty():
    many = [*(step(number, 32, 3.0) for number in range(200)), *(step(200 + n, 128, 9.0) for n in range(30))]
    assert "mlm 4.000" in last([*many, *(step(230 + n, 128, 4.0) for n in range(50))])[0][1]
