"""Parts in words: what a rule does, said so that someone who knows the papers' ideas but not this code understands it.

What arrives: a corruption, a selection, a view. What leaves: short sentences with the part's own numbers in them.
What never happens here: a sentence that could differ from the part. Every number is read from the part itself.
"""

from __future__ import annotations

import inspect
from math import isclose

from unmask.corrupt.delete import Delete
from unmask.corrupt.fragment import Fragment
from unmask.corrupt.infill import Infill
from unmask.corrupt.mask_out import MaskOut
from unmask.corrupt.noise import Noise
from unmask.corrupt.nothing import Nothing
from unmask.corrupt.order import Order
from unmask.corrupt.permute import PermuteSentences
from unmask.corrupt.replace import Replace
from unmask.corrupt.rotate import Rotate
from unmask.corrupt.select import OneOf, Tokens, Units, budgets
from unmask.corrupt.sentinels import Sentinels
from unmask.examples.visits import Copies, Renew
from unmask.records import Example, Layer
from unmask.views import CAUSAL, ENCODER, Drawn, Everything, Past, View

SEGMENTS = "ABQR"
"""The letters of the segments: the two of a pair, and the two who speak in a conversation, who asks and who replies."""


def where(part: object) -> str:
    """Which tokens a rule chooses."""
    match part:
        case MaskOut(select, _):
            return where(select)
        case Tokens(rate):
            return f"single tokens, {percent(rate)} of the row"
        case Units(layer, run, rate):
            return f"{_units(layer, run)}, {percent(rate)} of the row's tokens"
        case OneOf(selections, shares):
            choices = (f"{percent(share)} {where(part)}" for part, share in zip(selections, shares, strict=True))
            return "one of these for each row: " + "; ".join(choices)
        case Sentinels(rate, mean):
            return f"{percent(rate)} of the tokens, in spans of {mean:g} on average"
        case Fragment(share):
            return f"one piece of {percent(share)} of the tokens"
        case Order(share, longest):
            return f"{_share(share)} of the tokens, in spans of 1 to {longest}"
        case Infill(rate, mean, layer):
            return f"{percent(rate)} of the {layer}s, in spans of Poisson({mean:g}) {layer}s, which may be empty"
        case Delete(rate):
            return f"single tokens, {percent(rate)} of the text"
        case PermuteSentences():
            return "all sentences, put into a random order"
        case Rotate():
            return "one token, with which the text is made to begin"
        case Noise(steps):
            return "; then ".join(where(step) for step in steps)
        case Nothing():
            return "nothing"
        case _:
            return _first_line(part)


def shows(part: object) -> str:
    """What the network is shown instead."""
    match part:
        case MaskOut(_, replace):
            return shows(replace)
        case Replace(mask, random, keep, similar, per):
            return f"{_shares(mask, random, keep, similar)}; drawn for each {per}"
        case Sentinels():
            return "each span becomes one sentinel, numbered from left to right"
        case Fragment(_, _, mask, random, keep):
            return f"{_shares(mask, random, keep, 0.0)}; drawn for each token"
        case Infill():
            return "each span, however long, becomes one mask"
        case Delete():
            return "nothing is left where a token was deleted"
        case Noise(steps):
            return "; then ".join(shows(step) for step in steps)
        case PermuteSentences():
            return "every sentence is shown, most of them elsewhere"
        case Rotate():
            return "the text is cut there and its two parts change places"
        case Order() | Nothing():
            return "the text as it is; only who sees whom hides the answers"
        case _:
            return _first_line(part)


def budget(part: object, example: Example) -> str:
    """How many tokens of a row may be chosen, with the arithmetic."""
    length, text = len(example.ids), int((~example.fixed).sum())
    match part:
        case MaskOut(Units(_, run, rate), _) if len(run) > 1:
            return f"about {rate:g} × {count(length, 'token')} = {rate * length:.1f}; the last run stays whole"
        case MaskOut(select, _):
            most = int(budgets(example.lengths, select.rate)[0])
            return f"{select.rate:g} × {count(length, 'token')} = {select.rate * length:.1f}, so at most {most}"
        case Sentinels(rate) | Delete(rate) | Fragment(rate) | Order(rate):
            return f"{_share(rate)} × {count(text, 'text token')} = {rate * text:.1f}, rounded"
        case Infill(rate, _, layer):
            return f"{rate:g} × the number of {layer}s, rounded up"
        case Noise(steps):
            return "; then ".join(filter(None, (budget(step, example) for step in steps)))
        case _:
            return ""


def sight(view: View, rewrites: bool) -> str:
    """Who sees whom, in a sentence."""
    if rewrites:
        return "encoder: everyone sees everyone; decoder: the encoder's states and its own past"
    if view == ENCODER:
        return "everyone sees everyone, to the left and to the right"
    if view == CAUSAL:
        return "a position sees itself and what stands before it, never what follows"
    parts = []
    for stream in view.streams:
        match stream.rule:
            case Drawn(strict):
                what = "what was drawn before it, but not itself" if strict else "itself and what was drawn before it"
            case Everything():
                what = "everyone"
            case Past():
                what = "itself and what stands before it"
            case other:
                what = _first_line(other)
        parts.append(f"{stream.name}: a position sees {what}")
    return "; ".join(parts)


def renewal(renew: Renew, visit: int) -> str:
    """What this visit of a row shows, under static or dynamic masking."""
    if isinstance(renew, Copies):
        return f"visit {visit}: copy {visit % renew.count} of {renew.count} frozen ones (static masking 静态)"
    return f"visit {visit}: drawn anew at every visit (dynamic masking 动态)"


def percent(share: float) -> str:
    """A share as a percentage, without needless digits."""
    return f"{100 * share:.3g} %"


def count(number: int, what: str) -> str:
    """A number of things, with an s behind all numbers but one."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _shares(mask: float, random: float, keep: float, similar: float) -> str:
    named = ((mask, "masked"), (similar, "a similar word"), (random, "random"), (keep, "kept as it is"))
    return ", ".join(f"{percent(share)} {name}" for share, name in named if share)


def _share(share: float) -> str:
    whole = round(1 / share)
    return f"1/{whole}" if isclose(share * whole, 1) and whole not in (2, 4, 5, 10) else f"{share:g}"


def _units(layer: Layer, run: tuple[float, ...]) -> str:
    names = {Layer.WORD: "words", Layer.PHRASE: "phrases", Layer.ENTITY: "entities"}
    if len(run) == 1:
        filled = "" if layer is Layer.WORD else " first, then words"
        return f"whole {names[layer]}{filled}"
    law = " / ".join(f"{100 * share:.0f}" for share in run[:4]) + (" / …" if len(run) > 4 else "")
    mean = sum(share * length for length, share in enumerate(run, start=1))
    return f"runs of 1 to {len(run)} {names[layer]} ({law} %, mean {mean:.1f})"


def _first_line(part: object) -> str:
    """The first sentence of a part's own docstring: parts that users write explain themselves."""
    return (inspect.getdoc(part) or type(part).__name__).split("\n")[0].rstrip(".")
