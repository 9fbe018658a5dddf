"""`export`: from a run to a folder that transformers loads, in every form."""

import pytest
import transformers
from small_sources import run, write_run

from unmask.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("export") / "r1")


def test_everything_is_written_unless_something_else_is_said(source, tmp_path):
    result = run("export", source, tmp_path / "out")
    assert result.exit_code == 0
    said = result.output.replace("\n", " ")
    assert "a BertForPreTraining with its tokenizer" in said
    assert f"proven: transformers {transformers.__version__} and unmask agree" in said
    card = (tmp_path / "out" / "README.md").read_text()
    assert "bert, 10 steps" in card
    assert "tokens: 345" in card


@pytest.mark.parametrize(("form", "kind"), [("masked-lm", "BertForMaskedLM"), ("encoder", "BertModel")])
def test_a_smaller_form_can_be_asked_for(source, tmp_path, form, kind):
    result = run("export", source, tmp_path / "out", "--as", form, "--checkpoint", "best")
    assert result.exit_code == 0
    assert transformers.AutoConfig.from_pretrained(tmp_path / "out").architectures == [kind]
    assert "bert, 5 steps" in (tmp_path / "out" / "README.md").read_text()


def test_an_export_can_be_exported_again(source, tmp_path):
    run("export", source, tmp_path / "one")
    assert run("export", tmp_path / "one", tmp_path / "two").exit_code == 0
    one, two = (tmp_path / name / "model.safetensors" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(("form", "said"), [("pretraining", "needs a head for rows"), ("classifier", "unmask tune")])
def test_a_form_that_the_network_cannot_have_is_told(tmp_path, form, said):
    source = write_run(tmp_path / "r1", "roberta")
    result = run("export", source, tmp_path / "out", "--as", form)
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)
    assert not (tmp_path / "out").exists()
