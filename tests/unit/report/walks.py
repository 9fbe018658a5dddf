"""Walks for the tests of this folder."""

from unmask.family import members
from unmask.rules import bare_rule, rules
from unmask.walk.ground import Ground, marked
from unmask.walk.run import Subject, walk
from unmask.walk.toy import other_document

SENTENCE = "使用语言模型来预测下一个词的概率"
SEVERAL = "今天天气很好。我们去公园看花。你也来吧！"
ENGLISH = "An unbelievable language model predicts the probability of words, doesn't it?"
SUBJECTS = [Subject.of_rule(rule, rule.task) for rule in rules()] + [Subject.of_member(recipe) for recipe in members()]


def take(subject, text=SENTENCE, visits=range(4)):
    """A walk of a subject, or of the rule of that name."""
    if isinstance(subject, str):
        subject = Subject.of_rule(bare_rule(subject), bare_rule(subject).task)
    second = other_document(text)
    document = marked(text, subject.task.needs)
    return walk(subject, document, Ground.toy([text, second], subject.spelling), marked(second, frozenset()), 0, visits)
