"""The measures of a task, chosen by its parts. Unknown parts get the measures of every rule."""

from __future__ import annotations

from unmask.audits.ordering import FragmentCheck, OrderCheck
from unmask.audits.replacement import ConsistentReplacement, OrdinaryReplacement, TokenShares, WordShares
from unmask.audits.rewriting import Deletions, InfillMasks, InputLength, RemovedSpans, Reordered
from unmask.audits.row_checks import DialogueCheck, PairFactsCheck, Restorable, RowFill
from unmask.audits.rows import Measure
from unmask.audits.selection import BudgetCheck, MaskRate, RunLengths, SpecialTokensCheck, WholeUnitsCheck
from unmask.core.records import UnitKind
from unmask.data.corrupt.compose import NoiseSequence
from unmask.data.corrupt.document_rotation import DocumentRotation
from unmask.data.corrupt.factorization_order import PermutationOrder
from unmask.data.corrupt.masking import MaskTokens, OneOfSelectors, Replace, ReplaceBy, Selector, WholeUnits
from unmask.data.corrupt.mass_fragment import MassFragment
from unmask.data.corrupt.protocol import Corruption
from unmask.data.corrupt.sentence_permutation import PermuteSentences
from unmask.data.corrupt.span_corruption import SpanCorruption
from unmask.data.corrupt.text_infilling import TextInfilling
from unmask.data.corrupt.token_deletion import TokenDeletion
from unmask.data.input_formats.dialogues import Dialogues
from unmask.data.input_formats.pairs import SegmentPairs
from unmask.data.input_formats.row_plan import InputFormat
from unmask.tasks.recipe import Task


def task_measures(task: Task, length: int) -> tuple[Measure, ...]:
    """All measures of a task."""
    return (
        RowFill(length),
        *_row_measures(task.examples),
        *rule_measures(task.corruption),
        Restorable(task.corruption),
    )


def _row_measures(examples: InputFormat) -> tuple[Measure, ...]:
    """The measures of an input format."""
    match examples:
        case SegmentPairs():
            return (PairFactsCheck(examples),)
        case Dialogues():
            return (DialogueCheck(examples),)
        case _:
            return ()


def rule_measures(corrupt: Corruption) -> tuple[Measure, ...]:
    """The measures of a corruption; none for an unknown one."""
    match corrupt:
        case MaskTokens(select, replace):
            return (*_selection_measures(select), *_replacement_measures(replace), SpecialTokensCheck())
        case MassFragment():
            return (
                FragmentCheck(corrupt),
                TokenShares(corrupt.mask, corrupt.random, corrupt.keep),
                OrdinaryReplacement(),
                SpecialTokensCheck(),
            )
        case PermutationOrder():
            return (OrderCheck(corrupt), SpecialTokensCheck())
        case SpanCorruption():
            return (InputLength(), RemovedSpans(corrupt))
        case TextInfilling():
            return (InputLength(), InfillMasks(corrupt))
        case TokenDeletion():
            return (InputLength(), Deletions(corrupt))
        case PermuteSentences():
            return (InputLength(), Reordered(corrupt, UnitKind.SENTENCE))
        case DocumentRotation():
            return (InputLength(), Reordered(corrupt, UnitKind.TOKEN))
        case NoiseSequence():
            return (InputLength(),)
        case _:
            return ()


def _selection_measures(select: Selector) -> tuple[Measure, ...]:
    layers = _whole_unit_kinds(select)
    words = WholeUnitsCheck(UnitKind.WORD, is_checked=layers == {UnitKind.WORD})
    others = tuple(
        WholeUnitsCheck(layer, is_checked=layers == {layer})
        for layer in sorted(layers - {UnitKind.WORD, UnitKind.TOKEN})
    )
    runs = (RunLengths(select),) if isinstance(select, WholeUnits) and len(select.run_lengths) > 1 else ()
    return (MaskRate(select), *runs, BudgetCheck(select), words, *others)


def _whole_unit_kinds(select: Selector) -> frozenset[UnitKind]:
    """The unit kinds that a selector takes whole."""
    if isinstance(select, OneOfSelectors):
        return frozenset().union(*(_whole_unit_kinds(one) for one in select.selectors))
    return frozenset({select.layer if isinstance(select, WholeUnits) else UnitKind.TOKEN})


def _replacement_measures(replace: Replace) -> tuple[Measure, ...]:
    if replace.similar:
        shares: Measure = WordShares(replace)
    else:
        shares = TokenShares(replace.mask, replace.random, replace.keep, replace.per)
    whole = () if replace.per is ReplaceBy.TOKEN else (ConsistentReplacement(replace.per),)
    return (shares, *whole, OrdinaryReplacement())
