"""A person writes a memory by hand."""

import pytest

from memory.services import memories


def place_of(agent, user_id="ming"):
    return f"{agent.pk}:{user_id}"


def test_what_is_written_is_saved_with_a_name_and_a_type_of_its_own(agent, web):
    text = "See https://wiki.example/style for the style guide.\r\nSecond line."

    answer = web.post("/memories/new/", {"place": place_of(agent), "content": text})

    [memory] = memories.list_page(agent, "ming").memories
    assert answer.headers["Location"] == f"/memories/{memory.pk}/"
    assert (memory.type, memory.source) == ("reference", "web")
    assert memory.content == text.replace("\r\n", "\n")
    assert memory.name == "See https://wiki.example/style for the style guide."


def test_nobody_writes_for_another(agent, web):
    for place in (place_of(agent, "bob"), "999:ming", ""):
        answer = web.post("/memories/new/", {"place": place, "content": "x"})

        assert answer.status_code == 422
    assert memories.list_page(agent, "bob").memories == []
    assert memories.list_page(agent, "ming").memories == []


@pytest.mark.parametrize("content", ["", "  \n", "\u200b"])
def test_nothing_is_no_memory_and_the_input_is_kept(ada, web, content):
    answer = web.post("/memories/new/", {"place": place_of(ada), "content": content, "name": "Tea"})

    assert answer.status_code == 422
    assert 'value="Tea"' in answer.content.decode()
    assert memories.list_page(ada, "ming").memories == []


def test_what_is_there_already_is_shown_while_typing(agent, web, remember):
    remember(agent, "ming", "喜欢简短的回答，不要长篇铺垫", name="简短")
    remember(agent, "bob", "喜欢简短的回答，不要长篇铺垫", name="bob's")

    same = web.post("/memories/similar/", {"content": "喜欢简短的回答"}).content.decode()
    other = web.post("/memories/similar/", {"content": "Kumquats are ripe"}).content.decode()

    assert "简短</a>" in same
    assert "bob" not in same
    assert "Kumquats are ripe" in other
    assert "简短" not in other


def test_the_hint_is_of_the_place_that_is_chosen_and_marks_what_says_nothing_new(
    agent, web, remember
):
    remember(agent, "ming", "支付模块周五上线", name="上线")
    english = {"accept-language": "en"}

    def hint(content, place):
        sent = {"content": content, "place": place}
        return web.post("/memories/similar/", sent, headers=english).content.decode()

    assert "says the same" in hint("支付模块周五上线。", place_of(agent))
    assert "says the same" not in hint("支付模块周一上线", place_of(agent))
    assert "上线</a>" in hint("支付模块周一上线", place_of(agent))
    assert "New as far as can be seen" in hint("支付模块周五上线", "999:ming")


def test_an_edit_is_told_of_others_and_not_of_itself(agent, web, remember):
    memory = remember(agent, "ming", "支付模块周五上线", name="上线")
    other = remember(agent, "ming", "支付模块周一上线", name="周一")
    bobs = remember(agent, "bob", "支付模块周一上线", name="bob's")

    def hint(of):
        sent = {"content": "支付模块周五上线"}
        return web.post(f"/memories/similar/?memory={of}", sent)

    assert "周一</a>" in hint(memory.pk).content.decode()
    assert "上线</a>" not in hint(memory.pk).content.decode()
    assert hint(bobs.pk).status_code == 404
    page = web.get(f"/memories/{memory.pk}/edit/").content.decode()
    assert f'hx-post="/memories/similar/?memory={memory.pk}"' in page
    beside = web.get(f"/memories/{other.pk}/alike/").content.decode()
    assert f'href="/memories/{memory.pk}/"' in beside


def test_a_memory_that_is_like_no_other_has_no_such_part(ada, web, remember):
    memory = remember(ada, "ming", "Ming likes oolong tea")

    assert web.get(f"/memories/{memory.pk}/alike/").content.decode().strip() == ""
