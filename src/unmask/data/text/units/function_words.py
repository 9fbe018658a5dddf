"""Words that hold sentences together and belong to no phrase.

What arrives: nothing. What leaves: one set, Chinese and English. What never happens here: content words.
"""

_CHINESE = """
的 了 是 在 和 与 及 或 而 且 但 也 都 就 还 又 再 很 更 最 太 不 没 没有 无 有 被 把 将 对 向 从 由 以 于 为 因 因为
所以 如果 虽然 但是 而且 并 并且 或者 以及 即 则 若 之 其 此 该 这 那 这个 那个 这些 那些 这种 那种 这样 那样 什么 怎么
如何 哪 谁 我 你 他 她 它 我们 你们 他们 她们 它们 自己 一 一个 一种 一些 个 种 些 等 等等 着 过 得 地 吗 呢 吧 啊 呀 嘛
来 去 上 下 中 里 内 外 前 后 时 当 到 给 让 使 用 比 跟 同 只 才 却 可 可以 能 会 要 应 应该 必须 已 已经 曾 正 正在 所
者 每 各 另 某 几 多 少 们 说 年 月 日 第
"""
_ENGLISH = """
a an the and or but nor so yet if then than as at by for from in into of off on onto out over to up with without within
about after before between through during under above against among around because while when where which who whom whose
that this these those there here it its he him his she her hers they them their we us our you your i me my mine is am
are was were be been being have has had having do does did doing will would shall should can could may might must not no
all any both each either neither some such other another more most much many few own same just only very also too even
how what why said says
"""

FUNCTION_WORDS = frozenset(_CHINESE.split()) | frozenset(_ENGLISH.split())
