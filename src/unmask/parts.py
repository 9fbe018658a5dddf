"""The building blocks of a recipe in one place: stages, input formats, corruptions, objectives, networks, optimizers.

    from unmask.parts import MLM, MaskTokens, Packed, RandomTokens, Replace, StaticMasking, Task

Every name is imported from its module when it is first used. To add a member, see docs/guides.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unmask.config.attention_pattern import (
        AttentionPattern as AttentionPattern,
    )
    from unmask.config.attention_pattern import (
        Causal as Causal,
    )
    from unmask.config.attention_pattern import (
        FactorizationOrder as FactorizationOrder,
    )
    from unmask.config.attention_pattern import (
        Full as Full,
    )
    from unmask.config.attention_pattern import (
        PrefixLM as PrefixLM,
    )
    from unmask.config.attention_pattern import (
        SlidingWindow as SlidingWindow,
    )
    from unmask.config.attention_pattern import (
        WithinDocument as WithinDocument,
    )
    from unmask.config.model_type import ModelType as ModelType
    from unmask.config.network import (
        EmbeddingTableConfig as EmbeddingTableConfig,
    )
    from unmask.config.network import (
        EncoderDecoderConfig as EncoderDecoderConfig,
    )
    from unmask.config.network import (
        LSTMConfig as LSTMConfig,
    )
    from unmask.config.optim import (
        LAMB as LAMB,
    )
    from unmask.config.optim import (
        Adamax as Adamax,
    )
    from unmask.config.optim import (
        AdamW as AdamW,
    )
    from unmask.config.optim import (
        Constant as Constant,
    )
    from unmask.config.optim import (
        Cosine as Cosine,
    )
    from unmask.config.optim import (
        InverseSqrt as InverseSqrt,
    )
    from unmask.config.optim import (
        Linear as Linear,
    )
    from unmask.config.optim import (
        LossWeighting as LossWeighting,
    )
    from unmask.config.optim import (
        Muon as Muon,
    )
    from unmask.config.optim import (
        OptimConfig as OptimConfig,
    )
    from unmask.config.optim import (
        SlantedTriangular as SlantedTriangular,
    )
    from unmask.config.optim import (
        StableAdamW as StableAdamW,
    )
    from unmask.config.optim import (
        WarmupFraction as WarmupFraction,
    )
    from unmask.config.optim import (
        WarmupSteps as WarmupSteps,
    )
    from unmask.config.sizes import SIZES as SIZES
    from unmask.config.sizes import Size as Size
    from unmask.config.transformer import (
        Activation as Activation,
    )
    from unmask.config.transformer import (
        Norm as Norm,
    )
    from unmask.config.transformer import (
        Positions as Positions,
    )
    from unmask.config.transformer import (
        Sharing as Sharing,
    )
    from unmask.config.transformer import (
        TransformerConfig as TransformerConfig,
    )
    from unmask.core.records import UnitKind as UnitKind
    from unmask.data.corrupt.compose import NoiseSequence as NoiseSequence
    from unmask.data.corrupt.document_rotation import DocumentRotation as DocumentRotation
    from unmask.data.corrupt.factorization_order import PermutationOrder as PermutationOrder
    from unmask.data.corrupt.identity import NoCorruption as NoCorruption
    from unmask.data.corrupt.masking import MaskTokens as MaskTokens
    from unmask.data.corrupt.masking import (
        OneOfSelectors as OneOfSelectors,
    )
    from unmask.data.corrupt.masking import (
        RandomTokens as RandomTokens,
    )
    from unmask.data.corrupt.masking import Replace as Replace
    from unmask.data.corrupt.masking import ReplaceBy as ReplaceBy
    from unmask.data.corrupt.masking import (
        WholeUnits as WholeUnits,
    )
    from unmask.data.corrupt.masking import (
        geometric as geometric,
    )
    from unmask.data.corrupt.masking import (
        inverse as inverse,
    )
    from unmask.data.corrupt.mass_fragment import MassFragment as MassFragment
    from unmask.data.corrupt.sentence_permutation import PermuteSentences as PermuteSentences
    from unmask.data.corrupt.span_corruption import SpanCorruption as SpanCorruption
    from unmask.data.corrupt.text_infilling import TextInfilling as TextInfilling
    from unmask.data.corrupt.token_deletion import TokenDeletion as TokenDeletion
    from unmask.data.input_formats.contiguous import ContiguousStreams as ContiguousStreams
    from unmask.data.input_formats.dialogues import Dialogues as Dialogues
    from unmask.data.input_formats.packed import DocumentBoundary as DocumentBoundary
    from unmask.data.input_formats.packed import Packed as Packed
    from unmask.data.input_formats.pairs import Negative as Negative
    from unmask.data.input_formats.pairs import SegmentPairs as SegmentPairs
    from unmask.data.input_formats.row_plan import DynamicMasking as DynamicMasking
    from unmask.data.input_formats.row_plan import StaticMasking as StaticMasking
    from unmask.data.input_formats.segments import OneOrTwoSegments as OneOrTwoSegments
    from unmask.data.input_formats.single_sentences import SingleSentences as SingleSentences
    from unmask.data.tokenize.trainers.bpe import ByteBPE as ByteBPE
    from unmask.data.tokenize.trainers.characters import Characters as Characters
    from unmask.data.tokenize.trainers.unigram import Unigram as Unigram
    from unmask.data.tokenize.trainers.wordpiece import WordPiece as WordPiece
    from unmask.objectives.all_tokens_mlm import AllTokensMLM as AllTokensMLM
    from unmask.objectives.generator import Generator as Generator
    from unmask.objectives.language_model import CLM as CLM
    from unmask.objectives.language_model import PLM as PLM
    from unmask.objectives.language_model import BidirectionalLM as BidirectionalLM
    from unmask.objectives.mlm import MLM as MLM
    from unmask.objectives.rtd import RTD as RTD
    from unmask.objectives.sbo import SBO as SBO
    from unmask.objectives.sentence_pair import DLM as DLM
    from unmask.objectives.sentence_pair import NSP as NSP
    from unmask.objectives.sentence_pair import SOP as SOP
    from unmask.objectives.seq2seq import PrefixLMObjective as PrefixLMObjective
    from unmask.objectives.seq2seq import Seq2SeqObjective as Seq2SeqObjective
    from unmask.tasks.recipe import Recipe as Recipe
    from unmask.tasks.recipe import Stage as Stage
    from unmask.tasks.recipe import Task as Task

_HOMES = {
    "Recipe": "unmask.tasks.recipe",
    "Stage": "unmask.tasks.recipe",
    "Task": "unmask.tasks.recipe",
    "EmbeddingTableConfig": "unmask.config.network",
    "EncoderDecoderConfig": "unmask.config.network",
    "LSTMConfig": "unmask.config.network",
    "Activation": "unmask.config.transformer",
    "Norm": "unmask.config.transformer",
    "Positions": "unmask.config.transformer",
    "Sharing": "unmask.config.transformer",
    "TransformerConfig": "unmask.config.transformer",
    "AttentionPattern": "unmask.config.attention_pattern",
    "Causal": "unmask.config.attention_pattern",
    "FactorizationOrder": "unmask.config.attention_pattern",
    "Full": "unmask.config.attention_pattern",
    "PrefixLM": "unmask.config.attention_pattern",
    "SlidingWindow": "unmask.config.attention_pattern",
    "WithinDocument": "unmask.config.attention_pattern",
    "ModelType": "unmask.config.model_type",
    "AdamW": "unmask.config.optim",
    "Adamax": "unmask.config.optim",
    "Constant": "unmask.config.optim",
    "Cosine": "unmask.config.optim",
    "InverseSqrt": "unmask.config.optim",
    "LAMB": "unmask.config.optim",
    "Linear": "unmask.config.optim",
    "LossWeighting": "unmask.config.optim",
    "Muon": "unmask.config.optim",
    "OptimConfig": "unmask.config.optim",
    "SlantedTriangular": "unmask.config.optim",
    "StableAdamW": "unmask.config.optim",
    "WarmupFraction": "unmask.config.optim",
    "WarmupSteps": "unmask.config.optim",
    "SIZES": "unmask.config.sizes",
    "Size": "unmask.config.sizes",
    "UnitKind": "unmask.core.records",
    "DynamicMasking": "unmask.data.input_formats.row_plan",
    "StaticMasking": "unmask.data.input_formats.row_plan",
    "DocumentBoundary": "unmask.data.input_formats.packed",
    "Packed": "unmask.data.input_formats.packed",
    "Negative": "unmask.data.input_formats.pairs",
    "SegmentPairs": "unmask.data.input_formats.pairs",
    "OneOrTwoSegments": "unmask.data.input_formats.segments",
    "Dialogues": "unmask.data.input_formats.dialogues",
    "SingleSentences": "unmask.data.input_formats.single_sentences",
    "ContiguousStreams": "unmask.data.input_formats.contiguous",
    "NoCorruption": "unmask.data.corrupt.identity",
    "MaskTokens": "unmask.data.corrupt.masking",
    "OneOfSelectors": "unmask.data.corrupt.masking",
    "RandomTokens": "unmask.data.corrupt.masking",
    "WholeUnits": "unmask.data.corrupt.masking",
    "geometric": "unmask.data.corrupt.masking",
    "inverse": "unmask.data.corrupt.masking",
    "Replace": "unmask.data.corrupt.masking",
    "ReplaceBy": "unmask.data.corrupt.masking",
    "NoiseSequence": "unmask.data.corrupt.compose",
    "DocumentRotation": "unmask.data.corrupt.document_rotation",
    "PermutationOrder": "unmask.data.corrupt.factorization_order",
    "MassFragment": "unmask.data.corrupt.mass_fragment",
    "PermuteSentences": "unmask.data.corrupt.sentence_permutation",
    "SpanCorruption": "unmask.data.corrupt.span_corruption",
    "TextInfilling": "unmask.data.corrupt.text_infilling",
    "TokenDeletion": "unmask.data.corrupt.token_deletion",
    "MLM": "unmask.objectives.mlm",
    "AllTokensMLM": "unmask.objectives.all_tokens_mlm",
    "DLM": "unmask.objectives.sentence_pair",
    "NSP": "unmask.objectives.sentence_pair",
    "SOP": "unmask.objectives.sentence_pair",
    "RTD": "unmask.objectives.rtd",
    "Generator": "unmask.objectives.generator",
    "SBO": "unmask.objectives.sbo",
    "CLM": "unmask.objectives.language_model",
    "PLM": "unmask.objectives.language_model",
    "BidirectionalLM": "unmask.objectives.language_model",
    "PrefixLMObjective": "unmask.objectives.seq2seq",
    "Seq2SeqObjective": "unmask.objectives.seq2seq",
    "WordPiece": "unmask.data.tokenize.trainers.wordpiece",
    "ByteBPE": "unmask.data.tokenize.trainers.bpe",
    "Unigram": "unmask.data.tokenize.trainers.unigram",
    "Characters": "unmask.data.tokenize.trainers.characters",
}
"""The module of each name."""
__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'unmask.parts' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
