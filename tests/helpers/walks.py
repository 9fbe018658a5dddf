"""Walks for the tests of this folder."""

from unmask.members import members
from unmask.tasks.presets import find_preset, presets
from unmask.walks.context import WalkContext, annotate
from unmask.walks.toy_vocab import other_toy_document
from unmask.walks.walk import WalkTarget, walk

SENTENCE = "使用语言模型来预测下一个词的概率"
SEVERAL = "今天天气很好。我们去公园看花。你也来吧！"
ENGLISH = "An unbelievable language model predicts the probability of words, doesn't it?"
SUBJECTS = [WalkTarget.of_rule(rule, rule.task) for rule in presets()] + [
    WalkTarget.of_member(recipe) for recipe in members()
]


def take(subject, text=SENTENCE, visits=range(4)):
    """A walk of a subject, or of the rule of that name."""
    if isinstance(subject, str):
        subject = WalkTarget.of_rule(find_preset(subject), find_preset(subject).task)
    second = other_toy_document(text)
    document = annotate(text, subject.task.required_units)
    return walk(
        subject, document, WalkContext.toy([text, second], subject.spelling), annotate(second, frozenset()), 0, visits
    )
