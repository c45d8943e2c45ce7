"""What the analyzer knows of English and Chinese words.

Three small tables: words that say nothing about what a query is after, words that say
little, and English forms that no stemmer brings together.
"""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
a about actually after again all already also always am an and any are as at be been before being
but by can could did do does doing down each even ever for from had has have having he hello her
here hers hey hi him his how i if im in into is it its just let ll lot lots many maybe me more most
much my never no not now of off often oh ok okay on once only or other our out over own perhaps
please quite re really same she should so some sometimes still such sure than thank thanks that the
their them then there these they this those through to too under until up us ve very was we well
were what when where which while who whom why will with would yeah yes yet you your yours
bye goodbye welcome cheers
ain aren couldn didn doesn don hadn hasn haven isn shouldn wasn weren won wouldn
的 了 是 在 我 你 您 他 她 它 们 我们 你们 他们 她们 它们 咱们 这 那 哪 这个 那个 哪个 这些 那些
哪些 什么 怎么 怎样 怎么样 为什么 谁 吗 呢 吧 啊 呀 哦 嗯 嘛 啦 哈 和 与 及 或 或者 但 但是 而
而且 因为 所以 如果 就 都 也 还 又 再 很 太 更 最 不 没 没有 有 要 会 能 可以 可 该 应该 把 被
给 让 对 从 向 到 跟 比 一个 一下 一些 一点 这样 那样 这里 那里 哪里 自己 之前 以后 请 请问 上
下 里 个 说 着 过 地 得 之 其
谢谢 多谢 你好 您好 好的 再见 拜拜 晚安 早上好 晚上好 好 行 收到 明白 知道了 是的 不是 对的 哈哈
""".split()
)

LIGHT_WORDS = frozenset(
    """
anyone anything everyone everything get go know like make need one say see someone something take
tell thing think try use want way
advice ask chat conversation discuss mention recommend remember share suggest suggestion talk told
topic
bit continue feel good great hope idea let little look love move next plan please ready sound start
step sure
聊 话题 推荐 分享 告诉 记得 曾经 建议 提到 对话 说过 介绍
""".split()
)

_IRREGULAR = """
be: was were been | bear: bore borne | become: became | begin: began begun | bite: bit bitten
break: broke broken | bring: brought | build: built | buy: bought | catch: caught | child: children
choose: chose chosen | come: came | deal: dealt | draw: drew drawn | dream: dreamt
drink: drank drunk | drive: drove driven | eat: ate eaten | fall: fell fallen | feed: fed
feel: felt | fight: fought | find: found | fly: flew flown | foot: feet | forget: forgot forgotten
freeze: froze frozen | get: got gotten | give: gave given | go: went gone gonna | grow: grew grown
hear: heard | hide: hid hidden | hold: held | keep: kept | knife: knives | know: knew known
lay: laid | lead: led | leaf: leaves | learn: learnt | leave: left | lend: lent | life: lives
lose: lost | make: made | man: men | mean: meant | meet: met | mouse: mice | pay: paid
person: people | ride: rode ridden | ring: rang rung | rise: rose risen | run: ran | say: said
see: saw seen | seek: sought | sell: sold | send: sent | shake: shook shaken | shelf: shelves
shoot: shot | show: shown | sing: sang sung | sit: sat | sleep: slept | speak: spoke spoken
spend: spent | stand: stood | steal: stole stolen | swim: swam swum | take: took taken
teach: taught | tear: tore torn | tell: told | think: thought | throw: threw thrown
tooth: teeth | understand: understood | wake: woke woken | wear: wore worn | wife: wives
win: won | wolf: wolves | woman: women | write: wrote written
"""


def _base_forms() -> dict[str, str]:
    entries = _IRREGULAR.replace("\n", "|").split("|")
    pairs = (entry.split(":") for entry in entries if entry.strip())
    return {form: base.strip() for base, forms in pairs for form in forms.split()}


BASE_FORMS = _base_forms()
"""Irregular English form → base form."""
