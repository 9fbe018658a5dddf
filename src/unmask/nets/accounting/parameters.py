"""Exact parameter counts from a configuration alone, without torch; shared weights count once."""

from __future__ import annotations

from unmask.config.network import (
    Activation,
    EncoderDecoderConfig,
    Norm,
    NormKind,
    Positions,
    Sharing,
    TransformerConfig,
)


def encoder_parameters(config: TransformerConfig, vocab_size: int, max_positions: int) -> int:
    """Embeddings and blocks, without heads."""
    return _embeddings(config, vocab_size, max_positions) + _blocks(config)


def encoder_decoder_parameters(config: EncoderDecoderConfig, vocab_size: int, max_positions: int) -> int:
    """Both stacks and the output of the decoder; a shared token table once."""
    decoder = config.decoder
    own = 0 if config.share_embedding else vocab_size
    total = encoder_parameters(config.encoder, vocab_size, max_positions) + _blocks(decoder, config.encoder.width)
    total += _embeddings(decoder, own, max_positions, segments=False)
    narrow = decoder.token_width != decoder.width
    total += _linear(decoder, decoder.width, decoder.token_width) if narrow else 0
    total += 0 if config.tie_output else decoder.token_width * vocab_size
    return total + (vocab_size if decoder.bias else 0)


def pooler_parameters(config: TransformerConfig) -> int:
    """The layer over the first token that BERT's classes of a row are read from."""
    return (config.width + 1) * config.width


def _blocks(config: TransformerConfig, source_width: int = 0) -> int:
    """The blocks with what all of them share; with cross-attention to a source of some width."""
    attention = config.num_distinct_layers if config.is_shared(Sharing.ATTENTION) else config.depth
    ffn = config.num_distinct_layers if config.is_shared(Sharing.FEED_FORWARD) else config.depth
    last = _norm(config, config.width) if config.norm is Norm.PRE else 0
    relative = config.positions is Positions.RELATIVE_BUCKETS
    buckets = config.relative_buckets * config.heads if relative else 0
    if config.positions is Positions.RELATIVE_SINUSOIDAL:
        buckets = (attention * config.width + 2) * config.qkv_width  # a projection in each layer, and two offsets
    cross = attention * _attention(config, source_width) if source_width else 0
    return attention * _attention(config, config.width) + cross + ffn * _feed_forward(config) + last + buckets


def _embeddings(config: TransformerConfig, vocab_size: int, max_positions: int, segments: bool = True) -> int:
    width = config.token_width
    positions = max_positions + config.position_offset if config.positions is Positions.LEARNED else 0
    rows = vocab_size + positions + (config.num_segments + config.num_tasks if segments else 0)
    rows += config.has_blank_stream
    norm = _norm(config, width) if config.norm is Norm.POST else 0
    return rows * width + norm + (_linear(config, width, config.width) if width != config.width else 0)


def _attention(config: TransformerConfig, source_width: int) -> int:
    """Queries, keys, values and the output layer, with a norm."""
    inner = config.qkv_width
    queries, out = _linear(config, config.width, inner), _linear(config, inner, config.width)
    return queries + 2 * _linear(config, source_width, inner) + out + _norm(config, config.width)


def _feed_forward(config: TransformerConfig) -> int:
    gates = 2 if config.activation is Activation.GEGLU else 1
    up, down = (
        _linear(config, config.width, gates * config.ffn_width),
        _linear(config, config.ffn_width, config.width),
    )
    return up + down + _norm(config, config.width)


def _linear(config: TransformerConfig, inputs: int, outputs: int) -> int:
    return (inputs + config.bias) * outputs


def _norm(config: TransformerConfig, width: int) -> int:
    return width if config.norm_kind is NormKind.RMS else 2 * width
