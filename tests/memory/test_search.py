"""The search contract: the same question, the same answer on both engines."""


def test_search_finds_a_two_character_chinese_word(agent, remember, names_found):
    remember(agent, "ming", "支付模块周五上线")
    remember(agent, "ming", "Ming deploys on Fridays")

    assert names_found(agent, "ming", "支付") == ["支付模块周五上线"]
