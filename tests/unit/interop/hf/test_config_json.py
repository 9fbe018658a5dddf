"""Settings: every trunk that BERT can describe comes back as it was, and the rest is refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_bert import MASKED_LM, POSITIONS, PRE_TRAINING, TRUNK, small_model

from unmask.config.network import Activation, Norm, Positions, TransformerConfig
from unmask.core.errors import InputError, UserError
from unmask.interop.hf.config_json import read_config, write_config


@given(
    heads=st.integers(1, 3),
    depth=st.integers(1, 3),
    activation=st.sampled_from([Activation.GELU, Activation.GELU_TANH, Activation.RELU]),
    dropout=st.sampled_from([0.0, 0.1, 0.25]),
    epsilon=st.sampled_from([1e-12, 1e-5]),
    segments=st.integers(1, 3),
)
def test_a_trunk_comes_back_from_its_settings(heads, depth, activation, dropout, epsilon, segments):
    trunk = TransformerConfig(
        depth=depth,
        width=4 * heads,
        heads=heads,
        ffn_width=8,
        activation=activation,
        dropout=dropout,
        attention_dropout=dropout / 2,
        norm_eps=epsilon,
        num_segments=segments,
        init_std=0.03,
    )
    config = write_config(small_model(trunk=trunk), 7, MASKED_LM)
    sizes = read_config(config)
    assert (sizes.network, sizes.vocab_size, sizes.max_positions) == (trunk, 120, POSITIONS)
    assert config["pad_token_id"] == 7
    assert config["architectures"] == ["BertForMaskedLM"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"norm": Norm.PRE}, "pre-norm"),
        ({"positions": Positions.SINUSOIDAL}, "not learned"),
        ({"embedding_width": 8}, "factorised"),
        ({"num_tasks": 2}, "task embeddings"),
        ({"num_segments": 0}, "no segment"),
        ({"activation": Activation.GEGLU}, "gated"),
    ],
)
def test_what_bert_cannot_say_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        write_config(small_model(trunk=replace(TRUNK, **change)), 0, MASKED_LM)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "xlnet", "architectures": ["XLNetModel"]}, "XLNetModel .*model type xlnet.* bert, roberta"),
        ({"architectures": ["RobertaModel"]}, "RobertaModel .*model type bert.*BertModel"),
        ({"architectures": ["BertForNextSentencePrediction"]}, "BertForSequenceClassification"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"is_decoder": True}, "is_decoder"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings"),
        ({"hidden_act": "silu"}, "silu"),
        ({"hidden_size": "16"}, "hidden_size"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"vocab_size": None}, "vocab_size"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps"),
        ({"num_attention_heads": 3}, "heads divide"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(change, said):
    config = write_config(small_model(), 0, PRE_TRAINING)
    with pytest.raises(UserError, match=said):
        read_config(config | change)


def test_settings_that_old_files_leave_out_have_their_usual_values():
    config = write_config(small_model(), 0, PRE_TRAINING)
    optional = {"architectures", "layer_norm_eps", "initializer_range", "hidden_act", "position_embedding_type"}
    assert read_config({name: value for name, value in config.items() if name not in optional}).network == TRUNK
