"""Which questions a task is asked: chosen by its parts.

What arrives: a task. What leaves: the measures that can be taken of it.
What never happens here: names. A part that is not known here is asked what every rule is asked, and nothing else.
"""

from __future__ import annotations

from unmask.audit.cloze import Budget, Rate, Runs, Specials, Whole
from unmask.audit.measure import Measure
from unmask.audit.order import Piece, Ranks
from unmask.audit.rewrite import Deleted, Masks, Moved, Size, Spans
from unmask.audit.rows import Fullness, PairFacts, Restored
from unmask.audit.shown import OneWay, Ordinary, TokenShares, WordShares
from unmask.audit.talks import Talks
from unmask.corrupt.delete import Delete
from unmask.corrupt.fragment import Fragment
from unmask.corrupt.infill import Infill
from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.noise import Noise
from unmask.corrupt.order import Order
from unmask.corrupt.part import Corrupt
from unmask.corrupt.permute import PermuteSentences
from unmask.corrupt.replace import Per, Replace
from unmask.corrupt.rotate import Rotate
from unmask.corrupt.select import OneOf, Select, Units
from unmask.corrupt.sentinels import Sentinels
from unmask.examples.dialogues import Dialogues
from unmask.examples.pairs import Pairs
from unmask.examples.plan import Examples
from unmask.records import Layer
from unmask.tasks import Task


def measures(task: Task, length: int) -> tuple[Measure, ...]:
    """What a task can be asked, given its parts."""
    return (Fullness(length), *_of_rows(task.examples), *of_rule(task.corrupt), Restored(task.corrupt))


def _of_rows(examples: Examples) -> tuple[Measure, ...]:
    """What the rows of a builder state, and whether it is so."""
    match examples:
        case Pairs():
            return (PairFacts(examples),)
        case Dialogues():
            return (Talks(examples),)
        case _:
            return ()


def of_rule(corrupt: Corrupt) -> tuple[Measure, ...]:
    """What a corruption can be asked. One that is not known here is asked only what every rule is asked."""
    match corrupt:
        case MaskOut(select, replace):
            return (*_of_selection(select), *_of_replacement(replace), Specials())
        case Fragment():
            return (Piece(corrupt), TokenShares(corrupt.mask, corrupt.random, corrupt.keep), Ordinary(), Specials())
        case Order():
            return (Ranks(corrupt), Specials())
        case Sentinels():
            return (Size(), Spans(corrupt))
        case Infill():
            return (Size(), Masks(corrupt))
        case Delete():
            return (Size(), Deleted(corrupt))
        case PermuteSentences():
            return (Size(), Moved(corrupt, Layer.SENTENCE))
        case Rotate():
            return (Size(), Moved(corrupt, Layer.TOKEN))
        case Noise():
            return (Size(),)
        case _:
            return ()


def _of_selection(select: Select) -> tuple[Measure, ...]:
    layers = _layers(select)
    words = Whole(Layer.WORD, judged=layers == {Layer.WORD})
    others = tuple(Whole(layer, judged=layers == {layer}) for layer in sorted(layers - {Layer.WORD, Layer.TOKEN}))
    runs = (Runs(select),) if isinstance(select, Units) and len(select.run) > 1 else ()
    return (Rate(select), *runs, Budget(select), words, *others)


def _layers(select: Select) -> frozenset[Layer]:
    """The layers whose units a selection takes whole."""
    if isinstance(select, OneOf):
        return frozenset().union(*(_layers(one) for one in select.selections))
    return frozenset({select.layer if isinstance(select, Units) else Layer.TOKEN})


def _of_replacement(replace: Replace) -> tuple[Measure, ...]:
    if replace.similar:
        shares: Measure = WordShares(replace)
    else:
        shares = TokenShares(replace.mask, replace.random, replace.keep, replace.per)
    whole = () if replace.per is Per.TOKEN else (OneWay(replace.per),)
    return (shares, *whole, Ordinary())
